"""Registry: the slots of a ledger by name, and the memory that they lie in.

Slots that a step changes lie side by side in memory, so that saving them is one copy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Selection
from simstate.engine import Stage
from simstate.world.calls import Call, Saved, Scope, make_calls
from simstate.world.layout import Plan
from simstate.world.memory import (
    ARENA_COLUMNS,
    ARENA_NUMBERS,
    Arena,
    Backup,
    Chunk,
)
from simstate.world.row_backup import RowBackup
from simstate.world.slot import Kind, Owner, Reset, Slot, rows_for
from simstate.world.watch import WriteWatch


class Naming:
    """A context in which memory that is made belongs to a term."""

    __slots__ = ("_outer", "_registry", "_scope")

    def __init__(self, registry: Registry, scope: str) -> None:
        self._registry = registry
        self._scope = self._outer = scope

    def __enter__(self) -> None:
        self._outer, self._registry.scope = self._registry.scope, self._scope

    def __exit__(self, *error: object) -> None:
        self._registry.scope = self._outer


class Registry(ABC):
    """Slots by name; owners add theirs, and a user's memory is made here."""

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self.num_envs = num_envs
        self.device = device
        self.slots: dict[str, Slot] = {}
        self.calls = make_calls(self.on_undo)
        """The open calls, and the only way to make one."""
        self.open: list[Call] = self.calls.open
        self.scope = ""
        """Prefix of the names of a user's memory: the term that is running."""
        self.watch = WriteWatch()
        self.moves_parameters = False
        """True if a step changes a parameter of the model."""
        self._users_own: list[Slot] = []
        self._chunks: list[Chunk] = []
        self._chunk_of: dict[str, Chunk] = {}
        self._arenas: dict[tuple[object, ...], Arena] = {}
        self._plans: dict[tuple[Owner, ...], Plan] = {}
        self._backups: dict[tuple[Scope, str], Backup] = {}
        self._row_backups: dict[Scope, RowBackup] = {}
        self._saved: dict[Scope, Saved] = {}
        """The memory of each scope that a call has saved so far."""

    @abstractmethod
    def on_undo(self, call: Call, constants: bool) -> None:
        """Mark derived values as stale after the memory of a call was restored."""

    def naming(self, scope: str) -> Naming:
        """While it is entered, a user's memory belongs to the term `scope`."""
        return Naming(self, scope)

    @property
    def is_stepping(self) -> bool:
        """True while a step is running."""
        return any(call.scope in ("step", "run") for call in self.open)

    def add(
        self, slot: Slot, chunk: Chunk | None = None, base: Tensor | None = None
    ) -> Slot:
        """Register a slot; `chunk` is the memory that it shares with others.

        `base` is the tensor that counts the writes to that memory; None: its own.
        """
        self._check_addable(slot)
        if chunk is None:
            chunk = chunk_for(slot, slot.tensor.data)
        return self._register(slot, chunk, base)

    def _register(self, slot: Slot, chunk: Chunk, base: Tensor | None) -> Slot:
        """Register a slot that `_check_addable` has accepted."""
        if chunk not in self._chunks:
            self._chunks.append(chunk)
        self._forget_backups()  # a chunk may have grown
        self.slots[slot.name] = slot
        if slot.users_own:
            self._users_own.append(slot)
        self._chunk_of[slot.name] = chunk
        if slot.stage is not None and slot.tensor.numel():
            self.watch.add_slot(slot, slot.stage, base)
        for call in self.open:
            call.added = [*(call.added or ()), slot.name]
        return slot

    def memory(
        self,
        name: str,
        shape: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float64,
        reset: Reset = 0.0,
        *,
        initial: float | Tensor = 0.0,
        owner: Owner = "sim",
        kind: Kind = "memory",
        stage: Stage | None = None,
        moves: bool = False,
        optional: bool = False,
        users_own: bool = False,
        unit: str = "",
        axes: str = "",
        contiguous: bool = False,
    ) -> Slot:
        """Return a new slot with memory of the ledger; shape (num_envs, *shape).

        Its first value is the one that a reset writes; where `reset` is None or a
        function, `initial`. Slots share memory column by column, unless the rows of one
        must be `contiguous`, as the compiled core needs them.
        """
        start = initial if reset is None or callable(reset) else reset
        with torch.inference_mode(False):
            first = rows_for(name, start, self.num_envs, shape, dtype, self.device)
            slot = Slot(
                name=name, kind=kind, tensor=first, owner=owner, stage=stage,
                moves=moves, initial=first, reset=reset_rule(reset), optional=optional,
                users_own=users_own, unit=unit, axes=axes,
            )  # fmt: skip
            self._check_addable(slot)
            if contiguous:
                slot.tensor = first.expand(self.num_envs, *shape).clone()
                return self._register(slot, chunk_for(slot, slot.tensor.data), None)
            arena = self._arena(slot, math.prod(shape), first)
            slot.tensor = arena.take(shape)
            slot.tensor.data.copy_(first)
        return self._register(slot, arena.chunk, arena.tensor)

    def shared(
        self,
        name: str,
        value: Tensor,
        *,
        owner: Owner = "env",
        moves: bool = False,
        optional: bool = False,
        users_own: bool = False,
        unit: str = "",
    ) -> Slot:
        """Make a slot that all worlds have in common; it lies on the host."""
        with torch.inference_mode(False):
            initial = value.detach().cpu().clone()
            slot = Slot(
                name=name, kind="memory", tensor=initial.clone(), owner=owner,
                shared=True, moves=moves, initial=initial, optional=optional,
                users_own=users_own, unit=unit,
            )  # fmt: skip
        return self.add(slot)

    def let_move(self, name: str) -> Slot:
        """Declare that a step changes a slot with separate memory from now on."""
        slot = self[name]
        slot.moves = True
        self.moves_parameters |= slot.is_parameter
        self._chunk_of[name].moving = slice(None)
        self._forget_backups()
        return slot

    def drop_graphs(self) -> None:
        """Detach a user's memory from autograd: a graph would grow with each step."""
        for slot in self._users_own:
            if slot.tensor.requires_grad:
                slot.tensor.detach_()

    def _check_addable(self, slot: Slot) -> None:
        """Raise unless a slot of that name can be added now."""
        if slot.name in self.slots:
            raise InvalidInputError(
                f"There is a slot {slot.name!r} already: names must differ."
            )
        if self.is_stepping:
            raise InvalidInputError(
                f"{slot.label} would add to what a world is, which cannot be done "
                "while a step is running: do it once before stepping.",
                name=slot.label,
            )

    def _arena(self, slot: Slot, width: int, like: Tensor) -> Arena:
        """Memory for a slot, with others of its kind."""
        is_input = slot.kind == "input"
        key = (slot.owner, like.dtype, slot.stage, slot.moves, is_input)
        arena = self._arenas.get(key)
        if arena is None or not arena.has_room(width):
            columns = ARENA_COLUMNS if arena is None else 2 * arena.tensor.shape[1]
            columns = min(columns, ARENA_NUMBERS // self.num_envs)
            chunk = chunk_for(slot, like)
            arena = Arena(self.num_envs, max(width, columns), like, chunk)
            self._arenas[key] = arena
        return arena

    def __getitem__(self, name: str) -> Slot:
        slot = self.slots.get(name)
        if slot is None:
            raise unknown_name("slot", name, self.slots)
        return slot

    def __contains__(self, name: object) -> bool:
        return name in self.slots

    def of(self, owners: Iterable[Owner]) -> Iterator[Slot]:
        """Return the slots of some owners, in the order in which they were added."""
        return (slot for slot in self.slots.values() if slot.owner in owners)

    def plan(self, owners: Sequence[Owner]) -> Plan:
        """Return the slots of some owners, resolved to chunks of memory."""
        key = tuple(owners)
        found = self._plans.get(key)
        if found is None or found.size != len(self.slots):
            with torch.inference_mode(False):
                found = Plan(self.of(key), self._chunk_of, len(self.slots))
            self._plans[key] = found
        return found

    def _forget_backups(self) -> None:
        self._backups.clear()
        self._row_backups.clear()
        self._saved.clear()

    def backup(self, scope: Scope, purpose: str = "") -> Backup:
        """Return the memory of a scope, with room for a copy of it for each purpose."""
        key = scope, purpose
        if key not in self._backups:
            self._backups[key] = Backup.of_scope(self._chunks, scope)
        return self._backups[key]

    def backup_of_step(self) -> Backup:
        """Return the memory that the innermost step or environment step has saved."""
        call = next(x for x in reversed(self.open) if x.scope in ("step", "run", "env"))
        return self.backup(call.scope)

    def backup_of_rows(self, scope: Scope, rows: Selection) -> RowBackup:
        """Return a backup of some worlds, for a call that changes no others."""
        known = self._row_backups.get(scope)
        if known is None:
            with torch.inference_mode(False):
                known = self._row_backups[scope] = RowBackup(self._chunks, scope)
        return known.of(rows)


def reset_rule(
    reset: Reset,
) -> Literal["initial", "keep"] | Callable[[Tensor], Tensor]:
    """Return the effect of a reset on a slot with this declaration."""
    if reset is None:
        return "keep"
    return reset if callable(reset) else "initial"


def chunk_for(slot: Slot, memory: Tensor) -> Chunk:
    """Memory that belongs to such slots alone."""
    return Chunk(
        memory,
        slot.owner,
        slice(None) if slot.moves else None,
        slice(None) if slot.kind == "input" else None,
        slot.shared,
        slot.stage,
    )
