"""Forces, processes, events and tasks that act on a simulation's worlds in a step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from torch import Tensor

from simstate.step.coupled_stepper import CoupledStepper, Strong
from simstate.step.forces.scene_force import ForceModel
from simstate.step.forcing import Forcing
from simstate.step.history import History
from simstate.step.processes import DrivingNoise, Process
from simstate.step.stepper import Stepper
from simstate.step.stepper_stack import StepperStack
from simstate.step.stepping_host import StepRecorder
from simstate.step.timeline_events import (
    Action,
    Direction,
    Event,
    EventFunction,
    PeriodicTask,
)
from simstate.world.worlds import Worlds

if TYPE_CHECKING:  # it loads Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper


class SimulationForces:
    """The methods of `simstate.Simulation` that add what acts in its steps."""

    _worlds: Worlds
    _forcing: Forcing
    _steppers: StepperStack
    _recorders: tuple[StepRecorder, ...]

    def attach(self, recorder: StepRecorder) -> None:
        """Record every step from now on: `begin` before each, `end` after it."""
        self._recorders = (*self._recorders, recorder)

    def detach(self, recorder: StepRecorder) -> None:
        """Stop recording steps by `attach`."""
        self._recorders = tuple(x for x in self._recorders if x is not recorder)

    def stepping(self, stepper: Stepper) -> AbstractContextManager[None]:
        """Advance worlds by another stepper within this context.

        Events, tasks and histories that are added within it end with it.
        """
        return self._steppers.replaced(stepper)

    @property
    def integration(self) -> RungeKuttaStepper | None:
        """The integrator with its statistics; None with MuJoCo's own stepper."""
        return self._steppers.integration

    def add_force(
        self,
        model: ForceModel | Any,
        *,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
    ) -> None:
        """Evaluate a force model with the dynamics, at every stage of every step.

        It writes wrenches, controls, applied forces or mass rates for all worlds, and
        must give the same for the same time and state: see `simstate.step.forcing`.
        With MuJoCo's own stepper (integrator=None) it is evaluated once a time step,
        and its loads are held.

        Args:
            model: `model(t, sim)`, with the time of each world [s]; with `reads` or
                `writes`, `model(t, *reads, *writes)`; or an object with the address of
                a C function, `address` (see `force.h`), such as a numba `cfunc`.
            reads: raw fields of `sim.data` that the model gets as views: NumPy arrays
                on the host, tensors on a device.
            writes: inputs that it gets as views: "ctrl", "qfrc_applied",
                "xfrc_applied".
        """
        self._forcing.add_force(model, reads, writes)

    def add_coupled_force(
        self, model: ForceModel, coupling: Strong | None = None
    ) -> CoupledStepper:
        """Hold a force over each step that agrees with the motion at the step's end.

        Each step is repeated until the loads that it was taken with are those that the
        models give at its end (strong coupling). Use it for loads that grow with the
        acceleration, such as added mass, which diverge if they are computed from the
        motion before the step.

        Args:
            model: `model(t, sim)`, as in `add_force`; it writes `xfrc_applied` or
                `qfrc_applied`, and may read `mean_acc` of the returned object.
            coupling: tolerance and limits, for all coupled forces of the simulation;
                None: those in use, or `Strong()`.

        Returns:
            The coupling, with the `iterations` and the `residual` of the last step and
            `mean_acc`, the mean acceleration over the step (num_envs, nv).
        """
        return self._steppers.add_coupled(model, coupling)

    def add_process(self, process: Process) -> None:
        """Integrate additional state of each world with its mechanics."""
        self._forcing.add_process(process, self.integration)

    def add_noise(self, noise: DrivingNoise) -> None:
        """Drive the state by noise sources; needs a stochastic integrator."""
        self._forcing.add_noise(noise, self.integration)

    @property
    def mass_rate(self) -> Tensor:
        """Rate of change of each body's mass [kg/s]; (num_envs, nbody), writable.

        Inertias scale with the masses. The masses are `sim.expand("body_mass")`.
        """
        return self._forcing.enable_mass_flow(self._worlds, self.integration).rate

    def add_event(
        self,
        function: EventFunction,
        direction: Direction = "both",
        terminal: bool = False,
        action: Action | None = None,
        *,
        name: str | None = None,
        tolerance: float = 1e-12,
    ) -> Event:
        """Detect in every step the instant at which a function crosses zero.

        Each world is checked by itself. Where its function changes sign within a step,
        the step is taken again in parts: to the crossing, and on from there, where
        events are looked for again. Signs are compared at least once a time step, and
        at the end of every step that an adaptive scheme takes within it. Runge-Kutta
        schemes are also interpolated within each of these, so that a function that
        crosses zero and returns is noticed if it turns about once; use a shorter
        `timestep`, or `max_step` of the scheme, where it oscillates within a step.
        MuJoCo's own stepper has no states within a step. Stochastic schemes detect a
        crossing at the end of the step: a part of it would have other noise.

        Args:
            function: `function(sim)` returns a number for each world, or a condition,
                which rises where it becomes true; (num_envs,).
            direction: "rising", "falling" or "both".
            terminal: True ends the current `step` or `run` of the world, which then
                stays at that instant.
            action: `action(sim, env_ids)` runs there. It may write states, inputs,
                parameters and memory of these worlds, but adds no slots: call
                `sim.expand` and `sim.memory` before. It is undone with the step.
            name: the name in snapshots; None: the function's name.
            tolerance: of the instant [s]; never finer than 4 units in the last place
                of the time: 5e-7 of it in float32, on warp.
        """
        return self._steppers.add_event(
            function, direction, terminal, action, name, tolerance
        )

    def add_task(
        self,
        function: Action,
        period: float,
        *,
        offset: float = 0.0,
        name: str | None = None,
    ) -> PeriodicTask:
        """Call a function periodically, as flight software runs alongside dynamics.

        It runs at offset, offset + period, … of each world's time, before the step
        that starts there; steps are cut where that is needed. What it writes (controls,
        targets) holds until it runs again.

        Args:
            function: `function(sim, env_ids)`, for the worlds where it is due.
            period: [s].
            offset: of the first call [s].
            name: the name in snapshots; None: the function's name.
        """
        return self._steppers.add_task(function, period, offset, name)

    def stop_recording(self, history: History) -> None:
        """Stop adding samples to a history."""
        self._steppers.remove_history(history)
