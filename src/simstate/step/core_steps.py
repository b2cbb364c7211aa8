"""Steps of a scheme in the compiled core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import core
from simstate.step.forces.compiled_models import CompiledModels, split_models
from simstate.step.forcing import Forcing
from simstate.step.schemes.schemes import Adaptive, Explicit
from simstate.step.touching import can_touch, touching_geoms
from simstate.world.worlds import Worlds

if TYPE_CHECKING:
    from simstate.step.adaptive_stepper import AdaptiveStepper


class CoreSteps:
    """A scheme of fixed step with compiled models: all stages of a world in one call.

    Positions and velocities of the new state are current afterwards.
    """

    def __init__(
        self,
        batch: core.CoreBatch,
        scheme: Explicit,
        timestep: float,
        models: CompiledModels,
        evaluations: NDArray[np.int64],
    ) -> None:
        self.models = models
        self.timestep = timestep
        """The step [s]."""
        self._core = core.Integrator(
            *(batch, _tableau(scheme), scheme.attitude),
            loads=models.loads,
            frames=tuple(models.frames.values()),
            masses=models.masses,
            evaluations=evaluations,
        )

    def step(self, n: int, rows: Tensor | None) -> int:
        """Advance by n time steps; return flags of `Seen`."""
        ids = None if rows is None else _ids(rows)
        seen = self._core.step(n, self.timestep, ids)
        if self.models.frames:
            self.models.store()
        return seen

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of each world's own size [s]; (num_envs,)."""
        self._core.move(h.numpy(), _ids(rows))
        self.models.store()


class CoreStages:
    """A scheme of fixed step with Python models: one stage of all worlds at a time.

    The core calls these models before each evaluation, and evaluates the others itself.
    It checks that the loads are finite, and restores the inputs after each evaluation.
    Writes of a model to anything else are detected once per call, which is then rolled
    back. The inputs are also saved by a call of their own, for the rollback in a forked
    child, in which the core's call never ends.
    """

    def __init__(
        self,
        worlds: Worlds,
        batch: core.CoreBatch,
        scheme: Explicit,
        forcing: Forcing,
        evaluations: NDArray[np.int64],
    ) -> None:
        self._ledger = worlds.ledger
        self.num_models = len(forcing.models)
        """Number of force models that it was made for."""
        self._models, called = split_models(forcing.models, worlds.num_envs)
        self._core = core.Integrator(
            *(batch, _tableau(scheme), scheme.attitude),
            loads=self._models.loads,
            evaluations=evaluations,
        )
        self._call = partial(forcing.call_at_stage, called)
        columns = worlds.engine.columns
        self._inputs = slice(columns["ctrl"].start, columns["xfrc_applied"].stop)

    def update(self) -> bool:
        """Copy the current parameters; False: the core cannot evaluate a model."""
        return self._models.update()

    def step(self, n: int, h: float, rows: Tensor | None) -> int:
        """Advance by n steps of h seconds; return flags of `Seen`."""
        ids = None if rows is None else _ids(rows)
        what = "an evaluation of force models"
        return self._ledger.run("inputs", what, self._step, n, h, ids)

    def _step(self, n: int, h: float, ids: np.ndarray | None) -> int:
        self._ledger.open[-1].evaluating = True
        seen = self._core.step_with(n, h, ids, self._inputs, self._call)
        self._ledger.observe()  # rejects writes to anything but inputs
        return seen


class CoreAdaptiveSteps:
    """An adaptive scheme in the core; its memory is that of the stepper."""

    def __init__(
        self,
        stepper: AdaptiveStepper,
        batch: core.CoreBatch,
        scheme: Adaptive,
        models: CompiledModels,
    ) -> None:
        model = batch.model
        sizes = {"qpos": model.nv, "qvel": model.nv, "act": model.na}
        sizes |= {"mass": model.nbody, **dict.fromkeys(models.frames, 6)}
        self.models = models
        tolerances = {k: stepper.tolerances(k, size) for k, size in sizes.items()}
        self._stepper = stepper
        self._core = core.AdaptiveIntegrator(
            batch,
            _tableau(scheme),
            scheme.attitude,
            atol={name: pair[0] for name, pair in tolerances.items()},
            rtol={name: pair[1] for name, pair in tolerances.items()},
            min_step=scheme.min_step,
            max_step=scheme.max_step,
            touching=touching_geoms(model),
            can_touch=can_touch(model),
            loads=models.loads,
            frames=models.frames,
            masses=models.masses,
        )
        counts = stepper.statistics
        self._slots = [
            (stepper.step_size.numpy(), self._core.step_size),
            (counts.evaluations.numpy(), self._core.evaluations),
            (counts.accepted.numpy(), self._core.accepted),
            (counts.rejected.numpy(), self._core.rejected),
        ]
        """Slots of the ledger, and the core's copies of them."""

    def step(self, n: int, rows: Tensor | None) -> Tensor | None:
        """Advance by n time steps; return worlds that cannot meet their tolerance."""
        span = n * self._stepper.timestep
        stuck = self._run(lambda: self._core.advance(span, _ids(rows)))
        return None if stuck is None else torch.as_tensor(stuck.copy())

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of each world's own size [s], whatever its error."""
        self._run(lambda: self._core.move(h.numpy(), _ids(rows)))

    def attempt(self, limit: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step of each world that meets its tolerance, at most `limit` [s].

        Returns:
            The steps, and the mask of worlds that cannot meet it; (num_envs,) each.
        """
        taken, stuck = self._run(lambda: self._core.attempt(limit.numpy(), _ids(rows)))
        return torch.as_tensor(taken.copy()), torch.as_tensor(stuck.copy())

    def _run(self, call: Callable[[], Any]) -> Any:
        """Copy the slots to the core, call it, and copy them back."""
        for slot, own in self._slots:
            np.copyto(own, slot)
        result = call()
        for slot, own in self._slots:
            np.copyto(slot, own)
        self.models.store()
        return result

    def failure(self, world: int) -> core.Failure:
        """Return the reason why a world is stuck."""
        return self._core.failure(world)


def _tableau(scheme: Explicit) -> core.TableauLike:
    """Return the tableau: to pyright, a cached property does not fit the protocol."""
    return cast("core.TableauLike", scheme.tableau)


def _ids(rows: Tensor | None) -> np.ndarray | None:
    """Return ascending ids, as the core takes them."""
    return None if rows is None else np.sort(rows.numpy())
