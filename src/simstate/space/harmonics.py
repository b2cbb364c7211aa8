"""Solid spherical harmonics and their derivatives: a recursion and tables.

The potential is μ/R Σ C̄ₙₘ V̄ₙₘ + S̄ₙₘ W̄ₙₘ with the fully normalised functions

    V̄ₙₘ + i W̄ₙₘ = Nₙₘ (R/r)ⁿ⁺¹ Pₙₘ(sin φ) exp(i m λ),

which Cunningham's recursion evaluates without singularity at the poles. The derivative
of such a sum is a sum of one degree more, so coefficients are differentiated once,
instead of functions at each evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Pair = tuple[np.ndarray, np.ndarray]
"""C̄ and S̄; (degree + 1, degree + 1) each."""


@dataclass(frozen=True)
class HarmonicTables:
    """Tables for the evaluation of a field, as plain tensors."""

    degree: int
    """Maximum degree of the functions, two more than the field's."""
    acceleration: Tensor
    """Weights of V̄ and W̄ for the acceleration, in units of μ/R²; (2·K, 3)."""
    gradient: Tensor
    """Weights for xx, xy, xz, yy, yz, zz of the gradient, units of μ/R³; (2·K, 6)."""
    a: Tensor
    """First factors of the recursion; (degree + 1, degree + 1)."""
    b: Tensor
    """Second factors of the recursion."""
    d: Tensor
    """Factors of its diagonal; (degree + 1,)."""
    rows: Tensor
    """Degrees where n ≥ m; (K,)."""
    columns: Tensor
    """The orders; (K,)."""

    def to(self, device: torch.device) -> HarmonicTables:
        """Return the tables on a device."""
        tensors = {k: v.to(device) for k, v in vars(self).items() if k != "degree"}
        return HarmonicTables(self.degree, **tensors)


def make_tables(c: Tensor, s: Tensor) -> HarmonicTables:
    """Return the tables of a field with these coefficients, from degree 0."""
    field = c.numpy().astype(np.float64), s.numpy().astype(np.float64)
    degree = field[0].shape[0] + 1
    first = [_derivative(field, axis) for axis in range(3)]
    second = [
        _derivative(first[i], j)
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    ]
    rows, columns = np.tril_indices(degree + 1)
    n, m = _degrees_and_orders(degree + 1)
    below, inner = n > m, n > m + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.sqrt((2 * n + 1) * (2 * n - 1) / ((n - m) * (n + m)))
        b = np.sqrt(
            (2 * n + 1) * (n + m - 1) * (n - m - 1)
            / ((2 * n - 3) * (n + m) * (n - m))
        )  # fmt: skip
        d = np.sqrt((2 * n[:, 0] + 1) / (2 * n[:, 0]))
    d[:2] = (1.0, np.sqrt(3.0))

    def weights(pairs: list[Pair]) -> Tensor:
        grown = [[_grown(x, degree + 1)[rows, columns] for x in pair] for pair in pairs]
        return torch.as_tensor(np.array([np.concatenate(pair) for pair in grown]).T)

    return HarmonicTables(
        degree,
        weights(first),
        weights(second),
        torch.as_tensor(np.where(below, a, 0.0)),
        torch.as_tensor(np.where(inner, b, 0.0)),
        torch.as_tensor(d),
        torch.as_tensor(rows),
        torch.as_tensor(columns),
    )


def basis(tables: HarmonicTables, position: Tensor, radius: Tensor) -> Tensor:
    """Return all V̄, then all W̄ at positions; (..., 2·K).

    Args:
        tables: tables of the field.
        position: along axes fixed in the planet [m]; (..., 3).
        radius: reference radius [m]; broadcasts against (...).
    """
    square = (position * position).sum(-1)
    x, y, z = (position * (radius / square)[..., None]).unbind(-1)
    size = tables.degree + 1
    height, ratio = z[..., None, None], (radius * radius / square)[..., None, None]
    turn = torch.stack([torch.stack([x, -y], -1), torch.stack([y, x], -1)], dim=-2)
    before = position.new_zeros(*position.shape[:-1], 2, size)  # V̄ and W̄ of a degree
    now = before.clone()
    now[..., 0, 0] = radius / square.sqrt()
    degrees = [now]
    for n in range(1, size):
        after = tables.a[n] * height * now - tables.b[n] * ratio * before
        corner = (turn @ now[..., n - 1 : n])[..., 0]
        after[..., n] = tables.d[n] * corner
        before, now = now, after
        degrees.append(now)
    every = torch.stack(degrees, dim=-2)  # (..., 2, degree, order)
    return every[..., tables.rows, tables.columns].flatten(-2)


def symmetric(six: Tensor) -> Tensor:
    """Return the matrix with entries xx, xy, xz, yy, yz, zz; (..., 3, 3)."""
    index = torch.tensor([0, 1, 2, 1, 3, 4, 2, 4, 5], device=six.device)
    return six[..., index].reshape(*six.shape[:-1], 3, 3)


def _degrees_and_orders(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return degrees as a column and orders as a row, as floats."""
    numbers: np.ndarray = np.arange(size, dtype=np.float64)
    return numbers[:, None], numbers[None, :]


def _derivative(field: Pair, axis: int) -> Pair:
    """Return the coefficients of ∂/∂x, ∂/∂y or ∂/∂z of a field, in units of 1/R."""
    c, s = field
    size = c.shape[0]
    n, m = _degrees_and_orders(size)
    root = np.sqrt((2 * n + 1) / (2 * n + 3))
    new_c, new_s = np.zeros((2, size + 1, size + 1))
    if axis == 2:
        keep = -root * np.sqrt(np.maximum((n + m + 1) * (n - m + 1), 0))
        new_c[1:, :-1], new_s[1:, :-1] = keep * c, keep * s
        return new_c, new_s
    # To order m + 1; order 0 has only a real part, with twice the factor.
    up = -0.5 * root * np.sqrt((n + m + 2) * (n + m + 1))
    up = up * np.where(m == 0, np.sqrt(2.0), 1.0)
    # To order m − 1, from order 1 on.
    down = 0.5 * root * np.sqrt(np.maximum((n - m + 2) * (n - m + 1), 0))
    down = down * np.where(m == 1, np.sqrt(2.0), 1.0) * (m > 0)
    if axis == 0:
        new_c[1:, 1:] += up * c
        new_s[1:, 1:] += up * s
        new_c[1:, : size - 1] += (down * c)[:, 1:]
        new_s[1:, : size - 1] += (down * s)[:, 1:]
    else:
        new_s[1:, 1:] += up * c
        new_c[1:, 1:] -= up * s
        new_s[1:, : size - 1] -= (down * c)[:, 1:]
        new_c[1:, : size - 1] += (down * s)[:, 1:]
    new_s[:, 0] = 0.0  # W̄ₙ₀ is zero
    return new_c, new_s


def _grown(table: np.ndarray, size: int) -> np.ndarray:
    """Pad a table with zeros for higher degrees; (size, size)."""
    grown = np.zeros((size, size))
    grown[: table.shape[0], : table.shape[1]] = table
    return grown
