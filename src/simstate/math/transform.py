"""Homogeneous transforms (..., 4, 4): a rotation and a translation in one matrix.

A passive transform T_pas_A_a_to_B_b maps the components of a position from point a in
axes A to those from point b in axes B. An active one rotates and translates the
position itself, in fixed axes. Free vectors (velocities, forces) are only rotated.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import apply, common_batch


def from_parts(rot: Tensor, shift: Tensor) -> Tensor:
    """Return the transform that rotates by `rot` (..., 3, 3), then adds `shift`."""
    batch = common_batch(rot.shape[:-2], shift.shape[:-1])
    column = shift[..., None].expand(*batch, 3, 1)
    top = torch.cat([rot.expand(*batch, 3, 3), column], dim=-1)
    bottom = torch.zeros_like(top[..., :1, :])
    bottom[..., 3] = 1.0
    return torch.cat([top, bottom], dim=-2)


def to_parts(transform: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rotation (..., 3, 3) and the translation (..., 3) of a transform."""
    return transform[..., :3, :3], transform[..., :3, 3]


def passive(rot_ba: Tensor, b_from_a: Tensor) -> Tensor:
    """Return T_pas_A_a_to_B_b, where b is at `b_from_a` from a in axes A."""
    return from_parts(rot_ba, -apply(rot_ba, b_from_a))


def compose(*transforms: Tensor) -> Tensor:
    """Return the product of transforms, the first applied first; shape (..., 4, 4)."""
    result = transforms[0]
    for transform in transforms[1:]:
        result = transform @ result
    return result


def invert(transform: Tensor) -> Tensor:
    """Return the inverse of a rigid transform; shape (..., 4, 4)."""
    rot, shift = to_parts(transform)
    return from_parts(rot.mT, -apply(rot.mT, shift))


def apply_to_position(transform: Tensor, position: Tensor) -> Tensor:
    """Return the position, rotated and translated; shape (..., 3)."""
    return apply_to_vector(transform, position) + transform[..., :3, 3]


def apply_to_vector(transform: Tensor, vector: Tensor) -> Tensor:
    """Return the free vector, rotated but not translated; shape (..., 3)."""
    return apply(transform[..., :3, :3], vector)
