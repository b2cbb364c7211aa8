"""Conventions: how rigid-body states are written, and exact ways between them."""

from simstate.conventions.attitude import Attitude
from simstate.conventions.convention import Convention
from simstate.conventions.convert import convert, convert_inertia
from simstate.conventions.motion import (
    angular_momentum,
    kinetic_energy,
    linear_momentum,
)
from simstate.conventions.presets import (
    AEROSANDBOX,
    DRAKE,
    ISAACLAB_2,
    ISAACLAB_3,
    MUJOCO,
    MUJOCO_QVEL,
    PINOCCHIO,
    PRESETS,
    PTERA,
    PX4,
    PYBULLET,
    ROS,
)
from simstate.conventions.rotations import R_to_quat_wxyz
from simstate.conventions.state import (
    RigidBodyState,
    StateDifference,
    difference,
    join,
)

__all__ = [
    "AEROSANDBOX",
    "DRAKE",
    "ISAACLAB_2",
    "ISAACLAB_3",
    "MUJOCO",
    "MUJOCO_QVEL",
    "PINOCCHIO",
    "PRESETS",
    "PTERA",
    "PX4",
    "PYBULLET",
    "ROS",
    "Attitude",
    "Convention",
    "R_to_quat_wxyz",
    "RigidBodyState",
    "StateDifference",
    "angular_momentum",
    "convert",
    "convert_inertia",
    "difference",
    "join",
    "kinetic_energy",
    "linear_momentum",
]
