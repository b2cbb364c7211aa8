"""EpisodeEnd: which worlds have ended, and why."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import int_list
from simstate.env.env_cfg import TerminationTermCfg
from simstate.env.terms import Term
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

DIVERGED = "diverged"
"""The termination that every environment has: a world that diverged has ended."""


class EpisodeEnd:
    """The termination terms; a world that is terminated is not truncated as well."""

    def __init__(
        self, env: Env, cfgs: dict[str, TerminationTermCfg], shipped: ModuleType
    ) -> None:
        if DIVERGED in cfgs:
            raise InvalidInputError(
                f"The name {DIVERGED!r} is taken: every environment terminates "
                "diverged worlds. Give the termination term another name."
            )
        self.terms = [
            Term("termination", name, cfg, shipped, env) for name, cfg in cfgs.items()
        ]
        self._is_time_out = [cfg.time_out for cfg in cfgs.values()]
        self.names = [*(term.name for term in self.terms), DIVERGED]
        memory = worlds_of(env.sim).ledger.memory
        self.reasons = memory(
            "env/end/reasons", (len(self.names),), torch.bool, reset=None, owner="env"
        ).tensor
        """Which terms ended a world in the last step; shape (num_envs, terms)."""
        self.terminated = memory(
            "env/end/terminated", (), torch.bool, reset=None, owner="env"
        ).tensor
        """Worlds that were terminated in the last step; shape (num_envs,)."""
        self.truncated = memory(
            "env/end/truncated", (), torch.bool, reset=None, owner="env"
        ).tensor
        """Worlds whose time was up in the last step; shape (num_envs,)."""

    def compute(self, env: Env) -> None:
        """Ask every term."""
        self.terminated.copy_(env.sim.diverged)
        self.truncated.zero_()
        self.reasons[:, -1] = env.sim.diverged
        for k, term in enumerate(self.terms):
            ended = term.tensor(env, 1)
            if ended.dtype != torch.bool:
                raise InvalidInputError(
                    f"The {term.label} must return booleans, got {ended.dtype}."
                )
            self.reasons[:, k] = ended
            kind = self.truncated if self._is_time_out[k] else self.terminated
            kind |= ended
        self.truncated &= ~self.terminated

    def clear(self, env_ids: Tensor) -> None:
        """Take it back that these worlds have ended."""
        self.reasons[env_ids] = False
        self.terminated[env_ids] = False
        self.truncated[env_ids] = False

    def log(self, env_ids: Tensor) -> dict[str, int]:
        """How many of these worlds each term ended."""
        counts = int_list(self.reasons[env_ids].sum(0))
        return dict(zip(self.names, counts, strict=True))
