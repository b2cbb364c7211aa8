"""Random numbers of which every world has a stream of its own.

What a world draws depends on the seed, on its own number and on how much it has drawn
before: not on the other worlds, on how many there are, on the device or on threads. So
a reset of some worlds leaves the rest as they would have been, bit for bit.

The generator is SplitMix64 (Steele, Lea and Flood, 2014): the k-th number of a stream
that starts at s is mix(s + k·γ), so all worlds draw at once.
"""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.errors import InvalidInputError
from simstate.ids import Index


def _signed(number: int) -> int:
    """The 64-bit pattern of a number as a signed integer, as torch keeps it."""
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number


_GAMMA = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


class WorldRandom:
    """One stream of random numbers for each world."""

    def __init__(self, num_envs: int, seed: int, device: torch.device) -> None:
        self._worlds = torch.arange(1, num_envs + 1, device=device)
        self._start = torch.zeros_like(self._worlds)
        self._drawn = torch.zeros_like(self._worlds)
        """How many numbers each world has drawn since it was seeded."""
        self._on_host = device.type == "cpu"
        self.seed(seed)

    def seed(self, seed: int, rows: Index = slice(None)) -> None:
        """Start the streams of these worlds anew."""
        key = torch.tensor(_signed(check_seed(seed)), device=self._worlds.device)
        self._start[rows] = _mix(_mix(key) + self._worlds[rows] * _GAMMA)
        self._drawn[rows] = 0

    def bits(self, rows: Index, columns: int) -> Tensor:
        """64 random bits each, as signed integers; shape (n, columns)."""
        if not self._on_host:
            steps = torch.arange(1, columns + 1, device=self._start.device)
            return _drawn_bits(self._start, self._drawn, rows, columns, steps)
        # NumPy's calls cost less than torch's, and there are many for few numbers.
        index = rows.numpy() if isinstance(rows, Tensor) else rows
        start, drawn = self._start.numpy(), self._drawn.numpy()
        steps = np.arange(1, columns + 1)
        return torch.from_numpy(_drawn_bits(start, drawn, index, columns, steps))

    def uniform(
        self,
        rows: Index,
        columns: int,
        low: float | Tensor = 0.0,
        high: float | Tensor = 1.0,
    ) -> Tensor:
        """Numbers spread evenly over [low, high), float64; shape (n, columns)."""
        unit = _shifted(self.bits(rows, columns), 11).to(torch.float64)
        return unit.mul_((high - low) * 2.0**-53).add_(low)

    def normal(self, rows: Index, columns: int) -> Tensor:
        """Numbers of a standard normal distribution, float64; shape (n, columns)."""
        radius, angle = self.uniform(rows, 2 * columns).chunk(2, dim=1)
        # Box and Muller's transform; 1 − u is in (0, 1], where the logarithm is finite.
        return (-2.0 * torch.log1p(-radius)).sqrt() * (2.0 * math.pi * angle).cos()


def check_seed(seed: object) -> int:
    """The seed, if it is a whole number of at least 0."""
    try:
        number = operator.index(seed)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = -1
    if number < 0 or isinstance(seed, bool):
        raise InvalidInputError(f"seed must be a whole number ≥ 0, got {seed!r}.")
    return number


def _drawn_bits(start: Any, drawn: Any, rows: Any, columns: int, steps: Any) -> Any:
    """The next numbers of some streams, which advance; arrays or tensors alike."""
    first = start[rows] + drawn[rows] * _GAMMA
    drawn[rows] += columns
    return _mix(first[:, None] + steps * _GAMMA)


def _mix(bits: Any) -> Any:
    """SplitMix64's finaliser: every bit of the result depends on every bit given."""
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Any, by: int) -> Any:
    """The bits moved to the right, with zeros coming in."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
