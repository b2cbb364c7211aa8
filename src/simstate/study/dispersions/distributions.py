"""Distributions of the values that differ between the worlds of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import Limits
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.step.forces.force_parameters import Numbers, numbers
from simstate.world import Ledger
from simstate.world.random import WorldRandom

_APART = 0x51D15BE2510
"""Separates the draws of a study from the simulation's own random numbers."""


@dataclass(frozen=True)
class Distribution:
    """Random values for each world, computed from uniform or normal ones."""

    shape: tuple[int, ...]
    """Shape of one world's values."""
    columns: int
    """Number of independent random numbers per world."""
    is_normal: bool
    """True if those are standard normal; else uniform in [0, 1)."""
    make: Callable[[Tensor], Tensor]
    """Maps random numbers (n, columns) to values (n, *shape)."""

    def draw(self, rng: WorldRandom) -> Tensor:
        """Return values for all worlds of a stream, float64; (n, *shape)."""
        kind = rng.normal if self.is_normal else rng.uniform
        made = self.make(kind(slice(None), self.columns))
        return made.reshape(len(made), *self.shape)


def normal(
    mean: Numbers, std: Numbers | None = None, *, cov: Values | None = None
) -> Distribution:
    """Return a normal distribution with standard deviations or a covariance."""
    centre = numbers(mean, "mean")
    if (std is None) == (cov is None):
        raise InvalidInputError("normal needs either std or cov.", name="std")
    if cov is not None:
        spread = numbers(cov, "cov")
        size = centre.numel()
        if centre.ndim != 1 or tuple(spread.shape) != (size, size):
            raise InvalidInputError(
                f"cov must have shape ({size}, {size}) for a mean of shape "
                f"{tuple(centre.shape)}, got {tuple(spread.shape)}.",
                name="cov",
            )
        symmetric = bool(torch.equal(spread, spread.T))
        array = spread.numpy()
        if not symmetric or float(np.linalg.eigvalsh(array).min()) <= 0:
            raise InvalidInputError(
                "cov must be symmetric and positive definite.", name="cov"
            )
        root = torch.as_tensor(np.linalg.cholesky(array))
        return Distribution((size,), size, True, lambda z: centre + z @ root.T)
    scale = numbers(0.0 if std is None else std, "std")
    if bool((scale < 0).any()):
        raise InvalidInputError(f"std must be ≥ 0, got {std}.", name="std")
    flat, width = (centre + 0 * scale).reshape(-1), (scale + 0 * centre).reshape(-1)
    shape = tuple((centre + scale).shape)
    return Distribution(shape, flat.numel(), True, lambda z: flat + width * z)


def log_normal(median: Numbers, sigma: Numbers) -> Distribution:
    """Return a log-normal distribution of a median; `sigma` is the log's deviation."""
    centre = numbers(median, "median")
    Limits(more_than=0).check(centre, "median")
    inner = normal(centre.log(), sigma)
    return Distribution(inner.shape, inner.columns, True, lambda z: inner.make(z).exp())


def uniform(low: Numbers, high: Numbers) -> Distribution:
    """Return a uniform distribution over [low, high)."""
    first, last = numbers(low, "low"), numbers(high, "high")
    width = last - first
    if bool((width < 0).any()):
        raise InvalidInputError(
            f"low must not exceed high, got {low} and {high}.", name="low"
        )
    flat, span = (first + 0 * width).reshape(-1), width.reshape(-1)
    return Distribution(
        tuple(width.shape), flat.numel(), False, lambda u: flat + span * u
    )


def choice(values: Values) -> Distribution:
    """Return a distribution of these values or rows, with equal probabilities."""
    rows = numbers(values, "values")
    if not rows.ndim or not len(rows):
        raise InvalidInputError("choice needs at least one value.", name="values")
    count = len(rows)
    return Distribution(
        tuple(rows.shape[1:]), 1, False,
        lambda u: rows[(u[:, 0] * count).long().clamp(max=count - 1)],
    )  # fmt: skip


def draw_worlds(
    draws: Mapping[str, Distribution], num_envs: int, seed: int, first_world: int
) -> dict[str, Tensor]:
    """Return the values of some worlds by name; they do not depend on the batch."""
    ledger = Ledger(num_envs, torch.device("cpu"))
    rng = WorldRandom(ledger, seed ^ _APART, first_world)
    return {name: given.draw(rng) for name, given in draws.items()}
