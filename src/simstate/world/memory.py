"""Memory that slots share, and copies of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Index
from simstate.engine import Stage
from simstate.world.calls import Saved, Scope, make_saved

ARENA_COLUMNS = 32
"""Room for small slots in the first piece of memory for them; more in later ones."""

ARENA_NUMBERS = 8192
"""Numbers of all worlds in a piece that slots share; with many worlds slots fill a
piece each, and unused columns would cost more than the calls that sharing saves."""


@dataclass(eq=False)
class Chunk:
    """Slots that lie side by side in memory: saved and restored by one copy."""

    memory: Tensor
    """An alias, whose writes torch does not count; shape (num_envs, …)."""
    owner: str
    moving: slice | None = None
    """The columns that a step changes; None: it changes none."""
    inputs: slice | None = None
    """The columns that force models may write; None: none."""
    shared: bool = False
    """True if it has no row for each world."""
    stage: Stage | None = None
    """From where on a write to it makes derived values stale; None: not at all."""

    def part(self, scope: Scope) -> Tensor | None:
        """Return the part that belongs to a scope; None: nothing."""
        if scope == "env":
            return self.memory
        if self.owner != "sim":
            return None
        if scope in ("sim", "run"):
            return self.memory
        columns = self.moving if scope == "step" else self.inputs
        if columns is None or columns == slice(None):
            return None if columns is None else self.memory
        return self.memory[:, columns]


class Arena:
    """Memory with a row for each world, that small slots share column by column."""

    def __init__(self, num_envs: int, columns: int, like: Tensor, chunk: Chunk) -> None:
        self.tensor = like.new_zeros(num_envs, columns)
        self._memory = self.tensor.data
        self.chunk = chunk
        """The columns that slots have taken: the others need not be saved."""
        self._used = 0

    def has_room(self, width: int) -> bool:
        """Return True if a slot of this many columns fits in."""
        return self._used + width <= self.tensor.shape[1]

    def take(self, shape: tuple[int, ...]) -> Tensor:
        """Return the next columns, as many as `shape` has; (num_envs, *shape).

        They count their writes together with the others, but are no view of autograd's:
        a graph that gets into one slot stays out of the rest.
        """
        first, self._used = self._used, self._used + math.prod(shape)
        self.chunk.memory = self._memory[:, : self._used]
        columns = self.tensor[:, first : self._used]
        if len(shape) != 1:
            columns = columns.view(len(self.tensor), *shape)
        return columns.detach()


class Backup:
    """Pieces of memory with room for a copy of each: the `Saved` of a call.

    `saved` is its compiled form, where all memory is on the host.
    """

    def __init__(self, parts: Iterable[tuple[Chunk, Tensor]]) -> None:
        self._chunks: list[Chunk] = []
        # NumPy's calls cost less than torch's, which matters for few worlds.
        self._live: list[Any] = []
        self._copies: list[Any] = []
        storages: set[int] = set()
        on_host = True
        for chunk, part in parts:
            if part.numel():
                storages.add(part.untyped_storage().data_ptr())
                on_host = on_host and part.device.type == "cpu"
                self._chunks.append(chunk)
                self._live.append(memory_of(part))
                self._copies.append(memory_of(torch.empty_like(part)))
        self.storages = frozenset(storages)
        """Addresses of the storages that the memory belongs to."""
        self.saved: Saved = self
        """The form that `Calls.run` saves and restores."""
        if on_host:
            constant = [chunk.stage == Stage.CONSTANT for chunk in self._chunks]
            pieces = zip(self._live, self._copies, constant, strict=True)
            self.saved = make_saved(list(pieces), self.storages) or self

    @staticmethod
    def of_scope(chunks: Iterable[Chunk], scope: Scope) -> Backup:
        """Return the memory of a scope."""
        with torch.inference_mode(False):
            found = [(chunk, chunk.part(scope)) for chunk in chunks]
            return Backup([(chunk, x) for chunk, x in found if x is not None])

    def save(self) -> None:
        """Copy the live memory."""
        for live, copy in zip(self._live, self._copies, strict=True):
            copy[...] = live

    def restore(self, rows: Index | None = None) -> bool:
        """Restore the rows of some worlds; None: all, and memory that they share.

        Returns:
            True if an input of derived constants differed.
        """
        constants = False
        for chunk, live, copy in self._pieces():
            if chunk.stage == Stage.CONSTANT:  # recomputing constants is costly
                if _same(live, copy):
                    continue
                constants = True
            if rows is None:
                live[...] = copy
            elif not chunk.shared:
                index: Any = rows
                if isinstance(rows, Tensor) and not isinstance(live, Tensor):
                    index = rows.numpy()
                live[index] = copy[index]
        return constants

    def restore_where(self, worlds: Tensor) -> None:
        """Restore the worlds of a mask, without reading the mask on the host."""
        for chunk, live, copy in self._pieces():
            if chunk.shared:
                continue
            shape = (-1, *[1] * (live.ndim - 1))
            if isinstance(live, Tensor):
                live.copy_(torch.where(worlds.view(shape), copy, live))
            else:
                np.copyto(live, copy, where=worlds.numpy().reshape(shape))

    def changed(self) -> Tensor:
        """Return the mask of worlds that differ from the copy; bool, (num_envs,)."""
        masks = [
            _rows_differ(torch.as_tensor(live), torch.as_tensor(copy))
            for chunk, live, copy in self._pieces()
            if not chunk.shared
        ]
        return torch.stack(masks).any(dim=0)

    def copied_rows(self, memory: Tensor) -> Tensor:
        """Return the copy of a piece, given the memory that it was made of."""
        for _, live, copy in self._pieces():
            if torch.as_tensor(live).data_ptr() == memory.data_ptr():
                return torch.as_tensor(copy)
        raise KeyError("this memory is not saved here")

    def _pieces(self) -> Iterator[tuple[Chunk, Any, Any]]:
        return zip(self._chunks, self._live, self._copies, strict=True)


def memory_of(tensor: Tensor) -> Any:
    """Return a NumPy array on the tensor's memory; the tensor itself on a device."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _rows_differ(one: Tensor, two: Tensor) -> Tensor:
    differ = one != two
    if one.is_floating_point():
        differ &= ~(one.isnan() & two.isnan())
    return differ.flatten(1).any(dim=1) if one.ndim > 1 else differ


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, Tensor):
        return bool(torch.equal(one, two))
    return np.array_equal(one, two)
