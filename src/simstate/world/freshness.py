"""Freshness: the values that are stale since each stage was last computed.

Torch counts in-place writes to a tensor in its `_version`, views included. The ledger
watches every slot that derived values depend on, and every derived field that a user
may hold, so any write is detected, also one by hand to `sim.data.qpos`. The writers of
entities pass the ledger the worlds that they write, so that the others stay fresh.

Not counted, because torch does not: writes through `.data`, `.numpy()`, DLPack or
`warp.from_torch`, and by `apply_` and `map_`. After those, call `sim.forward()`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import get_ident
from typing import Any, Literal

import torch
from torch import Tensor

from simstate.base.errors import StaleReadError
from simstate.base.ids import int_list
from simstate.engine import FIELDS, STATE_FIELDS, Engine, Stage, lasting
from simstate.world import Ledger, Trees
from simstate.world.calls import Call, changed

Mode = Literal["auto", "strict", "off"]

# Looking a member up in its class costs as much as ten of these.
_STATE, _CONSTANT, _POSITION, _VELOCITY, _ACCELERATION = Stage
_DERIVED = (_CONSTANT, _POSITION, _VELOCITY, _ACCELERATION)
_END = len(Stage)
_AFTER_A_STEP = ["a step"] * _END
_BEHIND_AFTER: list[list[Tensor | bool]] = [
    [derived > stage for derived in range(_END)] for stage in range(_END)
]
"""The stages that are behind after a step that computed those up to a stage."""

Evaluate = Callable[[Tensor | None, Stage], None]
"""`evaluate(rows, stage)` computes derived values up to a stage; None: all worlds."""


class ReadOwner(ABC):
    """An object whose values are read."""

    @abstractmethod
    def label_of(self, name: str) -> str:
        """Return the name of a value in error messages."""

    def trees_of(self, name: str) -> Trees:
        """Return the trees whose joints and mocap poses alone a value depends on."""
        del name
        return None


class Freshness:
    """Knows for each stage which worlds are behind, and brings them up to date.

    The ledger calls `write` when something was written; reads call `ensure` first; and
    `mark_current` follows a step or an evaluation. While force models are evaluated at
    a stage of a step, the state is that of the stage: reads bring values up to date in
    any mode, and writes to inputs make nothing stale, because they are restored.
    """

    def __init__(
        self, engine: Engine, ledger: Ledger, mode: Mode, evaluate: Evaluate
    ) -> None:
        self.mode: Mode = mode
        self._numbers = itertools.count()
        self.tokens = [next(self._numbers)] * _END
        """Per stage, a number that is new whenever values of that stage may be."""
        self.evaluated_now = False
        """True if the last dynamics evaluation was at the present state."""
        self._evaluate = evaluate
        self._engine = engine
        self._ledger = ledger
        self._behind: list[Tensor | bool] = [False] * _END
        """Per stage: False, True for all worlds, or the mask of those behind."""
        self._reach: list[Trees] = [None] * _END
        """Per stage: the trees that the worlds are behind in; None: all."""
        self._reason = [""] * _END
        self._open = ledger.open
        self._settled: Call | None = None
        """The open call within which no write is undetected; see `settle`."""
        self._watch = ledger.watch
        self._watched: set[str] = {*STATE_FIELDS}
        """Fields on the watch list; state fields are slots of the ledger."""
        self._live: tuple[int, set[int]] = (-1, set())
        ledger.connect_derived(self.write)

    def write(
        self,
        stage: Stage,
        env_ids: Tensor | None,
        reason: str,
        parameters: bool = False,
        trees: Trees = None,
    ) -> None:
        """Mark what comes from `stage` on as behind in these worlds (None: all).

        Args:
            stage: the first stage that is behind.
            env_ids: the worlds.
            reason: the write, in words.
            parameters: True if parameters or settings may have been written. Values
                that depend on nothing else are then computed again.
            trees: the trees whose joints or mocap poses were written; None: any.
        """
        tokens, new = self.tokens, next(self._numbers)
        tokens[_STATE] = new
        if parameters or self._ledger.moves_parameters:
            tokens[_CONSTANT] = new
        if stage == _STATE:  # nothing that the physics reads
            return
        if stage == _ACCELERATION and self._ledger.is_evaluating:
            return
        self.evaluated_now = False
        behind, reasons = self._behind, self._reason
        worlds: Any = env_ids  # NumPy takes a third of torch's time
        if env_ids is not None and env_ids.is_cpu:
            worlds = env_ids.numpy()
        for derived in range(stage, _END):
            tokens[derived] = new
            reasons[derived] = reason
            if behind[derived] is False:
                self._reach[derived] = trees
            elif (known := self._reach[derived]) is not None:
                self._reach[derived] = None if trees is None else known | trees
            if worlds is None:
                behind[derived] = True
            elif (mask := behind[derived]) is not True:
                if mask is False:
                    mask = behind[derived] = self._mask(False)
                live: Any = mask if isinstance(worlds, Tensor) else mask.numpy()
                live[worlds] = True

    @property
    def constants_are_behind(self) -> bool:
        """True if constants are out of date with their parameters and should not be."""
        return self._behind[_CONSTANT] is not False and self.mode != "off"

    def ensure(self, stage: Stage, owner: ReadOwner | None, name: str) -> int:
        """Update to `stage` as the mode demands; return its token.

        `owner.label_of(name)` is the value that is read, in error messages; without an
        owner, `name` is.
        """
        if not self._open:
            places = changed(*self._watch.lists)
            if places:
                self._ledger.announce_written(places)
        else:
            # Another thread may close its call at any time, also while a slice of the
            # list is allocated, if that collects garbage.
            try:
                call = self._open[-1]
            except IndexError:
                call = None
            if call is None or call.failed or call.thread != get_ident():
                self._ledger.calls.recover()
                self._ledger.observe()
            elif call is not self._settled and not call.evaluating:
                self._ledger.observe()
        # Else nothing was written, or a force model reads: its writes are checked when
        # the step ends.
        if self._behind[stage] is not False:
            self._update(stage, owner, name)
        return self.tokens[stage]

    def settle(self) -> None:
        """Detect writes now; reads do not look again before `unsettle`.

        It holds within the innermost open call, whose thread writes nothing that is not
        announced until then.
        """
        self._ledger.observe()
        self._settled = self._open[-1] if self._open else None

    def unsettle(self) -> None:
        """Detect writes at every read."""
        self._settled = None

    def _update(self, stage: Stage, owner: ReadOwner | None, name: str) -> None:
        if self.mode == "auto" or self._ledger.is_evaluating:
            reach = self._reach[stage]
            if reach is not None and owner is not None:
                trees = owner.trees_of(name)
                if trees is not None and trees.isdisjoint(reach):
                    return  # only others have moved
            self.refresh(stage)
        elif self.mode == "strict":
            what = name if owner is None else owner.label_of(name)
            raise self._stale_error(stage, name, what)

    def refresh(self, stage: Stage) -> None:
        """Compute what is behind up to `stage`, in the worlds where it is behind."""
        self.refresh_constants()
        if stage == _CONSTANT:
            return
        behind = self._behind[stage]
        ids = behind.nonzero().flatten() if isinstance(behind, Tensor) else None
        reached = max(stage, _VELOCITY)  # positions come with velocities
        self._evaluate(ids, reached)
        self.mark_current(reached, ids, evaluated=True)

    def refresh_constants(self) -> None:
        """Recompute constants of the model whose parameters have changed."""
        behind = self._behind[_CONSTANT]
        if behind is not False:
            ids = None if behind is True else behind.nonzero().flatten()
            self._evaluate(ids, _CONSTANT)
            self.tokens[_CONSTANT] = next(self._numbers)
            self._clear(_CONSTANT, ids)

    def mark_current(
        self, stage: Stage, rows: Tensor | None, *, evaluated: bool
    ) -> None:
        """Mark values up to `stage` as current in these worlds; None: all.

        Args:
            stage: the last stage that was computed.
            rows: the worlds.
            evaluated: True after a pass at the current state. False after a step, which
                has changed the state: values of later stages are then behind.
        """
        tokens, new = self.tokens, next(self._numbers)
        if evaluated:
            tokens[_POSITION : stage + 1] = [new] * max(0, stage + 1 - _POSITION)
        else:
            constant = new if self._ledger.moves_parameters else tokens[_CONSTANT]
            self.tokens = [new, constant, new, new, new]
            self.evaluated_now = False
            if stage < _ACCELERATION:
                self._reach = [None] * _END
                self._reason[:] = _AFTER_A_STEP
        if rows is None:
            if not evaluated:
                self._behind = _BEHIND_AFTER[stage][:]
                return
            self._behind[_CONSTANT : stage + 1] = [False] * stage
        else:
            for derived in _DERIVED[:stage]:
                self._clear(derived, rows)
            if not evaluated and stage < _ACCELERATION:
                self.write(Stage(stage + 1), rows, "a step")
        if stage == _ACCELERATION:
            self.evaluated_now = evaluated and rows is None

    def begin_stage(self) -> None:
        """Mark all worlds as being at a new stage of a step."""
        self._behind = [False, self._behind[_CONSTANT], True, True, True]
        self._reach = [None] * _END
        new = next(self._numbers)
        constant = new if self._ledger.moves_parameters else self.tokens[_CONSTANT]
        self.tokens = [new, constant, new, new, new]
        self.evaluated_now = False

    def watch_derived(self, name: str) -> None:
        """Detect writes to a field that is computed from the state from now on."""
        if name not in self._watched:
            tensor = self._engine.field(name)
            self._watch.add_derived(f"sim.data.{name}", tensor, FIELDS[name].stage)
            self._watched.add(name)

    def is_live(self, tensor: Tensor) -> bool:
        """Return True for memory of the engine or a slot: the ledger watches it."""
        slots, engine = self._ledger.slots, self._engine
        count = len(slots) + len(engine.fields)
        if self._live[0] != count:
            known = [*engine.fields.values(), *engine.expanded.values()]
            known += [slot.tensor for slot in slots.values()]
            addresses = {x.untyped_storage().data_ptr() for x in known}
            self._live = (count, addresses)
        return tensor.untyped_storage().data_ptr() in self._live[1]

    def _stale_error(self, stage: Stage, name: str, what: str) -> StaleReadError:
        behind, num_envs = self._behind[stage], self._ledger.num_envs
        worlds = list(range(num_envs))
        if isinstance(behind, Tensor):
            worlds = int_list(behind.nonzero().flatten())
        return StaleReadError(
            f"{what} is stale in {len(worlds)} of {num_envs} worlds after "
            f"{self._reason[stage]}. Call sim.forward() before this read, or use "
            'Simulation(freshness="auto").',
            name=name,
            worlds=worlds,
        )

    def _clear(self, stage: Stage, env_ids: Tensor | None) -> None:
        behind = self._behind[stage]
        if behind is False:
            return
        if env_ids is None:
            self._behind[stage] = False
            return
        if behind is True:
            behind = self._behind[stage] = self._mask(True)
        behind[env_ids] = False
        if not bool(behind.any()):
            self._behind[stage] = False

    def _mask(self, value: bool) -> Tensor:
        """Return a mask of the worlds, which outlives a caller's inference mode."""
        with lasting():
            return torch.full(
                (self._ledger.num_envs,), value, device=self._ledger.device
            )
