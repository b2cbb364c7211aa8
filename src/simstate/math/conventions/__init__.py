"""Conventions for rigid-body states, and exact conversions between them."""

from simstate.math.conventions.attitude import Attitude
from simstate.math.conventions.convention import Convention
from simstate.math.conventions.convert import convert, convert_inertia
from simstate.math.conventions.momentum import (
    angular_momentum,
    kinetic_energy,
    linear_momentum,
)
from simstate.math.conventions.presets import (
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
from simstate.math.conventions.rigid_body_state import (
    RigidBodyState,
    StateDifference,
    difference,
    join,
)
from simstate.math.conventions.rotations import R_to_quat_wxyz

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
