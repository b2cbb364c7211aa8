"""Steps of a scheme in the compiled core.

If a model or the rate of a process is a Python function, the core runs one evaluation
of all worlds at a time and calls Python in between; else all evaluations of a world in
one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import OneTorchThread, Stage, core
from simstate.step.forces.compiled_models import EvaluationPlan
from simstate.step.forcing import Forcing
from simstate.step.schemes.schemes import Adaptive, Explicit
from simstate.step.schemes.tolerances import tolerances_of
from simstate.step.touchable_geoms import can_touch, touching_geoms
from simstate.world.worlds import Worlds

if TYPE_CHECKING:
    from simstate.step.adaptive_stepper import AdaptiveStepper

T = TypeVar("T")
_VELOCITY, _ACCELERATION = Stage.VELOCITY, Stage.ACCELERATION


class CalledModels:
    """Python functions that the core calls in a step, and the checks around them.

    The core checks that loads are finite and that nothing but inputs is written to the
    rows of the state, and restores the inputs after each evaluation. Writes to other
    slots are detected once per call, which is then rolled back. The inputs are also
    saved by a separate call, for the rollback in a forked child, in which the core's
    call never ends.
    """

    def __init__(self, worlds: Worlds, forcing: Forcing, plan: EvaluationPlan) -> None:
        self._ledger, self._fresh = worlds.ledger, worlds.fresh
        self.observers = worlds.engine.observers
        """Observers of each evaluation within the core."""
        self._forcing, self._plan = forcing, plan
        self._prepares = [plan.prepares(k) for k in range(len(plan.calls))]
        self._rows: Tensor | None = None
        columns = worlds.engine.columns
        inputs = slice(columns["ctrl"].start, columns["xfrc_applied"].stop)
        self.calls = None
        """The argument for the core; None if it calls no Python."""
        if not plan.is_closed:
            self.calls = core.EvaluationCalls(self._call, inputs, len(plan.calls))

    def run(self, rows: Tensor | None, call: Callable[..., T], *args: Any) -> T:
        """Return `call(*args)`, which runs the core on the worlds `rows`; None: all."""
        for observer in self.observers:
            observer.begin_evaluations()
        if self.calls is None:
            return call(*args)
        self._rows = rows
        what = "an evaluation of force models"
        return self._ledger.run("inputs", what, self._run, call, args)

    def _run(self, call: Callable[..., T], args: tuple[Any, ...]) -> T:
        self._ledger.open[-1].evaluating = True
        with OneTorchThread():
            result = call(*args)
        self._ledger.observe()  # rejects writes to anything but inputs
        return result

    def _call(self, segment: int, problem: int, world: int) -> None:
        fresh, plan = self._fresh, self._plan
        fresh.begin_stage()
        if segment == len(plan.calls):
            fresh.mark_current(_ACCELERATION, self._rows, evaluated=True)
            self._write_rates(problem, world)
            return
        if self._prepares[segment]:
            fresh.mark_current(_VELOCITY, self._rows, evaluated=True)
        self._forcing.call(plan.calls[segment], problem, world)

    def _write_rates(self, problem: int, world: int) -> None:
        """Evaluate the rates of processes, which may read accelerations."""
        self._ledger.observe()  # the inputs, while it is known who wrote them
        self._ledger.open[-1].evaluating = False
        if problem:
            rates = [each for each, _ in self._plan.rates]
            self._forcing.checks.refuse_written(rates, world)
        for process, memory in self._plan.rates:
            np.copyto(memory, process.checked_rate().numpy())
        self._ledger.open[-1].evaluating = True


class CoreSteps:
    """A scheme of fixed step in the core."""

    def __init__(
        self,
        worlds: Worlds,
        scheme: Explicit,
        forcing: Forcing,
        plan: EvaluationPlan,
        evaluations: NDArray[np.int64],
    ) -> None:
        assert worlds.engine.compiled is not None
        self.plan = plan
        """Parts of an evaluation."""
        self._called = CalledModels(worlds, forcing, plan)
        self._core = core.Integrator(
            *(worlds.engine.compiled, scheme.tableau, scheme.attitude),
            loads=plan.loads,
            processes=plan.processes,
            masses=plan.masses,
            contacts=worlds.engine.compiled_observers(),
            evaluations=evaluations,
        )

    def step(self, n: int, h: float, rows: Tensor | None) -> int:
        """Advance by n steps of h seconds; return flags of `Seen`."""
        called, ids = self._called, None if rows is None else _ids(rows)
        for observer in called.observers:
            observer.begin_step()
        return called.run(rows, self._core.step, n, h, ids, called.calls)

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of size h [s] in each world; (num_envs,)."""
        called = self._called
        called.run(rows, self._core.move, h.numpy(), _ids(rows), called.calls)


class CoreAdaptiveSteps:
    """An adaptive scheme in the core; it writes the slots of the stepper."""

    def __init__(
        self,
        stepper: AdaptiveStepper,
        worlds: Worlds,
        scheme: Adaptive,
        forcing: Forcing,
        plan: EvaluationPlan,
    ) -> None:
        assert worlds.engine.compiled is not None
        model = worlds.model
        sizes = {"qpos": model.nv, "qvel": model.nv, "act": model.na}
        sizes |= {"mass": model.nbody}
        sizes |= {one.name: one.value.shape[1] for one in plan.processes}
        self.plan = plan
        """Parts of an evaluation."""
        self._called = CalledModels(worlds, forcing, plan)
        tolerances = {
            name: tolerances_of(scheme.atol, scheme.rtol, model, name, size)
            for name, size in sizes.items()
        }
        counts = stepper.statistics
        slots = {"step_size": stepper.step_size, "evaluations": counts.evaluations}
        slots |= {"accepted": counts.accepted, "rejected": counts.rejected}
        self._stepper = stepper
        self._core = core.AdaptiveIntegrator(
            worlds.engine.compiled,
            scheme.tableau,
            scheme.attitude,
            atol={name: pair[0] for name, pair in tolerances.items()},
            rtol={name: pair[1] for name, pair in tolerances.items()},
            min_step=scheme.min_step,
            max_step=scheme.max_step,
            touching=touching_geoms(model),
            can_touch=can_touch(model),
            loads=plan.loads,
            processes=plan.processes,
            masses=plan.masses,
            contacts=worlds.engine.compiled_observers(),
            slots={name: slot.numpy() for name, slot in slots.items()},
        )

    def step(self, n: int, rows: Tensor | None) -> Tensor | None:
        """Advance by n time steps; return worlds that cannot meet their tolerance."""
        span = n * self._stepper.timestep
        stuck = self._run(rows, self._core.advance, span)
        return None if stuck is None else torch.as_tensor(stuck.copy())

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of size h [s] in each world, whatever its error."""
        self._run(rows, self._core.move, h.numpy())

    def attempt(self, limit: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step in each world within its tolerance, of at most `limit` [s].

        Returns:
            The steps, and the mask of worlds that cannot meet theirs; (num_envs,) each.
        """
        taken, stuck = self._run(rows, self._core.attempt, limit.numpy())
        return torch.as_tensor(taken.copy()), torch.as_tensor(stuck.copy())

    def _run(self, rows: Tensor | None, call: Callable[..., Any], of: Any) -> Any:
        called = self._called
        return called.run(rows, call, of, _ids(rows), called.calls)

    def failure(self, world: int) -> core.Failure:
        """Return the reason why a world is stuck."""
        return self._core.failure(world)


def _ids(rows: Tensor | None) -> np.ndarray | None:
    """Return ascending ids, as the core takes them."""
    return None if rows is None else np.sort(rows.numpy())
