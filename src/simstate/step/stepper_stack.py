"""StepperStack: the steppers of a simulation, each around the one before."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from simstate.base.checks import check_called_as, instance_of
from simstate.base.errors import InvalidInputError
from simstate.entity.host import attach
from simstate.step.coupled_stepper import CoupledStepper, Strong
from simstate.step.divergence import Divergence
from simstate.step.forces.scene_force import ForceModel
from simstate.step.forcing import Forcing
from simstate.step.history import History
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.schemes.schemes import Adaptive, Explicit
from simstate.step.stepper import Stepper
from simstate.step.stochastic.stochastic import Integrator, Stochastic
from simstate.step.timeline import Timeline
from simstate.step.timeline_events import (
    Action,
    Direction,
    Event,
    EventFunction,
    PeriodicTask,
    check_multiple,
    free_name,
)
from simstate.world.worlds import Worlds

if TYPE_CHECKING:  # it loads Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper


class StepperStack:
    """The steppers of a simulation: `top` advances the worlds.

    At the bottom is MuJoCo's own stepper or that of a scheme. The first coupled force
    wraps it in a `CoupledStepper`, and the first event, task or history wraps both in
    a `Timeline`.
    """

    def __init__(
        self,
        worlds: Worlds,
        forcing: Forcing,
        divergence: Divergence,
        scheme: Integrator | None,
        sim: Any,
    ) -> None:
        self._worlds, self._forcing = worlds, forcing
        self._divergence, self._sim = divergence, sim
        parts = (worlds, forcing, divergence)
        self.integration = None if scheme is None else _integration(*parts, scheme)
        """The stepper of a scheme; None: MuJoCo's own stepper is used."""
        self.top: Stepper = self.integration or MujocoStepper(*parts)
        """The stepper that advances the worlds."""
        self.timeline: Timeline | None = None
        self.coupled: CoupledStepper | None = None

    @contextmanager
    def replaced(self, stepper: Stepper) -> Generator[None]:
        """Advance worlds by another stepper within this context."""
        own = self.top, self.timeline
        try:
            self.top, self.timeline = stepper, None
            yield
        finally:
            self.top, self.timeline = own

    def get_timeline(self) -> Timeline:
        """Return the stepper that can end within a time step."""
        if self.timeline is None:
            self.timeline = Timeline(self._worlds, self._forcing, self.top, self._sim)
        return self.timeline

    def add_coupled(self, model: ForceModel, coupling: Strong | None) -> CoupledStepper:
        """Add a coupled force; see `Simulation.add_coupled_force`."""
        self._forcing.refuse_within_a_step("sim.add_coupled_force")
        check_called_as("A coupled force", model, "t", "sim", name="model")
        if coupling is not None:
            instance_of("coupling", coupling, Strong)
        if self.coupled is None:
            self.coupled = self._couple()
        attach(model, self._sim)
        self.coupled.add(model, coupling)
        return self.coupled

    def _couple(self) -> CoupledStepper:
        """Wrap the stepper at the bottom in a coupled stepper."""
        timeline = self.timeline
        inner = self.top if timeline is None else timeline.inner
        coupled = CoupledStepper(self._worlds, self._forcing, self._divergence, inner)
        if timeline is not None:
            timeline.advance_by(coupled)
        if self.top is inner:
            self.top = coupled
        return coupled

    def add_event(
        self,
        function: EventFunction,
        direction: Direction,
        terminal: bool,
        action: Action | None,
        name: str | None,
        tolerance: float,
    ) -> Event:
        """Add an event; see `Simulation.add_event`."""
        self._forcing.refuse_within_a_step("sim.add_event")
        name = free_name(self._worlds.ledger, "event", name, function)
        event = Event(self._sim, function, direction, terminal, action, name, tolerance)
        self._use_timeline().events.append(event)
        return event

    def add_task(
        self, function: Action, period: float, offset: float, name: str | None
    ) -> PeriodicTask:
        """Add a periodic task; see `Simulation.add_task`."""
        self._forcing.refuse_within_a_step("sim.add_task")
        name = free_name(self._worlds.ledger, "task", name, function)
        task = PeriodicTask(self._sim, function, period, offset, name)
        self._check_multiples(period=period, offset=offset)
        self._use_timeline().tasks.append(task)
        return task

    def add_history(self, history: History) -> History:
        """Take the samples of a history from now on."""
        self._check_multiples(every=history.every)
        self._use_timeline().histories.append(history)
        return history

    def remove_history(self, history: History) -> None:
        """Stop adding samples to a history."""
        kept = [] if self.timeline is None else self.timeline.histories
        if history not in kept:
            raise InvalidInputError(
                "This history is not being recorded.", name="history"
            )
        kept.remove(history)

    def _check_multiples(self, **times: float | None) -> None:
        """Raise unless steps can end at multiples of these times [s]."""
        if not self.top.can_cut:
            for name, time in times.items():
                if time is not None:
                    check_multiple(name, time, self._sim.timestep)

    def _use_timeline(self) -> Timeline:
        """Advance worlds by the timeline from now on."""
        self.top = timeline = self.get_timeline()
        return timeline


def _integration(
    worlds: Worlds, forcing: Forcing, divergence: Divergence, scheme: Integrator
) -> RungeKuttaStepper:
    """Return the stepper of a scheme."""
    from simstate.step.adaptive_stepper import AdaptiveStepper  # these load Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper
    from simstate.step.stochastic_stepper import StochasticStepper

    parts = (worlds, forcing, divergence)
    with torch.inference_mode(False):
        if isinstance(scheme, Adaptive):
            return AdaptiveStepper(*parts, scheme)
        if isinstance(scheme, Stochastic):
            return StochasticStepper(*parts, scheme)
        if isinstance(scheme, Explicit):  # pyright: ignore[reportUnnecessaryIsInstance]
            return RungeKuttaStepper(*parts, scheme)
    raise InvalidInputError(
        "integrator must be a scheme of simstate.integrate, such as RK4(), or None "
        f"for MuJoCo's own stepper; got {scheme!r}. MuJoCo's integrators are chosen by "
        "SceneCfg(options={'integrator': 'RK4'}).",
        name="integrator",
    )
