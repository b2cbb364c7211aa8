"""One free body under loads: Ptera Software's MuJoCoModel, and simstate's in its place.

Prints steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

MASS, INERTIA, TIMESTEP = 1.5, np.diag([0.13, 0.10, 0.22]), 0.005
OMEGAS, VELOCITY = np.array([1.0, 5.0, 2.0]), np.array([12.0, 0.0, 0.0])
FORCE, MOMENT = np.array([0.1, 0.0, -1.0]), np.array([0.0, 0.01, 0.0])


def model_of(side: str) -> Any:
    """The body by the peer's class, or by ours."""
    if side == "peer":
        from pterasoftware._mujoco_model import MuJoCoModel
    else:
        from simstate.interop.ptera import MuJoCoModel
    return MuJoCoModel(
        name="glider",
        mass=MASS,
        omegas_BP1__E=OMEGAS,
        T_pas_BP1_CgP1_to_E_CgP1=np.eye(4),
        vCg_E__E=VELOCITY,
        I_BP1_CgP1=INERTIA,
        delta_time=TIMESTEP,
        integrator="RK4",
    )


def rate(model: Any, steps: int) -> float:
    """Steps per second, each with loads and the state after it."""
    begun = time.perf_counter()
    for _ in range(steps):
        model.apply_loads(FORCE, MOMENT)
        model.step()
        model.get_state()
    return steps / (time.perf_counter() - begun)


if __name__ == "__main__":
    print(rate(model_of(sys.argv[1]), 4000))
