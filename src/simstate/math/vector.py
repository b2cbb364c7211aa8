"""Products and lengths of vectors along the last dimension, with broadcasting."""

# Torch's own signatures of these are incomplete; here they get whole ones.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import torch
from torch import Tensor


def cross(left: Tensor, right: Tensor) -> Tensor:
    """The cross product left × right; shape (..., 3)."""
    return torch.linalg.cross(left, right)


def dot(left: Tensor, right: Tensor) -> Tensor:
    """The scalar product, last dimension kept; shape (..., 1)."""
    return torch.sum(left * right, dim=-1, keepdim=True)


def norm(vec: Tensor) -> Tensor:
    """The length, last dimension kept; shape (..., 1)."""
    return torch.linalg.vector_norm(vec, dim=-1, keepdim=True)


def greatest(values: Tensor) -> float:
    """The greatest magnitude of all numbers, in one pass; NaN if one is NaN."""
    return float(torch.linalg.vector_norm(values, torch.inf))
