"""The command terms of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.env.commands import Command, CommandCfg
from simstate.env.terms import made
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class CommandTerms(dict[str, Command]):
    """The commands by name; an unknown name raises with suggestions."""

    def __init__(self, env: Env, cfgs: Mapping[str, CommandCfg]) -> None:
        super().__init__(
            {name: made("command", name, cfg, env) for name, cfg in cfgs.items()}
        )
        self._ledger = worlds_of(env.sim).ledger

    def __missing__(self, name: str) -> Command:
        raise unknown_name("command", name, self)

    def due(self, step_dt: float) -> dict[str, Tensor]:
        """The worlds whose time is up, by name as in `advance`; (num_envs,)."""
        return {
            f"command {name}": command.due(step_dt) for name, command in self.items()
        }

    def advance(self, due: dict[str, Tensor]) -> None:
        """Measure how well they were followed, and draw anew where it is time."""
        for name, command in self.items():
            with self._ledger.naming(f"command/{name}"):
                command.measure()
                command.advance(due[f"command {name}"])

    def reset(self, env_ids: Tensor) -> None:
        """Draw for worlds that begin an episode."""
        for name, command in self.items():
            with self._ledger.naming(f"command/{name}"):
                command.reset(env_ids)

    def log(self, env_ids: Tensor, steps: Tensor) -> dict[str, float]:
        """The mean error over the episodes that end in these worlds, of `steps`."""
        return {
            name: float((command.error_sum[env_ids] / steps).mean())
            for name, command in self.items()
        }
