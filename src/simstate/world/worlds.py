"""Worlds: the components that entities, steppers, sensors and states share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import mujoco
import torch
from torch import Tensor

from simstate.base.checks import check_finite, instance_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Ids, Selection, Values, as_values, select
from simstate.engine import (
    CONSTANT_INPUTS,
    FIELDS,
    STATE_FIELDS,
    Engine,
    OnDemand,
    OneTorchThread,
    Stage,
)
from simstate.engine.engine import moving_columns
from simstate.world import Backup, Ledger, Write
from simstate.world.freshness import Freshness, ReadOwner
from simstate.world.invalid_values import report_invalid
from simstate.world.parameters import ModelParameters
from simstate.world.random import WorldRandom
from simstate.world.state_rows import StateRows

T = TypeVar("T")


class Loads(Protocol):
    """Evaluations of the dynamics with everything that acts on the worlds."""

    def evaluate(self, rows: Tensor | None) -> None:
        """Evaluate the dynamics at the current state, with all loads; None: all."""
        ...

    def with_loads(self, call: Callable[[], T]) -> T:
        """Return `call()`, with the loads of all force models in the inputs."""
        ...


@dataclass(frozen=True, eq=False)
class Worlds(ReadOwner):
    """All worlds on an engine: their ledger, freshness, parameters and random streams.

    `Simulation` creates it once and passes it to its components.
    """

    engine: Engine
    ledger: Ledger
    fresh: Freshness
    parameters: ModelParameters
    rng: WorldRandom
    everywhere: Selection
    """The selection of all worlds."""
    rows: StateRows
    """The state as one tensor."""
    loads: Loads
    _last_ids: list[tuple[Tensor, Selection]] = field(
        default_factory=list[tuple[Tensor, Selection]], repr=False
    )
    _handed_out: dict[str, tuple[Tensor, Stage | None]] = field(
        default_factory=dict[str, tuple[Tensor, Stage | None]], repr=False
    )
    """Raw fields that were read, with the stage that each needs."""

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The compiled scene."""
        return self.engine.model

    @cached_property
    def num_envs(self) -> int:
        """The number of worlds."""
        return self.engine.num_envs

    @cached_property
    def device(self) -> torch.device:
        """The device of all tensors."""
        return self.engine.device

    @cached_property
    def dtype(self) -> torch.dtype:
        """The floating-point type of the engine."""
        return self.engine.dtype

    def select(self, env_ids: Ids) -> Selection:
        """Return the validated selection of worlds that `env_ids` makes."""
        if env_ids is None:
            return self.everywhere
        if not isinstance(env_ids, Tensor) or env_ids.dtype != torch.int64:
            return select(env_ids, self.num_envs, "env", self.device)
        # The writes of a reset select the same worlds. Ids are compared by value:
        # NumPy may have changed the tensor without torch counting it.
        if self._last_ids:
            known, selection = self._last_ids[0]
            if known.shape == env_ids.shape and torch.equal(known, env_ids):
                return selection
        selection = select(env_ids.clone(), self.num_envs, "env", self.device)
        if isinstance(selection.index, Tensor):
            self._last_ids[:] = [(selection.index.clone(), selection)]
        return selection

    # Reads.

    def read_field(self, name: str) -> Tensor:
        """Return the live tensor of a raw field, as fresh as the mode demands."""
        known = self._handed_out.get(name)
        if known is None:
            known = self._handed_out[name] = (self.live_field(name), self._needs(name))
        tensor, stage = known
        if stage is not None:
            self.fresh.ensure(stage, self, name)
        elif self.ledger.open:
            self.ledger.calls.recover()
        return tensor

    def _needs(self, name: str) -> Stage | None:
        """Return the stage that a raw field needs; None: it is memory of the state."""
        declared = FIELDS[name]
        if not declared.is_state:
            return declared.stage
        return None if self.engine.state_is_live else Stage.STATE

    def live_field(self, name: str) -> Tensor:
        """Return the live tensor of a raw field; computed now if it was not before."""
        tensor = self.bound_field(name)
        self.fresh.watch_derived(name)
        return tensor

    def bound_field(self, name: str) -> Tensor:
        """Return the same for computations: writes to it are not detected."""
        if not self.engine.is_bound(name):
            self.engine.compute_late(name)
        return self.engine.field(name)

    def label_of(self, name: str) -> str:
        """Return the name of a raw field in error messages."""
        return f"sim.data.{name}"

    def acceleration_now(self) -> Tensor:
        """Return qacc at the current state, in qvel's axes; shape (num_envs, nv).

        After a step, the field qacc is that of the state before it. This evaluates the
        dynamics and leaves the fields unchanged, so that reading one quantity never
        changes another.
        """
        self.ledger.observe()
        if self.fresh.mode == "off" or self.fresh.evaluated_now:
            return self.engine.field("qacc").clone()
        self.fresh.refresh_constants()
        kept = self.engine.keep_accelerations(slice(None))
        try:
            self.evaluate(None)
            return self.engine.field("qacc").clone()
        finally:
            self.engine.put_back(kept, slice(None))

    def on_demand(self, compute: Callable[[OnDemand], T]) -> T:
        """Return what no step computes, for the current state, with all loads.

        Fields of the last dynamics evaluation keep their values.
        """
        self.ledger.calls.recover()
        self.fresh.ensure(Stage.VELOCITY, None, "what is computed on demand")
        with torch.inference_mode(False), OneTorchThread():
            return self.loads.with_loads(lambda: compute(self.engine.on_demand))

    # Computations.

    def compute(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived values up to a stage, in some worlds; None: all."""
        if stage == Stage.CONSTANT:
            self.parameters.follow(env_ids)
        elif stage == Stage.ACCELERATION:
            self.evaluate(env_ids)
        else:
            self.engine.forward(env_ids, stage)

    def forward(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at the current state, whether stale or not."""
        fresh = self.fresh
        self.rows.collect()
        self.ledger.observe()
        # First, in case it is interrupted. Parameters may have been written uncounted.
        fresh.write(Stage.POSITION, env_ids, "sim.forward()", parameters=True)
        for name, ids in self.parameters.changed_inputs().items():
            fresh.write(Stage.CONSTANT, ids, f'a write to sim.expand("{name}")')
        fresh.refresh_constants()
        self.evaluate(env_ids)
        fresh.mark_current(Stage.ACCELERATION, env_ids, evaluated=True)

    def evaluate(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics; report warnings, unless within a step."""
        if self.ledger.is_stepping:
            self.loads.evaluate(env_ids)
            return
        self.engine.begin_evaluation()
        self.loads.evaluate(env_ids)
        self.engine.report_warnings(env_ids)
        report_invalid(self.engine, self.ledger["diverged"].tensor, env_ids)

    def state_before(self, saved: Backup) -> dict[str, Tensor]:
        """Return the state that a step started with, by field; (num_envs, …) each."""
        fields = {name: self.engine.field(name) for name in STATE_FIELDS}
        for (name, *others), memory in self.engine.state_memory():
            if others:
                moving = moving_columns(self.engine)
                kept = saved.copied_rows(memory)[:, : moving.stop]
                whole = torch.cat([kept, memory[:, moving.stop :]], dim=1)
                return self.engine.split(whole)
            if FIELDS[name].moves and memory.numel():
                fields[name] = saved.copied_rows(memory)
        return fields

    # Writes.

    def expand(self, name: str) -> Tensor:
        """Return live per-world values of a parameter; see `Simulation.expand`."""
        instance_of("The name of a parameter", name, str)
        tensor = self.parameters.expand(name)
        if name in self.engine.constants - CONSTANT_INPUTS:
            self.fresh.ensure(Stage.CONSTANT, self.parameters, name)
        return tensor

    def set_const(self, rows: Selection) -> None:
        """Recompute the constants that depend on parameters; the state is kept."""
        ids = rows.ids_or_none(self.device)
        self.ledger.observe()
        self.parameters.request_const(ids)
        self.fresh.write(Stage.CONSTANT, ids, "sim.set_const()")
        self.fresh.refresh_constants()

    def write_state(self, state: Values, rows: Selection) -> None:
        """Write rows of the state, checked; shape (n, nstate)."""
        shape, like = (self.engine.nstate,), self.engine.field("qpos")
        values = as_values(state, "state", rows.count, shape, like)
        check_finite(values, "state")
        self.write_rows(values, rows)

    def write_field(self, name: str, values: Values, rows: Selection) -> None:
        """Write a field of the state, checked; shape (n, …)."""
        if name not in STATE_FIELDS:
            raise unknown_name("field of the state", name, STATE_FIELDS)
        like = self.engine.field(name)
        given = as_values(values, name, rows.count, tuple(like.shape[1:]), like)
        check_finite(given, name)
        self.ledger.write(Write(name, rows, None, given))

    def write_rows(self, state: Tensor, rows: Selection) -> None:
        """Write rows of the state, unchecked, into its fields; (n or 1, nstate)."""
        fields = self.engine.split(state)
        self.ledger.write(
            *(Write(name, rows, None, fields[name]) for name in STATE_FIELDS)
        )


def worlds_of(sim: Any) -> Worlds:
    """Return the components that a simulation or an entity is built on."""
    try:
        return sim._worlds
    except AttributeError:
        raise InvalidInputError(
            f"A simstate.Simulation is needed here, got {type(sim).__name__}.",
            name="sim",
        ) from None
