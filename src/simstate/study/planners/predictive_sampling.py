"""Predictive sampling: the best of some random controls.

Howell et al., "Predictive Sampling: Real-time Behaviour Synthesis with MuJoCo", 2022.

1. Shift the last plan by the elapsed time: the nominal knots.
2. Draw K − 1 candidates: nominal knots plus Gaussian noise, clipped to the bounds.
   The nominal knots are candidate 0.
3. Run the future of each; the plan is the candidate of least cost.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.study.planners.sampling_planner import SamplingPlanner


class PredictiveSampling(SamplingPlanner):
    """Takes the best of the sampled controls."""

    def update(
        self, knots: Tensor, cost: Tensor, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the knots of least cost of each world."""
        best = cost.argmin(dim=1)
        return knots[torch.arange(len(knots), device=knots.device), best], spread
