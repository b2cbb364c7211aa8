"""Scenes: configuration in, one compiled MjModel with names → ids out."""

from simstate.scene.actuators import (
    ActuatorCfg,
    MotorActuatorCfg,
    PositionActuatorCfg,
    VelocityActuatorCfg,
)
from simstate.scene.build import BuiltScene, build_scene
from simstate.scene.cfg import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    InitialStateCfg,
    ModelSource,
    SceneCfg,
)
from simstate.scene.index import Elements, EntityIndex

__all__ = [
    "ActuatorCfg",
    "BuiltScene",
    "CameraCfg",
    "ContactCfg",
    "Elements",
    "EntityCfg",
    "EntityIndex",
    "InitialStateCfg",
    "ModelSource",
    "MotorActuatorCfg",
    "PositionActuatorCfg",
    "SceneCfg",
    "VelocityActuatorCfg",
    "build_scene",
]
