"""Changes: what was written to worlds between two steps, found by comparing slots.

Everything that a world is lies in slots. So whatever was written from outside, by
writers, raw tensors, resets, restores or parameters, is what slots hold other than at
the end of the step before: a recording of that is enough to take the steps again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import RecordingError
from simstate.record.compression import (
    LARGEST,
    LEVEL,
    decompressed,
    shuffled,
    size_of,
    unshuffled,
    zstandard,
)
from simstate.world import Owner, Slot
from simstate.world.worlds import Worlds

WRONG = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError,
    OverflowError, MemoryError, struct.error,
)  # fmt: skip
"""Exceptions raised by bytes of steps that simstate has not written."""
_BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}


@dataclass(frozen=True)
class Change:
    """New values of a slot in some worlds; `rows` None: all worlds, or shared."""

    slot: str
    rows: np.ndarray | None
    values: np.ndarray


@dataclass
class Step:
    """One call that steps worlds, and the writes before it."""

    changes: list[Change] = field(default_factory=list[Change])
    call: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of the call: numbers and texts."""
    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Arrays that belong to the call: ids of worlds, final observations."""
    snapshot: bytes | None = None
    """The worlds before the step, in a recorder; attachments in a file."""

    @property
    def num_bytes(self) -> int:
        """Size of its arrays and its snapshot [bytes]."""
        arrays = sum(array.nbytes for array in self.arrays.values())
        changes = sum(change.values.nbytes for change in self.changes)
        return arrays + changes + len(self.snapshot or b"")


class Changes:
    """Compares the slots of some owners with what they were.

    A step of a simulation changes what moves, and nothing else unless actions write;
    one of an environment may change everything.
    """

    def __init__(self, worlds: Worlds, owners: Sequence[Owner]) -> None:
        self._engine, self._ledger, self._owners = (
            worlds.engine, worlds.ledger, owners,
        )  # fmt: skip
        self._names: set[str] = set()
        self._groups: list[_Group] = []
        self.follow()

    def follow(self, whole: bool = True) -> None:
        """Take the present values as known: all, or what moves and what was found."""
        if self.added():
            whole = True
            self._groups = self._new_groups()
            self._names = {slot.name for slot in self._slots()}
        for group in self._groups:
            if whole or group.moves or group.was_written:
                group.follow()

    def added(self) -> bool:
        """Return True if there are new slots."""
        return any(slot.name not in self._names for slot in self._slots())

    def find(self) -> list[Change]:
        """Return the values that differ from the known ones, bit for bit.

        Slots that were added have none; see `added`.
        """
        self._ledger.observe()
        return [change for group in self._groups for change in group.find()]

    def _slots(self) -> list[Slot]:
        return list(self._ledger.of(self._owners))

    def _new_groups(self) -> list[_Group]:
        """Return the slots grouped by their memory."""
        slots = {slot.name: slot for slot in self._slots() if slot.tensor.numel()}
        groups: list[_Group] = []
        for names, memory in self._engine.state_memory():
            members = [slots.pop(name) for name in names if name in slots]
            if len(names) == 1:  # in separate memory
                slots |= {slot.name: slot for slot in members}
                continue
            columns = self._engine.columns
            places = [(slot, columns[slot.name].start) for slot in members]
            groups.append(_Group(memory, places))
        return groups + _groups_of(slots.values())


class _Group:
    """Slots side by side in one piece of memory, compared in one go.

    On the host by NumPy, whose calls cost less than torch's; else on the device.
    """

    def __init__(self, memory: Tensor, slots: Sequence[tuple[Slot, int]]) -> None:
        bits = memory.view(_BITS[memory.dtype.itemsize])  # NaN is NaN, −0 is not 0
        on_host = memory.device.type == "cpu"
        self._now: Any = bits.numpy() if on_host else bits
        self._known: Any = self._now.copy() if on_host else bits.clone()
        self._slots = [
            (slot, first, slot.tensor.numel() // len(memory)) for slot, first in slots
        ]
        self.moves = any(slot.moves for slot, _ in slots)
        self.was_written = False

    def follow(self) -> None:
        self._known[:] = self._now

    def find(self) -> list[Change]:
        differs = self._now != self._known
        columns = _host(differs.any(0))
        self.was_written = bool(columns.any())
        return [
            self._change(slot, differs[:, first : first + width])
            for slot, first, width in self._slots
            if columns[first : first + width].any()
        ]

    def _change(self, slot: Slot, differs: Any) -> Change:
        values = slot.tensor.detach()
        if slot.shared:
            return Change(slot.name, None, values.numpy().copy())
        (rows,) = _host(differs.any(1)).nonzero()
        if len(rows) == len(values):
            return Change(slot.name, None, values.cpu().numpy().copy())
        some = values[torch.as_tensor(rows, device=values.device)]
        return Change(slot.name, rows, some.cpu().numpy())


def _groups_of(slots: Iterable[Slot]) -> list[_Group]:
    """Return the slots grouped by their memory; each shared slot by itself."""
    groups: list[_Group] = []
    adjacent: dict[tuple[int, int, torch.dtype], list[Slot]] = {}
    for slot in slots:
        tensor = slot.tensor.detach()
        if slot.shared or not _is_in_rows(tensor):
            rows = 1 if slot.shared else len(tensor)
            groups.append(_Group(tensor.view(rows, -1), [(slot, 0)]))
            continue
        place = tensor.untyped_storage().data_ptr()
        adjacent.setdefault((place, tensor.stride(0), tensor.dtype), []).append(slot)
    for (_, width, _), members in adjacent.items():
        first = members[0].tensor.detach()
        whole = first.as_strided((len(first), width), (width, 1), 0)
        places = [(slot, int(slot.tensor.storage_offset())) for slot in members]
        groups.append(_Group(whole, places))
    return groups


def _is_in_rows(tensor: Tensor) -> bool:
    """Return True if a world's values are contiguous within a row of larger memory."""
    row = tensor[0]
    wide = tensor.stride(0) >= max(row.numel(), 1) and len(tensor) > 1
    room = tensor.untyped_storage().nbytes() // tensor.element_size()
    fits = room >= len(tensor) * tensor.stride(0)
    inside = tensor.storage_offset() + row.numel() <= tensor.stride(0)
    return wide and fits and inside and row.is_contiguous()


