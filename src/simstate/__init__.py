"""simstate: the state layer for MuJoCo.

One world or thousands, on CPU threads or a GPU, behind one API. Every quantity declares
its reference point, axes and unit, and reads are never stale.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if "torch" not in sys.modules:
    # Let torch's threads sleep while they wait: MuJoCo's want the cores. Where torch is
    # loaded already this comes too late, and costs speed only.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from simstate import (
        data,
        entity,
        env,
        flight,
        integrate,
        interop,
        record,
        scene,
        sensors,
        simulators,
        space,
        state,
        study,
        train,
        view,
    )
    from simstate.base.compiled_core import get_include
    from simstate.base.errors import (
        ConventionError,
        CouplingError,
        DivergenceError,
        FileError,
        IntegrationError,
        InvalidInputError,
        ModelError,
        RecordingError,
        SceneMismatchError,
        ShapeError,
        SimStateError,
        SnapshotError,
        StaleReadError,
        TaskError,
        ThreadError,
        UnknownNameError,
    )
    from simstate.engine import NativeCfg, WarpCfg
    from simstate.entity import Entity, EntityData, Quantity
    from simstate.entity.explanation import explain
    from simstate.scene import (
        CameraCfg,
        CollisionCfg,
        ContactCfg,
        DcMotorActuatorCfg,
        DownwardRingPattern,
        EntityCfg,
        GridPattern,
        InitialStateCfg,
        LidarPattern,
        MotorActuatorCfg,
        OutwardRingPattern,
        OwnPattern,
        PositionActuatorCfg,
        RayCastCfg,
        SceneCfg,
        VelocityActuatorCfg,
    )
    from simstate.simulation import Simulation

__version__ = "0.2.0"

__all__ = [
    "CameraCfg",
    "CollisionCfg",
    "ContactCfg",
    "ConventionError",
    "CouplingError",
    "DcMotorActuatorCfg",
    "DivergenceError",
    "DownwardRingPattern",
    "Entity",
    "EntityCfg",
    "EntityData",
    "FileError",
    "GridPattern",
    "InitialStateCfg",
    "IntegrationError",
    "InvalidInputError",
    "LidarPattern",
    "ModelError",
    "MotorActuatorCfg",
    "NativeCfg",
    "OutwardRingPattern",
    "OwnPattern",
    "PositionActuatorCfg",
    "Quantity",
    "RayCastCfg",
    "RecordingError",
    "SceneCfg",
    "SceneMismatchError",
    "ShapeError",
    "SimStateError",
    "Simulation",
    "SnapshotError",
    "StaleReadError",
    "TaskError",
    "ThreadError",
    "UnknownNameError",
    "VelocityActuatorCfg",
    "WarpCfg",
    "data",
    "entity",
    "env",
    "explain",
    "flight",
    "get_include",
    "integrate",
    "interop",
    "record",
    "scene",
    "sensors",
    "simulators",
    "space",
    "state",
    "study",
    "train",
    "view",
]

_HOMES = (
    "base.errors",
    "base.compiled_core",
    "scene",
    "engine",
    "entity",
    "entity.explanation",
    "simulation",
)
"""Modules that provide the public names that are not modules."""

if not TYPE_CHECKING:  # a type checker would take every name for known

    def __getattr__(name: str) -> object:
        """A public name or a module, loaded when it is first used.

        So that `simstate --help` need not load torch.
        """
        if not name.startswith("_") and find_spec(f"simstate.{name}") is not None:
            return _imported(name)
        for home in _HOMES if name in __all__ else ():
            module = _imported(home)
            if hasattr(module, name):
                return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module 'simstate' has no attribute {name!r}")

    def _imported(name: str) -> object:
        """A module; an error of a damaged MuJoCo says how to repair it."""
        try:
            return import_module(f"simstate.{name}")
        except (ImportError, AttributeError) as error:
            from simstate.base.errors import SimStateError
            from simstate.base.mujoco_version import installation_fault

            fault = installation_fault()
            if fault is None:
                raise
            raise SimStateError(fault) from error

    def __dir__() -> list[str]:
        return sorted(__all__)
