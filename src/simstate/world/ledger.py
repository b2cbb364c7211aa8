"""Ledger: everything that makes up a world, in named slots.

A slot is one tensor with a row for each world (or, declared so, one that all worlds
share) and its contract. The engine, entities, processes, integrators, sensors,
environments and users' code register their values here once. Values in a slot are
reset, saved, restored, undone, compared and watched by the loops of this module.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index, Selection, assign, everything
from simstate.engine import Stage
from simstate.world.calls import Call, Scope, Undone, changed
from simstate.world.layout import Fills
from simstate.world.memory import Backup
from simstate.world.registry import Registry, chunk_for
from simstate.world.slot import Owner, Slot, Trees, Write, rows_for
from simstate.world.slot_copies import SlotCopies
from simstate.world.watch import Watched

Array = np.ndarray[Any, Any]
T = TypeVar("T")

_MOVING_STAGES = (Stage.POSITION, Stage.VELOCITY)


class Ledger(Registry):
    """The slots of a simulation, and of the environment that runs it.

    A slot's tensor is made once and its memory never moves, so that views of it stay
    good. Its owner is "sim" or "env"; its kind says who writes it: physics ("state"),
    whoever drives it ("input"), or a user ("parameter", "setting", "memory").

    Writes come in three ways. `write` takes checked values and announces which worlds
    and from which stage on what is derived from them is stale. Writes to the tensor
    itself are found by torch's version counter (`observe`), and may have hit any world.
    What C writes is neither: its caller says so to freshness.

    `copies` takes and writes all slots of some worlds, and `reset` writes what the
    contracts say. A slot that all worlds share is not reset, and is put only together
    with all of them.

    `run` makes a call atomic: it saves the memory that the call may change, and
    restores it if the call raises. A slot that was first added within the call then
    gets its initial value. Within an evaluation of force models only inputs may be
    written.
    """

    def __init__(self, num_envs: int, device: torch.device) -> None:
        super().__init__(num_envs, device)
        self._mark_stale: Callable[..., None] = _mark_nothing
        self._follow: Callable[[], None] | None = None
        self.copies = SlotCopies(self)
        """Copies of all slots of some worlds."""
        self.undone: weakref.WeakSet[Undone] = weakref.WeakSet()
        """Get every call that is rolled back: what they keep outside of slots
        follows."""
        self.puts = 0
        """Number of writes by `write`, resets, restores and rollbacks."""

    def connect_derived(self, mark_stale: Callable[..., None]) -> None:
        """Announce every write on which derived values depend, as `Freshness.write`."""
        self._mark_stale = mark_stale

    def connect_rows(self, follow: Callable[[], None]) -> None:
        """Call a function after every write: it updates copies of the state's rows."""
        self._follow = follow

    # Writes.

    def write(self, *writes: Write, trees: Trees = None) -> None:
        """Make writes whose values are checked, all of them or none.

        `trees` are those whose joints and mocap poses are written; None: any.
        """
        writes = tuple([w for w in writes if w.rows.count and w.values.numel()])
        if not writes:
            return
        if self.open:
            self.calls.recover()
        self.observe()
        slots = [self[write.name] for write in writes]
        for slot, write in zip(slots, writes, strict=True):
            self._refuse_while_evaluating(slot)
            if slot.check is not None:
                slot.check(write.values, write.rows, write.columns)
        alone = len(writes) == 1 and slots[0].companion is None
        if alone or self.open:
            self._write(writes, trees)
            return
        slots = list(dict.fromkeys(slots))
        names = [slot.name for slot in slots]
        names += [slot.companion.name for slot in slots if slot.companion is not None]
        self.run_saving(names, "a write", self._write, writes, trees)

    def write_array(
        self,
        slot: Slot,
        columns: Index | None,
        values: Array,
        rows: Selection | None = None,
    ) -> None:
        """Write checked numbers that are in NumPy's memory; as `write`.

        NumPy's calls take a fraction of torch's time, which matters for few worlds. The
        slot is on the host and has neither a check nor a companion. `values` may be a
        view of the slot. `rows` are the worlds; None: all of them.
        """
        assert slot.array is not None
        assert slot.check is None
        assert slot.companion is None
        if self.open:
            self.calls.recover()
        if self._follow is not None:  # writes to copied rows come first
            self.observe()
        self._refuse_while_evaluating(slot)
        self._announce(slot, rows)
        slot.array[_host_place(rows, columns)] = values
        if self._follow is not None:
            self._follow()

    def _write(self, writes: Iterable[Write], trees: Trees) -> None:
        for name, rows, columns, values in writes:
            slot = self.slots[name]
            self.puts += 1
            self._announce(slot, rows, trees)  # first, in case of an interruption
            if values.dtype != slot.tensor.dtype:
                values = values.to(slot.tensor.dtype)
            if slot.array is not None:
                slot.array[_host_place(rows, columns)] = values.detach().numpy()
            else:
                assign(slot.tensor.data, rows.index, columns, values)
            if slot.companion is not None:
                slot.follow_write(slot.companion, rows, self.is_stepping)
        self.follow()

    def announce_parameter(self, slot: Slot) -> None:
        """Announce that a parameter differs by world from now on, with equal values."""
        self._mark_stale(Stage.STATE, None, slot.label, True)

    def _announce(
        self, slot: Slot, rows: Selection | None, trees: Trees = None
    ) -> None:
        if slot.stage is not None:
            trees = None if slot.is_parameter else trees  # of other elements, too
            reason = "a write to " + slot.label
            self._announce_stage(slot.stage, rows, reason, slot.is_parameter, trees)

    def _announce_stage(
        self,
        stage: Stage,
        rows: Selection | None,
        reason: str,
        parameters: bool,
        trees: Trees = None,
    ) -> None:
        ids = None if rows is None else rows.ids_or_none(self.device)
        self._mark_stale(stage, ids, reason, parameters, trees)

    def observe(self) -> None:
        """Detect writes that were not announced: they may have hit any world.

        Raises:
            InvalidInputError: a field that is computed from the state was written.
        """
        places = changed(*self.watch.lists)
        if places:
            self.announce_written(places)

    def announce_written(self, places: Iterable[int]) -> None:
        """Announce the writes that `changed` has found; see `observe`."""
        rejected: Watched | None = None
        for watched, version in self.watch.written(places):
            if watched.is_derived:
                rejected = watched
                self.watch.record(watched, version)
                self._mark_stale(
                    watched.stage, None, f"a write to {watched.label}", False
                )
            else:
                self._found(watched, version)
        if rejected is not None:
            raise rejected.rejection()

    def _found(self, watched: Watched, version: int) -> None:
        """Announce a write that was detected; recorded last, in case of an error."""
        watched.detach()
        if self.is_evaluating:
            for slot in watched.slots:
                self._refuse_while_evaluating(slot)
            self.watch.record(watched, version)
            return
        for slot in watched.slots:
            if slot.check is not None:
                slot.check(slot.tensor, None, None)
        if watched.on_write is not None:
            watched.on_write()
        reason = f"a write to {watched.label}"
        self._mark_stale(watched.stage, None, reason, watched.has_parameters)
        for slot in watched.slots:
            if slot.companion is not None:
                slot.follow_write(slot.companion, None, self.is_stepping)
        self.watch.record(watched, version)

    def _refuse_while_evaluating(self, slot: Slot) -> None:
        if not self.is_evaluating:
            return
        is_load = slot.kind == "input" and slot.stage not in _MOVING_STAGES
        if not is_load:
            raise InvalidInputError(
                f"A force model wrote to {slot.label}. It may only write inputs (ctrl, "
                "qfrc_applied, xfrc_applied, mass rates), since stages move forward "
                "and back within a step. Use a Process (sim.add_process) for anything "
                "with memory.",
                name=slot.label,
            )

    def refuse_rewriting(self, what: str) -> None:
        """Raise if a force model would do this to worlds."""
        if self.is_evaluating:
            raise InvalidInputError(
                f"A force model cannot {what} worlds. It may only write inputs, since "
                "stages move forward and back within a step.",
                name=what,
            )

    # Resets.

    def resets_rows_alone(self, owners: Sequence[Owner]) -> bool:
        """Return True if a reset writes the selected worlds and runs no user's code."""
        return not self.plan(owners).runs_code()

    def reset(self, rows: Selection, owners: Sequence[Owner]) -> None:
        """Reset the slots of some worlds as their contracts specify."""
        self.observe()
        self.refuse_rewriting("reset")
        for step in self.plan(owners).resets():
            if isinstance(step, Fills):
                self._fill(step, rows)
                continue
            value = step.initial_of(rows)
            if callable(step.reset):
                drawn = step.reset(rows.tensor(self.device).clone())
                value = rows_for(
                    step.name, drawn, rows.count, step.shape, step.tensor.dtype,
                    self.device,
                )  # fmt: skip
            if value is not None:
                self.put_slot(step, value, rows)
        self.follow()

    def _fill(self, fills: Fills, rows: Selection) -> None:
        """Write equal rows into chunks, and announce it once."""
        self.announce_put(fills.stage, rows, "a reset", fills.has_parameters)
        index = rows.host
        for memory, row in fills.parts:
            memory[rows.index if isinstance(memory, Tensor) else index] = row

    def announce_put(
        self, stage: Stage | None, rows: Selection, reason: str, parameters: bool = True
    ) -> None:
        """Announce that slots are put, of which `stage` is the first that depends."""
        self.puts += 1
        if stage is not None:
            self._announce_stage(stage, rows, reason, parameters)

    def follow(self) -> None:
        """Update copied rows after slots were written."""
        if self._follow is not None:
            self._follow()

    def put_slot(self, slot: Slot, value: Tensor, rows: Selection) -> None:
        """Write a slot's rows, and announce it."""
        self.puts += 1
        memory = slot.tensor.data
        value = value.to(memory)
        if slot.shared:
            memory.copy_(value)
            return
        live: Any = memory if slot.array is None else slot.array
        place: Any = rows.index if slot.array is None else rows.host
        given: Any = value if slot.array is None else value.detach().numpy()
        # Constants are costly to compute again.
        if slot.stage == Stage.CONSTANT and bool((live[place] == given).all()):
            return
        self._announce(slot, rows)
        live[place] = given

    # Calls.

    def run(
        self,
        scope: Scope,
        what: str,
        call: Callable[..., T],
        *args: Any,
        rows: Selection | None = None,
    ) -> T:
        """Return `call(*args)`; on an exception, restore the memory of `scope` first.

        A call of scope "sim" within another call is part of that one, which rolls back
        both. One of scope "env" within another call is an error. `rows` are the only
        worlds that the call changes; None: it may change any.
        """
        if not self.open:
            places = changed(*self.watch.lists)
            if places:  # a rollback reverts only what follows
                self.announce_written(places)
            if self._users_own:
                self.drop_graphs()
        elif scope == "env":
            self.calls.recover()
            raise InvalidInputError(
                f"{what} was called within {self.open[-1].what}, by a term or a force "
                "model. That is not allowed: it would undo what is half done."
            )
        elif scope == "sim":
            self.calls.recover()
            return call(*args)
        if rows is not None and not rows.is_all:
            saved = self.backup_of_rows(scope, rows)
            return self.calls.run(scope, what, saved, call, *args)
        saved = self._saved.get(scope)
        if saved is None:
            saved = self._saved[scope] = self.backup(scope).saved
        return self.calls.run(scope, what, saved, call, *args)

    def run_saving(
        self, names: Iterable[str], what: str, call: Callable[..., T], *args: Any
    ) -> T:
        """Return `call(*args)`; on an exception, restore these slots first."""
        slots = [self[name] for name in names]
        chunks = [chunk_for(slot, slot.tensor.data) for slot in slots]
        backup = Backup((chunk, chunk.memory) for chunk in chunks)
        return self.calls.run("write", what, backup.saved, call, *args)

    def refuse_within_step(self, what: str) -> None:
        """Raise if a step is running in this thread."""
        self.calls.recover()
        if [call for call in self.open if call.scope in ("step", "run")]:
            raise InvalidInputError(
                f"{what} was called during a step, by a force model, a process, an "
                "event or a task. Call it after the step; a terminal event ends a run.",
                name=what,
            )

    @property
    def is_evaluating(self) -> bool:
        """True while force models write inputs for one evaluation."""
        try:  # another thread may close its call at any time
            return bool(self.open) and self.open[-1].evaluating
        except IndexError:
            return False

    def on_undo(self, call: Call, constants: bool) -> None:
        """Mark derived values as stale after the memory of a call was restored.

        It is idempotent, calls no user code and formats no string, which would check
        for signals.
        """
        if call.scope == "env":
            self.scope = ""  # no term is running
        for name in call.added or ():
            slot = self.slots[name]
            if slot.initial is not None:
                self.put_slot(slot, slot.initial, everything(self.num_envs))
        for keeper in self.undone:
            keeper.undo(call)
        self.puts += 1
        self.follow()
        if call.saved is not None:
            self.watch.acknowledge(call.saved.storages)
        stage = Stage.CONSTANT if constants else Stage.POSITION
        self._mark_stale(stage, None, "a call that was undone: " + call.what, True)


def _mark_nothing(*write: object) -> None:
    """Do nothing: no values are derived from the slots."""


def _host_place(rows: Selection | None, columns: Index | None) -> Any:
    """Return what selects some columns of some worlds in a NumPy array."""
    place: Any = slice(None) if rows is None else rows.host
    if columns is None:
        return place
    if isinstance(columns, slice):
        return place, columns
    across = columns.numpy()
    return (place if isinstance(place, slice) else place[:, None]), across
