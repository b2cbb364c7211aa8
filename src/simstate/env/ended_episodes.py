"""EndedEpisodes: the episodes that ended in one step, world by world."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from simstate.env.env_cfg import EndKind


@dataclass(frozen=True, kw_only=True)
class EndedEpisodes:
    """Rewards, metrics and reasons of the episodes that ended in a step.

    Every tensor has one entry for each of the n worlds in `env_ids`.
    """

    env_ids: Tensor
    """The worlds, ascending, int64; shape (n,)."""
    length: Tensor
    """Environment steps of the episode, int64; shape (n,)."""
    returns: Tensor
    """Sum of the rewards; shape (n,)."""
    rewards: dict[str, Tensor]
    """Part of each reward term in it, weighted; shape (n,) each."""
    metrics: dict[str, Tensor]
    """Value of each metric; shape (n,) each."""
    reasons: dict[str, Tensor]
    """True where a termination term ended the world; bool, shape (n,) each."""
    kinds: dict[EndKind, Tensor]
    """True where the end was a failure, a success, …; bool, shape (n,) each."""

    def reason(self, row: int) -> str:
        """Return the names of the terms that ended a world, joined by commas."""
        return ",".join(name for name, ended in self.reasons.items() if ended[row])
