"""Freshness: what has been written since each stage was last computed.

Torch counts in-place writes to a tensor in its `_version`, views included. Every slot
that derived values depend on is watched by the ledger, so any write is seen, also one
by hand to `sim.data.qpos`, and no list of what to invalidate is kept anywhere. Our own
writers go through the ledger, which knows the worlds and so leaves the others fresh.

Not counted, because torch does not: writes through `.data`, `.numpy()`, DLPack or
`warp.from_torch`, and by `apply_` and `map_`. After those, call `sim.forward()`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from threading import get_ident
from typing import Any, Literal

import torch
from torch import Tensor

from simstate.engine import FIELDS, STATE_FIELDS, Engine, Stage, lasting
from simstate.errors import InvalidInputError, StaleReadError
from simstate.ledger import Ledger, WriteCounts

Mode = Literal["auto", "strict", "off"]

# Looking a member up in its class costs as much as ten of these.
_STATE, _CONSTANT, _POSITION, _VELOCITY, _ACCELERATION = Stage
_DERIVED = (_CONSTANT, _POSITION, _VELOCITY, _ACCELERATION)
_END = len(Stage)
_AFTER_A_STEP = ["a step"] * _END

Evaluate = Callable[[Tensor | None, Stage], None]
"""`evaluate(rows, stage)` computes derived values up to a stage; None: all worlds."""


class Freshness:
    """Knows for each stage which worlds are behind, and brings them up to date.

    The ledger calls `write` when something was written; reads call `ensure` first; and
    `mark_current` follows a step or an evaluation. While force models are evaluated at a
    stage of a step, the state is that of the stage: reads bring values up to date in any
    mode, and writes to inputs make nothing stale, because they are restored.
    """

    def __init__(
        self, engine: Engine, ledger: Ledger, mode: Mode, evaluate: Evaluate
    ) -> None:
        self.mode: Mode = mode
        self._numbers = itertools.count()
        self.tokens = [next(self._numbers)] * _END
        """Per stage, a number that is new whenever values of that stage may be."""
        self.evaluated_now = False
        """Whether the last dynamics evaluation was at the present state."""
        self._evaluate = evaluate
        self._engine = engine
        self._ledger = ledger
        self._behind: list[Tensor | bool] = [False] * _END
        """Per stage: False, True for all worlds, or the mask of those behind."""
        self._reason = [""] * _END
        self._known: set[str] = {*STATE_FIELDS}
        """Fields that are seen to; a state field is the ledger's."""
        self._derived = WriteCounts[str]()
        """The derived fields that a user may hold."""
        ledger.listener = self.write

    def write(self, stage: Stage, env_ids: Tensor | None, reason: str) -> None:
        """Mark what comes from `stage` on as behind in these worlds (None: all)."""
        tokens, new = self.tokens, next(self._numbers)
        tokens[_STATE] = new
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
            if worlds is None:
                behind[derived] = True
            elif (mask := behind[derived]) is not True:
                if mask is False:
                    mask = behind[derived] = self._mask(False)
                live: Any = mask if isinstance(worlds, Tensor) else mask.numpy()
                live[worlds] = True

    @property
    def constants_are_behind(self) -> bool:
        """Whether constants do not follow from their parameters, and should."""
        return self._behind[_CONSTANT] is not False and self.mode != "off"

    def ensure(self, stage: Stage, what: str) -> int:
        """Bring `stage` up to date as the mode demands; return its token."""
        ledger = self._ledger
        is_evaluating = ledger.is_evaluating
        # Writes of a force model are checked when the step ends.
        if not is_evaluating or ledger.open[-1].thread != get_ident():
            if ledger.open:
                ledger.calls.recover()
            ledger.observe()
            if self._derived.has_changed():
                self._refuse_writes_to_derived()
        if self._behind[stage] is not False:
            if is_evaluating or self.mode == "auto":
                self.refresh(stage)
            elif self.mode == "strict":
                raise StaleReadError(self._stale_message(stage, what))
        return self.tokens[stage]

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
        """Let the model's constants follow their parameters where they are behind."""
        behind = self._behind[_CONSTANT]
        if behind is not False:
            ids = None if behind is True else behind.nonzero().flatten()
            self._evaluate(ids, _CONSTANT)
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
        new = next(self._numbers)
        if evaluated:
            self.tokens[_CONSTANT : stage + 1] = [new] * stage
        else:
            self.tokens = [new] * _END
            self.evaluated_now = False
        if rows is None:
            self._behind[_CONSTANT : stage + 1] = [False] * stage
            if not evaluated:
                self._behind[stage + 1 :] = [True] * (_ACCELERATION - stage)
                self._reason[:] = _AFTER_A_STEP
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
        self.tokens = [next(self._numbers)] * _END
        self.evaluated_now = False

    def watch_derived(self, name: str) -> None:
        """See that nobody writes into a field that is computed from the state."""
        if name in self._known:
            return
        tensor = self._engine.field(name)
        if tensor.numel():
            self._derived.add(name, tensor)
        self._known.add(name)

    def _refuse_writes_to_derived(self) -> None:
        """Raise if somebody wrote into a field that is computed from the state."""
        for name, count in self._derived.risen():
            self._derived.note(name, count)
            label = f"sim.data.{name}"
            self.write(FIELDS[name].stage, None, f"a write to {label}")
            raise InvalidInputError(
                f"{label} was written to, but it is computed from the state and "
                "will be computed anew. Write the state (sim.data.qpos, qvel, "
                "ctrl, …) or use an entity's write_… method."
            )

    def _stale_message(self, stage: Stage, what: str) -> str:
        behind = self._behind[stage]
        num_envs = self._ledger.num_envs
        worlds = int(behind.sum()) if isinstance(behind, Tensor) else num_envs
        return (
            f"{what} is stale in {worlds} of {num_envs} worlds after "
            f"{self._reason[stage]}. Call sim.forward() before this read, or use "
            'Simulation(freshness="auto").'
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
        """A mask of the worlds, which outlives a caller's inference mode."""
        with lasting():
            return torch.full(
                (self._ledger.num_envs,), value, device=self._ledger.device
            )
