"""Integrators of true order over the whole state, and what drives it.

`Simulation(scene, integrator=RK4(attitude="lie"))` replaces MuJoCo's stepper; force
models, processes, mass flow and noise then act at every stage of every step.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simstate.integrate.events import Event, Task
from simstate.integrate.frame import MovingFrame
from simstate.integrate.function_force import CFunction, get_include
from simstate.integrate.gravity import Gravity, UniformGravity
from simstate.integrate.gravity_sources import (
    CentralGravity,
    PointMassGravity,
    ThirdBody,
)
from simstate.integrate.history import History
from simstate.integrate.loads import Drag, JointTargets, Thruster
from simstate.integrate.parameters import Parameters
from simstate.integrate.processes import (
    DrivingNoise,
    GeometricBrownian,
    OrnsteinUhlenbeck,
    Process,
)
from simstate.integrate.runge_kutta import (
    BS32,
    DOP853,
    DP54,
    RK4,
    RKF45,
    RKF78,
    SCHEMES,
    Euler,
    Heun,
    Midpoint,
    scheme,
)
from simstate.integrate.scene_force import ForceModel
from simstate.integrate.schemes import ATTITUDE_MODES, Adaptive, Explicit
from simstate.integrate.sde_tableau import StochasticTableau
from simstate.integrate.sde_variables import brownian_integrals
from simstate.integrate.stochastic import (
    SOSRA,
    SOSRI,
    SRA1,
    SRIW1,
    EulerHeun,
    EulerMaruyama,
    Integrator,
    RKMilstein,
    Stochastic,
)
from simstate.integrate.stochastic_schemes import STOCHASTIC_SCHEMES
from simstate.integrate.tableau import Tableau
from simstate.integrate.weak_diagonal import SIEA, SIEB, SMEA, SMEB
from simstate.integrate.weak_ito import (
    DRI1,
    DRI1NM,
    RDI1WM,
    RI1,
    RI3,
    RI5,
    RI6,
    PlatenWeak2,
    W2Ito1,
    W2Ito2,
)
from simstate.integrate.weak_stratonovich import RS1, RS2

if TYPE_CHECKING:
    from simstate.integrate.conservation import ConservationReport, report
    from simstate.integrate.qpos_state import QPosState, QuaternionBlock

__all__ = [
    "ATTITUDE_MODES",
    "BS32",
    "DOP853",
    "DP54",
    "DRI1",
    "DRI1NM",
    "RDI1WM",
    "RI1",
    "RI3",
    "RI5",
    "RI6",
    "RK4",
    "RKF45",
    "RKF78",
    "RS1",
    "RS2",
    "SCHEMES",
    "SIEA",
    "SIEB",
    "SMEA",
    "SMEB",
    "SOSRA",
    "SOSRI",
    "SRA1",
    "SRIW1",
    "STOCHASTIC_SCHEMES",
    "Adaptive",
    "CFunction",
    "CentralGravity",
    "ConservationReport",
    "Drag",
    "DrivingNoise",
    "Euler",
    "EulerHeun",
    "EulerMaruyama",
    "Event",
    "Explicit",
    "ForceModel",
    "GeometricBrownian",
    "Gravity",
    "Heun",
    "History",
    "Integrator",
    "JointTargets",
    "Midpoint",
    "MovingFrame",
    "OrnsteinUhlenbeck",
    "Parameters",
    "PlatenWeak2",
    "PointMassGravity",
    "Process",
    "QPosState",
    "QuaternionBlock",
    "RKMilstein",
    "Stochastic",
    "StochasticTableau",
    "Tableau",
    "Task",
    "ThirdBody",
    "Thruster",
    "UniformGravity",
    "W2Ito1",
    "W2Ito2",
    "brownian_integrals",
    "get_include",
    "report",
    "scheme",
]


_LATE = {
    "QPosState": "qpos_state",
    "QuaternionBlock": "qpos_state",
    "ConservationReport": "conservation",
    "report": "conservation",
}
"""Names whose modules load Warp, so they are imported when they are used."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        module = import_module(f"simstate.integrate.{_LATE[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
