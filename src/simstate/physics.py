"""Physics: an engine, the ledger of its worlds, and what is fresh of them.

What entities, integrators, sensors and states are built on. A user meets it as
`sim.internals`; everything that he needs of it is on Simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import mujoco
import torch
from torch import Tensor

from simstate.checks import check_finite
from simstate.engine import (
    CONSTANT_INPUTS,
    FIELDS,
    STATE_FIELDS,
    Engine,
    OnDemand,
    OneTorchThread,
    Stage,
)
from simstate.engine.base import moving_columns
from simstate.engine.choices import check_of
from simstate.engine.mesh_bounds import MeshBounds
from simstate.engine.shortcuts import Shortcuts
from simstate.errors import InvalidInputError
from simstate.freshness import Freshness, Mode
from simstate.ids import Ids, Selection, Values, as_values, everything, select
from simstate.ledger import Backup, Chunk, Ledger, Scope, Slot, Write
from simstate.random import WorldRandom
from simstate.state_rows import StateRows

Result = TypeVar("Result")

Advance = Callable[[int, Tensor | None], Tensor | None]
"""`advance(n, env_ids)` moves worlds on by n time steps, None: all, leaves freshness as
it is then, and returns the mask of worlds that went bad, or None."""

AfterStep = Callable[[Tensor | None, int], None]
"""`after_step(env_ids, n)`: what happens at the end of a step; None: in all worlds."""


class StepRecorder(Protocol):
    """What keeps the steps of the worlds."""

    def begin(self, n: int, rows: Selection) -> None:
        """A step of n time steps of these worlds is about to be taken."""
        ...

    def end(self) -> None:
        """It was taken; one that raised was not."""
        ...


class Physics:
    """All worlds on an engine: fields that are fresh, parameters that count.

    Args:
        engine: what steps the worlds.
        initial: the state at reset of one world, by field, without leading dimension.
        freshness: what a read of a stale value does.
        seed: seeds the worlds' random numbers.
        first_world: the global id of the first world.
    """

    def __init__(
        self,
        engine: Engine,
        initial: Mapping[str, Tensor],
        freshness: Mode,
        seed: int,
        first_world: int,
    ) -> None:
        self.engine = engine
        self.model: mujoco.MjModel = engine.model
        self.num_envs = engine.num_envs
        self.device = engine.device
        self.dtype = engine.dtype
        self.ledger = Ledger(engine.num_envs, engine.device)
        self.fresh = Freshness(engine, self.ledger, freshness)
        self.fresh.update = self.compute
        self.evaluate: Callable[[Tensor | None], None] = self._evaluate
        """Evaluates the dynamics at the present state; an integrator adds its loads."""
        self.with_loads: Callable[[Callable[[], None]], None] = _run
        """Computes something while the inputs have the loads of all force models."""
        self.advance: Advance = self._advance
        """Moves worlds on; an integrator puts its own in place."""
        self.settle: Callable[[], None] | None = None
        """Puts bad worlds back within a step, in place of `find_bad` after it."""
        self.report_bad: Callable[[Tensor | None], None] = lambda env_ids: None
        """Tells of worlds that were evaluated with bad numbers, outside a step."""
        self.after_step: list[AfterStep] = []
        """Called at the end of every step, before it is done."""
        self.recorders: list[StepRecorder] = []
        """Called before and after every step that is taken."""
        self._followed: dict[str, Tensor] = {}
        """Parameters as they were when constants last followed from them."""
        self._shortcuts = Shortcuts(self.model, self.device)
        self.step_scope: Scope = "step"
        """What a step may change; "run": anything, since actions of events write."""
        self._mesh_bounds = MeshBounds(self.model, self.device)
        self._add_fields(initial)
        self.rng = WorldRandom(self.ledger, seed, first_world)
        self.everywhere = everything(engine.num_envs)
        """The selection of all worlds."""
        self._last_ids: tuple[Tensor, Selection] | None = None
        self._rows = StateRows(engine, self.ledger)

    @property
    def steps_plainly(self) -> bool:
        """Whether the engine's own step moves the worlds, and no integrator."""
        return self.advance == self._advance

    @property
    def state(self) -> Tensor:
        """The state of all worlds, writable; shape (num_envs, nstate)."""
        return self._rows.read()

    def _add_fields(self, initial: Mapping[str, Tensor]) -> None:
        """Register the engine's state; on native its rows are one piece of memory."""
        for names, memory in self.engine.state_memory():
            whole = len(names) > 1
            field = FIELDS[names[0]]
            is_input = not field.moves and field.stage == Stage.ACCELERATION
            chunk = Chunk(
                memory,
                "sim",
                moving_columns(self.engine) if whole else _all_if(field.moves),
                self._input_columns() if whole else _all_if(is_input),
                stage=Stage.POSITION if whole else field.stage,
            )
            for name in names:
                field = FIELDS[name]
                slot = Slot(
                    name=name,
                    kind="state" if field.moves else "input",
                    tensor=self.engine.field(name),
                    stage=field.stage,
                    moves=field.moves,
                    initial=initial[name][None],
                    reset="initial",
                    unit=field.unit,
                    axes=field.axes,
                )
                self.ledger.add(slot, chunk)

    def _input_columns(self) -> slice:
        columns = self.engine.columns
        return slice(columns["ctrl"].start, columns["xfrc_applied"].stop)

    # Reads.

    def read_field(self, name: str) -> Tensor:
        """The live tensor of a raw field, as fresh as `freshness` says."""
        tensor = self.live_field(name)
        field = FIELDS[name]
        stage = Stage.STATE if field.is_state else field.stage
        self.fresh.ensure(stage, f"sim.data.{name}")
        return tensor

    def live_field(self, name: str) -> Tensor:
        """The live tensor of a raw field, computed if it was not so far."""
        if not self.engine.is_bound(name):
            self.engine.compute_late(name)
        self.fresh.watch_derived(name)
        return self.engine.field(name)

    def acceleration_now(self) -> Tensor:
        """Qacc at the present state, in qvel's axes; shape (num_envs, nv).

        After a step qacc is that of the state before it. Where the present one is
        asked for, it is computed and put aside, and the fields keep their values, so
        that reading one quantity never changes another.
        """
        if self.fresh.mode == "off" or self.fresh.evaluated_now:
            return self.engine.field("qacc").clone()
        self.fresh.refresh_constants()
        kept = self.engine.keep_accelerations(slice(None))
        try:
            self._evaluate_and_report(None)
            return self.engine.field("qacc").clone()
        finally:
            self.engine.put_back(kept, slice(None))

    def on_demand(self, compute: Callable[[OnDemand], Result]) -> Result:
        """What no step computes, for the present state, with all loads.

        Fields of the last dynamics evaluation keep their values.
        """
        self.ledger.recover()
        self.fresh.ensure(Stage.VELOCITY, "what is computed on demand")
        found: list[Result] = []
        with torch.inference_mode(False), OneTorchThread():
            self.with_loads(lambda: found.append(compute(self.engine.on_demand)))
        return found[0]

    # Computations.

    def compute(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute what is derived up to a stage, in some worlds; None: all."""
        if stage == Stage.CONSTANT:
            self.set_const(env_ids)
        elif stage == Stage.ACCELERATION:
            self._evaluate_and_report(env_ids)
        else:
            self.engine.forward(env_ids, stage)

    def _advance(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        self.engine.advance(n, env_ids, self.settle)
        self.fresh.stepped(env_ids)
        return self.engine.find_bad() if self.settle is None else None

    def _evaluate(self, env_ids: Tensor | None) -> None:
        self.engine.forward(env_ids, Stage.ACCELERATION)

    def forward(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the present state, whatever was behind."""
        fresh = self.fresh
        self._rows.collect()
        self.ledger.observe()
        fresh.write(Stage.POSITION, env_ids, "sim.forward()")  # should it not end
        for name, followed in self._followed.items():
            differs = (followed != self.engine.expand(name)).flatten(1).any(dim=1)
            ids = differs.nonzero().flatten()
            if ids.numel():
                fresh.write(Stage.CONSTANT, ids, f'a write to sim.expand("{name}")')
        fresh.refresh_constants()
        self._evaluate_and_report(env_ids)
        fresh.forwarded(env_ids, Stage.ACCELERATION)

    def _evaluate_and_report(self, env_ids: Tensor | None) -> None:
        """Evaluate, and warn of what was dropped; within a step its end does that."""
        if self.ledger.is_stepping:
            self.evaluate(env_ids)
            return
        self.engine.begin_evaluation()
        self.evaluate(env_ids)
        self.engine.report_warnings(env_ids)
        self.report_bad(env_ids)

    def state_before(self, saved: Backup) -> dict[str, Tensor]:
        """The state that a step began with, by field; shape (num_envs, …) each."""
        fields = {name: self.engine.field(name) for name in STATE_FIELDS}
        for (name, *others), memory in self.engine.state_memory():
            if others:
                moving = moving_columns(self.engine)
                kept = saved.kept_rows(memory)[:, : moving.stop]
                whole = torch.cat([kept, memory[:, moving.stop :]], dim=1)
                return self.engine.split(whole)
            if FIELDS[name].moves and memory.numel():
                fields[name] = saved.kept_rows(memory)
        return fields

    # Parameters.

    def expand(self, name: str) -> Tensor:
        """Live per-world values of a model parameter; shape (num_envs, …)."""
        slot_name = f"model/{name}"
        if slot_name not in self.ledger:
            with torch.inference_mode(False):  # they are written to later on
                self._add_parameter(name, slot_name)
        return self.ledger[slot_name].tensor

    def _add_parameter(self, name: str, slot_name: str) -> None:
        """Let a parameter differ by world from now on."""
        tensor = self.engine.expand(name)
        if name == "geom_dataid":
            for bound in self._mesh_bounds.parameters:
                self.expand(bound)
        slot = Slot(
            name=slot_name,
            kind="parameter",
            tensor=tensor,
            stage=Stage.CONSTANT if name in CONSTANT_INPUTS else Stage.POSITION,
            initial=self.engine.model_parameter(name)[:, : tensor.shape[1]]
            if tensor.ndim > 1
            else self.engine.model_parameter(name),
            optional=True,
        )
        if name in self.engine.constants:
            by_hand = self.ledger.memory(
                f"by_hand/{name}", dtype=torch.bool, reset=None, optional=True
            )
            slot.on_write, slot.companions = _marks(by_hand.tensor), (by_hand.name,)
            slot.computed = True
        if name in CONSTANT_INPUTS:
            self._followed[name] = tensor.detach().clone()
        slot.check = check_of(self.model, name)
        self.ledger.add(slot)

    def write_parameter(
        self, name: str, values: Values, element_ids: Ids, env_ids: Ids
    ) -> None:
        """Write a parameter of some elements in some worlds, checked; (n, E, …)."""
        rows = self.select(env_ids)
        tensor = self.engine.expanded.get(name)
        if tensor is None:  # a refused write leaves it common to all worlds
            tensor = self.engine.model_parameter(name)
        columns, shape = None, ()
        if tensor.ndim > 1:
            elements = select(
                element_ids, tensor.shape[1], f"{name} element", self.device
            )
            columns, shape = elements.index, (elements.count, *tensor.shape[2:])
        elif element_ids is not None:
            raise InvalidInputError(
                f"{name} is one number for each world: it has no elements, got "
                f"element_ids={element_ids!r}.",
                name=name,
            )
        checked = as_values(values, name, rows.count, shape, tensor)
        check_finite(checked, name)
        self._shortcuts.check(name, checked, columns, "Nothing was written.")
        check = check_of(self.model, name)
        if check is not None:
            check(checked, rows)
        self.expand(name)
        self.ledger.write(Write(f"model/{name}", rows, columns, checked))

    def set_const(self, env_ids: Tensor | None) -> None:
        """Recompute the constants that follow from parameters; the state is kept.

        Those that were written by hand keep what was written.
        """
        rows = slice(None) if env_ids is None else env_ids
        for name in self._shortcuts.parameters & self.engine.expanded.keys():
            then = f'To go on, put the model\'s own values back: sim.expand("{name}").'
            self._shortcuts.check(name, self.engine.expand(name)[rows], None, then)
        written = [
            slot.name.removeprefix("by_hand/")
            for slot in self.ledger.of(("sim",))
            if slot.name.startswith("by_hand/") and bool(slot.tensor[rows].any())
        ]
        for name, followed in self._followed.items():
            followed[rows] = self.engine.expand(name)[rows]
        if not written:
            self._set_const(env_ids)
            return
        with self.ledger.saved([f"model/{name}" for name in written], "set_const"):
            kept = {name: self.engine.expand(name).clone() for name in written}
            self._set_const(env_ids)
            for name, values in kept.items():
                by_hand = self.ledger[f"by_hand/{name}"].tensor
                self.engine.expand(name).data[by_hand] = values[by_hand]

    def _set_const(self, env_ids: Tensor | None) -> None:
        """Recompute all constants; bounds follow the meshes that geoms have."""
        self.engine.set_const(env_ids)
        expanded = self.engine.expanded
        if len(self._mesh_bounds) and "geom_dataid" in expanded:
            for name in self._mesh_bounds.parameters:
                bounds = expanded[name].data  # not a write by a user
                self._mesh_bounds.follow(expanded["geom_dataid"], name, bounds)

    # Selections.

    def select(self, env_ids: Ids) -> Selection:
        """The validated selection of worlds that `env_ids` makes."""
        if env_ids is None:
            return self.everywhere
        if not isinstance(env_ids, Tensor) or env_ids.dtype != torch.int64:
            return select(env_ids, self.num_envs, "env", self.device)
        # The writes of a reset are all for the same worlds. They are compared by
        # value: NumPy may have changed the tensor past torch's counter.
        if self._last_ids is not None:
            known, selection = self._last_ids
            if known.shape == env_ids.shape and torch.equal(known, env_ids):
                return selection
        selection = select(env_ids.clone(), self.num_envs, "env", self.device)
        if isinstance(selection.index, Tensor):
            self._last_ids = (selection.index.clone(), selection)
        return selection

    def write_rows(self, state: Tensor, rows: Selection) -> None:
        """Write rows of the state, unchecked, into its fields; (n or 1, nstate)."""
        fields = self.engine.split(state)
        self.ledger.write(
            *(Write(name, rows, None, fields[name]) for name in STATE_FIELDS)
        )


def _run(compute: Callable[[], None]) -> None:
    compute()


def _all_if(condition: bool) -> slice | None:
    return slice(None) if condition else None


def _marks(by_hand: Tensor) -> Callable[[Selection | None], None]:
    """What notes that a constant was written by hand in some worlds."""

    def mark(rows: Selection | None) -> None:
        by_hand.data[slice(None) if rows is None else rows.index] = True

    return mark
