"""What a simulation has when more than MuJoCo's own stepper moves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.engine import MAX_VALUE, Stage
from simstate.errors import InvalidInputError
from simstate.integrate.forces import ForceModel, Forces
from simstate.integrate.partial import (
    AdaptiveParts,
    FixedParts,
    MujocoParts,
    PartialSteps,
    WholeParts,
)
from simstate.integrate.processes import DrivingNoise, Process
from simstate.integrate.schemes import Adaptive, Explicit
from simstate.integrate.stochastic import Stochastic
from simstate.integrate.timeline import Timeline
from simstate.math.vector import greatest

if TYPE_CHECKING:  # the first three load Warp
    from simstate.integrate.compiled_models import CompiledModels
    from simstate.integrate.mass import MassFlow
    from simstate.integrate.stepper import Stepper
    from simstate.integrate.worlds import IntegratedWorlds


@dataclass(frozen=True)
class Statistics:
    """What an integrator has done so far, by world; each of shape (num_envs,)."""

    evaluations: Tensor
    """Evaluations of the dynamics."""
    accepted: Tensor
    """Steps taken."""
    rejected: Tensor
    """Steps of an adaptive scheme that were thrown away."""


Integrator = Explicit | Stochastic
"""What `Simulation(integrator=…)` takes."""


class Integration:
    """Force models, processes, mass flow, noise, and the stepper that uses them."""

    def __init__(self, sim: IntegratedWorlds, scheme: Integrator | None) -> None:
        self.sim = sim
        self.scheme = scheme
        self.forces = Forces(sim)
        self.processes: list[Process] = []
        self.noises: list[DrivingNoise] = []
        self.mass_flow: MassFlow | None = None
        self._compiled: tuple[tuple[int, int, bool], CompiledModels | None] | None
        self._compiled = None
        self.stepper = None if scheme is None else self._make_stepper(scheme)
        self._timeline: Timeline | None = None
        sim.internals.evaluate = self.forces.evaluate
        sim.internals.with_loads = self.forces.with_loads
        sim.internals.advance = self.step

    def _make_stepper(self, scheme: Integrator) -> Stepper:
        from simstate.integrate.adaptive import AdaptiveStepper  # these load Warp
        from simstate.integrate.sde_stepper import StochasticStepper
        from simstate.integrate.stepper import Stepper

        with torch.inference_mode(False):
            if isinstance(scheme, Adaptive):
                return AdaptiveStepper(self, scheme)
            if isinstance(scheme, Explicit):
                return Stepper(self, scheme)
            if isinstance(scheme, Stochastic):  # pyright: ignore[reportUnnecessaryIsInstance]
                return StochasticStepper(self, scheme)
        raise InvalidInputError(
            "integrator must be a scheme of simstate.integrate, such as RK4(), or "
            f"None, got {scheme!r}."
        )

    @property
    def timeline(self) -> Timeline:
        """Events, tasks and histories, and the steps that they interrupt."""
        if self._timeline is None:
            self._timeline = Timeline(self, self._make_parts())
        return self._timeline

    def _make_parts(self) -> PartialSteps:
        from simstate.integrate.adaptive import AdaptiveStepper  # loads Warp

        if self.stepper is None:
            self._not_within_a_step("The first event, task or run")
            return MujocoParts(self)
        if isinstance(self.stepper, AdaptiveStepper):
            return AdaptiveParts(self.stepper)
        if isinstance(self.scheme, Stochastic):
            return WholeParts(self.stepper)
        return FixedParts(self.stepper)

    @property
    def is_interrupted(self) -> bool:
        """Whether events, tasks or histories interrupt steps."""
        return self._timeline is not None and self._timeline.is_busy

    def check_can_add(self, what: str) -> None:
        """Raise if something that adds to a world is added within a step."""
        self._not_within_a_step(what)

    def evaluate(self, env_ids: Tensor | None) -> None:
        """Evaluate the dynamics at a stage, where models and processes may read."""
        physics = self.sim.internals
        if not self.has_readers:
            physics.engine.forward(env_ids, Stage.ACCELERATION)
            return
        physics.fresh.write(Stage.POSITION, env_ids, "a stage of a step")
        self.forces.evaluate(env_ids)
        physics.fresh.forwarded(env_ids, Stage.ACCELERATION)

    def compiled_models(self, span: float) -> CompiledModels | None:
        """The models as the compiled core has them, for a span of time from now on [s].

        None: Python must evaluate one.
        """
        known = (len(self.forces.models), len(self.processes), self.mass_flow is None)
        if self._compiled is not None and self._compiled[0] == known:
            models = self._compiled[1]
            if models is None or not models.has_fields:
                return models
            if models.covers(*self._times(span)):
                return models
        from simstate.integrate.compiled_models import compile_models  # loads Warp

        self._compiled = (known, compile_models(self, *self._times(span)))
        return self._compiled[1]

    def _times(self, span: float) -> tuple[float, float]:
        """From the earliest world's time to the latest one's after a span [s]."""
        time = self.sim.internals.engine.field("time")
        return float(time.min()), float(time.max()) + span

    @property
    def has_readers(self) -> bool:
        """Whether anything but the engine reads time and quantities at the stages."""
        return bool(self.forces.models or self.processes) or self.mass_flow is not None

    def add_force(self, model: ForceModel) -> None:
        """Evaluate a force model with all others from now on."""
        if not callable(model):
            raise InvalidInputError(
                f"A force model is called as model(t, sim); got {model!r}."
            )
        self._not_within_a_step("sim.add_force")
        attach = getattr(model, "attach", None)
        if attach is not None:
            attach(self.sim)
        self.forces.models.append(model)
        self.sim.internals.fresh.write(Stage.ACCELERATION, None, "sim.add_force()")

    def add_process(self, process: Process) -> None:
        """Integrate a process with the mechanics from now on."""
        if not isinstance(process, Process):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"A process is a simstate.integrate.Process; got {process!r}."
            )
        self._not_within_a_step("sim.add_process")
        has_noise = type(process).diffusion is not Process.diffusion
        if has_noise and process.num_sources < 1:
            raise InvalidInputError(
                f"Process {process.name!r} defines diffusion, but its num_sources is "
                f"{process.num_sources}: say how many noise sources it has."
            )
        if process.num_sources:
            self._refuse_if_deterministic(process, f"process {process.name!r}")
        stepper = self._need_stepper(f"Process {process.name!r}")
        if process.name in [other.name for other in self.processes]:
            raise InvalidInputError(
                f"There is a process {process.name!r} already; names must differ."
            )
        process.attach(self.sim)
        self.processes.append(process)
        if process.num_sources:
            self.noises.append(process)
        stepper.forget_blocks()

    def add_noise(self, noise: DrivingNoise) -> None:
        """Let noise sources drive the state from now on."""
        if not isinstance(noise, DrivingNoise):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                "Noise needs num_sources and diffusion(t, sim); got "
                f"{type(noise).__name__}."
            )
        self._not_within_a_step("sim.add_noise")
        self._refuse_if_deterministic(noise, f"noise {type(noise).__name__!r}")
        if noise in self.noises:
            raise InvalidInputError(
                f"Noise {type(noise).__name__!r} drives the state already."
            )
        self.noises.append(noise)

    def _refuse_if_deterministic(self, noise: DrivingNoise, what: str) -> None:
        if not isinstance(self.scheme, Stochastic):
            name = "MuJoCo's own" if self.scheme is None else self.scheme.name
            raise InvalidInputError(
                f"{what[0].upper()}{what[1:]} is stochastic, the integrator {name} is "
                f"deterministic: it would leave the {noise.num_sources} noise sources "
                "out. Use a stochastic scheme, such as integrate.SRIW1() or "
                "EulerMaruyama()."
            )

    def enable_mass_flow(self) -> MassFlow:
        """Make the body masses part of the state."""
        from simstate.integrate.mass import MassFlow

        if self.mass_flow is None:
            self._not_within_a_step("The first use of sim.mass_rate")
            self._need_stepper("sim.mass_rate").forget_blocks()
            self.mass_flow = MassFlow(self.sim)
            self.forces.when_loaded.append(self.mass_flow.evaluated)
        return self.mass_flow

    def _not_within_a_step(self, what: str) -> None:
        ledger = self.sim.internals.ledger
        if ledger.open:
            ledger.recover()
        if ledger.is_stepping or ledger.is_evaluating:
            raise InvalidInputError(
                f"{what} adds to the state, which a force model cannot do while a step "
                "is running: do it once before stepping."
            )

    def _need_stepper(self, what: str) -> Stepper:
        if self.stepper is None:
            raise InvalidInputError(
                f"{what} needs an integrator of simstate's own: MuJoCo's stepper does "
                "not know that state. Use Simulation(…, integrator=integrate.RK4())."
            )
        return self.stepper

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; returns the worlds that went bad, or None."""
        timeline = self._timeline if self.is_interrupted else None
        if self.stepper is None and timeline is None:
            return self._step_with_held_loads(n, env_ids)
        physics = self.sim.internals
        if self.stepper is not None and "opt.timestep" in physics.engine.expanded:
            raise InvalidInputError(
                "simstate's integrators take one time step for all worlds, but "
                'sim.expand("opt.timestep") made it differ: use integrator=None.'
            )
        unusable = self._bad_own()
        if unusable is not None:  # such worlds stay, and are reported afterwards
            alive = ~unusable
            if env_ids is not None:
                alive &= torch.zeros_like(alive).index_fill(0, env_ids, True)
            env_ids = alive.nonzero().flatten()
        refreshed = False
        if timeline is not None:
            stuck = timeline.step(n, env_ids)
        else:
            assert self.stepper is not None
            stuck = self.stepper.step(n, env_ids)
            refreshed = self.stepper.has_refreshed
        physics.fresh.integrated(env_ids, refreshed)
        if physics.fresh.mode != "auto":  # in auto mode the first read does it
            physics.forward(env_ids)
        bad = _union(physics.engine.find_bad(), stuck, unusable, self._bad_own())
        if timeline is not None and bad is not None:
            timeline.forget(bad)
        return bad

    def _step_with_held_loads(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """MuJoCo's own steps, with the force models' loads held over each of them."""
        physics = self.sim.internals
        bad = None
        for _ in range(n):
            self.forces.with_loads(lambda: physics.engine.advance(1, env_ids))
            physics.fresh.stepped(env_ids)
            bad = _union(bad, physics.engine.find_bad())
        return bad

    def _bad_own(self) -> Tensor | None:
        """Worlds where a control, a process or a mass is not fit to go on; or None."""
        if not (self.processes or self.mass_flow or self.sim.model.nu):
            return None
        values = [process.value for process in self.processes]
        values.append(self.sim.internals.engine.field("ctrl"))
        if self.mass_flow is not None:
            values.append(self.mass_flow.mass)
        if all(greatest(x) <= MAX_VALUE for x in values if x.numel()):
            return None
        fine = [(x.abs() <= MAX_VALUE).all(dim=1) for x in values]
        return ~torch.stack(fine).all(dim=0)

    @property
    def statistics(self) -> Statistics:
        """How many evaluations and steps each world has taken so far."""
        stepper = self._need_stepper("sim.integration.statistics")
        return Statistics(**stepper.counts())

    def prescribe_noise(
        self, increments: Tensor, integrals: Tensor | None = None
    ) -> None:
        """Use these increments in the next steps; see `StochasticStepper.prescribe`."""
        stepper = self._need_stepper("Prescribed noise")
        stepper.prescribe(increments, integrals)


def _union(*masks: Tensor | None) -> Tensor | None:
    """The worlds that are in any of the masks; None: no world."""
    given = [mask for mask in masks if mask is not None]
    return torch.stack(given).any(dim=0) if given else None
