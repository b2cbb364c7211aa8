"""MPPI: the mean of random controls, weighted by the exponential of minus their cost.

Williams et al., "Information Theoretic MPC for Model-Based Reinforcement Learning",
2017, with knots of a spline in place of controls.

1. Shift the last plan by the elapsed time: the mean.
2. Draw K − 1 candidates: mean plus Gaussian noise, clipped to the bounds. Candidate 0
   is the mean.
3. Run the future of each. Its cost S gives the weight w = exp(−(S − S_min) / λ), with
   λ = temperature · (mean of S − S_min) over the futures that did not diverge. The
   weights do not depend on the scale or an offset of the cost; diverged futures have
   the weight 0.
4. The plan is Σ w · knots / Σ w.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import number
from simstate.study.planners.sampling_planner import SamplingPlanner


class MPPI(SamplingPlanner):
    """Takes the weighted mean of the sampled controls.

    Args:
        horizon: number of controls of a plan.
        temperature: temperature of the weights, relative to the spread of the costs;
            with small values the plan approaches the best sample.
        options: options of `SamplingPlanner`.
    """

    def __init__(
        self, horizon: int, *, temperature: float = 0.1, **options: Any
    ) -> None:
        super().__init__(horizon, **options)
        self.temperature = number("temperature", temperature, more_than=0)

    def update(
        self, knots: Tensor, cost: Tensor, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weighted mean of the knots of each world."""
        fine = cost.isfinite()
        above = torch.where(fine, cost - cost.amin(dim=1, keepdim=True), 0.0)
        scale = above.sum(dim=1, keepdim=True) / fine.sum(dim=1, keepdim=True).clamp(1)
        scale = self.temperature * scale.clamp(min=torch.finfo(scale.dtype).tiny)
        weights = torch.where(fine, torch.exp(-above / scale), 0.0)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return (weights[..., None, None] * knots).sum(dim=1), spread
