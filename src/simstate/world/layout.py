"""Layout: where slots lie in the chunks of memory, so that they are copied together.

A `Plan` resolves the slots of some owners once, until a slot is added: the chunks that
they lie in, as NumPy arrays on the host, and what a reset writes to them. A copy of the
slots of some worlds is then one gather for each chunk, and a reset one scatter.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter, is_
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Selection
from simstate.engine import Stage
from simstate.world.memory import Chunk, memory_of
from simstate.world.slot import Slot

_initial = attrgetter("initial")
_reset = attrgetter("reset")
_version = attrgetter("_version")


class SlotPlace(NamedTuple):
    """Location of a slot: its chunk of a plan, first and last column."""

    chunk: int
    start: int
    stop: int
    shape: tuple[int, ...]
    """The shape of one world's values, or of the whole if it is shared."""
    shared: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of slots by name, and their contracts; it holds no memory.

    Copies with the same layout object are of the same slots of the same ledger.
    """

    places: Mapping[str, SlotPlace]
    contracts: Mapping[str, dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Packed:
    """The values of slots in n worlds, on the host, chunk by chunk."""

    layout: Layout
    count: int
    """The number of worlds, n."""
    pieces: Sequence[Any]
    """A copy of each chunk; NumPy arrays of shape (n, …), or that of a shared one."""

    @cached_property
    def is_finite(self) -> bool:
        """True if all floating-point values are finite."""
        return all(all_finite(x) for x in self.pieces if x.dtype.kind == "f")

    def unpack(self) -> dict[str, Tensor]:
        """Return the values of each slot, in separate memory; shape (n, …) each."""
        return {name: self.slot(name) for name in self.layout.places}

    def slot(self, name: str) -> Tensor:
        """Return the values of one slot; shape (n, …)."""
        place = self.layout.places[name]
        piece = self.pieces[place.chunk]
        if place.shared:
            return torch.from_numpy(piece.copy())
        flat = piece.reshape(self.count, math.prod(piece.shape[1:]))
        columns = flat[:, place.start : place.stop]
        return torch.from_numpy(columns.reshape(self.count, *place.shape).copy())


class Fill(NamedTuple):
    """Columns of a chunk that a reset gives one row, equal in all worlds."""

    memory: Any
    """The chunk's columns: an array, or a tensor on a device; (num_envs, …)."""
    row: Any


class Fills(NamedTuple):
    """Neighbouring slots that a reset fills, and the first stage that it outdates."""

    stage: Stage | None
    has_parameters: bool
    """True if one of them is a parameter or a setting."""
    parts: list[Fill]


