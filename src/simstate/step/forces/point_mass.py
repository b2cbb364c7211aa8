"""The field of a point mass: acceleration, its gradient, and differences of it.

Pure functions. `mu` [m³/s²] broadcasts against (..., 1), `from_mass` is a position [m].
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.elementwise import power
from simstate.math.vector import dot, norm


def acceleration(mu: Tensor, from_mass: Tensor) -> Tensor:
    """Return the acceleration towards the mass [m/s²]; (..., 3)."""
    return -mu * from_mass / norm(from_mass) ** 3


def difference(mu: Tensor, from_mass: Tensor, offset: Tensor) -> Tensor:
    """Return the acceleration at `from_mass + offset` less that at `from_mass` [m/s²].

    |r + d|⁻³ − |r|⁻³ is computed from q = (|r + d|² − |r|²) / |r|², which avoids
    cancellation.
    """
    square = dot(from_mass, from_mass)
    q = dot(offset, offset + 2 * from_mass) / square
    change = torch.expm1(-1.5 * torch.log1p(q))
    return -mu / power(square, 1.5) * (offset + (from_mass + offset) * change)


def gradient(mu: Tensor, from_mass: Tensor) -> Tensor:
    """Return ∂acceleration/∂position [1/s²]; (..., 3, 3)."""
    distance = norm(from_mass)
    along = from_mass / distance
    eye = torch.eye(3, dtype=from_mass.dtype, device=from_mass.device)
    shape = 3 * along[..., :, None] * along[..., None, :] - eye
    return (mu / distance**3)[..., None] * shape
