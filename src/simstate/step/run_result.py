"""Runs: worlds that advance to a time, or to the terminal event that comes first."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class RunResult:
    """The end of a run; tensors have the shape (num_envs,)."""

    time: Tensor
    """The time that each world has reached [s]."""
    ended: Tensor
    """Worlds that a terminal event ended; bool."""
    happened: dict[str, Tensor]
    """Number of times that each event happened in the run, by its name."""
