"""Noise: what is added to an observation."""

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
    """Number of values that it remembers for each column and world."""

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
    """Noise that is spread evenly over [low, high)."""

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

    measured = limited(stepped((1 + scale) × true + bias + white noise)), in the unit of
    the observation. Bias and scale are drawn for each column when an episode begins;
    the bias then wanders about zero as a first-order Gauss-Markov process, in place of
    which a random walk has `bias_walk`. For a gyro and an accelerometer, density and
    walk are what data sheets and Allan variances give; an encoder has a resolution.
    """

    density: float = 0.0
    """White noise [unit/√Hz]: its deviation is density / √step_dt."""
    bias_std: float = 0.0
    """Deviation of the bias [unit]."""
    bias_time: float = math.inf
    """Correlation time of the bias [s]; infinite: it stays for an episode."""
    bias_walk: float = 0.0
    """Random walk of the bias [unit/√s], on top."""
    scale_std: float = 0.0
    """Deviation of the error of scale."""
    resolution: float = 0.0
    """The steps that readings come in [unit]; 0: none."""
    limits: tuple[float, float] | None = None
    """Minimum and maximum reading [unit]."""

    remembers: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Raise unless all of it makes sense."""
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
