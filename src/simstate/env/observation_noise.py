"""Noise of observations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from simstate.base.checks import check_range, number
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index
from simstate.world.random import WorldRandom


class ObservationNoise(ABC):
    """Random numbers that are added to an observation, before clip and scale."""

    remembers: ClassVar[int] = 0
    """Number of values in its memory for each column and world."""

    @abstractmethod
    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""

    def measure(
        self, value: Tensor, rng: WorldRandom, rows: Index, memory: NoiseMemory
    ) -> Tensor:
        """Return the measured values of true ones; shape (n, columns)."""
        del memory
        return value + self.draw(rng, rows, value.shape[1]).to(value.dtype)


@dataclass(frozen=True)
class NoiseMemory:
    """Memory of noise from one observation to the next."""

    values: Tensor
    """Live, of all worlds; shape (num_envs, remembers, columns)."""
    is_first: bool
    """True if the worlds start an episode."""
    step_dt: float
    """The time since the observation before [s]."""


@dataclass(frozen=True)
class UniformNoise(ObservationNoise):
    """Uniformly distributed noise in [low, high)."""

    low: float
    """Minimum, in the unit of the observation."""
    high: float
    """Maximum."""

    def __post_init__(self) -> None:
        check_range("UniformNoise", "(low, high)", (self.low, self.high))

    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""
        return rng.uniform(rows, columns, self.low, self.high)


@dataclass(frozen=True)
class GaussianNoise(ObservationNoise):
    """Normally distributed noise."""

    std: float
    """Standard deviation, in the unit of the observation."""
    mean: float = 0.0
    """Mean, in the unit of the observation."""

    def __post_init__(self) -> None:
        number("std of a GaussianNoise", self.std, at_least=0)
        number("mean of a GaussianNoise", self.mean)

    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""
        return rng.normal(rows, columns) * self.std + self.mean


@dataclass(frozen=True, kw_only=True)
class SensorNoise(ObservationNoise):
    """Errors of an IMU or an encoder: white noise, bias, drift, scale, steps, limits.

    measured = clip(quantise((1 + scale) × true + bias + white noise)), in the unit of
    the observation. Bias and scale are drawn for each column when an episode starts.
    The bias then follows a first-order Gauss-Markov process about zero, and a random
    walk if `bias_walk` is set. Data sheets and Allan variances give density and walk of
    gyros and accelerometers; an encoder has a resolution.
    """

    density: float = 0.0
    """White noise [unit/√Hz]: its standard deviation is density / √step_dt."""
    bias_std: float = 0.0
    """Standard deviation of the bias [unit]."""
    bias_time: float = math.inf
    """Correlation time of the bias [s]; infinite: constant in an episode."""
    bias_walk: float = 0.0
    """Additional random walk of the bias [unit/√s]."""
    scale_std: float = 0.0
    """Standard deviation of the scale error."""
    resolution: float = 0.0
    """Quantisation step of readings [unit]; 0: none."""
    limits: tuple[float, float] | None = None
    """Minimum and maximum reading [unit]."""

    remembers: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Raise unless all settings are valid."""
        names = ("density", "bias_std", "bias_walk", "scale_std", "resolution")
        for name in names:
            number(f"{name} of a SensorNoise", getattr(self, name), at_least=0)
        what = "bias_time of a SensorNoise"
        number(what, self.bias_time, more_than=0, finite=False, unit="s")
        check_range("SensorNoise", "limits", self.limits, finite=False)
        if self.limits is not None and self.limits[0] == self.limits[1]:
            raise InvalidInputError(
                f"The SensorNoise has limits {self.limits}: they must differ.",
                name="limits",
            )

    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """White noise of unit deviation for some worlds; shape (n, columns)."""
        return rng.normal(rows, columns)

    def measure(
        self, value: Tensor, rng: WorldRandom, rows: Index, memory: NoiseMemory
    ) -> Tensor:
        """Return the measured values of true ones; shape (n, columns)."""
        columns, dt = value.shape[1], memory.step_dt
        drawn = rng.normal(rows, 2 * columns).to(value.dtype)
        white, second = drawn[:, :columns], drawn[:, columns:]
        bias, scale = memory.values[rows].unbind(dim=1)
        if memory.is_first:
            bias = second * self.bias_std
            scale = rng.normal(rows, columns).to(value.dtype) * self.scale_std
        else:
            stays = math.exp(-dt / self.bias_time)
            new = self.bias_std**2 * (1.0 - stays**2) + self.bias_walk**2 * dt
            bias = stays * bias + math.sqrt(new) * second
        memory.values[rows] = torch.stack([bias, scale], dim=1)
        seen = (1.0 + scale) * value + bias + self.density / math.sqrt(dt) * white
        if self.resolution > 0.0:
            seen = (seen / self.resolution).round() * self.resolution
        return seen if self.limits is None else seen.clamp(*self.limits)
