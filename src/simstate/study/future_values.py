"""Results of `futures`, and their collection chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.errors import UnknownNameError, unknown_name
from simstate.state import Snapshot

TASK = ("reward", "terminated", "truncated")
"""Values of each step of an environment."""


@dataclass(frozen=True)
class Futures:
    """Results of `futures`, by name: `futures.height`, shape (N, K, samples, …).

    For an environment it also has `reward`, `terminated` and `truncated`, (N, K, H).
    """

    values: dict[str, Tensor]
    """The quantities that were read; shape (N, K, samples, …)."""
    cost: Tensor
    """Sum of the cost over the samples, infinite if a future diverged; (N, K).

    Without a cost it is minus the return of an environment, and zero for a
    simulation."""
    diverged: Tensor
    """True for futures that diverged; bool, (N, K)."""
    seeds: Tensor | None
    """Seed of each future; None if they continue their worlds' streams; (N, K)."""
    _ends: list[Snapshot] = field(repr=False)
    """Final states, chunk by chunk: future k of world n has the index k N + n."""
    _slots: frozenset[str] = field(repr=False)

    def __getattr__(self, name: str) -> Tensor:
        values: dict[str, Tensor] = self.__dict__.get("values", {})
        if name not in values:
            known = {*values, "cost", "diverged", "seeds", "state"}
            error = unknown_name("quantity of futures", name, known)
            raise _NoQuantityError(str(error), name=name, known=error.known)
        return values[name]

    def __getitem__(self, name: str) -> Tensor:
        return getattr(self, name)

    @property
    def returns(self) -> Tensor:
        """Sum of rewards up to each step, until the episode ends; (N, K, H)."""
        ended = self.terminated | self.truncated
        after = ended.cumsum(dim=2) - ended.int() > 0
        return self.reward.masked_fill(after, 0.0).cumsum(dim=2)

    def state(self, n: int, k: int) -> Snapshot:
        """Return the final state of future k of world n, to restore in that world."""
        worlds, count = self.diverged.shape
        n = whole_number("n", n, 0, worlds - 1)
        index = whole_number("k", k, 0, count - 1) * worlds + n
        for end in self._ends:
            if index < end.num_envs:
                return _row(end, index, self._slots)
            index -= end.num_envs
        raise AssertionError(index)


class _NoQuantityError(UnknownNameError, AttributeError):
    """An unknown attribute, also for `hasattr`."""


class FutureValues:
    """Values of all futures by index; a chunk fills `rows`."""

    def __init__(self, total: int, device: torch.device) -> None:
        self.total = total
        self.rows = slice(0)
        self.values: dict[str, Tensor] = {}
        self.cost = torch.zeros(total, dtype=torch.float64, device=device)
        self.diverged = torch.zeros(total, dtype=torch.bool, device=device)

    @property
    def count(self) -> int:
        """Number of futures in the chunk; further rows of the host are ignored."""
        return self.rows.stop - self.rows.start

    def keep(self, name: str, values: Tensor, column: int, columns: int) -> None:
        """Store a sample of the chunk; the first one allocates memory for all."""
        if name not in self.values:
            shape = (self.total, columns, *values.shape[1:])
            self.values[name] = values.new_zeros(shape)
        self.values[name][self.rows, column] = values[: self.count].detach()

    def keep_task(self, result: Sequence[Tensor], step: int, horizon: int) -> None:
        """Store reward and termination flags of a step of an environment."""
        for name, values in zip(TASK, result, strict=True):
            self.keep(name, values, step, horizon)

    def add_cost(self, values: Tensor) -> None:
        """Add to the cost of the chunk."""
        self.cost[self.rows] += values[: self.count].detach()

    def mark(self, diverged: Tensor) -> None:
        """Mark futures of the chunk that have diverged."""
        self.diverged[self.rows] |= diverged[: self.count]


def _row(snapshot: Snapshot, row: int, names: frozenset[str]) -> Snapshot:
    """Return one world of a snapshot, with the slots of these names."""
    contracts: Mapping[str, Any] = snapshot.header["slots"]
    slots = {
        name: value.clone()
        if contracts[name]["shared"]
        else value[row : row + 1].clone()
        for name, value in snapshot.slots.items()
        if name in names
    }
    header = {**snapshot.header, "slots": {name: contracts[name] for name in slots}}
    return Snapshot(header, slots)
