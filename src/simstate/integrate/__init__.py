"""Integrators of true order over the whole state, and what drives it.

`Simulation(scene, integrator=RK4(attitude="lie"))` replaces MuJoCo's stepper; force
models, processes, mass flow and noise then act at every stage of every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simstate.integrate.forces import ForceModel
from simstate.integrate.integration import Integration, Integrator
from simstate.integrate.processes import (
    GeometricBrownian,
    Noise,
    OrnsteinUhlenbeck,
    Process,
)
from simstate.integrate.schemes import (
    BS32,
    DOP853,
    DP54,
    RK4,
    RKF45,
    RKF78,
    SCHEMES,
    Adaptive,
    Euler,
    Explicit,
    Heun,
    Midpoint,
    scheme,
)
from simstate.integrate.stochastic import (
    SRA1,
    SRIW1,
    EulerHeun,
    EulerMaruyama,
    PlatenWeak2,
    RKMilstein,
    Stochastic,
)
from simstate.integrate.tableau import Tableau

if TYPE_CHECKING:
    from simstate.integrate.qpos_state import QPosState, QuaternionBlock

__all__ = [
    "BS32",
    "DOP853",
    "DP54",
    "RK4",
    "RKF45",
    "RKF78",
    "SCHEMES",
    "SRA1",
    "SRIW1",
    "Adaptive",
    "Euler",
    "EulerHeun",
    "EulerMaruyama",
    "Explicit",
    "ForceModel",
    "GeometricBrownian",
    "Heun",
    "Integration",
    "Integrator",
    "Midpoint",
    "Noise",
    "OrnsteinUhlenbeck",
    "PlatenWeak2",
    "Process",
    "QPosState",
    "QuaternionBlock",
    "RKMilstein",
    "Stochastic",
    "Tableau",
    "scheme",
]


def __getattr__(name: str) -> Any:
    if name in ("QPosState", "QuaternionBlock"):  # they load Warp
        from simstate.integrate import qpos_state

        return getattr(qpos_state, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
