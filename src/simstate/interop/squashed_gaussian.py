"""SquashedGaussian: actions in a range, as soft actor-critic (SAC) draws them."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from typing import Any

import torch
from rsl_rl.modules.distribution import HeteroscedasticGaussianDistribution
from torch import Tensor, nn


class SquashedGaussian(HeteroscedasticGaussianDistribution):
    """`limit` × tanh of normally distributed values, whose deviation is an output."""

    def __init__(self, output_dim: int, limit: float, **settings: Any) -> None:
        super().__init__(output_dim, std_type="log", **settings)
        self.limit = limit

    def sample(self) -> Tensor:
        """Return random actions; shape (n, output_dim)."""
        return self.draw()[0].detach()

    def draw(self) -> tuple[Tensor, Tensor]:
        """Return random actions and their log-probabilities, with gradients.

        The density is that of tanh, so that it does not depend on `limit`.
        """
        normal: Any = self._distribution
        z = normal.rsample()
        # log(1 − tanh²) in a form that does not overflow.
        slope = 2.0 * (math.log(2.0) - z - nn.functional.softplus(-2.0 * z))
        return self.limit * z.tanh(), (normal.log_prob(z) - slope).sum(-1)

    def deterministic_output(self, mlp_output: Tensor) -> Tensor:
        """Return the actions of the mean; shape (n, output_dim)."""
        return self.limit * mlp_output[..., 0, :].tanh()

    def as_deterministic_output_module(self) -> nn.Module:
        """Return the module that is exported."""
        return _Squash(self.limit)


class _Squash(nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit

    def forward(self, mlp_output: Tensor) -> Tensor:
        return self._limit * torch.tanh(mlp_output[..., 0, :])
