"""True and mean anomaly of every conic: ellipse, parabola, hyperbola.

Pure functions on tensors of one shape; angles in radians. The mean anomaly of a
parabola is √(μ/p³) times the time since periapsis.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.elementwise import atan2


def mean_from_true(true: Tensor, eccentricity: Tensor) -> Tensor:
    """Return the mean anomaly [rad] of a true one [rad]; full turns are kept."""
    e = eccentricity
    half = (0.5 * true).tan()
    ellipse = _elliptic_mean(true, torch.where(e < 1, e, 0.0))
    over = torch.where(e > 1, e, 2.0)
    inside = (((over - 1) / (over + 1)).sqrt() * half).clamp(-1, 1)
    hyperbolic = 2 * torch.atanh(inside)
    hyperbola = over * hyperbolic.sinh() - hyperbolic
    parabola = 0.5 * (half + half**3 / 3)
    return torch.where(e < 1, ellipse, torch.where(e > 1, hyperbola, parabola))


def true_from_mean(mean: Tensor, eccentricity: Tensor) -> Tensor:
    """Return the true anomaly [rad], −π to π, of a mean one [rad]."""
    e = eccentricity
    ellipse = _elliptic_true(mean, torch.where(e < 1, e, 0.0))
    over = torch.where(e > 1, e, 2.0)
    hyperbola = _hyperbolic_true(torch.where(e > 1, mean, 0.0), over)
    parabola = 2 * torch.atan(_barker(mean))
    return torch.where(e < 1, ellipse, torch.where(e > 1, hyperbola, parabola))


def _elliptic_mean(true: Tensor, e: Tensor) -> Tensor:
    turns = torch.round(true / (2 * torch.pi)) * 2 * torch.pi
    nu = true - turns
    root = (1 - e * e).sqrt()
    eccentric = atan2(root * nu.sin(), e + nu.cos())
    return eccentric - e * eccentric.sin() + turns


def _elliptic_true(mean: Tensor, e: Tensor) -> Tensor:
    """Solve Kepler's equation by Newton's method, from ±π, where it converges."""
    m = torch.remainder(mean + torch.pi, 2 * torch.pi) - torch.pi
    eccentric = torch.sign(m) * torch.pi
    for _ in range(60):
        error = eccentric - e * eccentric.sin() - m
        step = error / (1 - e * eccentric.cos())
        eccentric = eccentric - step
        if _is_done(step):
            break
    root = (1 - e * e).sqrt()
    return atan2(root * eccentric.sin(), eccentric.cos() - e)


def _hyperbolic_true(mean: Tensor, e: Tensor) -> Tensor:
    """Solve e sinh H − H = M by Newton's method with steps of at most 1."""
    h = torch.sign(mean) * torch.log(2 * mean.abs() / e + 1.8)
    for _ in range(100):
        error = e * h.sinh() - h - mean
        step = (error / (e * h.cosh() - 1)).clamp(-1.0, 1.0)
        h = h - step
        if _is_done(step):
            break
    return 2 * torch.atan(((e + 1) / (e - 1)).sqrt() * (0.5 * h).tanh())


def _is_done(step: Tensor) -> bool:
    return not step.numel() or float(step.abs().max()) < 1e-15


def _barker(mean: Tensor) -> Tensor:
    """Return tan(ν/2) = D of a parabola: D + D³/3 = 2 M, in closed form."""
    w = 3 * mean
    root = torch.sign(w) * (w.abs() + (w * w + 1).sqrt()) ** (1 / 3)
    safe = torch.where(root == 0, 1.0, root)
    return torch.where(root == 0, 0.0, safe - 1 / safe)
