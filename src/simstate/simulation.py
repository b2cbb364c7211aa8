"""Simulation: a scene in many worlds, stepped together, read in any state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, overload

import mujoco
import torch
from torch import Tensor

from simstate.base.checks import as_device, one_of, whole_number
from simstate.base.errors import DivergenceError, InvalidInputError, not_copied
from simstate.base.ids import Ids, Selection
from simstate.base.notebook import html_summary
from simstate.engine import EngineCfg, LastEvaluated, RawData, make_engine
from simstate.entity import Entity, SceneEntities
from simstate.entity.dynamics import SceneDynamics
from simstate.entity.relative import Relative
from simstate.entity.state_writes import changed_default_writes
from simstate.record import SimRecorder, reads_of
from simstate.scene import SceneCfg, build_scene
from simstate.scene.build import BuiltScene
from simstate.sensors import SceneCameras, SceneContacts, SceneRays
from simstate.sensors.contact_table import ContactTable, contact_table
from simstate.state import (
    Snapshot,
    StateSource,
    TensorState,
    read_states,
    restore_snapshot,
    take_snapshot,
    write_states,
)
from simstate.state.apply import States
from simstate.step.divergence import Divergence, OnDivergence
from simstate.step.history import History, Recorded
from simstate.step.run_loop import RunResult, run_until, times_of
from simstate.step.simulation_forces import SimulationForces
from simstate.step.stepper import Stepper
from simstate.step.stepper_stack import StepperStack
from simstate.step.stepping_host import StepRecorder
from simstate.step.stochastic.stochastic import Integrator
from simstate.step.touchable_geoms import contact_timestep
from simstate.step.world_assembly import make_worlds, write_first_state
from simstate.view import Course, thumbnail
from simstate.view.simulation_views import SimulationViews
from simstate.world import Write
from simstate.world.freshness import Mode
from simstate.world.last_evaluation import LastEvaluation
from simstate.world.simulation_values import SimulationValues

MAX_STEPS = 2**31 - 1


class Simulation(StateSource, SimulationForces, SimulationValues, SimulationViews):
    """`num_envs` worlds of one scene, stepped together.

    `sim.scene["robot"].data` has the quantities of an entity, `sim.data` MuJoCo's own
    fields for all worlds, `sim.state` everything that physics needs to continue.
    Tensors have a row for each world, the engine's dtype (float64 on native, float32 on
    warp) and its device.

    **Worlds** are independent: a world of a batch has the bits that it would have
    alone, on native with any number of threads. `env_ids` selects some of them (None,
    an int, a slice, ids or a mask); the others are not touched.

    **Reads** are of the current state. A write, also `sim.data.qpos[3] = …` by hand,
    makes derived values stale, and the next read of one computes it first
    (`freshness`). After `step`, positions and velocities are those of the new state. As
    with mj_step, accelerations and forces are then those of the last evaluation, at the
    state before the last time step; `forward` evaluates them at the current one. Views
    of the engine's memory are live: `clone()` keeps one.

    **A world's complete state** is in slots of one ledger: MuJoCo's state, inputs,
    expanded parameters, targets, defaults, processes, sensors' clocks, random streams,
    and your own values (`memory`). `reset`, `snapshot` and `restore` apply to all of
    them; anything outside a slot is neither saved nor reset.

    **Calls are atomic.** One that raises or is interrupted leaves the worlds as they
    were before it. A simulation belongs to one thread at a time.

    **A world that diverges** (NaN, or values beyond MuJoCo's limit) is restored to the
    state from before the step, and the others advance; see `on_divergence`.

    Args:
        scene: the scene to simulate; or a compiled MjModel, as one entity "model".
        num_envs: number of worlds.
        engine: "native" (CPU, float64) or "warp" (CUDA or CPU, float32), or a
            NativeCfg or WarpCfg with options.
        device: device of the tensors; "cuda" needs the warp engine.
        integrator: None for MuJoCo's own stepper, as the model's options specify, or a
            scheme of `simstate.integrate`, such as RK4(attitude="lie"), which replaces
            the options' integrator.
        freshness: the effect of reading a stale quantity: "auto" computes it first,
            "strict" raises StaleReadError, "off" returns the stored value.
        on_divergence: "raise" raises DivergenceError in the step in which a world
            diverges; "mask" marks the world in `diverged` and continues with the
            others.
        seed: seed of `sim.rng`, the worlds' random numbers, and of the noise of
            stochastic integrators.
        first_world: the global id of the first world. World 7 of a run has the same
            random numbers in any batch, process or machine.
    """

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel | BuiltScene,
        num_envs: int = 1,
        *,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        integrator: Integrator | None = None,
        freshness: Mode = "auto",
        on_divergence: OnDivergence = "raise",
        seed: int = 0,
        first_world: int = 0,
    ) -> None:
        num_envs = whole_number("num_envs", num_envs, 1, 2**50)
        one_of("freshness", freshness, ("auto", "strict", "off"))
        one_of("on_divergence", on_divergence, ("raise", "mask"))
        whole_number("first_world", first_world, 0, 2**62)
        self._options: dict[str, Any] = {
            "engine": engine,
            "device": device,
            "integrator": integrator,
            "freshness": freshness,
            "seed": seed,
            "first_world": first_world,
        }
        self._built = build_scene(scene)
        self.model = self._built.model
        """The compiled scene, on the host. To change physics, use `expand`."""
        softness = contact_timestep(integrator, self.model)
        chosen = make_engine(
            self.model, num_envs, engine, as_device(device), timestep=softness
        )
        self.contact_timestep = self.timestep if softness is None else softness
        """The time step that limits the stiffness of contacts [s]: MuJoCo softens a
        `solref` whose time constant is below twice this. It is that of an adaptive
        integrator, else the time step."""
        self.num_envs = num_envs
        self.device = chosen.device
        self.dtype = chosen.dtype
        self.seed = seed
        self._first_world = first_world
        self._worlds, self._forcing = make_worlds(
            chosen, self._built.default, freshness, (seed, first_world), self
        )
        worlds = self._worlds
        self._recorders: tuple[StepRecorder, ...] = ()
        self.data = RawData(worlds)
        """MuJoCo's own fields for all worlds."""
        self._evaluated = LastEvaluation(worlds)
        self.last_evaluated = LastEvaluated(self._evaluated)
        """Fields as the last evaluation left them; see `keep_evaluated`."""
        self.scene = SceneEntities(
            {
                name: Entity(index, worlds, self._built.configs[name])
                for name, index in self._built.entities.items()
            }
        )
        """The entities by name."""
        self.diverged: Tensor = worlds.ledger.memory(
            "diverged", dtype=torch.bool, reset=False, moves=True
        ).tensor
        """Worlds that have diverged and await a reset; shape (num_envs,)."""
        self.divergence = Divergence(worlds, self.diverged, on_divergence)
        """The worlds that diverged in the last step, and the cause."""
        self._steppers = StepperStack(
            worlds, self._forcing, self.divergence, integrator, self
        )
        write_first_state(worlds, list(self.scene.values()))
        self.cameras = SceneCameras(self, self._built.cameras)
        """The scene's cameras by name, rendered when they are read."""
        self.contacts = SceneContacts(worlds, self._built.contacts)
        """The scene's contact sensors by name."""
        self.rays = SceneRays(worlds, self._built.rays)
        """The scene's rays by name, cast when they are read."""
        self.dynamics = SceneDynamics(worlds)
        """Mass matrix, forces, momenta and energies of the whole scene."""

    def __repr__(self) -> str:
        own = self.integration
        scheme = "MuJoCo's own" if own is None else own.scheme.name
        text = f"{self.num_envs} × {', '.join(self.scene) or 'empty scene'}"
        text += f", engine={self.engine_name!r}, stepper: {scheme}"
        text += f", timestep={self.timestep:g} s"
        if self.contact_timestep != self.timestep:
            text += f", contact_timestep={self.contact_timestep:g} s"
        return f"Simulation({text})"

    def _repr_html_(self) -> str:
        rows = [
            (e.name, e.index.base, e.num_bodies, e.num_joints, e.num_actuators)
            for e in self.scene.values()
        ]
        head = ("entity", "base", "bodies", "joints", "actuators")
        return html_summary(repr(self), head, rows, thumbnail(self.render))

    # Steps.

    def step(
        self, n: int = 1, env_ids: Ids = None, *, until: float | Tensor | None = None
    ) -> None:
        """Advance worlds by n time steps, None: all; the others are not touched.

        Afterwards positions and velocities are those of the new state. Accelerations
        and forces are those of the last dynamics evaluation, at the state before the
        last of the n steps; with an `integrator` they are of the new state, too. Worlds
        in `diverged` do not move.

        Args:
            n: number of time steps.
            env_ids: the worlds; None: all.
            until: simulation time at which the steps of each world end at the latest
                [s], a number or shape (num_envs,); None: no limit.
        """
        if type(n) is not int or not 0 < n <= MAX_STEPS:
            n = whole_number("n", n, 1, MAX_STEPS)
        worlds = self._worlds
        if worlds.ledger.open:
            worlds.ledger.refuse_within_step("sim.step")
        rows = worlds.everywhere if env_ids is None else worlds.select(env_ids)
        stepper = self._steppers.top
        if until is not None:
            until = times_of(self, "until", until)
            stepper = self._steppers.get_timeline()
        recorders = self._recorders
        for recorder in recorders:
            recorder.begin(n, rows, until)
        error = worlds.ledger.run(
            stepper.scope, "sim.step()", self._step, stepper, n, rows, until
        )
        for recorder in recorders:
            recorder.end()
        if error is not None:  # raised last: the other worlds have advanced
            raise error

    def _step(
        self, stepper: Stepper, n: int, rows: Selection, until: Tensor | None
    ) -> DivergenceError | None:
        worlds = self._worlds
        if worlds.fresh.constants_are_behind:
            worlds.fresh.refresh_constants()
        moving = self.divergence.begin(rows, stepper)
        kept_writes = worlds.engine.kept_writes
        if until is None:
            seen = stepper.advance(n, moving)
        else:
            seen = self._steppers.get_timeline().advance(n, moving, until)
        if self._evaluated.is_kept and worlds.engine.kept_writes == kept_writes:
            self._evaluated.evaluate(moving, after_constraints=True)
        error = None
        if seen:
            error = self.divergence.handle(seen, stepper.bad, n, moving)
        if not worlds.engine.state_is_live:
            worlds.rows.follow()
        return error

    def run(self, until: float | Tensor, env_ids: Ids = None) -> RunResult:
        """Advance worlds to a time [s], or to the terminal event that comes first.

        What an interrupted run has done stays, up to its last time step (where nothing
        can happen on the way, up to the last thousand of them). Stochastic schemes end
        at the first time step there.

        Args:
            until: the simulation time to end at [s], not before the present one; a
                number or (num_envs,).
            env_ids: the worlds; None: all.
        """
        rows = self._select(env_ids).tensor(self.device)
        goal = times_of(self, "until", until)
        return run_until(self, self._steppers, goal, rows)

    def forward(self, env_ids: Ids = None) -> None:
        """Evaluate the dynamics at the current state: all fields become current.

        Use it also after writes that torch does not count (see
        `simstate.world.freshness`). It warns of worlds with NaN or huge values, which
        the results may not show.
        """
        rows = self._select(env_ids)
        self.divergence.look_again()
        if rows.count:
            ids = rows.ids_or_none(self.device)
            self._worlds.forward(ids)
            if self._evaluated.is_kept:
                self._evaluated.forward(ids)

    def reset(self, env_ids: Ids = None) -> None:
        """Reset worlds to the default state; the others are not touched.

        The default is the scene's initial state, with each entity's `default_…`
        quantities, which may differ by world; other slots are reset as declared.
        """
        rows = self._select(env_ids)
        if not rows.count:
            return
        writes = changed_default_writes(self.scene.values(), rows)
        ledger = self._worlds.ledger
        only = rows if ledger.resets_rows_alone(("sim",)) else None
        ledger.run("sim", "sim.reset()", self._reset, rows, writes, rows=only)

    def _reset(self, rows: Selection, writes: list[Write]) -> None:
        self._worlds.ledger.reset(rows, ("sim",))
        self._worlds.ledger.write(*writes)
        self._evaluated.begin_episode(rows.ids_or_none(self.device))

    # Values.

    @property
    def on_divergence(self) -> OnDivergence:
        """The effect of a world that diverges in a step: "raise" or "mask"."""
        return self.divergence.mode

    @on_divergence.setter
    def on_divergence(self, value: OnDivergence) -> None:
        one_of("on_divergence", value, ("raise", "mask"))
        self.divergence.mode = value

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        return self.data.time

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        return float(self.model.opt.timestep)

    @property
    def camera_names(self) -> tuple[str, ...]:
        """The names of the scene's cameras."""
        return tuple(self._built.cameras)

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """The names of the scene's contact sensors and rays."""
        return (*self._built.contacts, *self._built.rays)

    def contact_table(self, env_ids: Ids = None) -> ContactTable:
        """Return all contacts of some worlds at the current state, with names.

        For debugging and analysis: the native engine computes it one world after the
        other. Use a contact sensor, `sim.contacts`, for reads in every step.
        """
        self._recover()
        return contact_table(self._worlds, env_ids)

    def relative(self, of: str, to: str = "world", axes: str | None = None) -> Relative:
        """Return the motion of the frame `of` relative to `to`, along a third's axes.

        Frames are "entity/body", "entity/site", "entity/geom" or "world"; `axes` None:
        those of `to`. The result has pos, quat, lin_vel, ang_vel, lin_acc, ang_acc and
        the jacobian that maps qvel to the velocities.
        """
        self._recover()
        return Relative(self._worlds, self.scene, of, to, axes)

    # States.

    def _state_tensors(self, env_ids: Ids, cameras: bool) -> TensorState:
        return read_states(self, self._select(env_ids), self.cameras if cameras else {})

    def set_states(self, states: States, env_ids: Ids = None) -> None:
        """Write unified states, complete or in part; what is not given stays.

        One state for each selected world, or a single one for all of them. Everything
        is checked before anything is written.
        """
        write_states(self, states, self._select(env_ids))

    def snapshot(self, env_ids: Ids = None) -> Snapshot:
        """Return everything that the worlds need to continue exactly."""
        return take_snapshot(self._worlds, self._select(env_ids))

    def restore(self, snapshot: Snapshot, env_ids: Ids = None) -> None:
        """Restore worlds from a snapshot; one of a single world fits all of them.

        All of it is checked before anything is written. Values that worlds share are
        restored together with all of them.
        """
        restore_snapshot(self._worlds, snapshot, self._select(env_ids))

    @overload
    def record(
        self, path: None = None, *, quantities: Recorded, every: float | None = None
    ) -> History: ...
    @overload
    def record(
        self,
        path: str | Path,
        *,
        quantities: Recorded = (),
        fields: Sequence[str] = (),
        every: float | None = None,
        worlds: Ids = None,
        inputs: bool = True,
        snapshot_every: float | None = 10.0,
    ) -> SimRecorder: ...
    def record(
        self,
        path: str | Path | None = None,
        *,
        quantities: Recorded = (),
        fields: Sequence[str] = (),
        every: float | None = None,
        worlds: Ids = None,
        inputs: bool = True,
        snapshot_every: float | None = 10.0,
    ) -> History | SimRecorder:
        """Record quantities over time from now on: in memory, or in a file.

        In memory samples are taken at any time, also within a step, and those within a
        step are of the scheme's full order. In a file they are taken after calls of
        `step`; it also holds what is needed to take the steps again. End it with
        `close()`, or with a `with` block.

        Args:
            path: the file; None: in memory.
            quantities: names (`"robot.root_link_pos_w"`, `"qpos"`, a process's), or
                names of your own with such a name, with a function of the simulation
                that gives (num_envs, …), or with a function and its unit.
            fields: raw fields of `sim.data`, in a file.
            every: the time between two samples [s]; None: in memory at the end of each
                step of the scheme and at crossings of events, in a file after each
                call of `step`.
            worlds: those whose quantities are kept in a file; None: all.
            inputs: whether a file holds what a replay needs: snapshots, each call of
                `step`, and what was written in between, of all worlds.
            snapshot_every: simulated time between two snapshots in a file [s], from
                which a replay can begin; None: only the first.
        """
        if path is not None:
            self._recover()
            return SimRecorder(
                self, path, quantities, fields, every, worlds, inputs, snapshot_every
            )
        if fields or worlds is not None:
            raise InvalidInputError(
                "fields= and worlds= are for a recording in a file: name its path.",
                name="path",
            )
        self._forcing.refuse_within_a_step("sim.record")
        history = History(self, reads_of(self, quantities), every)
        return self._steppers.add_history(history)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise not_copied("A Simulation", "Simulation(…)", "sim")

    # Inner parts.

    def _course(self) -> Course:
        return Course(self, self.rays)

    def _alike(self, num_envs: int) -> Simulation:
        """Return a simulation of the same scene with another number of worlds.

        It has none of the force models, processes, events and tasks that were added.
        """
        return Simulation(self._built, num_envs, **self._options, on_divergence="mask")

    def _step_ahead(self, n: int, stepper: Stepper | None = None) -> None:
        """Advance all worlds without recorders; those that diverge are marked."""
        if not n:
            return
        worlds, stepper = self._worlds, stepper or self._steppers.top
        error = worlds.ledger.run(
            stepper.scope, "sim.step()", self._step, stepper, n, worlds.everywhere, None
        )
        if error is not None:
            self.diverged |= self.divergence.new
