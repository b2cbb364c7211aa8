"""Splines as matrices: values at given times are weights times the knots."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

Interpolation: TypeAlias = Literal["zero", "linear", "cubic"]
"""Hold the last knot, straight lines, or cubic Hermite curves (Catmull-Rom)."""


def spline_weights(times: Tensor, num_knots: int, kind: Interpolation) -> Tensor:
    """Return the weights of the knots at some times; shape (…, num_knots).

    Knots are at 0, 1, …; outside them, the first and the last value are held.
    """
    last = num_knots - 1
    at = times.clamp(0.0, float(last))
    index = at.floor().clamp(max=max(0, last - (kind != "zero"))).long()
    u = at - index
    offsets: dict[int, Tensor]
    if kind == "zero":
        offsets = {0: torch.ones_like(u)}
    elif kind == "linear":
        offsets = {0: 1 - u, 1: u}
    else:
        offsets = {
            -1: (-u + 2 * u**2 - u**3) / 2,
            0: (2 - 5 * u**2 + 3 * u**3) / 2,
            1: (u + 4 * u**2 - 3 * u**3) / 2,
            2: (u**3 - u**2) / 2,
        }
    weights = torch.zeros((*times.shape, num_knots), dtype=times.dtype)
    for offset, weight in offsets.items():
        knot = (index + offset).clamp(0, last)
        weights.scatter_add_(-1, knot[..., None], weight[..., None])
    return weights
