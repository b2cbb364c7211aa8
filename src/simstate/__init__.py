"""simstate: the state layer for MuJoCo.

One world or thousands, on CPU threads or a GPU, behind one API; every number says its
point, axes and unit, and nothing is read stale.
"""

from simstate import math, models
from simstate.engine import NativeCfg, WarpCfg
from simstate.entity import Entity, EntityData, Quantity
from simstate.errors import (
    DivergenceError,
    InvalidInputError,
    ModelError,
    ShapeError,
    SimStateError,
    SnapshotError,
    StaleReadError,
    UnknownNameError,
)
from simstate.scene import (
    CameraCfg,
    EntityCfg,
    InitialStateCfg,
    MotorActuatorCfg,
    PositionActuatorCfg,
    SceneCfg,
    VelocityActuatorCfg,
)
from simstate.simulation import Simulation

__version__ = "0.1.0"

__all__ = [
    "CameraCfg",
    "DivergenceError",
    "Entity",
    "EntityCfg",
    "EntityData",
    "InitialStateCfg",
    "InvalidInputError",
    "ModelError",
    "MotorActuatorCfg",
    "NativeCfg",
    "PositionActuatorCfg",
    "Quantity",
    "SceneCfg",
    "ShapeError",
    "SimStateError",
    "Simulation",
    "SnapshotError",
    "StaleReadError",
    "UnknownNameError",
    "VelocityActuatorCfg",
    "WarpCfg",
    "math",
    "models",
]
