"""Random numbers: one stream for each world.

What a world draws depends on the seed, on its own number and on how much it has drawn
before: not on the other worlds, on how many there are, on the device or on threads. So
a reset of some worlds leaves the rest as they would have been, bit for bit.

The generator is SplitMix64 (Steele, Lea and Flood, 2014): the k-th number of a stream
that starts at s is mix(s + k·γ), so all worlds draw at once.
"""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.ids import Index, int_list, select
from simstate.engine.core import draws, is_available
from simstate.world import Ledger

Array = np.ndarray[Any, Any]


def _signed(number: int) -> int:
    """Return the 64-bit pattern of a number as a signed integer, as torch keeps it."""
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number


_GAMMA = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)
_NO_WORLD = -(2**62)
"""The number under which worlds draw alike."""


class WorldRandom:
    """One stream of random numbers for each world, kept in the ledger.

    The k-th number of a world is a function of the seed, the world's global id and k:
    world 7 draws the same in any batch, process or machine. `rows` selects the worlds
    that draw, as a slice or as int64 ids; the streams of the others stay as they are.

    Args:
        ledger: where the streams are kept.
        seed: a whole number ≥ 0, the same for all worlds.
        first_world: the global id of the first world.
    """

    def __init__(self, ledger: Ledger, seed: int, first_world: int = 0) -> None:
        worlds = torch.arange(first_world, first_world + ledger.num_envs)
        number, first = torch.int64, _signed(whole_number("seed", seed, 0))
        self._seed = ledger.memory(
            "random/seed", dtype=number, reset=None, initial=first, optional=True
        ).tensor
        self._world = ledger.memory(
            "random/world", dtype=number, reset=None, initial=worlds, optional=True
        ).tensor
        self._count = ledger.memory(
            "random/count", dtype=number, reset=None, moves=True, optional=True
        ).tensor
        self._own_world = worlds.to(ledger.device)
        self._device = ledger.device
        self._on_host = ledger.device.type == "cpu"
        self._known: tuple[Tensor | None, Any] = (None, None)
        """Ids that have been looked at; a copy of them, or their version then."""
        self._in_core = self._on_host and is_available()
        self._drawn_as = self._world

    @contextlib.contextmanager
    def alike(self) -> Generator[None]:
        """Within it, worlds that have the same seed and count draw the same numbers.

        Those of a separate stream, which belongs to none of the worlds.
        """
        self._drawn_as = torch.full_like(self._world, _NO_WORLD)
        try:
            yield
        finally:
            self._drawn_as = self._world

    def seed(self, seed: int, rows: Index = slice(None)) -> None:
        """Restart the streams of these worlds, each by its global id."""
        rows = self._checked(rows)
        self._seed[rows] = _signed(whole_number("seed", seed, 0))
        self._world[rows] = self._own_world[rows]
        self._count[rows] = 0

    def seeds(self) -> list[int]:
        """Return the seed that the stream of each world was last started with."""
        return [seed & 2**64 - 1 for seed in int_list(self._seed)]

    def bits(self, rows: Index, columns: int) -> Tensor:
        """64 random bits each, as signed integers; shape (n, columns)."""
        rows, columns = self._checked(rows), whole_number("columns", columns, 0)
        world = self._drawn_as[rows]
        start = _mix(_mix(self._seed[rows]) + (world + 1) * _GAMMA)
        first = start + self._count[rows] * _GAMMA
        self._count[rows] += columns
        steps = torch.arange(1, columns + 1, device=self._device)
        return _mix(first[:, None] + steps * _GAMMA)

    def uniform(
        self,
        rows: Index,
        columns: int,
        low: float | Tensor = 0.0,
        high: float | Tensor = 1.0,
    ) -> Tensor:
        """Numbers spread evenly over [low, high), float64; shape (n, columns)."""
        rows, columns = self._checked(rows), whole_number("columns", columns, 0)
        numbers = (float, int)
        if self._in_core and isinstance(low, numbers) and isinstance(high, numbers):
            return self._uniform_in_core(rows, columns, float(low), float(high))
        if self._in_core:
            unit = self._uniform_in_core(rows, columns, 0.0, 2.0**53)
        else:
            unit = _shifted(self.bits(rows, columns), 11).to(torch.float64)
        return unit.mul_((high - low) * 2.0**-53).add_(low)

    def uniform_array(self, rows: Tensor | None, low: Array, high: Array) -> Array:
        """As `uniform` on the host, with and of arrays; None: all worlds.

        `low` and `high` have shape (columns,).
        """
        if not self._in_core:
            ends = torch.from_numpy(low), torch.from_numpy(high)
            index = slice(None) if rows is None else rows
            return self.uniform(index, len(low), *ends).numpy()
        index = slice(None) if rows is None else self._checked(rows)
        unit = self._draw_in_core(index, len(low), 0.0, 2.0**53)
        unit *= (high - low) * 2.0**-53
        unit += low
        return unit

    def _uniform_in_core(
        self, rows: Index, columns: int, low: float, high: float
    ) -> Tensor:
        return torch.from_numpy(self._draw_in_core(rows, columns, low, high))

    def _draw_in_core(
        self, rows: Index, columns: int, low: float, high: float
    ) -> Array:
        """Return the same bits by the compiled core, in one call."""
        ids: Any = None
        if isinstance(rows, Tensor):
            ids = np.ascontiguousarray(rows.numpy(), np.int64)
        elif rows != slice(None):
            ids = np.arange(len(self._count))[rows].copy()
        slots = (self._seed.numpy(), self._drawn_as.numpy(), self._count.numpy())
        return draws.uniform(slots, ids, columns, low, high)

    def normal(self, rows: Index, columns: int) -> Tensor:
        """Numbers of a standard normal distribution, float64; shape (n, columns)."""
        columns = whole_number("columns", columns, 0)
        radius, angle = self.uniform(rows, 2 * columns).chunk(2, dim=1)
        # Box and Muller's transform; 1 − u is in (0, 1], where the logarithm is finite.
        found = (-radius).log1p_().mul_(-2.0).sqrt_()
        return found.mul_((2.0 * math.pi * angle).cos_())

    def _checked(self, rows: Index) -> Index:
        """The rows, if they are worlds, each once: a repeated one would draw alike.

        Ids are looked at once: what one reset draws, it draws for the same tensor. On
        the host NumPy may have changed it past torch's counter.
        """
        if isinstance(rows, slice) and rows == slice(None):
            return rows
        known, then = self._known
        if known is not None and rows is known and self._is_as_then(known, then):
            return known
        chosen = select(rows, len(self._count), "env", self._device).index
        if isinstance(chosen, Tensor) and not chosen.is_inference():
            seen = chosen.numpy().copy() if self._on_host else chosen._version
            self._known = (chosen, seen)
        return chosen

    def _is_as_then(self, rows: Tensor, then: Any) -> bool:
        if self._on_host:
            return np.array_equal(rows.numpy(), then)
        return rows._version == then


def _mix(bits: Tensor) -> Tensor:
    """SplitMix64's finaliser: every bit of the result depends on every bit given."""
    bits = (bits ^ _shifted(bits, 30)) * _FIRST
    bits = (bits ^ _shifted(bits, 27)) * _SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Return the bits moved to the right, with zeros coming in."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
