"""Stepper: the interface of everything that advances worlds, and its statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from simstate.engine import Stage
from simstate.world.calls import Scope


class Stepper(Protocol):
    """Advances worlds; a simulation holds one.

    To change how worlds advance, wrap or replace the stepper. `advance` returns flags
    of `simstate.engine.Seen`: 0 if nothing went wrong.
    """

    @property
    def scope(self) -> Scope:
        """The memory that a step may change: "step", or "run" if actions may write."""
        ...

    @property
    def current_through(self) -> Stage:
        """The last stage whose values are current after a step or a part of one."""
        ...

    @property
    def can_cut(self) -> bool:
        """True if a step may be taken in parts."""
        ...

    @property
    def chooses_steps(self) -> bool:
        """True if the scheme chooses the length of its steps."""
        ...

    @property
    def has_dense_output(self) -> bool:
        """True if states within a step may be interpolated between its ends."""
        ...

    @property
    def settles(self) -> bool:
        """True if `advance` calls `Divergence.settle`, which restores worlds."""
        ...

    @property
    def evaluations(self) -> Tensor | None:
        """Number of evaluations so far, where they are counted; (num_envs,)."""
        ...

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        ...

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the worlds of a mask once, each by at most `limit` [s]; (num_envs,).

        Returns:
            The time that each advanced [s], and the mask of worlds that could not.
        """
        ...

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Advance each of these worlds by exactly h [s], in one step; shape (n,)."""
        ...

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        ...

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that the last step could not advance; (num_envs,).

        None: there are none.
        """
        ...


def union(*masks: Tensor | None) -> Tensor | None:
    """Return the union of masks of worlds; None if there is no mask."""
    given = [mask for mask in masks if mask is not None]
    return torch.stack(given).any(dim=0) if given else None


@dataclass(frozen=True)
class StepCounts:
    """Number of evaluations and steps so far, by world; shape (num_envs,) each."""

    evaluations: Tensor
    """Number of evaluations of the dynamics."""
    accepted: Tensor
    """Number of steps taken."""
    rejected: Tensor
    """Number of steps that an adaptive scheme rejected."""
