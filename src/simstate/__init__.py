"""simstate: the state layer for MuJoCo.

One world or thousands, on CPU threads or a GPU, behind one API; every number says its
point, axes and unit, and nothing is read stale.
"""

import os
import sys

if "torch" not in sys.modules:
    # Let torch's threads sleep while they wait: MuJoCo's want the cores. Where torch is
    # loaded already this comes too late, and costs speed only.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from simstate import conventions, flight, integrate, math, models
from simstate.engine import NativeCfg, WarpCfg
from simstate.entity import Entity, EntityData, Quantity
from simstate.errors import (
    ConventionError,
    DivergenceError,
    FileError,
    IntegrationError,
    InvalidInputError,
    ModelError,
    RecordingError,
    ShapeError,
    SimStateError,
    SnapshotError,
    StaleReadError,
    TaskError,
    ThreadError,
    UnknownNameError,
)
from simstate.explanation import explain
from simstate.scene import (
    CameraCfg,
    ContactCfg,
    DcMotorActuatorCfg,
    EntityCfg,
    GridPattern,
    InitialStateCfg,
    LidarPattern,
    MotorActuatorCfg,
    OwnPattern,
    PositionActuatorCfg,
    RayCastCfg,
    RingPattern,
    SceneCfg,
    VelocityActuatorCfg,
)
from simstate.simulation import Simulation

__version__ = "0.2.0"

__all__ = [
    "CameraCfg",
    "ContactCfg",
    "ConventionError",
    "DcMotorActuatorCfg",
    "DivergenceError",
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
    "OwnPattern",
    "PositionActuatorCfg",
    "Quantity",
    "RayCastCfg",
    "RecordingError",
    "RingPattern",
    "SceneCfg",
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
    "conventions",
    "explain",
    "flight",
    "integrate",
    "math",
    "models",
]
