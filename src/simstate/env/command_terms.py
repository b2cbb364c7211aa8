"""The command terms of an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.env.backend import backend_of
from simstate.env.commands import Command, CommandCfg
from simstate.env.host_view import CommandArrays, HostView, is_either, view_of
from simstate.env.terms import made
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class _Views(dict[str, Any]):
    """Views of commands by name; an unknown name raises with suggestions."""

    def __missing__(self, name: str) -> Any:
        raise unknown_name("command", name, self)


class CommandTerms(dict[str, Command]):
    """The commands by name; an unknown name raises with suggestions."""

    def __init__(self, env: Env, cfgs: Mapping[str, CommandCfg]) -> None:
        super().__init__(
            {name: made("command", name, cfg, env) for name, cfg in cfgs.items()}
        )
        self._ledger = worlds_of(env.sim).ledger
        self._array = backend_of(env).array
        self.views: Mapping[str, Any] = self
        """The commands as terms of the view read them."""
        self._stepped: Mapping[str, Any] = self
        """The objects that a step calls."""
        if view_of(env) is not env:
            self._stepped = {n: self._stepping(view_of(env), n) for n in self}
            self.views = _Views(
                {
                    name: CommandArrays(part) if part is self[name] else part
                    for name, part in self._stepped.items()
                }
            )

    def _stepping(self, view: HostView, name: str) -> Command:
        """Return a command that computes with arrays, where it can."""
        command = self[name]
        if not is_either(type(command)):
            return command
        return view.mirror(command, draw=command.draw)  # worlds draw with tensors

    def __missing__(self, name: str) -> Command:
        raise unknown_name("command", name, self)

    def due(self, step_dt: float) -> dict[str, Any]:
        """The worlds whose time is up, by name as in `advance`; (num_envs,)."""
        found: dict[str, Any] = {}
        for name, command in self._stepped.items():
            found[f"command {name}"] = _masked(self._array, command.due(step_dt))
        return found

    def advance(self, due: dict[str, Tensor]) -> None:
        """Measure how well they were followed, and draw anew where it is time."""
        for name, command in self._stepped.items():
            self._ledger.scope = f"command/{name}"
            command.measure()
            command.advance(due[f"command {name}"])
        self._ledger.scope = ""

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


def _masked(array: Callable[[Tensor], Any], mask: Any) -> Any:
    """A mask as an array of the backend."""
    return array(mask) if isinstance(mask, Tensor) else mask
