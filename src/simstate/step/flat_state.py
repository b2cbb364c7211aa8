"""A block of the state whose coordinates are plain numbers: qvel, act, mass."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simstate.step import kernels
from simstate.step.stages import Launch, Stages, start, weighted


class FlatState:
    """All worlds' values of one block, and the rates of the stages of a step.

    Args:
        name: the block's name in errors and tolerances.
        value: the live values, displaced in place; shape (num_envs, width).
        rate: the live time derivative, or a function that returns it; as `value`.
        stages: the step sizes and weights.
    """

    def __init__(
        self,
        name: str,
        value: Tensor,
        rate: Tensor | Callable[[], Tensor],
        stages: Stages,
    ) -> None:
        self.name = name
        self.value = value
        self.origin = torch.empty_like(value, memory_format=torch.contiguous_format)
        self.rates = value.new_zeros(stages.tableau.num_stages, *value.shape)
        self._by_stage = list(self.rates)
        self._rate = rate
        self._stages = stages
        self._moves: list[Launch] = []
        self._advances: list[Launch] = []
        h = stages.steps(value.dtype)
        for stage, weights in enumerate(stages.weights(value.dtype)):
            inputs = [self.origin, self.rates, weights, h, value]
            self._moves.append(Launch(kernels.displace_flat, stages.num_envs, inputs))
            if stage and isinstance(rate, Tensor):
                inputs += [rate, self._by_stage[stage - 1]]
                launch = Launch(kernels.advance_flat, stages.num_envs, inputs)
                self._advances.append(launch)

    def begin(self, chosen: Tensor | None = None) -> None:
        """Start a step at the current state, in the chosen worlds (None: all)."""
        start(self.origin, self.value, chosen)

    def displace(self, stage: int) -> None:
        """Move to a stage, or with the number of stages to the end of the step."""
        self._moves[stage]()

    def advance(self, stage: int) -> None:
        """Record the rates of a stage in all worlds, and move to the next one."""
        if self._advances:
            self._advances[stage]()
        else:
            self.record(stage, None)
            self.displace(stage + 1)

    def record(self, stage: int, chosen: Tensor | None) -> None:
        """Record the rates at the current values, in the chosen worlds (None: all)."""
        if chosen is None:
            self._by_stage[stage].copy_(self.rate_now())
        else:
            self._by_stage[stage][chosen] = self.rate_now()[chosen]

    @property
    def num_dofs(self) -> int:
        """Number of degrees of freedom of a world."""
        return self.value.shape[1]

    def rate_now(self) -> Tensor:
        """Return the rates at the current values; shape (num_envs, width)."""
        rate = self._rate if isinstance(self._rate, Tensor) else self._rate()
        return rate.to(self.value.dtype)

    def as_rate(self, tangent: Tensor) -> Tensor:
        """Return a rate by dof as a rate of the coordinates: the same."""
        return tangent.to(self.value)

    def displace_by(self, move: Tensor, h: Tensor) -> None:
        """Set value = origin + h · move where h is not 0; (num_envs, width)."""
        moved = self.origin + h[:, None] * move
        self.value.copy_(torch.where(h[:, None] != 0, moved, self.value))

    def combined(self, weights: Tensor) -> Tensor:
        """Return Σ weights · rates over the stages; shape (num_envs, width)."""
        return weighted(weights, self.rates)

    def scale(self) -> Tensor:
        """Return the reference of a relative tolerance; shape (num_envs, width)."""
        return torch.maximum(self.origin.abs(), self.value.abs())

    def error(self, rates: Tensor) -> Tensor:
        """Return an error of the block's coordinates as measured: unchanged."""
        return rates
