"""Ledger: all that a world is, in named slots.

A slot is one tensor with a row for each world (or, declared so, one that all worlds
share) and its contract. Whoever owns per-world numbers registers them here once: the
engine its fields, `expand` its parameters, entities their settings, processes,
integrators, sensors, environments and a user's own code theirs. What is in a slot is
reset, saved, restored, undone, compared and watched by the loops of this module, and
what is in none is not part of the world.

Slots that a step changes lie side by side in memory, so that saving them is one copy.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from simstate.engine import OneTorchThread, Stage
from simstate.errors import InvalidInputError, SnapshotError, listed, unknown_name
from simstate.ids import Selection, assign, everything
from simstate.ledger.memory import ARENA_COLUMNS, Arena, Backup, Chunk, Scope
from simstate.ledger.slot import Kind, Owner, Reset, Slot, Write, rows_for
from simstate.ledger.transaction import Transaction

Listener = Callable[[Stage, Tensor | None, str], None]
"""`listener(stage, env_ids, reason)`: values from `stage` on are stale; None: all."""


_MOVING_STAGES = (Stage.POSITION, Stage.VELOCITY)


@dataclass(eq=False)
class _Watched:
    """A tensor whose writes are looked for, and the slots that lie in it."""

    label: str
    tensor: Tensor
    stage: Stage
    version: int
    address: int
    on_write: Callable[[], None] | None = None
    slots: list[Slot] = field(default_factory=list[Slot])


class Ledger:
    """The slots of a simulation, and of the environment that runs it."""

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self.num_envs = num_envs
        self.device = device
        self.slots: dict[str, Slot] = {}
        self.open: list[Transaction] = []
        """Transactions that have begun and not ended, the innermost last."""
        self.listener: Listener = _ignore
        """Told of every write to what derived values depend on."""
        self.scope = ""
        """What the names of a user's memory begin with: the term that is running."""
        self.puts = 0
        """How often slots were written other than by their tensors."""
        self._chunks: list[Chunk] = []
        self._chunk_of: dict[str, Chunk] = {}
        self._arenas: dict[tuple[object, ...], Arena] = {}
        self._backups: dict[Scope, Backup] = {}
        self._watched: list[_Watched] = []
        self._watched_of: dict[str, _Watched] = {}

    @contextmanager
    def naming(self, scope: str) -> Generator[None]:
        """While it is entered, a user's memory belongs to the term `scope`."""
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    # Registration.

    def add(self, slot: Slot, chunk: Chunk | None = None) -> Slot:
        """Register a slot; `chunk` is the memory that it shares with others."""
        if slot.name in self.slots:
            raise InvalidInputError(
                f"There is a slot {slot.name!r} already: names must differ."
            )
        if self.is_stepping:
            raise InvalidInputError(
                f"{slot.label} would add to what a world is, which cannot be done "
                "while a step is running: do it once before stepping."
            )
        if chunk is None:
            chunk = _chunk_for(slot, slot.tensor.data)
        if chunk not in self._chunks:
            self._chunks.append(chunk)
            self._backups.clear()
        self.slots[slot.name] = slot
        self._chunk_of[slot.name] = chunk
        if slot.stage is not None and slot.tensor.numel():
            self._watch(slot, slot.stage)
        for transaction in self.open:
            transaction.added.append(slot.name)
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
        unit: str = "",
        axes: str = "",
    ) -> Slot:
        """Make a slot with memory of the ledger's own; shape (num_envs, *shape).

        It starts with what a reset writes; where that is None or a function, with
        `initial`.
        """
        start = initial if reset is None or callable(reset) else reset
        with torch.inference_mode(False):
            like = torch.zeros((), dtype=dtype, device=self.device)
            slot = Slot(
                name=name, kind=kind, tensor=like, owner=owner, stage=stage,
                moves=moves, optional=optional, unit=unit, axes=axes,
            )  # fmt: skip
            if callable(reset):
                slot.reset = reset
            elif reset is not None:
                slot.reset = "initial"
            width = math.prod(shape)
            arena = self._arena(slot, width, like)
            slot.tensor = arena.take(width).view(self.num_envs, *shape)
            slot.initial = rows_for(name, start, self.num_envs, slot)
            slot.tensor.data.copy_(slot.initial)
        return self.add(slot, arena.chunk)

    def shared(
        self,
        name: str,
        value: Tensor,
        *,
        owner: Owner = "env",
        moves: bool = False,
        optional: bool = False,
        unit: str = "",
    ) -> Slot:
        """Make a slot that all worlds have in common; it lies on the host."""
        with torch.inference_mode(False):
            initial = value.detach().cpu().clone()
            slot = Slot(
                name=name, kind="memory", tensor=initial.clone(), owner=owner,
                shared=True, moves=moves, initial=initial, optional=optional, unit=unit,
            )  # fmt: skip
        return self.add(slot)

    def let_move(self, name: str) -> Slot:
        """Say of a slot with memory of its own that a step changes it from now on."""
        slot = self[name]
        slot.moves = True
        self._chunk_of[name].moving = slice(None)
        self._backups.clear()
        return slot

    def watch(
        self,
        label: str,
        tensor: Tensor,
        stage: Stage,
        on_write: Callable[[], None] | None = None,
    ) -> None:
        """See writes to a further tensor that stands for slots."""
        if tensor.numel():
            version, address = tensor._version, tensor.data_ptr()
            watched = _Watched(label, tensor, stage, version, address, on_write)
            self._watched.append(watched)

    def _arena(self, slot: Slot, width: int, like: Tensor) -> Arena:
        """Memory for a slot, with others of its kind."""
        is_input = slot.kind == "input"
        key = (slot.owner, like.dtype, slot.stage, slot.moves, is_input)
        arena = self._arenas.get(key)
        if arena is None or not arena.has_room(width):
            columns = ARENA_COLUMNS if arena is None else 2 * arena.tensor.shape[1]
            chunk = _chunk_for(slot, like)
            arena = Arena(self.num_envs, max(width, columns), like, chunk)
            self._arenas[key] = arena
        return arena

    def _watch(self, slot: Slot, stage: Stage) -> None:
        tensor = slot.tensor
        base = tensor._base if tensor._is_view() else tensor
        found = next((w for w in self._watched if w.tensor is base), None)
        if found is None:
            assert base is not None
            self.watch(slot.label, base, stage)
            found = self._watched[-1]
        elif found.slots:
            found.label = f"{found.label} or {slot.label}"
        found.slots.append(slot)
        self._watched_of[slot.name] = found

    def __getitem__(self, name: str) -> Slot:
        slot = self.slots.get(name)
        if slot is None:
            raise unknown_name("slot", name, self.slots)
        return slot

    def __contains__(self, name: object) -> bool:
        return name in self.slots

    def of(self, owners: Iterable[Owner]) -> Iterator[Slot]:
        """The slots of some owners, in the order in which they were added."""
        return (slot for slot in self.slots.values() if slot.owner in owners)

    # Writes.

    def write(self, *writes: Write) -> None:
        """Make writes whose values are checked, all of them or none."""
        writes = tuple(w for w in writes if w.rows.count and w.values.numel())
        if not writes:
            return
        if self.open:
            self.recover()
        self.observe()
        for write in writes:
            self._refuse_while_evaluating(self[write.name])
        slots = [self[name] for name in {write.name: None for write in writes}]
        alone = len(writes) == 1 and slots[0].on_write is None
        if alone or self.open:
            self._write(writes)
            return
        with self.saved([slot.name for slot in slots], "a write"):
            self._write(writes)

    def _write(self, writes: Iterable[Write]) -> None:
        for name, rows, columns, values in writes:
            slot = self.slots[name]
            self.puts += 1
            self._announce(slot, rows)  # first: should it be interrupted, all is seen
            memory = slot.tensor.data
            with OneTorchThread():
                assign(memory, rows.index, columns, values.to(memory.dtype))
            if slot.on_write is not None:
                slot.on_write(rows)

    def touched(self, name: str, rows: Selection | None = None) -> None:
        """Announce a write that torch did not count: by C, NumPy or an alias."""
        slot = self[name]
        self._announce(slot, rows)
        if slot.on_write is not None:
            slot.on_write(rows)

    def _announce(self, slot: Slot, rows: Selection | None) -> None:
        if slot.stage is not None:
            ids = None if rows is None or rows.is_all else rows.tensor(self.device)
            self.listener(slot.stage, ids, f"a write to {slot.label}")

    def observe(self) -> None:
        """Find writes that nobody announced: they may have hit any world."""
        for watched in self._watched:
            if watched.tensor._version != watched.version:
                self._found(watched)

    def _found(self, watched: _Watched) -> None:
        """Take note of a write that was found: the count last, should it not end."""
        tensor = watched.tensor
        version = tensor._version
        if tensor.requires_grad:
            tensor.detach_()  # a slot holds numbers: a graph would grow with each step
        if tensor.data_ptr() != watched.address:
            raise InvalidInputError(
                f"{watched.label} was given other memory with set_(), so that the "
                "simulation no longer sees it: write into it with [:] = … instead."
            )
        if self.is_evaluating:
            for slot in watched.slots:
                self._refuse_while_evaluating(slot)
            watched.version = version
            return
        if watched.on_write is not None:
            watched.on_write()
        self.listener(watched.stage, None, f"a write to {watched.label}")
        for slot in watched.slots:
            if slot.on_write is not None:
                slot.on_write(None)
        watched.version = version

    def acknowledge(self) -> None:
        """Take note that writes so far were taken back: nothing has changed."""
        for watched in self._watched:
            watched.version = watched.tensor._version

    def _refuse_while_evaluating(self, slot: Slot) -> None:
        is_load = slot.kind == "input" and slot.stage not in _MOVING_STAGES
        if self.is_evaluating and not is_load:
            raise InvalidInputError(
                f"A force model wrote to {slot.label}. It may write inputs alone "
                "(ctrl, qfrc_applied, xfrc_applied, mass rates): stages run ahead and "
                "back again, so that it would move a state which is only tried out. "
                "What has memory is a Process (sim.add_process)."
            )

    # Copies.

    def copy(self, rows: Selection, owners: Sequence[Owner]) -> dict[str, Tensor]:
        """The values of the slots in some worlds, on the host; shape (n, …) each."""
        self.observe()
        copies: dict[str, Tensor] = {}
        for slot in self.of(owners):
            part = slot.tensor if slot.shared else slot.tensor[rows.index]
            copies[slot.name] = part.detach().to("cpu", copy=True)
        return copies

    def check(
        self, values: Mapping[str, Tensor], owners: Sequence[Owner], count: int
    ) -> None:
        """Raise unless `put` can write these values, with `count` rows each."""
        unknown = [name for name in values if name not in self.slots]
        missing = [
            slot.name
            for slot in self.of(owners)
            if slot.name not in values and not slot.optional
        ]
        for what, names in (("is not here", unknown), ("is here alone", missing)):
            if names:
                raise SnapshotError(
                    f"What was saved does not fit: {listed(names)} {what}. Use the "
                    "same task, terms, integrator and processes as then. Nothing was "
                    "written."
                )
        for name, value in values.items():
            slot = self.slots[name]
            want = slot.shape if slot.shared else (count, *slot.shape)
            if tuple(value.shape) != want:
                raise SnapshotError(
                    f"{name!r} was saved with shape {tuple(value.shape)}, here it is "
                    f"{want}. Nothing was written."
                )
            if _family(value.dtype) != _family(slot.tensor.dtype):
                raise SnapshotError(
                    f"{name!r} was saved as {value.dtype}, here it is "
                    f"{slot.tensor.dtype}. Nothing was written."
                )
            self._check_finite(slot, value, values.get("diverged"))

    def _check_finite(self, slot: Slot, value: Tensor, diverged: Tensor | None) -> None:
        """Raise at a number that no world can have, unless it is marked diverged."""
        if slot.shared or slot.kind == "memory" or not value.dtype.is_floating_point:
            return
        fine = ~value.isnan() if slot.kind == "parameter" else value.isfinite()
        if bool(fine.all()):
            return
        bad = ~fine.flatten(1).all(dim=1) if fine.ndim > 1 else ~fine
        if diverged is not None:
            bad &= ~diverged
        if bool(bad.any()):
            raise SnapshotError(
                f"{slot.name!r} was saved with a number that is not finite, in row "
                f"{int(bad.nonzero()[0])}, whose world is not marked as diverged. "
                "Nothing was written."
            )

    def put(
        self,
        values: Mapping[str, Tensor],
        rows: Selection,
        owners: Sequence[Owner],
        shared: bool,
    ) -> None:
        """Write values that `check` has seen; slots without one get their initial.

        `shared` says whether slots that all worlds have in common are written, too.
        """
        self.observe()
        for slot in self.of(owners):
            value = values.get(slot.name)
            if value is None:
                value = slot.initial_of(rows)
            if value is not None and (shared or not slot.shared):
                self._put(slot, value, rows)

    def reset(self, rows: Selection, owners: Sequence[Owner]) -> None:
        """Bring the slots of some worlds to what their contracts say."""
        self.observe()
        for slot in self.of(owners):
            if slot.shared or slot.reset == "keep":
                continue
            value = slot.initial_of(rows)
            if callable(slot.reset):
                drawn = slot.reset(rows.tensor(self.device))
                value = rows_for(slot.name, drawn, rows.count, slot)
            if value is not None:
                self._put(slot, value, rows)

    def _put(self, slot: Slot, value: Tensor, rows: Selection) -> None:
        """Write a slot's rows, and announce it."""
        self.puts += 1
        memory = slot.tensor.data
        value = value.to(memory)
        if slot.shared:
            memory.copy_(value)
            return
        if slot.stage == Stage.CONSTANT:  # what follows from it is costly
            wanted = value.expand(rows.count, *slot.shape)
            if torch.equal(memory[rows.index], wanted):
                return
        self._announce(slot, rows)
        memory[rows.index] = value

    # Transactions.

    def transaction(self, scope: Scope, what: str) -> Transaction:
        """A context in which what is in `scope` changes wholly or not at all.

        "inputs" are the inputs; "step" is what a step changes; "sim" is all of the
        simulation's; "env" is everything. Where another transaction is open around one
        of "sim", it is that one which is undone.
        """
        if self.open:
            self.recover()
        backup = None if self.open and scope == "sim" else self.backup(scope)
        return Transaction(self, backup, what, scope)

    def saved(self, names: Iterable[str], what: str) -> Transaction:
        """A context in which these slots change wholly or not at all."""
        slots = [self[name] for name in names]
        chunks = [_chunk_for(slot, slot.tensor.data) for slot in slots]
        backup = Backup((chunk, chunk.memory) for chunk in chunks)
        return Transaction(self, backup, what, "write")

    def backup(self, scope: Scope) -> Backup:
        """The memory that is saved for a scope, with room for a copy of it."""
        if scope not in self._backups:
            self._backups[scope] = Backup.of_scope(self._chunks, scope)
        return self._backups[scope]

    @property
    def is_stepping(self) -> bool:
        """Whether a step is running."""
        return any(transaction.scope == "step" for transaction in self.open)

    @property
    def is_evaluating(self) -> bool:
        """Whether force models are writing inputs just now, for one evaluation."""
        return bool(self.open) and self.open[-1].evaluating

    def recover(self) -> None:
        """Undo what an interrupted call has left half done.

        Called at the start of every public call and read. A call that is still running
        in another thread raises.
        """
        while self.open and not self.open[-1].is_running():
            self.open[-1].undo()
            self.open.pop()

    def undone(self, transaction: Transaction, stage: Stage) -> None:
        """Take note that a transaction was undone: what is derived is stale."""
        for name in transaction.added:
            slot = self.slots[name]
            if slot.initial is not None:
                self._put(slot, slot.initial, everything(self.num_envs))
        self.puts += 1
        self.acknowledge()
        self.listener(stage, None, f"{transaction.what} that was undone")


def _chunk_for(slot: Slot, memory: Tensor) -> Chunk:
    """Memory that belongs to such slots alone."""
    return Chunk(
        memory,
        slot.owner,
        slice(None) if slot.moves else None,
        slice(None) if slot.kind == "input" else None,
        slot.shared,
        slot.stage,
    )


def _family(dtype: torch.dtype) -> str:
    if dtype == torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "int"


def _ignore(stage: Stage, env_ids: Tensor | None, reason: str) -> None:
    del stage, env_ids, reason
