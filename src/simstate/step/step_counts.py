"""Statistics of an integrator."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class StepCounts:
    """Work that an integrator has done so far, by world; each of shape (num_envs,)."""

    evaluations: Tensor
    """Number of evaluations of the dynamics."""
    accepted: Tensor
    """Number of steps taken."""
    rejected: Tensor
    """Number of steps that an adaptive scheme rejected."""
