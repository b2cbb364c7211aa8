"""Forcing: everything that acts on worlds, at every evaluation of their dynamics.

A force model is called as `model(t, sim)` at each evaluation, that is at every stage of
every step, with the worlds at that stage's state and time. It reads quantities
(`sim.scene["robot"].data…`) and writes inputs: wrenches, controls, applied forces, mass
rates. Before the first model the inputs are those that you set, and they are restored
afterwards. Models therefore add loads with `+=` on `sim.data.xfrc_applied`,
`sim.data.qfrc_applied` or `sim.mass_rate`; a plain assignment replaces them.

A model must be stateless: it writes the same loads for the same time and state. Stages
move forward and back within a step, and adaptive schemes reject complete steps, so a
model would remember states that never occurred. Use a process (`sim.add_process`) for
anything with memory, and read it in the model. A model that writes anything but inputs
is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch
from torch import Tensor

from simstate.base.checks import check_called_as
from simstate.base.errors import InvalidInputError
from simstate.engine import MAX_VALUE, Engine, OneTorchThread, Stage
from simstate.entity.host import attach
from simstate.math.vector import greatest
from simstate.step.force_views import ForceOnViews
from simstate.step.forces.function_force import (
    CFunction,
    CompiledFunction,
    FunctionForce,
)
from simstate.step.forces.function_signature import is_function_pointer
from simstate.step.forces.scene_force import ForceModel
from simstate.step.load_checks import LoadChecks, is_finite
from simstate.step.processes import DrivingNoise, Process
from simstate.step.schemes.schemes import Explicit
from simstate.step.stochastic.stochastic import Stochastic
from simstate.world import Ledger
from simstate.world.freshness import Freshness
from simstate.world.worlds import Worlds

if TYPE_CHECKING:  # these load Warp
    from simstate.step.forces.compiled_models import CompiledModels, EvaluationPlan
    from simstate.step.mass import MassFlow

T = TypeVar("T")

_NOT_FINITE, _WROTE_STATE = 1, 2
"""Problems of a call, by the core's numbers."""


class Blocks(Protocol):
    """The stepper of an integrator, whose state has one block for each process."""

    @property
    def scheme(self) -> Explicit | Stochastic:
        """The scheme of the integrator."""
        ...

    def forget_blocks(self) -> None:
        """Create the blocks again at the next step."""
        ...


