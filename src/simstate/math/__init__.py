"""Rotations, transforms, velocities, inertia: pure functions on [..., k] tensors."""

import warnings
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name == "velocity_from_cvel":  # as it was called in 0.1
        text = "simstate.math.velocity_from_cvel is compute_velocity_from_cvel now."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return compute_velocity_from_cvel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
