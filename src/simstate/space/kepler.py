"""Kepler's problem by universal variables: every conic by one equation."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_float64, batch_of
from simstate.math.vector import dot, norm
from simstate.space.planets import EARTH, check_length


def propagate_kepler(
    position: Values, velocity: Values, seconds: Values | float, mu: float = EARTH.mu
) -> tuple[Tensor, Tensor]:
    """Return position and velocity on a Kepler orbit after a time [s]; (..., 3)."""
    pos = as_float64(position, "position", 3)
    vel = as_float64(velocity, "velocity", 3)
    time = as_float64(seconds, "seconds")
    batch_of(position=(pos, 1), velocity=(vel, 1), seconds=(time, 0))
    check_length("position", "The distance of the position", norm(pos), mu, 0.01)
    radius, root = norm(pos)[..., 0], mu**0.5
    along = dot(pos, vel)[..., 0] / root
    alpha = 2 / radius - dot(vel, vel)[..., 0] / mu  # 1/a
    time = _within_a_period(time + 0 * radius, alpha, mu)
    chi = _solve(along, radius, alpha, root * time)
    c2, c3 = _stumpff(alpha * chi**2)
    f = 1 - chi**2 / radius * c2
    g = time - chi**3 / root * c3
    after = f[..., None] * pos + g[..., None] * vel
    distance = norm(after)[..., 0]
    f_rate = root / (distance * radius) * chi * (alpha * chi**2 * c3 - 1)
    g_rate = 1 - chi**2 / distance * c2
    return after, f_rate[..., None] * pos + g_rate[..., None] * vel


def _within_a_period(time: Tensor, alpha: Tensor, mu: float) -> Tensor:
    """Reduce the time by complete periods if the orbit is closed."""
    closed = alpha > 0
    period = 2 * torch.pi / (mu**0.5 * torch.where(closed, alpha, 1.0) ** 1.5)
    rest = time - torch.round(time / period) * period
    return torch.where(closed, rest, time)


def _solve(along: Tensor, radius: Tensor, alpha: Tensor, goal: Tensor) -> Tensor:
    """Return the universal anomaly χ [√m] by Laguerre's method, which is robust."""
    start = torch.where(alpha > 0, goal * alpha, goal / radius)
    size = torch.where(alpha < 0, -1 / torch.where(alpha < 0, alpha, -1.0), 1.0)
    far = size.sqrt() * torch.log(1 + 2 * goal.abs() / (size**1.5)) * torch.sign(goal)
    chi = torch.where((alpha < 0) & (far.abs() < start.abs()), far, start)
    for _ in range(60):
        c2, c3 = _stumpff(alpha * chi**2)
        square = chi**2 * c2
        error = (
            along * square + (1 - alpha * radius) * chi**3 * c3 + radius * chi - goal
        )
        sine = chi * (1 - alpha * chi**2 * c3)
        slope = along * sine + (1 - alpha * radius) * square + radius
        bend = along * (1 - alpha * square) + (1 - alpha * radius) * sine
        root = (16 * slope**2 - 20 * error * bend).abs().sqrt()
        step = 5 * error / (slope + torch.where(slope < 0, -root, root))
        chi = chi - step
        if not step.numel() or bool((step.abs() <= 1e-14 * (1 + chi.abs())).all()):
            break
    return chi


def _stumpff(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return Stumpff's functions c₂ and c₃, by series where closed forms cancel."""
    root = z.abs().clamp(min=1e-2).sqrt()
    cosine = torch.where(z > 0, 1 - root.cos(), root.cosh() - 1) / root**2
    sine = torch.where(z > 0, root - root.sin(), root.sinh() - root) / root**3
    c2, c3 = torch.zeros_like(z), torch.zeros_like(z)
    term = torch.ones_like(z)
    small = z.clamp(-1.0, 1.0)
    for k in range(12):
        c2 = c2 + term / ((2 * k + 1) * (2 * k + 2))
        c3 = c3 + term / ((2 * k + 1) * (2 * k + 2) * (2 * k + 3))
        term = -term * small / ((2 * k + 1) * (2 * k + 2))
    near = z.abs() < 1.0
    return torch.where(near, c2, cosine), torch.where(near, c3, sine)