def _host(mask: Any) -> np.ndarray:
    return mask.cpu().numpy() if isinstance(mask, Tensor) else mask


# A block's steps as bytes: an index in JSON, then all arrays.


def steps_to_bytes(steps: Sequence[Step]) -> bytes:
    """Return steps as bytes."""
    arrays: list[np.ndarray] = []

    def place(array: np.ndarray | None) -> int | None:
        if array is None:
            return None
        arrays.append(array)
        return len(arrays) - 1

    entry = [
        {
            "call": step.call,
            "changes": [
                [change.slot, place(change.rows), place(change.values)]
                for change in step.changes
            ],
            "arrays": {name: place(array) for name, array in step.arrays.items()},
        }
        for step in steps
    ]
    kinds = [[array.dtype.name, list(array.shape)] for array in arrays]
    data = b"".join(shuffled(array) for array in arrays)
    index = json.dumps({"steps": entry, "arrays": kinds}).encode()
    whole = struct.pack("<Q", len(index)) + index + data
    return struct.pack("<Q", len(whole)) + zstandard().ZstdCompressor(
        level=LEVEL
    ).compress(whole)


def steps_from_bytes(packed: bytes) -> list[Step]:
    """Return the steps of `steps_to_bytes`."""
    try:
        (size,) = struct.unpack_from("<Q", packed)
        if size > LARGEST:
            raise RecordingError(f"a block of {size:,} bytes is larger than any")
        whole = decompressed(packed[8:], size)
        (length,) = struct.unpack_from("<Q", whole)
        index = json.loads(whole[8 : 8 + length])
        arrays: list[np.ndarray] = []
        at = 8 + length
        for dtype, shape in index["arrays"]:
            end = at + size_of(dtype, shape)
            arrays.append(unshuffled(whole[at:end], dtype, shape))
            at = end
        return [_step(entry, arrays) for entry in index["steps"]]
    except WRONG as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"a block makes no sense: {error!r}") from error


def _step(entry: dict[str, Any], arrays: list[np.ndarray]) -> Step:
    listed: list[tuple[str, int | None, int]] = entry["changes"]
    changes = [
        Change(slot, None if rows is None else arrays[rows], arrays[values])
        for slot, rows, values in listed
    ]
    mine: dict[str, np.ndarray] = {n: arrays[k] for n, k in entry["arrays"].items()}
    return Step(changes, entry["call"], mine)
