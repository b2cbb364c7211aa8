"""Quaternions (w, x, y, z) and spatial velocity: pure functions on [..., k] tensors."""

from simstate.math import quaternion
from simstate.math.spatial import (
    acceleration_from_cacc,
    move_velocity,
    velocity_from_cvel,
)

__all__ = [
    "acceleration_from_cacc",
    "move_velocity",
    "quaternion",
    "velocity_from_cvel",
]
