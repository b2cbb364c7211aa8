"""ErrorEstimate: the error of a trial step of an adaptive scheme, and its tolerance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from simstate.step.runge_kutta_stepper import StateBlock
from simstate.step.schemes.schemes import Adaptive
from simstate.step.schemes.tolerances import tolerances_of
from simstate.world.worlds import Worlds


class ErrorEstimate:
    """Errors of the blocks of the state, in units of their tolerances."""

    def __init__(
        self, scheme: Adaptive, worlds: Worlds, blocks: Sequence[StateBlock]
    ) -> None:
        self._scheme, self._blocks = scheme, blocks
        self._tolerances: dict[str, tuple[Tensor, Tensor]] = {}
        for block in blocks:
            given = tolerances_of(
                scheme.atol, scheme.rtol, worlds.model, block.name, block.num_dofs
            )
            absolute, relative = (block.value.new_tensor(one) for one in given)
            self._tolerances[block.name] = absolute, relative
        self._weights = [
            torch.tensor(row, dtype=torch.float64, device=worlds.device)
            for row in (scheme.tableau.b_error, scheme.tableau.b_error_low)
            if row is not None
        ]

    def largest(self, h: Tensor) -> Tensor:
        """Return the largest error of each world after a step of h [s]; (num_envs,)."""
        error = torch.zeros_like(h)
        for block in self._blocks:
            error = torch.maximum(error, _greatest(self._of(block, h)))
        return error

    def worst(self, world: int, h: Tensor) -> tuple[float, str, int]:
        """Return the largest error of a world, its block and its element there."""
        worst, name, element = -1.0, "", 0
        for block in self._blocks:
            error = self._of(block, h)[world].nan_to_num(nan=torch.inf)
            k = int(error.argmax())
            if float(error[k]) > worst:
                worst, name, element = float(error[k]), block.name, k
        return worst, name, element

    def _of(self, block: StateBlock, h: Tensor) -> Tensor:
        """Return the error estimate over the tolerance, by element."""
        allowed = self._tolerance(block)
        step = h[:, None].to(allowed.dtype)
        parts = [
            block.error(block.combined(weights)) * step / allowed
            for weights in self._weights
        ]
        if len(parts) == 1:
            return parts[0].abs()
        # DOP853 damps its fifth-order estimate by the third-order one.
        high, low = (_greatest(part) for part in parts)
        damping = high / (high.square() + 0.01 * low.square()).sqrt()
        return parts[0].abs() * damping.nan_to_num(nan=1.0)[:, None]

    def first_step(self, span: Tensor) -> Tensor:
        """Return a first step from the size of state and rates [s]; (num_envs,).

        This is Hairer's first guess, at most `span` [s].
        """
        size, speed = torch.zeros_like(span), torch.zeros_like(span)
        for block in self._blocks:
            scale = self._tolerance(block)
            size = torch.maximum(size, _greatest(block.scale() / scale))
            rate = block.error(block.rates[0])
            speed = torch.maximum(speed, _greatest(rate / scale))
        guess = 0.01 * size / speed
        # At rest or at zero there is no scale: start with a thousandth of the span.
        guess = torch.where((speed > 0) & (size > 0), guess, 1e-3 * span)
        least = torch.minimum((1e-6 * span).clamp(min=self._scheme.min_step), span)
        return torch.clamp(guess, least, span)

    def _tolerance(self, block: StateBlock) -> Tensor:
        absolute, relative = self._tolerances[block.name]
        return absolute + relative * block.scale()


def _greatest(values: Tensor) -> Tensor:
    """Return the largest absolute value of each row, NaN if any is; 0 if empty."""
    if not values.shape[1]:
        return values.new_zeros(values.shape[0]).double()
    return values.abs().amax(dim=1).double()
