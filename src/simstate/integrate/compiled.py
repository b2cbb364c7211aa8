"""Steps of a scheme in the compiled core: all stages of a world in one call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from simstate.engine import core
from simstate.integrate.compiled_models import CompiledModels
from simstate.integrate.schemes import Explicit

if TYPE_CHECKING:
    from simstate.integrate.adaptive import AdaptiveStepper
    from simstate.integrate.stepper import Stepper


class CompiledSteps:
    """A scheme of fixed step, run by the core with the models that it has.

    It does what `Stepper` does, to rounding, and leaves positions and velocities of
    the new state current.
    """

    def __init__(
        self, stepper: Stepper, worlds: core.CoreBatch, models: CompiledModels
    ) -> None:
        scheme = stepper.scheme
        self.models = models
        self._stepper = stepper
        self._core = core.Integrator(
            *(worlds, _tableau(scheme), scheme.attitude),
            loads=models.loads,
            frames=tuple(models.frames.values()),
            masses=models.masses,
        )

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; None: no world gets stuck in them."""
        with self._stepper.sim.internals.engine.calls:
            self._core.step(n, self._stepper.timestep, _ids(env_ids))
        self.models.store()
        return None

    def move(self, h: Tensor, env_ids: Tensor) -> None:
        """Take one step of each world's own size [s]; (num_envs,)."""
        with self._stepper.sim.internals.engine.calls:
            self._core.move(h.numpy(), _ids(env_ids))
        self.models.store()


class CompiledAdaptiveSteps:
    """An adaptive scheme in the core; what it remembers is the stepper's."""

    def __init__(
        self, stepper: AdaptiveStepper, worlds: core.CoreBatch, models: CompiledModels
    ) -> None:
        scheme = stepper.control
        model = worlds.model
        sizes = {"qpos": model.nv, "qvel": model.nv, "act": model.na}
        sizes |= {"mass": model.nbody, **dict.fromkeys(models.frames, 6)}
        self.models = models
        tolerances = {k: stepper.tolerances(k, size) for k, size in sizes.items()}
        self._stepper = stepper
        self._core = core.AdaptiveIntegrator(
            worlds,
            _tableau(scheme),
            scheme.attitude,
            atol={name: pair[0] for name, pair in tolerances.items()},
            rtol={name: pair[1] for name, pair in tolerances.items()},
            min_step=scheme.min_step,
            max_step=scheme.max_step,
            loads=models.loads,
            frames=models.frames,
            masses=models.masses,
        )
        kept = ("step_size", "evaluations", "accepted", "rejected")
        self._slots = [
            (getattr(stepper, name).numpy(), getattr(self._core, name)) for name in kept
        ]
        """Numbers in the ledger, and the core's copies of them."""

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; returns worlds that cannot meet their tolerance."""
        span = n * self._stepper.timestep
        with self._kept():
            stuck = self._core.advance(span, _ids(env_ids))
        return None if stuck is None else torch.as_tensor(stuck.copy())

    def move(self, h: Tensor, env_ids: Tensor) -> None:
        """Take one step of each world's own size [s], whatever its error."""
        with self._kept():
            self._core.move(h.numpy(), _ids(env_ids))

    def attempt(self, limit: Tensor, env_ids: Tensor) -> tuple[Tensor, Tensor]:
        """One step of each world that meets its tolerance, at most `limit` long [s].

        Returns the steps, and the worlds that cannot meet it; (num_envs,) each.
        """
        with self._kept():
            taken, stuck = self._core.attempt(limit.numpy(), _ids(env_ids))
        return torch.as_tensor(taken.copy()), torch.as_tensor(stuck.copy())

    @contextmanager
    def _kept(self) -> Generator[None]:
        """Hand over what is remembered in the ledger, and take it back."""
        for slot, own in self._slots:
            np.copyto(own, slot)
        with self._stepper.sim.internals.engine.calls:
            yield
        for slot, own in self._slots:
            np.copyto(slot, own)
        self.models.store()

    def failure(self, world: int) -> core.Failure:
        """Why a world is stuck."""
        return self._core.failure(world)


def _tableau(scheme: Explicit) -> core.TableauLike:
    """The scheme's tableau: for pyright a cached property is not one of a protocol."""
    return cast("core.TableauLike", scheme.tableau)


def _ids(env_ids: Tensor | None) -> np.ndarray | None:
    """Rising ids, as the core takes them."""
    return None if env_ids is None else np.sort(env_ids.numpy())
