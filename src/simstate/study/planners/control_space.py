"""ControlSpace: the controls that a planner chooses, and their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.study.scratch_worlds import is_env, ledger_of, sim_of
from simstate.world.worlds import worlds_of

Bounds = tuple[float | Sequence[float], float | Sequence[float]]
"""Minimum and maximum controls, each a number or one for each control."""


class ControlSpace:
    """Controls of a simulation, or actions of an environment, with their bounds.

    Args:
        target: the Simulation or Env.
        bounds: None: the actuators' ranges, by world where they differ; of an
            environment −1 and 1.
    """

    def __init__(
        self, target: Any, bounds: Bounds | None, *, finite: bool = True
    ) -> None:
        sim = sim_of(target)
        self.num_envs, self.device = sim.num_envs, sim.device
        self.is_env = is_env(target)
        self.width = target.action_dim if self.is_env else sim.model.nu
        """Number of controls."""
        self.step_dt: float = target.step_dt if self.is_env else sim.timestep
        """Time between two controls [s]."""
        if not self.width:
            raise InvalidInputError(
                "There are no controls to plan: add actuators to the model, or actions "
                "to the task.",
                name="target",
            )
        low, high = self._ranges(target) if bounds is None else self._given(bounds)
        shape = (self.num_envs, self.width)
        self.low, self.high = low.expand(shape), high.expand(shape)
        """Minimum and maximum controls; float64, shape (num_envs, width) each."""
        fits = self.low < self.high
        if finite:
            fits = fits & (self.high - self.low).isfinite()
        if not bool(fits.all()):
            raise InvalidInputError(
                f"bounds must be (low, high){', finite' * finite} and with low < high, "
                f"got {bounds!r}.",
                name="bounds",
            )

    def _ranges(self, target: Any) -> tuple[Tensor, Tensor]:
        if self.is_env:
            return self._given((-1.0, 1.0))
        sim = sim_of(target)
        model, slots = sim.model, ledger_of(target).slots
        limited = model.actuator_ctrllimited.astype(bool)
        if not limited.all():
            indices = [entity.index for entity in sim.scene.values()]
            free = [
                index.prefix + name
                for index in indices
                for name, column in zip(
                    index.controls.names, index.controls.ids, strict=True
                )
                if not limited[column]
            ]
            raise InvalidInputError(
                f"The controls {listed(free)} have no range: give the planner "
                "bounds=(low, high), or the actuators a ctrlrange.",
                name="bounds",
            )
        found = slots.get("model/actuator_ctrlrange")
        ranges = torch.as_tensor(model.actuator_ctrlrange)[None]
        if found is not None:
            ranges = found.tensor.detach()
        ranges = ranges.to(self.device, torch.float64)
        return ranges[..., 0], ranges[..., 1]

    def _given(self, bounds: Bounds) -> tuple[Tensor, Tensor]:
        try:
            low, high = (
                torch.as_tensor(x, dtype=torch.float64, device=self.device)
                for x in bounds
            )
            low, high = (x.expand(1, self.width) for x in (low, high))
        except (TypeError, ValueError, RuntimeError):
            raise InvalidInputError(
                f"bounds must be (low, high), each a number or {self.width} numbers; "
                f"got {bounds!r}.",
                name="bounds",
            ) from None
        return low, high

    def now(self, target: Any) -> Tensor:
        """Return the current controls; float64, (num_envs, width)."""
        if self.is_env:
            return target.action.double()
        return worlds_of(sim_of(target)).engine.field("ctrl").double()
