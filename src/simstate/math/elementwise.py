"""Functions of numbers, whose bits do not depend on where in a tensor one stands.

Torch computes most of a tensor four or eight numbers at a time and the rest one by one,
and for some functions the two differ in the last bit: a world would have other numbers
in a batch than alone. NumPy's do not, and its root is the nearest number, as in C.
"""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y), from −π to π [rad]; broadcasts."""
    return _alike(np.arctan2, torch.atan2, y, x)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The root of x² + y², without overflow; broadcasts."""
    return _alike(np.hypot, torch.hypot, x, y)


def power(base: Tensor, exponent: float | Tensor) -> Tensor:
    """The base, which is not negative, to a power; broadcasts."""
    if not isinstance(exponent, Tensor):
        exponent = base.new_tensor(exponent)
    return _alike(np.power, torch.pow, base, exponent)


def root(values: Tensor) -> Tensor:
    """The square root, rounded to the nearest number."""
    return _alike(np.sqrt, torch.sqrt, values)


def _alike(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], *values: Tensor
) -> Tensor:
    """The function of NumPy; of torch on a GPU, and where gradients are wanted."""
    if any(value.requires_grad or value.device.type != "cpu" for value in values):
        return elsewhere(*values)
    with np.errstate(all="ignore"):  # NaN and infinity are told by torch's rules
        found = on_host(*(value.numpy() for value in values))
    return torch.from_numpy(np.asarray(found))
