"""CEM: a Gaussian that is fitted to the best controls, several times for each plan.

Rubinstein, "The Cross-Entropy Method for Combinatorial and Continuous Optimization",
1999; as a planner, Chua et al., 2018.

1. Shift the last plan by the time that has passed: the mean. The spread is `noise`.
2. Draw K − 1 candidates from the Gaussian, clipped to the bounds; candidate 0 is the
   mean. Run the future of each.
3. Mean and spread become those of the `elites` candidates of least cost. The spread is
   limited below to `least_spread` times its previous value.
4. Repeat 2 and 3 `iterations` times; the plan is the mean.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import number, whole_number
from simstate.study.planners.sampling_planner import SamplingPlanner


class CEM(SamplingPlanner):
    """Takes the mean of a Gaussian that is fitted to the best samples.

    Args:
        horizon: number of controls of a plan.
        elites: number of samples to which the Gaussian is fitted; None: an eighth.
        least_spread: lower limit of the ratio of the spread to the one before a fit.
        iterations: number of fits.
        options: options of `SamplingPlanner`.
    """

    def __init__(
        self,
        horizon: int,
        *,
        elites: int | None = None,
        least_spread: float = 0.1,
        iterations: int = 3,
        **options: Any,
    ) -> None:
        super().__init__(horizon, iterations=iterations, **options)
        chosen = max(2, self.samples // 8) if elites is None else elites
        self.elites = whole_number("elites", chosen, 2, self.samples)
        self.least_spread = number("least_spread", least_spread, at_least=0)

    def update(
        self, knots: Tensor, cost: Tensor, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return mean and spread of the elites of each world."""
        order = cost.argsort(dim=1, stable=True)[:, : self.elites]
        rows = torch.arange(len(knots), device=knots.device)[:, None]
        chosen = knots[rows, order]
        weight = cost[rows, order].isfinite().to(knots.dtype)[..., None, None]
        count = weight.sum(dim=1).clamp(min=1)
        mean = (weight * chosen).sum(dim=1) / count
        variance = (weight * (chosen - mean[:, None]) ** 2).sum(dim=1) / count
        return mean, torch.maximum(variance.sqrt(), self.least_spread * spread)
