"""RowBackup: a backup of a few worlds, for calls that change no others."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from simstate.base.ids import Selection
from simstate.engine import Stage
from simstate.world.calls import Scope
from simstate.world.memory import Chunk, memory_of


class RowBackup:
    """The memory of a scope in some worlds, copied by one gather for each chunk.

    For a call that changes these worlds only, and no memory that worlds share: its cost
    grows with their number and not with that of all worlds.
    """

    def __init__(self, chunks: Iterable[Chunk], scope: Scope) -> None:
        self._rows = Selection(slice(0, 0), 0, 0)
        self._pieces: list[tuple[Chunk, Any]] = []
        self._copies: list[Any] = []
        storages: set[int] = set()
        for chunk in chunks:
            part = chunk.part(scope)
            if part is not None and part.numel() and not chunk.shared:
                storages.add(part.untyped_storage().data_ptr())
                self._pieces.append((chunk, memory_of(part)))
        self.storages = frozenset(storages)
        """Addresses of the storages that the memory belongs to."""

    def of(self, rows: Selection) -> RowBackup:
        """Return a backup of the same memory in some worlds."""
        found = copy.copy(self)
        found._rows = rows
        return found

    def save(self) -> None:
        """Copy the rows."""
        index, host = self._rows.index, self._rows.host
        is_view = isinstance(index, slice)
        copies: list[Any] = []
        for _, live in self._pieces:
            if isinstance(live, Tensor):
                copies.append(live[index].clone())
            else:
                copies.append(live[host].copy() if is_view else live[host])
        self._copies = copies

    def restore(self) -> bool:
        """Restore the rows; return True if an input of derived constants differed."""
        constants = False
        for (chunk, live), rows in zip(self._pieces, self._copies, strict=True):
            on_device = isinstance(live, Tensor)
            index: Any = self._rows.index if on_device else self._rows.host
            if chunk.stage == Stage.CONSTANT:  # recomputing constants is costly
                if bool((live[index] == rows).all()):
                    continue
                constants = True
            live[index] = rows
        return constants
