"""Distributions of the values that differ between the worlds of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import Limits, check_finite
from simstate.base.errors import InvalidInputError, ShapeError
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
    if (std is None) == (cov is None):
        raise InvalidInputError("normal needs either std or cov.", name="std")
    if cov is not None:
        centre = check_finite(numbers(mean, "mean"), "mean", after="")
        spread = check_finite(numbers(cov, "cov"), "cov", after="")
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
    centre, scale = _broadcast(mean, 0.0 if std is None else std, ("mean", "std"))
    Limits(at_least=0).check(scale, "std")
    return _scaled(centre, scale, is_normal=True)


def log_normal(median: Numbers, sigma: Numbers) -> Distribution:
    """Return a log-normal distribution of a median; `sigma` is the log's deviation."""
    centre, scale = _broadcast(median, sigma, ("median", "sigma"))
    Limits(more_than=0).check(centre, "median")
    Limits(at_least=0).check(scale, "sigma")
    inner = _scaled(centre.log(), scale, is_normal=True)
    return Distribution(inner.shape, inner.columns, True, lambda z: inner.make(z).exp())


def uniform(low: Numbers, high: Numbers) -> Distribution:
    """Return a uniform distribution over [low, high)."""
    first, last = _broadcast(low, high, ("low", "high"))
    if bool((first > last).any()):
        raise InvalidInputError(
            f"low must not exceed high, got {low} and {high}.", name="low"
        )
    return _scaled(first, last - first, is_normal=False)


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


def _broadcast(
    first: Numbers, second: Numbers, names: tuple[str, str]
) -> tuple[Tensor, Tensor]:
    """Return two arguments as finite float64 tensors of the same shape."""
    one, two = (
        check_finite(numbers(values, name), name, after="")
        for values, name in zip((first, second), names, strict=True)
    )
    try:
        shape = np.broadcast_shapes(one.shape, two.shape)
    except ValueError:
        raise ShapeError(
            f"{names[1]} has shape {tuple(two.shape)}, which does not fit "
            f"{names[0]} of shape {tuple(one.shape)}: give a number, or values of the "
            "same shape.",
            name=names[1],
            shape=two.shape,
        ) from None
    return one.expand(shape), two.expand(shape)


def _scaled(start: Tensor, width: Tensor, is_normal: bool) -> Distribution:
    """Return the distribution of start + width · x, by component."""
    flat, span = start.reshape(-1), width.reshape(-1)
    shape = tuple(start.shape)
    return Distribution(shape, len(flat), is_normal, lambda x: flat + span * x)


def draw_worlds(
    draws: Mapping[str, Distribution], num_envs: int, seed: int, first_world: int
) -> dict[str, Tensor]:
    """Return the values of some worlds by name; they do not depend on the batch."""
    ledger = Ledger(num_envs, torch.device("cpu"))
    rng = WorldRandom(ledger, seed ^ _APART, first_world)
    return {name: given.draw(rng) for name, given in draws.items()}
