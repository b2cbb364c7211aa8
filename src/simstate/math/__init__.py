"""Rotations, transforms, velocities, inertia: pure functions on [..., k] tensors."""

from simstate.math import euler, inertia, quaternion, transform
from simstate.math.spatial import (
    acceleration_from_cacc,
    move_moment,
    move_velocity,
    velocity_from_cvel,
)

__all__ = [
    "acceleration_from_cacc",
    "euler",
    "inertia",
    "move_moment",
    "move_velocity",
    "quaternion",
    "transform",
    "velocity_from_cvel",
]
