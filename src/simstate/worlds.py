"""Worlds: a compiled scene on an engine, whose numbers are never stale.

The part of Simulation that states, integrators and sensors are built on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import mujoco
import torch
from torch import Tensor

from simstate.checks import as_device, check_finite, instance_of, one_of, whole_number
from simstate.divergence import Divergence
from simstate.diverging import Diverging, OnDivergence
from simstate.engine import (
    CONSTANT_INPUTS,
    EngineCfg,
    RawData,
    Stage,
    make_engine,
)
from simstate.entity import Entity, SceneEntities
from simstate.errors import DivergenceError, InvalidInputError
from simstate.freshness import Mode
from simstate.ids import (
    Ids,
    Selection,
    Values,
    as_values,
    everything,
)
from simstate.ledger import Backup, Reset, Write, user_memory
from simstate.physics import Physics
from simstate.random import WorldRandom
from simstate.scene import SceneCfg, build_scene
from simstate.scene.build import BuiltScene

StageName = Literal["position", "velocity", "acceleration"]
"""From where on a write makes derived values stale."""


class Worlds:
    """`num_envs` worlds of one scene; see Simulation, which says what each does."""

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel | BuiltScene,
        num_envs: int,
        engine: EngineCfg,
        device: str | torch.device,
        freshness: Mode,
        on_divergence: OnDivergence,
        seed: int,
        first_world: int,
    ) -> None:
        num_envs = whole_number("num_envs", num_envs, 1, 2**50)
        one_of("freshness", freshness, ("auto", "strict", "off"))
        one_of("on_divergence", on_divergence, ("raise", "mask"))
        whole_number("first_world", first_world, 0, 2**62)
        self._built: BuiltScene = build_scene(scene)
        self.model = self._built.model
        """The compiled scene, on the host. To change physics, use `expand`."""
        chosen = make_engine(self.model, num_envs, engine, as_device(device))
        start = _row_of(self.model, self._built.default).to(chosen.device, chosen.dtype)
        initial = {name: value[0] for name, value in chosen.split(start).items()}
        self.internals = Physics(chosen, initial, freshness, seed, first_world)
        """What simstate's own modules use: engine, ledger and freshness."""
        self.num_envs = num_envs
        self.device = chosen.device
        self.dtype = chosen.dtype
        self.seed = seed
        self.data = RawData(self.internals)
        """MuJoCo's own fields for all worlds."""
        self.scene = SceneEntities(
            {
                name: Entity(index, self.internals, self._built.configs[name])
                for name, index in self._built.entities.items()
            }
        )
        """The entities by name."""
        self.diverged = self.internals.ledger.memory(
            "diverged", dtype=torch.bool, reset=False, moves=True
        ).tensor
        """Worlds that diverged and wait for a reset; shape (num_envs,)."""
        self._diverging = Diverging(self.internals, self.diverged, on_divergence)
        self._write_first_state()

    # Numbers.

    @property
    def on_divergence(self) -> OnDivergence:
        """What a step does with a world that goes bad: "raise" or "mask"."""
        return self._diverging.on_divergence

    @on_divergence.setter
    def on_divergence(self, value: OnDivergence) -> None:
        one_of("on_divergence", value, ("raise", "mask"))
        self._diverging.on_divergence = value
        self.internals.settle = None

    @property
    def _settles(self) -> bool:
        """Whether bad worlds are put back within a step, unseen by the host."""
        return self.on_divergence == "mask" and self._has_plain_steps

    @property
    def _has_plain_steps(self) -> bool:
        """Whether the engine itself steps, and can put bad worlds back."""
        return self.internals.engine.can_settle and self.internals.steps_plainly

    @property
    def rng(self) -> WorldRandom:
        """The worlds' random numbers: a stream for each, in the ledger."""
        return self.internals.rng

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        return self.data.time

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        return float(self.model.opt.timestep)

    @property
    def engine_name(self) -> str:
        """The engine that runs the worlds: "native" or "warp"."""
        return self.internals.engine.name

    @property
    def camera_names(self) -> tuple[str, ...]:
        """The names of the scene's cameras."""
        return tuple(self._built.cameras)

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """The names of the scene's contact sensors and rays."""
        return (*self._built.contacts, *self._built.rays)

    @property
    def freshness(self) -> Mode:
        """What a read of a stale quantity does: "auto", "strict" or "off"."""
        return self.internals.fresh.mode

    @property
    def state(self) -> Tensor:
        """All that physics needs to go on, MuJoCo's order; (num_envs, nstate).

        It may be written. On native it is the live state; on warp it is brought up to
        date when it is asked for.
        """
        self._recover()
        return self.internals.state

    def write_state(self, state: Values, env_ids: Ids = None) -> None:
        """Write rows of `sim.state` back; shape (n, nstate)."""
        rows = self._select(env_ids)
        engine = self.internals.engine
        like = engine.field("qpos")
        values = as_values(state, "state", rows.count, (engine.nstate,), like)
        check_finite(values, "state")
        self.internals.write_rows(values, rows)

    def memory(
        self,
        name: str,
        shape: Sequence[int] = (),
        *,
        dtype: torch.dtype | None = None,
        reset: Reset = 0.0,
        stage: StageName | None = None,
        unit: str = "",
        axes: str = "",
        shared: bool = False,
    ) -> Tensor:
        """Numbers of your own for each world, live; shape (num_envs, *shape).

        They are part of the world: reset with it, in every snapshot, undone with an
        interrupted step. A second call with the same name gives the same tensor.

        Args:
            name: what it is called in snapshots.
            shape: of one world's numbers.
            dtype: None: the engine's.
            reset: what a reset writes, and what they start with: a number, one row, a
                row for each world, a function of the ids that are reset (then they
                start with 0); None: they keep their values.
            stage: from where on derived values depend on it ("acceleration" for what
                a force model reads); None: nothing does.
            unit: for those who read a snapshot.
            axes: the same.
            shared: whether all worlds have it in common: a level, a counter. Its shape
                is then `shape`, on the host; it starts with `reset`, which no reset
                writes, and is restored together with all worlds.
        """
        at = None
        if stage is not None:
            one_of("stage", stage, get_args(StageName))
            at = Stage[stage.upper()]
        return user_memory(
            self.internals.ledger, "sim", "memory", name, shape,
            self.dtype if dtype is None else dtype, reset, at, unit, axes, shared,
        )  # fmt: skip

    # Going on.

    def step(self, n: int = 1, env_ids: Ids = None) -> None:
        """Advance worlds by n time steps, None: all; the others are not touched.

        Positions and velocities are fresh then.

        Accelerations and forces are then those of the last dynamics evaluation, at
        the state before the last of the n steps; with an `integrator` they are of the
        new state, too. Worlds in `diverged` do not move.
        """
        n = whole_number("n", n, 1, 2**31 - 1)
        rows = self._select(env_ids)
        ledger = self.internals.ledger
        if ledger.is_stepping:
            raise InvalidInputError(
                "sim.step was called within a step, by a force model or a process: "
                "they are evaluated at a stage that is only tried out."
            )
        recorders = self.internals.recorders.copy()
        for recorder in recorders:
            recorder.begin(n, rows)
        with ledger.transaction(self.internals.step_scope, "sim.step()") as saved:
            assert saved.backup is not None
            error = self._step(n, rows, saved.backup)
        for recorder in recorders:
            recorder.end()
        if error is not None:
            raise error

    def _step(self, n: int, rows: Selection, saved: Backup) -> DivergenceError | None:
        """Step, and give worlds that went bad what they had; returns what to raise."""
        physics = self.internals
        if physics.fresh.mode != "off":
            physics.fresh.refresh_constants()
        moving = self._moving(rows)
        physics.fresh.write(Stage.POSITION, moving, "a step that did not end")
        physics.engine.begin_step()
        self._diverging.clear()
        if self._settles:
            physics.settle = lambda: self._diverging.settle(moving, saved)
        bad = physics.advance(n, moving)
        if physics.engine.report_warnings(moving):
            self._diverging.found()  # as long as the engine knows what was dropped
        error = None
        if bad is not None and moving is not None:
            bad &= torch.zeros_like(bad).index_fill(0, moving, True)
        if bad is not None and bool(bad.any()):
            error = self._diverging.put_back(bad, n, saved)
        for after in physics.after_step:
            after(moving, n)
        if physics.ledger.follow is not None:
            physics.ledger.follow()
        return error

    @property
    def divergence(self) -> Divergence | None:
        """What diverged in the last step; None: nothing did."""
        return self._diverging.found()

    @property
    def newly_diverged(self) -> Tensor:
        """The worlds that diverged in the last step; bool, shape (num_envs,)."""
        return self._diverging.newly

    def forward(self, env_ids: Ids = None) -> None:
        """Evaluate the dynamics at the present state: every field is current then.

        Also after writes that torch does not count (see `simstate.freshness`). It warns
        of worlds with NaN or huge numbers, which the results may not show.
        """
        rows = self._select(env_ids)
        self._diverging.look()
        if rows.count:
            self.internals.forward(self._ids(rows))

    def reset(self, env_ids: Ids = None) -> None:
        """Bring worlds back to the default state; the others are not touched.

        The default is the scene's initial state, with each entity's `default_…`
        quantities, which may differ from world to world; and what the contracts of
        further slots say.
        """
        rows = self._select(env_ids)
        if not rows.count:
            return
        ledger = self.internals.ledger
        writes: list[Write] = []
        for entity in self.scene.values():
            if entity.defaults_changed(rows):
                writes += entity.default_writes(rows)
        with ledger.transaction("sim", "sim.reset()"):
            ledger.reset(rows, ("sim",))
            ledger.write(*writes)

    # Parameters.

    def expand(self, name: str) -> Tensor:
        """Live per-world values of a model parameter; shape (num_envs, …).

        `name` is a field of MjModel ("body_mass") or of its options ("opt.gravity").
        Writes count at the next step or read, and the constants of the model that
        follow from them do so by themselves; one that you write by hand
        ("dof_invweight0") keeps what you wrote.
        """
        self._recover()
        instance_of("The name of a parameter", name, str)
        tensor = self.internals.expand(name)
        if name in self.internals.engine.constants - CONSTANT_INPUTS:
            self.internals.fresh.ensure(Stage.CONSTANT, f'sim.expand("{name}")')
        return tensor

    def write_parameter(
        self, name: str, values: Values, element_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write a model parameter of some elements in some worlds; shape (n, E, …).

        As writing into `expand(name)`, but checked, and the other worlds stay fresh.
        """
        self._recover()
        instance_of("The name of a parameter", name, str)
        self.internals.write_parameter(name, values, element_ids, env_ids)

    def set_const(self, env_ids: Ids = None) -> None:
        """Recompute the constants that follow from parameters now; state is kept.

        The next read or step would do it, where parameters have changed.
        """
        rows = self._select(env_ids)
        if rows.count:
            ids = self._ids(rows)
            self.internals.ledger.observe()
            self.internals.fresh.write(Stage.CONSTANT, ids, "sim.set_const()")
            self.internals.fresh.refresh_constants()

    # Inner parts.

    def _recover(self) -> None:
        if self.internals.ledger.open:
            self.internals.ledger.recover()

    def _select(self, env_ids: Ids) -> Selection:
        """The worlds of a public call, which first undoes what was interrupted."""
        self._recover()
        return self.internals.select(env_ids)

    def _ids(self, rows: Selection) -> Tensor | None:
        return None if rows.is_all else rows.tensor(self.device)

    def _write_first_state(self) -> None:
        """Write the entities' defaults, and keep what they make of the state."""
        ledger, rows = self.internals.ledger, everything(self.num_envs)
        ledger.reset(rows, ("sim",))
        for entity in self.scene.values():
            ledger.write(*entity.default_writes(rows))
        for name in self.internals.engine.columns:
            slot = ledger[name]
            slot.initial = slot.tensor[:1].clone()
        self.internals.forward(None)

    def _moving(self, rows: Selection) -> Tensor | None:
        """The ids of those worlds that have not diverged; None if that is all."""
        if rows.is_all and (self._settles or not self._diverging.some):
            return None
        ids = rows.tensor(self.device)
        return ids[~self.diverged[ids]]


def _row_of(model: mujoco.MjModel, data: mujoco.MjData) -> Tensor:
    """The state of an MjData as one row; shape (1, nstate)."""
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    row = torch.zeros(mujoco.mj_stateSize(model, spec), dtype=torch.float64)
    mujoco.mj_getState(model, data, row.numpy(), spec)
    return row[None]
