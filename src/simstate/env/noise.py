"""Noise: what is added to an observation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from simstate.ids import Index
from simstate.random import WorldRandom


class ObservationNoise(ABC):
    """Random numbers that are added to an observation, before clip and scale."""

    @abstractmethod
    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""


@dataclass(frozen=True)
class UniformNoise(ObservationNoise):
    """Noise that is spread evenly over [low, high)."""

    low: float
    high: float

    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""
        return rng.uniform(rows, columns, self.low, self.high)


@dataclass(frozen=True)
class GaussianNoise(ObservationNoise):
    """Normally distributed noise."""

    std: float
    mean: float = 0.0

    def draw(self, rng: WorldRandom, rows: Index, columns: int) -> Tensor:
        """Noise for some worlds; shape (n, columns)."""
        return rng.normal(rows, columns) * self.std + self.mean