class Forcing:
    """Force models, processes, noise and mass flow of a simulation.

    Args:
        engine: the engine that evaluates the dynamics.
        ledger: the slots of the worlds.
        fresh: the freshness of derived values.
        sim: the simulation that is passed to models, processes and noise.
    """

    def __init__(
        self, engine: Engine, ledger: Ledger, fresh: Freshness, sim: Any
    ) -> None:
        self._engine = engine
        self._ledger = ledger
        self._fresh = fresh
        self.sim = sim
        self._in_place: set[int] = set()
        """Identities of the models that return what they wrote in place."""
        self.models: list[ForceModel] = []
        self.processes: list[Process] = []
        self.noises: list[DrivingNoise] = []
        self.mass_flow: MassFlow | None = None
        self._time = engine.field("time")
        self.checks = LoadChecks(engine, ledger, sim)
        self._compiled: tuple[tuple[int, int, bool], CompiledModels | None] | None
        self._compiled = None

    # Evaluations.

    def evaluate(self, rows: Tensor | None) -> None:
        """Evaluate the dynamics at the current time and state, with all loads."""
        if self.models or self.mass_flow is not None:
            self.with_loads(lambda: self._evaluate_loaded(rows))
        else:
            self._refuse_within_a_model()
            self._engine.forward(rows, Stage.ACCELERATION)

    def evaluate_stage(self, rows: Tensor | None) -> None:
        """Evaluate the dynamics at a stage of a step, where models may read."""
        if not self.has_readers:
            self._engine.forward(rows, Stage.ACCELERATION)
            return
        self._fresh.write(Stage.POSITION, rows, "a stage of a step")
        self.evaluate(rows)
        self._fresh.mark_current(Stage.ACCELERATION, rows, evaluated=True)

    def _evaluate_loaded(self, rows: Tensor | None) -> None:
        if self.mass_flow is not None:
            self.mass_flow.evaluated()
        self._engine.forward(rows, Stage.ACCELERATION)

    def with_loads(self, call: Callable[[], T]) -> T:
        """Return `call()`, with the loads of all force models in the inputs."""
        self._refuse_within_a_model()
        if not self.models:
            return call()
        self._ledger.observe()
        what = "an evaluation of force models"
        with OneTorchThread():
            return self._ledger.run("inputs", what, lambda: self._call_with_loads(call))

    def _call_with_loads(self, call: Callable[[], T]) -> T:
        ledger = self._ledger
        backup = ledger.backup("inputs")
        ledger.open[-1].evaluating = True
        self.call(self.models)
        ledger.observe()  # rejects writes to anything but inputs
        if not self.checks.are_finite(backup, self.models):
            self.call(self.models)
        result = call()
        backup.restore()
        ledger.watch.acknowledge(backup.storages)
        return result

    def measure(self, models: Sequence[ForceModel], inputs: Sequence[str]) -> Tensor:
        """Return the loads of some models at the current state, without applying them.

        Args:
            models: the force models; they may write no other inputs than these.
            inputs: raw fields, whose columns follow each other in the result.

        Returns:
            The loads; shape (num_envs, columns of all inputs).
        """
        self._ledger.observe()
        what = "an evaluation of force models"
        with OneTorchThread():
            return self._ledger.run(
                "inputs", what, lambda: self._measure(models, inputs)
            )

    def _measure(self, models: Sequence[ForceModel], inputs: Sequence[str]) -> Tensor:
        ledger, engine = self._ledger, self._engine
        backup = ledger.backup("inputs")
        ledger.open[-1].evaluating = True
        for name in inputs:
            engine.field(name).data.zero_()
        others = {
            n: x.clone() for n, x in self.checks.inputs().items() if n not in inputs
        }
        self.call(models)
        ledger.observe()  # rejects writes to anything but inputs
        for name, before in others.items():
            if not torch.equal(ledger[name].tensor, before):
                raise InvalidInputError(
                    f"A coupled force wrote to {name.rpartition('/')[2]}. It may only "
                    f"write {' and '.join(inputs)}: set other inputs before the step.",
                    name=name.rpartition("/")[2],
                )
        fields = [engine.field(name).data.flatten(1) for name in inputs]
        found = torch.cat(fields, dim=1)
        backup.restore()
        ledger.watch.acknowledge(backup.storages)
        if not is_finite(found):
            self.checks.refuse_infinite(models)
        return found

    def call(
        self, models: Sequence[ForceModel], problem: int = 0, world: int = 0
    ) -> None:
        """Add the loads of some models; the compiled core calls this at each stage.

        With a problem (see `core.EvaluationCalls`), the models have been called and the
        state has been restored: name the model that caused it, unless the world itself
        has diverged.
        """
        if problem == _NOT_FINITE:
            self.checks.refuse_infinite(models)
        elif problem == _WROTE_STATE:
            self.checks.refuse_writes(models, world)
        else:
            time, sim = self._time.clone(), self.sim  # a copy, which models may keep
            for model in models:
                returned: object = model(time, sim)
                if returned is not None and id(model) not in self._in_place:
                    self.checks.refuse_returned(model, returned)
                    self._in_place.add(id(model))

    def _refuse_within_a_model(self) -> None:
        if self._ledger.is_evaluating:
            raise InvalidInputError(
                "A force model read an acceleration or a force, which depends on the "
                "loads that it is about to write: read only positions and velocities.",
                name="acceleration",
            )

    # Models, processes, noise and mass flow.

    @property
    def has_readers(self) -> bool:
        """True if models, processes or mass flow read the state at the stages."""
        return bool(self.models or self.processes) or self.mass_flow is not None

    @property
    def has_state(self) -> bool:
        """True if processes or body masses are part of the state."""
        return bool(self.processes) or self.mass_flow is not None

    def add_force(
        self, model: Any, reads: Sequence[str], writes: Sequence[str]
    ) -> None:
        """Evaluate a force model with all others from now on."""
        self.refuse_within_a_step("sim.add_force")
        added: Any = model
        if reads or writes:
            added = ForceOnViews(self._engine, self._fresh, model, reads, writes)
        elif is_function_pointer(model):
            added = FunctionForce(CompiledFunction(model))
        elif isinstance(model, CFunction):
            added = FunctionForce(model)
        else:
            check_called_as("A force model", model, "t", "sim", name="model")
        attach(added, self.sim)
        self.models.append(added)
        self._fresh.write(Stage.ACCELERATION, None, "sim.add_force()")

    def add_process(self, process: Process, stepper: Blocks | None) -> None:
        """Integrate a process with the mechanics from now on."""
        if not isinstance(process, Process):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"A process must be a simstate.integrate.Process; got {process!r}.",
                name="process",
            )
        self.refuse_within_a_step("sim.add_process")
        has_noise = type(process).diffusion is not Process.diffusion
        if has_noise and process.num_sources < 1:
            raise InvalidInputError(
                f"Process {process.name!r} defines diffusion, but its num_sources is "
                f"{process.num_sources}: set it to the number of noise sources.",
                name="num_sources",
            )
        if process.num_sources:
            _refuse_if_deterministic(process, "Process", process.name, stepper)
        stepper = _need(stepper, f"Process {process.name!r}", process.name)
        if process.name in [other.name for other in self.processes]:
            raise InvalidInputError(
                f"There is already a process {process.name!r}; names must be unique.",
                name=process.name,
            )
        process.attach(self.sim)
        self.processes.append(process)
        if process.num_sources:
            self.noises.append(process)
        stepper.forget_blocks()

    def add_noise(self, noise: DrivingNoise, stepper: Blocks | None) -> None:
        """Drive the state by noise sources from now on."""
        if not isinstance(noise, DrivingNoise):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                "Noise needs num_sources and diffusion(t, sim); got "
                f"{type(noise).__name__}.",
                name="noise",
            )
        self.refuse_within_a_step("sim.add_noise")
        _refuse_if_deterministic(noise, "Noise", type(noise).__name__, stepper)
        if noise in self.noises:
            raise InvalidInputError(
                f"Noise {type(noise).__name__!r} has already been added.",
                name="noise",
            )
        self.noises.append(noise)

    def enable_mass_flow(self, worlds: Worlds, stepper: Blocks | None) -> MassFlow:
        """Make the body masses part of the state."""
        if self.mass_flow is None:
            from simstate.step.mass import MassFlow  # loads Warp

            self.refuse_within_a_step("sim.mass_rate")
            _need(stepper, "sim.mass_rate", "mass_rate").forget_blocks()
            self.mass_flow = MassFlow(worlds)
        return self.mass_flow

    def refuse_within_a_step(self, what: str) -> None:
        """Raise if a call that extends the state is made within a step."""
        ledger = self._ledger
        if ledger.open:
            ledger.calls.recover()
        if ledger.is_stepping or ledger.is_evaluating:
            raise InvalidInputError(
                f"{what} extends the state, which is not possible during a step: call "
                "it once before stepping.",
                name=what,
            )

    def invalid_worlds(self) -> Tensor | None:
        """Return the worlds with an invalid control, process or mass; None if none."""
        values = [process.value for process in self.processes]
        values.append(self._engine.field("ctrl"))
        if self.mass_flow is not None:
            values.append(self.mass_flow.mass)
        if all(greatest(x) <= MAX_VALUE for x in values if x.numel()):
            return None
        valid = [(x.abs() <= MAX_VALUE).all(dim=1) for x in values if x.numel()]
        mask = ~valid[0]
        for each in valid[1:]:
            mask |= ~each
        return mask

    # In the compiled core.

    def plan(self, span: float) -> EvaluationPlan | None:
        """Return the plan by which the compiled core evaluates a span [s], or None.

        It has the current parameters. None if the core cannot evaluate the models.
        """
        known = (len(self.models), len(self.processes), self.mass_flow is None)
        models = None if self._compiled is None else self._compiled[1]
        is_known = self._compiled is not None and self._compiled[0] == known
        if is_known and models is not None and models.has_fields:
            is_known = models.covers(*self._times(span))
        if not is_known:
            from simstate.step.forces.compiled_models import (  # loads Warp
                compile_models,
            )

            models = compile_models(self, *self._times(span))
            self._compiled = (known, models)
        return None if models is None else models.plan()

    def _times(self, span: float) -> tuple[float, float]:
        """Return the earliest time, and the latest one after a span [s]."""
        return float(self._time.min()), float(self._time.max()) + span


def _need(stepper: Blocks | None, what: str, name: str) -> Blocks:
    if stepper is None:
        raise InvalidInputError(
            f"{what} needs an integrator of simstate: MuJoCo's stepper does not "
            "integrate this state. Use Simulation(…, integrator=integrate.RK4()).",
            name=name,
        )
    return stepper


def _refuse_if_deterministic(
    noise: DrivingNoise, kind: str, name: str, stepper: Blocks | None
) -> None:
    scheme = None if stepper is None else stepper.scheme
    if not isinstance(scheme, Stochastic):
        own = "MuJoCo's own" if scheme is None else scheme.name
        raise InvalidInputError(
            f"{kind} {name!r} is stochastic, the integrator {own} is "
            f"deterministic: it would ignore the {noise.num_sources} noise sources. "
            "Use a stochastic scheme, such as integrate.SRIW1() or EulerMaruyama().",
            name=name,
        )
