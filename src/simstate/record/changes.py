"""Changes: what was written to worlds between two steps, found by comparing slots.

Everything that a world is lies in slots. So whatever was written from outside, by
writers, raw tensors, resets, restores or parameters, is what slots hold other than at
the end of the step before: a recording of that is enough to take the steps again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.errors import RecordingError
from simstate.ledger import Ledger, Owner, Slot
from simstate.record.packing import (
    LARGEST,
    LEVEL,
    decompressed,
    shuffled,
    size_of,
    unshuffled,
    zstandard,
)

_BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}


@dataclass(frozen=True)
class Change:
    """New values of a slot in some worlds; `rows` None: in all of them, or shared."""

    slot: str
    rows: np.ndarray | None
    values: np.ndarray


@dataclass
class Step:
    """One call that moves worlds on, with what was written before it."""

    changes: list[Change] = field(default_factory=list[Change])
    call: dict[str, Any] = field(default_factory=dict[str, Any])
    """How it was called: numbers, and texts."""
    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Arrays that belong to the call: ids of worlds, final observations."""


class Changes:
    """Compares the slots of some owners with what they were."""

    def __init__(self, ledger: Ledger, owners: Sequence[Owner]) -> None:
        self._ledger, self._owners = ledger, owners
        self._known: dict[str, Tensor] = {}
        self.follow()

    def follow(self) -> None:
        """Take the present values as known."""
        for slot in self._ledger.of(self._owners):
            known = self._known.get(slot.name)
            if known is None:
                self._known[slot.name] = slot.tensor.detach().clone()
            else:
                known.copy_(slot.tensor.detach())

    def added(self) -> bool:
        """Whether there are slots that were not there."""
        return any(slot.name not in self._known for slot in self._slots())

    def find(self) -> list[Change]:
        """What differs from what is known, bit for bit."""
        self._ledger.observe()
        return [
            change
            for slot in self._slots()
            if slot.name in self._known
            for change in self._differing(slot)
        ]

    def _slots(self) -> list[Slot]:
        return list(self._ledger.of(self._owners))

    def _differing(self, slot: Slot) -> list[Change]:
        known, now = self._known[slot.name], slot.tensor.detach()
        if not now.numel():
            return []
        differs = _bits(known) != _bits(now)
        if slot.shared:
            return [_change(slot, None, now)] if bool(differs.any()) else []
        worlds = differs.flatten(1).any(dim=1) if differs.ndim > 1 else differs
        (rows,) = worlds.cpu().numpy().nonzero()
        if not len(rows):
            return []
        if len(rows) == len(now):
            return [_change(slot, None, now)]
        return [_change(slot, rows, now[torch.as_tensor(rows, device=now.device)])]


def _change(slot: Slot, rows: np.ndarray | None, values: Tensor) -> Change:
    return Change(slot.name, rows, values.cpu().numpy().copy())


def _bits(values: Tensor) -> Tensor:
    """The numbers as whole ones of their bits: NaN is NaN, −0 is not 0."""
    if values.dtype == torch.bool:
        return values
    return values.view(_BITS[values.dtype.itemsize])


# A block's steps as bytes: an index in JSON, then all arrays.


def steps_to_bytes(steps: Sequence[Step]) -> bytes:
    """Steps, packed."""
    arrays: list[np.ndarray] = []

    def place(array: np.ndarray | None) -> int | None:
        if array is None:
            return None
        arrays.append(array)
        return len(arrays) - 1

    told = [
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
    index = json.dumps({"steps": told, "arrays": kinds}).encode()
    whole = struct.pack("<Q", len(index)) + index + data
    return struct.pack("<Q", len(whole)) + zstandard().ZstdCompressor(
        level=LEVEL
    ).compress(whole)


def steps_from_bytes(packed: bytes) -> list[Step]:
    """The steps of `steps_to_bytes`."""
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
        return [_step(told, arrays) for told in index["steps"]]
    except (KeyError, TypeError, ValueError, IndexError, struct.error) as error:
        if isinstance(error, RecordingError):
            raise
        raise RecordingError(f"a block makes no sense: {error!r}") from error


def _step(told: dict[str, Any], arrays: list[np.ndarray]) -> Step:
    changes = [
        Change(slot, None if rows is None else arrays[rows], arrays[values])
        for slot, rows, values in told["changes"]
    ]
    mine = {name: arrays[k] for name, k in told["arrays"].items()}
    return Step(changes, told["call"], mine)
