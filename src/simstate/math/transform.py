"""Homogeneous transforms (..., 4, 4): a rotation and a shift of points in one matrix.

A passive transform T_pas_A_a_to_B_b takes the components of a position in axes A from
point a to those in axes B from point b. An active one turns and shifts the position
itself, in fixed axes. Free vectors (velocities, forces) are turned but not shifted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import apply, common_batch


def from_parts(rot: Tensor, shift: Tensor) -> Tensor:
    """The transform that turns by `rot` (..., 3, 3), then adds `shift` (..., 3)."""
    batch = common_batch(rot.shape[:-2], shift.shape[:-1])
    column = shift[..., None].expand(*batch, 3, 1)
    top = torch.cat([rot.expand(*batch, 3, 3), column], dim=-1)
    bottom = torch.zeros_like(top[..., :1, :])
    bottom[..., 3] = 1.0
    return torch.cat([top, bottom], dim=-2)


def to_parts(transform: Tensor) -> tuple[Tensor, Tensor]:
    """The rotation (..., 3, 3) and the shift (..., 3) of a transform."""
    return transform[..., :3, :3], transform[..., :3, 3]


def passive(rot_ba: Tensor, b_from_a: Tensor) -> Tensor:
    """T_pas_A_a_to_B_b of axes B and a point b that is at `b_from_a` in axes A."""
    return from_parts(rot_ba, -apply(rot_ba, b_from_a))


def compose(*transforms: Tensor) -> Tensor:
    """All of them, applied from the first to the last; shape (..., 4, 4)."""
    result = transforms[0]
    for transform in transforms[1:]:
        result = transform @ result
    return result


def invert(transform: Tensor) -> Tensor:
    """The inverse of a rigid transform; shape (..., 4, 4)."""
    rot, shift = to_parts(transform)
    return from_parts(rot.mT, -apply(rot.mT, shift))


def apply_to_position(transform: Tensor, position: Tensor) -> Tensor:
    """The position, turned and shifted; shape (..., 3)."""
    return apply_to_vector(transform, position) + transform[..., :3, 3]


def apply_to_vector(transform: Tensor, vector: Tensor) -> Tensor:
    """The free vector, turned and not shifted; shape (..., 3)."""
    return apply(transform[..., :3, :3], vector)
