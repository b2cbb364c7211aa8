"""SteppingHost: the interface of a simulation for force models, events and views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from simstate.base.ids import Ids, Selection
from simstate.entity.host import Host
from simstate.step.divergence import Divergence, OnDivergence
from simstate.step.forcing import Forcing
from simstate.step.stepper import Stepper

if TYPE_CHECKING:  # the first loads Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper
    from simstate.step.stepper_stack import StepperStack


class StepRecorder(Protocol):
    """Records the steps of a simulation; see `Simulation.attach`."""

    def begin(self, n: int, rows: Selection, until: Tensor | None) -> None:
        """Prepare for a step of n time steps of these worlds, `until` a time [s]."""
        ...

    def end(self) -> None:
        """Record the step; not called if it raised."""
        ...


class SteppingHost(Host, Protocol):
    """The part of `simstate.Simulation` that force models, events and views use."""

    diverged: Tensor
    divergence: Divergence
    seed: int

    @property
    def on_divergence(self) -> OnDivergence:
        """The effect of a world that diverges in a step."""
        ...

    @property
    def sensor_names(self) -> tuple[str, ...]:
        """The names of the scene's contact sensors and rays."""
        ...

    @property
    def integration(self) -> RungeKuttaStepper | None:
        """The integrator; None with MuJoCo's own stepper."""
        ...

    @property
    def mass_rate(self) -> Tensor:
        """Rate of change of each body's mass [kg/s]; (num_envs, nbody)."""
        ...

    def step(
        self, n: int = 1, env_ids: Ids = None, *, until: Tensor | None = None
    ) -> None:
        """Advance worlds by n time steps, `until` a time [s] at the latest."""
        ...

    def reset(self, env_ids: Ids = None) -> None:
        """Reset worlds to the default state."""
        ...

    def add_force(self, model: Any) -> None:
        """Evaluate a force model from now on."""
        ...

    def attach(self, recorder: StepRecorder) -> None:
        """Record every step from now on."""
        ...

    def detach(self, recorder: StepRecorder) -> None:
        """Stop recording."""
        ...


def steppers_of(sim: Any) -> StepperStack:
    """Return the steppers of a simulation, for simstate's own modules."""
    return sim._steppers


def stepper_of(sim: Any) -> Stepper:
    """Return the stepper that advances a simulation, for simstate's own modules."""
    return steppers_of(sim).top


def forcing_of(sim: Any) -> Forcing:
    """Return the forcing of a simulation's worlds, for simstate's own modules."""
    return sim._forcing
