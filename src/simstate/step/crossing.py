"""Where functions of time cross zero, for many worlds: Chandrupatla's method."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MOST_ITERATIONS = 120
"""Bisection alone would take 70 for a day to 1e-10 s."""


def find_crossing(
    function: Callable[[Tensor, Tensor], Tensor],
    end: Tensor,
    at_start: Tensor,
    at_end: Tensor,
    tolerance: Tensor,
) -> Tensor:
    """The time at which a function is above zero, at most `tolerance` after it was not.

    Inverse quadratic interpolation, or bisection where that would not gain: T. R.
    Chandrupatla, Advances in Engineering Software 28 (1997).

    Args:
        function: of times and of the indices that are asked for; (m,) both.
        end: the end of each interval, which begins at 0; (n,).
        at_start: the values at 0, which are ≤ 0; (n,).
        at_end: the values at the end, which are > 0; (n,).
        tolerance: how wide the last interval may be; (n,).
    """
    last, f_last = end.clone(), at_end.clone()
    other, f_other = torch.zeros_like(end), at_start.clone()
    share = torch.full_like(end, 0.5)
    going = (last - other).abs() > tolerance
    for _ in range(MOST_ITERATIONS):
        ids = going.nonzero().flatten()
        if not len(ids):
            break
        x = last[ids] + share[ids] * (other[ids] - last[ids])
        f = function(x, ids)
        same = (f > 0) == (f_last[ids] > 0)
        older = torch.where(same, last[ids], other[ids])
        f_older = torch.where(same, f_last[ids], f_other[ids])
        other[ids] = torch.where(same, other[ids], last[ids])
        f_other[ids] = torch.where(same, f_other[ids], f_last[ids])
        last[ids], f_last[ids] = x, f
        width = (other[ids] - x).abs()
        least = (0.5 * tolerance[ids] / width).clamp(max=0.5)
        share[ids] = _interpolated(
            x, f, other[ids], f_other[ids], older, f_older
        ).clamp(least, 1 - least)
        going[ids] = width > tolerance[ids]
    return torch.where(f_last > 0, last, other)


def _interpolated(
    a: Tensor, fa: Tensor, b: Tensor, fb: Tensor, c: Tensor, fc: Tensor
) -> Tensor:
    """How far from a to b the next point lies, 0 to 1; 0.5 where nothing is better."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    fits = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    share = fa / (fb - fa) * fc / (fb - fc)
    share = share + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return torch.where(fits & share.isfinite(), share, 0.5)