class Plan:
    """Slots of some owners, resolved to chunks.

    Args:
        slots: the slots, in the order in which they were added.
        chunk_of: the chunk that each slot lies in, by name.
        size: the number of slots of the ledger, of all owners.
    """

    def __init__(
        self, slots: Iterable[Slot], chunk_of: Mapping[str, Chunk], size: int
    ) -> None:
        self.size = size
        self.slots = list(slots)
        self.checked = [slot for slot in self.slots if slot.check is not None]
        self.chunks = list(dict.fromkeys(chunk_of[slot.name] for slot in self.slots))
        self.memory = [memory_of(chunk.memory) for chunk in self.chunks]
        """The memory of each chunk: an array, or a tensor on a device."""
        places: dict[str, SlotPlace] = {}
        for slot in self.slots:
            number = self.chunks.index(chunk_of[slot.name])
            places[slot.name] = _place(slot, number, self.chunks[number].memory)
        self.layout = Layout(places, {s.name: s.describe() for s in self.slots})
        constants = [chunk.stage == Stage.CONSTANT for chunk in self.chunks]
        self.compared = [
            [slot for slot in self.slots if places[slot.name].chunk == number]
            if constant
            else []
            for number, constant in enumerate(constants)
        ]
        """For each chunk that constants follow from, its slots."""
        self.stage = first_stage(
            slot.stage
            for slot in self.slots
            if not slot.shared and not constants[places[slot.name].chunk]
        )
        """The first stage that a write to all other chunks outdates."""
        self._resets: list[Fills | Slot] | None = None
        self._initials: list[Tensor | None] = []
        self._rules: list[object] = []
        self._counted: list[Tensor] = []
        self._versions: list[int] = []

    def copy(self, rows: Selection) -> Packed:
        """Return a copy of the slots in some worlds."""
        index = rows.host
        pieces: list[Any] = []
        for chunk, memory in zip(self.chunks, self.memory, strict=True):
            if isinstance(memory, Tensor):
                part = memory if chunk.shared else memory[rows.index]
                pieces.append(part.to("cpu", copy=True).numpy())
            elif chunk.shared or rows.is_all:
                pieces.append(memory.copy())
            else:
                part = memory[index]
                pieces.append(part.copy() if isinstance(index, slice) else part)
        return Packed(self.layout, rows.count, pieces)

    def resets(self) -> list[Fills | Slot]:
        """Return the steps of a reset: columns to fill, or a slot by itself.

        Slots with a function, a value for each world, or constants that follow from
        them are by themselves; the others are filled together with their neighbours.
        """
        if self._resets is None or not self._are_current():
            self._initials = list(map(_initial, self.slots))
            self._rules = list(map(_reset, self.slots))
            self._counted = [  # torch does not count writes to inference tensors
                x for x in self._initials if x is not None and not x.is_inference()
            ]
            self._versions = list(map(_version, self._counted))
            self._resets = self._find_resets()
        return self._resets

    def runs_code(self) -> bool:
        """Return True if a slot is reset by a function."""
        return any(map(callable, map(_reset, self.slots)))

    def _are_current(self) -> bool:
        """Return whether no initial value was replaced or written to, and no rule."""
        return (
            all(map(is_, map(_initial, self.slots), self._initials))
            and all(map(is_, map(_reset, self.slots), self._rules))
            and list(map(_version, self._counted)) == self._versions
        )

    def _find_resets(self) -> list[Fills | Slot]:
        live = {chunk.memory.untyped_storage().data_ptr() for chunk in self.chunks}
        found: list[Fills | Slot] = []
        together: list[Slot] = []
        for slot in self.slots:
            if slot.shared or slot.reset == "keep":
                continue
            initial = slot.initial
            is_row = initial is not None and initial.shape[0] == 1
            if (
                callable(slot.reset)
                or not is_row
                or slot.stage == Stage.CONSTANT
                or _storage(initial) in live
            ):
                if together:
                    found.append(self._fills(together))
                    together = []
                found.append(slot)
            else:
                together.append(slot)
        if together:
            found.append(self._fills(together))
        return found

    def _fills(self, slots: Sequence[Slot]) -> Fills:
        """Return what fills these slots, neighbouring columns at once."""
        by_chunk: dict[int, list[tuple[SlotPlace, Slot]]] = {}
        for slot in slots:
            place = self.layout.places[slot.name]
            if place.stop > place.start:
                by_chunk.setdefault(place.chunk, []).append((place, slot))
        parts: list[Fill] = []
        for number, found in by_chunk.items():
            found.sort(key=lambda each: each[0].start)
            memory = self.chunks[number].memory
            if memory.ndim != 2:
                ((_, slot),) = found
                parts.append(_fill(memory, [slot]))
                continue
            runs: list[list[tuple[SlotPlace, Slot]]] = []
            for place, slot in found:
                if runs and runs[-1][-1][0].stop == place.start:
                    runs[-1].append((place, slot))
                else:
                    runs.append([(place, slot)])
            for run in runs:
                columns = slice(run[0][0].start, run[-1][0].stop)
                parts.append(_fill(memory[:, columns], [slot for _, slot in run]))
        stage = first_stage(slot.stage for slot in slots)
        return Fills(stage, any(slot.is_parameter for slot in slots), parts)


def _fill(memory: Tensor, slots: Sequence[Slot]) -> Fill:
    """Return the fill of memory that these slots share, or that one has alone."""
    rows = [
        slot.initial.detach().to(memory).reshape(1, -1)
        for slot in slots
        if slot.initial is not None
    ]
    row = torch.cat(rows, dim=1).reshape(memory.shape[1:]).clone()
    return Fill(memory_of(memory), memory_of(row))


def _place(slot: Slot, number: int, memory: Tensor) -> SlotPlace:
    """Return where a slot lies in the memory of a chunk."""
    width = math.prod(slot.shape)
    offset = 0
    if width and memory.ndim == 2 and not slot.shared:
        distance = slot.tensor.data_ptr() - memory.data_ptr()
        offset = distance // slot.tensor.element_size()
    return SlotPlace(number, offset, offset + width, slot.shape, slot.shared)


def _storage(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.untyped_storage().data_ptr()


def first_stage(stages: Iterable[Stage | None]) -> Stage | None:
    """Return the stage from which on writes of several stages outdate values.

    A write at Stage.STATE outdates nothing that is derived; None: none of them is read.
    """
    found = {stage for stage in stages if stage is not None}
    return min(found - {Stage.STATE}, default=Stage.STATE if found else None)


def all_finite(piece: Any) -> bool:
    """Return whether all numbers of an array of floats are finite."""
    return bool(np.isfinite(piece).all())
