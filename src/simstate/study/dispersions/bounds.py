"""Confidence bounds of statistics of a sample of worlds."""

from __future__ import annotations

import math
from statistics import NormalDist

import torch
from torch import Tensor

from simstate.base.checks import number


def mean_bounds(values: Tensor, confidence: float) -> tuple[float, float]:
    """Return bounds of the mean of values (n,) by Student's t; NaN if n < 2."""
    number("confidence", confidence, more_than=0, less_than=1)
    n = len(values)
    if n < 2:
        return math.nan, math.nan
    reach = _student(0.5 + confidence / 2, n - 1) * float(values.std()) / math.sqrt(n)
    mean = float(values.mean())
    return mean - reach, mean + reach


def quantile_bounds(
    values: Tensor, share: float, confidence: float
) -> tuple[float, float]:
    """Return bounds of a quantile from values (n,) of any distribution.

    The bounds are order statistics, since the number of values below the quantile is
    binomial. A bound is infinite if there are too few values.
    """
    number("confidence", confidence, more_than=0, less_than=1)
    n, tail = len(values), (1 - confidence) / 2
    ordered = values.sort().values
    below = torch.cumsum(_binomial(n, share), dim=0)  # P(count ≤ k)
    low = int((below <= tail).sum())  # P(count < low) ≤ tail
    high = int((below < 1 - tail).sum()) + 1  # P(count ≥ high) ≤ tail
    first = -math.inf if low == 0 else float(ordered[low - 1])
    last = math.inf if high > n else float(ordered[high - 1])
    return first, last


def proportion_bounds(count: int, n: int, confidence: float) -> tuple[float, float]:
    """Return bounds of a probability with `count` successes in n, by Wilson's score."""
    number("confidence", confidence, more_than=0, less_than=1)
    if not n:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = count / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + (z / n / 2) ** 2)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _binomial(n: int, share: float) -> Tensor:
    """Return the probabilities of 0, …, n successes, float64; (n + 1,)."""
    k = torch.arange(n + 1, dtype=torch.float64)
    total = torch.tensor(float(n), dtype=torch.float64)
    ways = (total + 1).lgamma() - (k + 1).lgamma() - (total - k + 1).lgamma()
    return (ways + k * math.log(share) + (total - k) * math.log1p(-share)).exp()


def _student(probability: float, dof: int) -> float:
    """Return the quantile of Student's t, by Newton's method on its distribution."""
    t = NormalDist().inv_cdf(probability)
    t += (t**3 + t) / (4 * dof)  # Cornish and Fisher's first term
    log_scale = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2)
    scale = math.exp(log_scale) / math.sqrt(dof * math.pi)
    for _ in range(30):
        density = scale * (1 + t * t / dof) ** (-(dof + 1) / 2)
        step = (_student_share(t, dof, scale) - probability) / density
        t -= step
        if abs(step) < 1e-12 * max(1.0, abs(t)):
            break
    return t


def _student_share(t: float, dof: int, scale: float) -> float:
    """Return P(T ≤ t) by the midpoint rule in the angle of t / √dof."""
    angle = math.atan(t / math.sqrt(dof))
    # density · dt = scale · √dof · cos(angle)^(dof − 1) · d(angle)
    count = 400
    nodes = (torch.arange(count, dtype=torch.float64) + 0.5) / count * angle
    # The integrand is smooth and even, so the error is far below that of a sample.
    inner = nodes.cos().pow(dof - 1).sum() * (angle / count)
    return 0.5 + scale * math.sqrt(dof) * float(inner)
