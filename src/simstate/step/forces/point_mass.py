"""The field of a point mass: acceleration, its gradient, and differences of it.

Pure functions. `mu` [m³/s²] broadcasts against (..., 1), places are from the mass [m].
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.elementwise import power
from simstate.math.vector import dot, norm


def acceleration(mu: Tensor, from_mass: Tensor) -> Tensor:
    """The acceleration towards the mass [m/s²]; (..., 3)."""
    return -mu * from_mass / norm(from_mass) ** 3


def difference(mu: Tensor, from_mass: Tensor, offset: Tensor) -> Tensor:
    """The acceleration at `from_mass + offset` beyond that at `from_mass`; (..., 3).

    |r + d|⁻³ − |r|⁻³ comes from q = (|r + d|² − |r|²) / |r|², so two nearly equal
    numbers are never subtracted.
    """
    square = dot(from_mass, from_mass)
    q = dot(offset, offset + 2 * from_mass) / square
    change = torch.expm1(-1.5 * torch.log1p(q))
    return -mu / power(square, 1.5) * (offset + (from_mass + offset) * change)


def gradient(mu: Tensor, from_mass: Tensor) -> Tensor:
    """∂acceleration/∂position [1/s²]; (..., 3, 3)."""
    distance = norm(from_mass)
    along = from_mass / distance
    eye = torch.eye(3, dtype=from_mass.dtype, device=from_mass.device)
    shape = 3 * along[..., :, None] * along[..., None, :] - eye
    return (mu / distance**3)[..., None] * shape
