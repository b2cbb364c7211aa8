"""One free body under loads: Ptera Software's MuJoCoModel, and simstate's in its place.

With more worlds than one simstate's are a FreeFlight, which has the same calls; Ptera
Software has one body whatever is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from job import cpu_rate, one_thread, report

MASS, INERTIA, TIMESTEP = 1.5, np.diag([0.13, 0.10, 0.22]), 0.005
OMEGAS, VELOCITY = np.array([1.0, 5.0, 2.0]), np.array([12.0, 0.0, 0.0])
FORCE, MOMENT = np.array([0.1, 0.0, -1.0]), np.array([0.0, 0.01, 0.0])
BODY: dict[str, Any] = {
    "name": "glider",
    "mass": MASS,
    "omegas_BP1__E": OMEGAS,
    "T_pas_BP1_CgP1_to_E_CgP1": np.eye(4),
    "vCg_E__E": VELOCITY,
    "I_BP1_CgP1": INERTIA,
    "delta_time": TIMESTEP,
    "integrator": "RK4",
}


def rate(model: Any, worlds: int) -> float:
    """World-steps per CPU second, each with loads and the state after it."""

    def step() -> None:
        model.apply_loads(FORCE, MOMENT)
        model.step()
        model.get_state()

    return cpu_rate(step, worlds)


def ptera(worlds: int) -> float:
    """One body by the peer's class."""
    from pterasoftware._mujoco_model import MuJoCoModel

    return rate(MuJoCoModel(**BODY), 1)


def simstate(worlds: int) -> float:
    """One body by our class of the same name, more by FreeFlight."""
    if worlds == 1:
        from simstate.interop.ptera import MuJoCoModel

        return rate(MuJoCoModel(**BODY), 1)
    from simstate.flight import FreeFlight

    flight = FreeFlight(
        MASS,
        INERTIA,
        worlds,
        timestep=TIMESTEP,
        velocity_E__E=VELOCITY,
        integrator="RK4",
        gravity=0,
        engine=one_thread(),
    )
    return rate(flight, worlds)


report("pterasoftware", {"peer": ptera, "simstate": simstate})
