"""Integration: schemes, force models, processes, events, histories and coupling."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from simstate.base.compiled_core import get_include
from simstate.engine.tableau import Tableau
from simstate.step.coupled_stepper import Strong
from simstate.step.forces.force_parameters import Parameters
from simstate.step.forces.frame import MovingFrame
from simstate.step.forces.function_force import CFunction, CompiledFunction
from simstate.step.forces.gravity import Gravity, UniformGravity
from simstate.step.forces.gravity_sources import (
    CentralGravity,
    PointMassGravity,
    ThirdBody,
)
from simstate.step.forces.numba_force import compile_force
from simstate.step.forces.scene_force import ForceModel
from simstate.step.forces.thrust_and_drag import Drag, JointTargets, Thruster
from simstate.step.history import History
from simstate.step.processes import (
    DrivingNoise,
    GeometricBrownian,
    OrnsteinUhlenbeck,
    Process,
)
from simstate.step.schemes.runge_kutta_schemes import (
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
from simstate.step.schemes.schemes import ATTITUDE_MODES, Adaptive, Explicit
from simstate.step.stochastic.sde_tableau import StochasticTableau
from simstate.step.stochastic.sde_variables import brownian_integrals
from simstate.step.stochastic.stochastic import (
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
from simstate.step.stochastic.weak_ito import (
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
from simstate.step.stochastic.weak_schemes import RS1, RS2, SIEA, SIEB, SMEA, SMEB
from simstate.step.timeline_events import Event, PeriodicTask

if TYPE_CHECKING:
    from simstate.step.conservation import ConservationReport, report
    from simstate.step.qpos_state import QPosState, QuaternionBlock
STOCHASTIC_SCHEMES: dict[str, type[Stochastic]] = {
    scheme.__name__.lower(): scheme
    for scheme in (
        *(EulerMaruyama, EulerHeun, RKMilstein, SRA1, SOSRA, SRIW1, SOSRI),
        *(PlatenWeak2, RDI1WM, DRI1, DRI1NM, RI1, RI3, RI5, RI6, RS1, RS2),
        *(W2Ito1, W2Ito2, SIEA, SMEA, SIEB, SMEB),
    )
}
"""The built-in stochastic schemes by name in lower case."""

_LATE = {
    "QPosState": "qpos_state",
    "QuaternionBlock": "qpos_state",
    "ConservationReport": "conservation",
    "report": "conservation",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        module = import_module(f"simstate.step.{_LATE[name]}")
        return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    "CompiledFunction",
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
    "PeriodicTask",
    "PlatenWeak2",
    "PointMassGravity",
    "Process",
    "QPosState",
    "QuaternionBlock",
    "RKMilstein",
    "Stochastic",
    "StochasticTableau",
    "Strong",
    "Tableau",
    "ThirdBody",
    "Thruster",
    "UniformGravity",
    "W2Ito1",
    "W2Ito2",
    "brownian_integrals",
    "compile_force",
    "get_include",
    "report",
    "scheme",
]
