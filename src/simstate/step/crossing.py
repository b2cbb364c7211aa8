"""Zero crossings of functions of time, for many worlds: Chandrupatla's method."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MOST_ITERATIONS = 120
"""Bisection alone would take 70 for a day to 1e-10 s."""


def find_crossing(
    function: Callable[[Tensor, Tensor], Tensor],
    start: Tensor,
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
        start: the start of each interval; (n,).
        end: its end; (n,).
        at_start: the values at the start, which are ≤ 0; (n,).
        at_end: the values at the end, which are > 0; (n,).
        tolerance: how wide the last interval may be; (n,).
    """
    last, f_last = end.clone(), at_end.clone()
    other, f_other = start.clone(), at_start.clone()
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
    """Return the position of the next point from a (0) to b (1); 0.5 by default."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    fits = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    share = fa / (fb - fa) * fc / (fb - fc)
    share = share + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return torch.where(fits & share.isfinite(), share, 0.5)


def first_change(
    side: Tensor, wanted: int, times: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first interval between samples in which a function crosses zero.

    Args:
        side: the sign at the start, 0 if it is not known; (n,).
        wanted: the sign before the crossing: 1 falling, −1 rising, 0 either.
        times: of the samples; (k, n).
        values: of the function; (k, n).

    Returns:
        The start and the end of the interval, infinite if there is none, and the sign
        at its start; (n,) each.
    """
    times, order = times.sort(dim=0)
    signs = values.gather(0, order).nan_to_num().sign().long()
    start, end = torch.zeros_like(times[0]), torch.full_like(times[0], torch.inf)
    side = side.clone()
    for time, sign in zip(times, signs, strict=True):
        open_ = end.isinf()
        changes = open_ & (sign * side < 0)
        found = changes & (side == wanted) if wanted else changes
        end = torch.where(found, time, end)
        passes = open_ & ~found & (sign != 0)
        start = torch.where(passes, time, start)
        side = torch.where(passes, sign, side)
    return start, end, side


def turning_point(first: Tensor, middle: Tensor, last: Tensor) -> Tensor:
    """Return where the parabola through three samples at 0, ½ and 1 turns; (n,).

    NaN where it does not within the interval, or has the sign of all three there.
    """
    bend = 2 * (first - 2 * middle + last)
    slope = last - first - bend
    at = -slope / (2 * bend)
    value = first + at * (slope + at * bend)
    differs = (value * first < 0) | (value * middle < 0) | (value * last < 0)
    return torch.where((at > 0) & (at < 1) & differs, at, torch.nan)
