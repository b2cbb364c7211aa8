"""IntegratedWorlds: worlds that force models, processes and integrators drive."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import torch
from torch import Tensor

from simstate.checks import check_finite, instance_of
from simstate.engine import EngineCfg
from simstate.errors import InvalidInputError
from simstate.freshness import Mode
from simstate.ids import Ids
from simstate.integrate.events import (
    Action,
    Direction,
    Event,
    EventFunction,
    Task,
)
from simstate.integrate.forces import ForceModel
from simstate.integrate.history import History, Recorded
from simstate.integrate.integration import Integration, Integrator
from simstate.integrate.parameters import by_world, numbers
from simstate.integrate.processes import DrivingNoise, Process
from simstate.scene import SceneCfg
from simstate.scene.build import BuiltScene
from simstate.worlds import OnDivergence, Worlds


@dataclass(frozen=True)
class Run:
    """How far a run came, and what happened on the way; (num_envs,) each."""

    time: Tensor
    """Where each world is now [s]."""
    ended: Tensor
    """Worlds that a terminal event ended; bool."""
    happened: dict[str, Tensor]
    """How often each event happened in the run, by its name."""


class IntegratedWorlds(Worlds):
    """Worlds with an integrator of simstate's own, or with force models."""

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel | BuiltScene,
        num_envs: int,
        engine: EngineCfg,
        device: str | torch.device,
        integrator: Integrator | None,
        freshness: Mode,
        on_divergence: OnDivergence,
        seed: int,
        first_world: int,
    ) -> None:
        super().__init__(
            scene, num_envs, engine, device, freshness, on_divergence, seed, first_world
        )
        self.integration: Integration | None = None
        """Force models, processes and the integrator, once there are any."""
        if integrator is not None:
            self.integration = Integration(self, integrator)

    def add_force(self, model: ForceModel) -> None:
        """Call `model(t, sim)` at every evaluation of the dynamics, to write loads.

        It reads quantities and writes wrenches, controls, applied forces or mass rates
        for all worlds, and must give the same for the same time and state: see
        `simstate.integrate.forces`. With MuJoCo's own stepper (integrator=None) it is
        evaluated once a time step, and its loads are held.
        """
        self._integration().add_force(model)

    def add_process(self, process: Process) -> None:
        """Integrate extra numbers of each world with its mechanics."""
        self._integration().add_process(process)

    def add_noise(self, noise: DrivingNoise) -> None:
        """Let noise sources drive the state; needs a stochastic integrator."""
        self._integration().add_noise(noise)

    @property
    def mass_rate(self) -> Tensor:
        """How fast each body's mass changes [kg/s]; (num_envs, nbody), to be written.

        Inertias scale with the masses. The masses are `sim.expand("body_mass")`.
        """
        return self._integration().enable_mass_flow().rate

    def add_event(
        self,
        function: EventFunction,
        direction: Direction = "both",
        terminal: bool = False,
        action: Action | None = None,
        *,
        name: str | None = None,
        tolerance: float = 1e-10,
    ) -> Event:
        """Look in every step for the instant at which a function crosses zero.

        Each world is looked at by itself. Where its function changes sign within a
        step, the step is taken again in parts: to the crossing, and on from there.
        Signs are compared at least once a time step, and at the end of every step that
        an adaptive scheme takes within it; what crosses and comes back between two of
        these is not seen: take a shorter `timestep`, or `max_step` of the scheme.
        Stochastic schemes find it at the end of the step: a part of it would have other
        noise.

        Args:
            function: `function(sim)` gives a number for each world, or whether
                something holds, which rises where it begins to; (num_envs,).
            direction: "rising", "falling" or "both".
            terminal: whether it ends the present `step` or `run` of its world, which
                then stays at that instant.
            action: `action(sim, env_ids)` runs there. It may write states, inputs,
                parameters and memory of these worlds, but adds no slots: call
                `sim.expand` and `sim.memory` before. What it did is undone with the
                step.
            name: what it is called in snapshots; None: the function's name.
            tolerance: how exactly the instant is found [s]; never finer than 4 units in
                the last place of the time: 5e-7 of it in float32, on warp.
        """
        integration = self._integration()
        integration.check_can_add("sim.add_event")
        name = self._free_name("event", name, function)
        event = Event(self, function, direction, terminal, action, name, tolerance)
        integration.timeline.events.append(event)
        self.internals.step_scope = "run"
        return event

    def add_task(
        self,
        function: Action,
        period: float,
        *,
        offset: float = 0.0,
        name: str | None = None,
    ) -> Task:
        """Call a function at its own rate, as flight software runs beside dynamics.

        It runs at offset, offset + period, … of each world's time, before the step
        that begins there; steps are cut where that is needed. What it writes (controls,
        targets) holds until it runs again.

        Args:
            function: `function(sim, env_ids)`, for the worlds whose time has come.
            period: [s].
            offset: of the first call [s].
            name: what it is called in snapshots; None: the function's name.
        """
        integration = self._integration()
        integration.check_can_add("sim.add_task")
        name = self._free_name("task", name, function)
        task = Task(self, function, period, offset, name)
        timeline = integration.timeline
        if not timeline.parts.can_be_cut:
            _check_multiple("period", period, self.timestep)
            _check_multiple("offset", offset, self.timestep)
        timeline.tasks.append(task)
        self.internals.step_scope = "run"
        return task

    def record(self, *, quantities: Recorded, every: float | None = None) -> History:
        """Keep quantities over time from now on, in memory.

        Times within a step are those of the scheme, started at the step's beginning: of
        its full order. They shorten no step, so that worlds go on as without them.

        Args:
            quantities: names (`"robot.root_link_pos_w"`, `"qpos"`, a process's), or
                names of your own with such a name, with a function of the simulation
                that gives (num_envs, …), or with a function and its unit.
            every: the time between two samples [s]; None: at the end of each step, of
                each step of an adaptive scheme, and at crossings of events.
        """
        integration = self._integration()
        integration.check_can_add("sim.record")
        history = History(self, quantities, every)
        timeline = integration.timeline
        if every is not None and not timeline.parts.can_be_cut:
            _check_multiple("every", every, self.timestep)
        timeline.histories.append(history)
        return history

    def stop_recording(self, history: History) -> None:
        """Keep no more samples in a history."""
        kept = self.integration.timeline.histories if self.integration else []
        if history not in kept:
            raise InvalidInputError("This history is not being recorded.")
        kept.remove(history)

    def run(self, until: float | Tensor, env_ids: Ids = None) -> Run:
        """Advance worlds to a time [s], or to the terminal event that comes first.

        What an interrupted run has done stays, up to its last whole step (where nothing
        can happen on the way, up to the last thousand of them). Stochastic schemes end
        at the first whole step there.

        Args:
            until: the simulation time to end at [s]; a number or (num_envs,).
            env_ids: the worlds; None: all.
        """
        rows = self._select(env_ids).tensor(self.device)
        goal = by_world(self, "until [s]", numbers(until, "until [s]"))
        check_finite(goal, "until [s]", after="")
        self._run_whole_steps(goal, rows)
        ended = torch.zeros_like(self.diverged)
        if not len(self._going(goal, ended, rows)):
            return Run(self.time.double().clone(), ended, {})
        timeline = self._integration().timeline
        counts = [event.count.clone() for event in timeline.events]
        timeline.until = goal
        try:
            while len(going := self._going(goal, ended, rows)):
                self.step(1, going)
                ended = ended | timeline.stopped
        finally:
            timeline.until = None
        happened = {
            event.name: event.count - before
            for event, before in zip(timeline.events, counts, strict=True)
        }
        return Run(self.time.double().clone(), ended, happened)

    def _run_whole_steps(self, goal: Tensor, rows: Tensor) -> None:
        """Take the whole steps of a run that nothing can interrupt."""
        none = torch.zeros_like(self.diverged)
        if "opt.timestep" in self.internals.engine.expanded or (
            self.integration is not None and self.integration.is_interrupted
        ):
            return
        while len(going := self._going(goal, none, rows)):
            left = float((goal - self.time.double())[going].min())
            n = min(int(left / self.timestep + 1e-9), 1000)
            if n < 1:
                return
            self.step(n, going)

    def _going(self, goal: Tensor, ended: Tensor, rows: Tensor) -> Tensor:
        """The worlds among `rows` that a run takes further; (n,)."""
        left = goal - self.time.double()
        fine = 1e-9 * self.timestep + 4 * torch.finfo(torch.float64).eps * goal.abs()
        return rows[((left > fine) & ~ended & ~self.diverged)[rows]]

    def _free_name(self, kind: str, name: str | None, function: object) -> str:
        """A name for an event or a task that no other has."""
        if name is None:
            name = str(getattr(function, "__name__", type(function).__name__))
        instance_of(f"The name of this {kind}", name, str)
        ledger, wanted, count = self.internals.ledger, name, 1
        probe = "count" if kind == "event" else "last"
        while f"{kind}/{name}/{probe}" in ledger:
            count += 1
            name = f"{wanted} {count}"
        return name

    def _integration(self) -> Integration:
        if self.integration is None:
            self.integration = Integration(self, None)
        return self.integration


def _check_multiple(what: str, value: float, timestep: float) -> None:
    """Raise unless a time is a multiple of the time step."""
    if abs(value / timestep - round(value / timestep)) > 1e-6:
        raise InvalidInputError(
            f"Stochastic schemes take whole time steps: {what} must be a multiple of "
            f"{timestep:g} s, got {value:g}."
        )
