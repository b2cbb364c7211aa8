"""Elementwise functions whose bits do not depend on an element's position in a tensor.

Torch computes most of a tensor four or eight elements at a time and the rest one by
one, and for some functions the two differ in the last bit: a world would get other
results in a batch than alone. NumPy's do not differ; its root is correctly rounded.
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
"""Dtypes that torch and NumPy have in common."""


def atan2(y: Tensor, x: Tensor) -> Tensor:
    """Return the angle of the point (x, y), from −π to π [rad]; broadcasts."""
    return _alike(np.arctan2, torch.atan2, y, x)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Return the square root of x² + y² without overflow; broadcasts."""
    return _alike(np.hypot, torch.hypot, x, y)


def power(base: Tensor, exponent: float | Tensor) -> Tensor:
    """Return the non-negative base to a power; broadcasts."""
    if not isinstance(exponent, Tensor):
        if base.dtype not in _DTYPES:
            return torch.pow(base, exponent)
        exponent = base.new_tensor(exponent)
    return _alike(np.power, torch.pow, base, exponent)


def root(values: Tensor) -> Tensor:
    """Return the square root, correctly rounded."""
    return _alike(np.sqrt, torch.sqrt, values)


def _alike(
    on_host: Callable[..., Any], elsewhere: Callable[..., Tensor], *values: Tensor
) -> Tensor:
    """Apply NumPy's function, or torch's to tensors that NumPy cannot represent.

    Those are on a GPU, have gradients of either mode, are within `vmap`, or have dtypes
    that NumPy lacks or would promote differently.
    """
    dtype = values[0].dtype
    if dtype not in _DTYPES or any(value.dtype != dtype for value in values):
        return elsewhere(*values)
    try:
        arrays = [_numbers(value) for value in values]
    except (RuntimeError, TypeError):  # NumPy cannot represent them
        return elsewhere(*values)
    with np.errstate(all="ignore"):  # NaN and infinity follow torch's rules
        found = on_host(*arrays)
    return torch.from_numpy(np.asarray(found))


def _numbers(value: Tensor) -> Any:
    """Return a tensor's memory; raise if it is not on the host or is differentiated."""
    if forward_ad.unpack_dual(value).tangent is not None:
        raise TypeError("the tensor has a forward-mode derivative")
    return value.numpy()
