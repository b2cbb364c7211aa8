"""Memory that slots share, and copies of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from simstate.engine import Stage
from simstate.ids import Index

Scope = Literal["inputs", "step", "run", "sim", "env", "write"]
"""What is saved: the inputs; what a step changes; all of the simulation, for a step in
which actions write; all of the simulation; everything; what one write is about."""

ARENA_COLUMNS = 32
"""Room for small slots in the first piece of memory for them; more in later ones."""


@dataclass(eq=False)
class Chunk:
    """Slots that lie side by side in memory: saved and put back by one copy."""

    memory: Tensor
    """An alias, whose writes torch does not count; shape (num_envs, …)."""
    owner: str
    moving: slice | None = None
    """The columns that a step changes; None: it changes none."""
    inputs: slice | None = None
    """The columns that force models may write; None: none."""
    shared: bool = False
    """Whether it has no row for each world."""
    stage: Stage | None = None
    """From where on a write to it makes derived values stale; None: not at all."""

    def part(self, scope: Scope) -> Tensor | None:
        """What of it belongs to a scope; None: nothing."""
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
        self.chunk = chunk
        """The columns that slots have taken: the others need not be saved."""
        self._used = 0

    def has_room(self, width: int) -> bool:
        """Whether a slot of so many columns fits in."""
        return self._used + width <= self.tensor.shape[1]

    def take(self, width: int) -> Tensor:
        """The next columns; shape (num_envs, width).

        They count their writes together with the others, but are no view of autograd's:
        a graph that gets into one slot stays out of the rest.
        """
        first, self._used = self._used, self._used + width
        self.chunk.memory = self.tensor.data[:, : self._used]
        return self.tensor[:, first : self._used].detach()


class Backup:
    """Pieces of memory, and room for a copy of each."""

    def __init__(self, parts: Iterable[tuple[Chunk, Tensor]]) -> None:
        self._chunks: list[Chunk] = []
        # NumPy's calls cost less than torch's, which tells for few worlds.
        self._live: list[Any] = []
        self._kept: list[Any] = []
        self._storages: set[int] = set()
        for chunk, part in parts:
            if part.numel():
                self._storages.add(part.untyped_storage().data_ptr())
                self._chunks.append(chunk)
                self._live.append(_array(part))
                self._kept.append(_array(torch.zeros_like(part)))

    @staticmethod
    def of_scope(chunks: Iterable[Chunk], scope: Scope) -> Backup:
        """The memory of a scope."""
        with torch.inference_mode(False):
            found = [(chunk, chunk.part(scope)) for chunk in chunks]
            return Backup([(chunk, x) for chunk, x in found if x is not None])

    def save(self) -> None:
        """Copy what is there."""
        for live, kept in zip(self._live, self._kept, strict=True):
            kept[...] = live

    def put_back(self, rows: Index | None = None) -> Stage:
        """Give worlds what they had when it was saved; None: all, and what is shared.

        Returns from where on derived values are stale then.
        """
        stage = Stage.POSITION
        for chunk, live, kept in zip(self._chunks, self._live, self._kept, strict=True):
            if chunk.stage == Stage.CONSTANT:  # what follows from it is costly
                if _same(live, kept):
                    continue
                stage = Stage.CONSTANT
            if rows is None:
                live[...] = kept
            elif not chunk.shared:
                index: Any = rows
                if isinstance(rows, Tensor) and not isinstance(live, Tensor):
                    index = rows.numpy()
                live[index] = kept[index]
        return stage

    def put_back_where(self, worlds: Tensor) -> None:
        """Give the worlds of a mask what they had, without looking at the mask."""
        for chunk, live, kept in zip(self._chunks, self._live, self._kept, strict=True):
            if chunk.shared:
                continue
            shape = (-1, *[1] * (live.ndim - 1))
            if isinstance(live, Tensor):
                live.copy_(torch.where(worlds.view(shape), kept, live))
            else:
                np.copyto(live, kept, where=worlds.numpy().reshape(shape))

    def changed(self) -> Tensor:
        """The worlds that differ from what was saved; bool, (num_envs,)."""
        masks = [
            _rows_differ(torch.as_tensor(live), torch.as_tensor(kept))
            for chunk, live, kept in zip(
                self._chunks, self._live, self._kept, strict=True
            )
            if not chunk.shared
        ]
        return torch.stack(masks).any(dim=0)

    def holds(self, memory: Tensor) -> bool:
        """Whether a tensor's memory, or some of it, is saved here."""
        return memory.untyped_storage().data_ptr() in self._storages

    def kept_rows(self, memory: Tensor) -> Tensor:
        """The copy of a piece, given the memory that it was made of."""
        for live, kept in zip(self._live, self._kept, strict=True):
            if torch.as_tensor(live).data_ptr() == memory.data_ptr():
                return torch.as_tensor(kept)
        raise KeyError("this memory is not saved here")


def _array(tensor: Tensor) -> Any:
    """A NumPy array on the tensor's memory, or the tensor where it is on a device."""
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
