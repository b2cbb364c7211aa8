"""Scenes: configuration in, one compiled MjModel with names → ids out."""

from simstate.scene import models, terrain
from simstate.scene.actuators import (
    ActuatorCfg,
    DcMotorActuatorCfg,
    MotorActuatorCfg,
    PositionActuatorCfg,
    VelocityActuatorCfg,
)
from simstate.scene.build import BuiltScene, build_scene
from simstate.scene.index import Elements, EntityIndex
from simstate.scene.ray_cfg import (
    GridPattern,
    LidarPattern,
    OwnPattern,
    RayCastCfg,
    RingPattern,
)
from simstate.scene.scene_cfg import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    InitialStateCfg,
    ModelSource,
    SceneCfg,
)

__all__ = [
    "ActuatorCfg",
    "BuiltScene",
    "CameraCfg",
    "ContactCfg",
    "DcMotorActuatorCfg",
    "Elements",
    "EntityCfg",
    "EntityIndex",
    "GridPattern",
    "InitialStateCfg",
    "LidarPattern",
    "ModelSource",
    "MotorActuatorCfg",
    "OwnPattern",
    "PositionActuatorCfg",
    "RayCastCfg",
    "RingPattern",
    "SceneCfg",
    "VelocityActuatorCfg",
    "build_scene",
    "models",
    "terrain",
]
