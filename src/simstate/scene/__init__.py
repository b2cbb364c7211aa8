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
from simstate.scene.collisions import CollisionCfg
from simstate.scene.index import Elements, EntityIndex
from simstate.scene.ray_cfg import (
    DownwardRingPattern,
    GridPattern,
    LidarPattern,
    OutwardRingPattern,
    OwnPattern,
    RayCastCfg,
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
    "CollisionCfg",
    "ContactCfg",
    "DcMotorActuatorCfg",
    "DownwardRingPattern",
    "Elements",
    "EntityCfg",
    "EntityIndex",
    "GridPattern",
    "InitialStateCfg",
    "LidarPattern",
    "ModelSource",
    "MotorActuatorCfg",
    "OutwardRingPattern",
    "OwnPattern",
    "PositionActuatorCfg",
    "RayCastCfg",
    "SceneCfg",
    "VelocityActuatorCfg",
    "build_scene",
    "models",
    "terrain",
]
