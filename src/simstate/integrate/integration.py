"""What a simulation has when more than MuJoCo's own stepper moves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.engine import EVOLVING_FIELDS, MAX_VALUE, Stage
from simstate.errors import InvalidInputError
from simstate.ids import Index, Selection
from simstate.integrate.forces import ForceModel, Forces
from simstate.integrate.processes import DrivingNoise, Process
from simstate.integrate.schemes import Adaptive, Explicit
from simstate.integrate.stochastic import Stochastic
from simstate.math.vector import greatest

if TYPE_CHECKING:
    from simstate.integrate.mass import MassFlow
    from simstate.integrate.stepper import Stepper
    from simstate.simulation import Simulation


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

OPTIONAL_MEMORY = ("step_size", "noise_draws", "noise_seed", "noise_row")
"""What a snapshot may have that this simulation's integrator does not."""


class Integration:
    """Force models, processes, mass flow, noise, and the stepper that uses them."""

    def __init__(self, sim: Simulation, scheme: Integrator | None) -> None:
        self.sim = sim
        self.scheme = scheme
        self.forces = Forces(self)
        self.processes: list[Process] = []
        self.noises: list[DrivingNoise] = []
        self.mass_flow: MassFlow | None = None
        self._is_stepping = False
        self.stepper = None if scheme is None else self._make_stepper(scheme)
        sim.fresh.loads = self.forces.applied

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
        self.sim.fresh.mark(Stage.ACCELERATION, None, "sim.add_force()")

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
        return self.mass_flow

    def _not_within_a_step(self, what: str) -> None:
        if self._is_stepping or self.forces.is_applying:
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
        if self.stepper is None:
            return self._step_with_held_loads(n, env_ids)
        sim = self.sim
        if "opt.timestep" in sim.engine.expanded:
            raise InvalidInputError(
                "simstate's integrators take one time step for all worlds, but "
                'sim.expand("opt.timestep") made it differ: use integrator=None.'
            )
        sim.engine.remember()
        self._before = self.own_state()
        self.stepper.remember()
        unusable = self._bad_own()
        if unusable is not None:  # such worlds stay, and are told of afterwards
            alive = ~unusable
            if env_ids is not None:
                alive &= torch.zeros_like(alive).index_fill(0, env_ids, True)
            env_ids = alive.nonzero().flatten()
        sim.fresh.observe()
        mode, sim.fresh.mode = sim.fresh.mode, "auto"  # models read at every stage
        self._is_stepping = True
        try:
            stuck = self.stepper.step(n, env_ids)
            sim.fresh.moved(env_ids)
            if mode != "auto":  # in auto mode the first read does it
                sim.fresh.forward(env_ids)
        except BaseException:
            self._put_all_back()
            raise
        finally:
            sim.fresh.mode = mode
            self._is_stepping = False
        sim.engine.report_warnings()
        return _union(sim.engine.find_bad(), stuck, unusable, self._bad_own())

    def _step_with_held_loads(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """MuJoCo's own steps, with the force models' loads held over each of them."""
        sim = self.sim
        engine = sim.engine
        before, bad = None, None
        for _ in range(n):
            with self.forces.applied():
                bad = _union(bad, engine.step(1, env_ids))
            sim.fresh.stepped(env_ids)
            before = engine.before.clone() if before is None else before
        if before is not None:
            engine.before.copy_(before)
        return bad

    def _bad_own(self) -> Tensor | None:
        """Worlds where a control, a process or a mass is not fit to go on; or None."""
        values = [process.value for process in self.processes]
        values.append(self.sim.engine.field("ctrl"))
        if self.mass_flow is not None:
            values.append(self.mass_flow.mass)
        if all(greatest(x) <= MAX_VALUE for x in values if x.numel()):
            return None
        fine = [(x.abs() <= MAX_VALUE).all(dim=1) for x in values]
        return ~torch.stack(fine).all(dim=0)

    def finite_worlds(self) -> Tensor:
        """Worlds whose state is fit to compute rates from; shape (num_envs,)."""
        engine = self.sim.engine
        parts = [engine.field("qpos"), engine.field("qvel")]
        parts += [process.value for process in self.processes]
        fine = [(x.abs() <= MAX_VALUE).all(dim=1) for x in parts if x.numel()]
        return torch.stack(fine).all(dim=0)

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

    def _put_all_back(self) -> None:
        """Undo a step that raised half-way."""
        engine = self.sim.engine
        for name in EVOLVING_FIELDS:
            field = engine.field(name).data
            field.copy_(engine.before[:, engine.columns[name]].view_as(field))
        self.put_back(slice(None))
        if self.stepper is not None:
            self.stepper.go_back()
        self.sim.fresh.moved(None)

    def put_back(self, rows: Index) -> None:
        """Give worlds what is not in MuJoCo's state from before the last step."""
        if self.stepper is not None:
            self._write_own(
                {name: tensor[rows] for name, tensor in self._before.items()}, rows
            )
            if self.mass_flow is not None:
                self.mass_flow.empty.zero_()

    def own_state(self) -> dict[str, Tensor]:
        """A copy of what MuJoCo's state does not have; each of shape (num_envs, …)."""
        return {name: tensor.clone() for name, tensor in self._own().items()}

    def _own(self) -> dict[str, Tensor]:
        own = {f"process {process.name}": process.value for process in self.processes}
        if self.mass_flow is not None:
            own["mass"] = self.mass_flow.mass
            own["inertia"] = self.mass_flow.inertia
            own["mass_rate"] = self.mass_flow.rate
        if self.stepper is not None:
            own |= self.stepper.memory()
        return own

    def _write_own(self, values: dict[str, Tensor], rows: Index) -> None:
        own = self._own()
        for name, tensor in values.items():
            own[name].data[rows] = tensor.to(own[name])
        if self.mass_flow is not None:
            self.sim.engine.set_const(None)

    def restore_own(self, values: dict[str, Tensor], rows: Selection) -> None:
        """Write what a snapshot kept of `own_state` back; the rest as at a reset."""
        self.reset(rows)
        own = self._own()
        known = {name: tensor for name, tensor in values.items() if name in own}
        self._write_own(known, rows.index)

    def seed_noise(self, seed: int, rows: Selection) -> None:
        """Start the noise of worlds anew, where the integrator is stochastic."""
        from simstate.integrate.sde_stepper import StochasticStepper

        if isinstance(self.stepper, StochasticStepper):
            self.stepper.stream.seed(seed, rows.index)

    def reset(self, rows: Selection) -> None:
        """Bring processes, masses and step sizes of worlds back to their defaults."""
        for process in self.processes:
            process.value.data[rows.index] = process.initial[rows.index]
        flow = self.mass_flow
        if flow is not None:
            flow.rate.data[rows.index] = 0.0
            default = flow.default_mass[rows.index], flow.default_inertia[rows.index]
            flow.write(*default, rows.index)
        if self.stepper is not None:
            self.stepper.forget_steps(rows.index)


def _union(*masks: Tensor | None) -> Tensor | None:
    """The worlds that are in any of the masks; None: no world."""
    given = [mask for mask in masks if mask is not None]
    return torch.stack(given).any(dim=0) if given else None
