"""Rotations, transforms, velocities, inertia: pure functions on [..., k] tensors."""

from simstate.math import conventions, euler, inertia, quaternion, transform
from simstate.math.spatial import (
    acceleration_from_cacc,
    compute_velocity_from_cvel,
    move_moment,
    move_velocity,
)

__all__ = [
    "acceleration_from_cacc",
    "compute_velocity_from_cvel",
    "conventions",
    "euler",
    "inertia",
    "move_moment",
    "move_velocity",
    "quaternion",
    "transform",
]
