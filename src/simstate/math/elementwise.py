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
from torch.autograd import forward_ad

_DTYPES = (torch.float64, torch.float32)
"""Those that torch and NumPy compute in the same way."""


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """The angle of the point (x, y), from −π to π [rad]; broadcasts."""
    return _alike(np.arctan2, torch.atan2, y, x)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """The root of x² + y², without overflow; broadcasts."""
    return _alike(np.hypot, torch.hypot, x, y)


def power(base: Tensor, exponent: float | Tensor) -> Tensor:
    """The base, which is not negative, to a power; broadcasts."""
    if not isinstance(exponent, Tensor):
        if base.dtype not in _DTYPES:
            return torch.pow(base, exponent)
        exponent = base.new_tensor(exponent)
    return _alike(np.power, torch.pow, base, exponent)


def root(values: Tensor) -> Tensor:
    """The square root, rounded to the nearest number."""
    return _alike(np.sqrt, torch.sqrt, values)


def _alike(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], *values: Tensor
) -> Tensor:
    """The function of NumPy; torch's own where a tensor is more than its numbers.

    Those are on a GPU, with gradients of either mode, within `vmap`, or of dtypes that
    NumPy does not have or would promote in other ways.
    """
    dtype = values[0].dtype
    if dtype not in _DTYPES or any(value.dtype != dtype for value in values):
        return elsewhere(*values)
    try:
        arrays = [_numbers(value) for value in values]
    except (RuntimeError, TypeError):  # NumPy cannot have them
        return elsewhere(*values)
    with np.errstate(all="ignore"):  # NaN and infinity follow torch's rules
        found = on_host(*arrays)
    return torch.from_numpy(np.asarray(found))


def _numbers(value: Tensor) -> Any:
    """A tensor's memory; raises if it has none on the host, or is differentiated."""
    if forward_ad.unpack_dual(value).tangent is not None:
        raise TypeError("a derivative goes with it")
    return value.numpy()
