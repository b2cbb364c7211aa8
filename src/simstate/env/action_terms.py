"""The action terms of an environment: an action has their columns side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.env.actions import Action, ActionCfg
from simstate.env.contracts import checked
from simstate.env.host_read import host_read_of
from simstate.env.terms import made
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class ActionTerms(dict[str, Action]):
    """The action terms by name, and the last two actions."""

    def __init__(self, env: Env, cfgs: Mapping[str, ActionCfg]) -> None:
        super().__init__(
            {name: made("action", name, cfg, env) for name, cfg in cfgs.items()}
        )
        self._env = env
        self._ledger = worlds_of(env.sim).ledger
        self.columns = [
            f"{term}/{name}" for term, action in self.items() for name in action.names
        ]
        """What each column of an action drives, as "term/joint"."""
        self.contracts = [
            contract
            for term, action in self.items()
            for contract in checked(
                f"action term {term!r}", action.contracts, action.dim
            )
        ]
        """Unit, axes and point of each column, as it is given."""
        self.last = self._memory("action")
        """The last action as it was given, zero after a reset; float32."""
        self.previous = self._memory("previous_action")
        """The one before; zero after a reset; float32."""
        self.acting = [
            name for name, action in self.items() if action.acts_every_substep
        ]
        """The terms that act in every substep."""

    def _memory(self, name: str) -> Tensor:
        return self._ledger.memory(
            f"env/{name}", (len(self.columns),), torch.float32, owner="env"
        ).tensor

    def apply(self, action: Tensor) -> None:
        """Remember the action, and let each term write its part of it."""
        self.previous.copy_(self.last)
        self.last.copy_(action)
        self.write(action, self)

    def write(self, action: Tensor, names: Iterable[str]) -> None:
        """Let some terms write their parts of an action."""
        values = action.to(self._env.sim.dtype)
        first = 0
        for name, term in self.items():
            if name in names:
                with self._ledger.naming(f"action/{name}"):
                    term.apply(values[:, first : first + term.dim])
            first += term.dim

    def reset(self, env_ids: Tensor) -> None:
        """Tell the terms of worlds that begin an episode."""
        for name, term in self.items():
            with self._ledger.naming(f"action/{name}"):
                term.reset(env_ids)

    def check(self, action: object, ignored: Tensor | None) -> Tensor:
        """The action as float32, if it is one finite row for each world.

        In the `ignored` worlds it is zero, whatever was given.
        """
        env = self._env
        rows = action_rows(action, self.columns, env.num_envs, env.device)
        if ignored is not None:
            rows = rows.index_fill(0, ignored, 0.0)
        host_read = host_read_of(env)
        host_read.raise_if(
            ~torch.isfinite(rows).all(), lambda: not_finite(rows, self.columns)
        )
        host_read.check()
        return rows


def action_rows(
    action: object, columns: Sequence[str], num_envs: int, device: torch.device
) -> Tensor:
    """The action as float32, if it is a row for each world and has these columns."""
    want = (num_envs, len(columns))
    if not isinstance(action, Tensor):
        raise InvalidInputError(
            f"action must be a tensor of shape {want}, got "
            f"{type(action).__name__}: pass torch.as_tensor(action)."
        )
    if tuple(action.shape) != want:
        raise ShapeError(
            f"action must have shape {want}, a row for each world and a column "
            f"for each of {', '.join(columns)}; got "
            f"{tuple(action.shape)}. Nothing was done.",
            name="action",
            shape=action.shape,
        )
    fits = action.device == device and action.dtype.is_floating_point
    if not fits or action.layout != torch.strided:
        raise InvalidInputError(
            f"action must be floating point on {device}, got {action.dtype} "
            f"on {action.device}, {action.layout}. Nothing was done.",
            name="action",
        )
    return action.detach().to(torch.float32)


def not_finite(action: Tensor, columns: Sequence[str]) -> InvalidInputError:
    """The error of an action that has a NaN or an infinity: the first of them."""
    world, column = (int(i) for i in (~torch.isfinite(action)).nonzero()[0])
    return InvalidInputError(
        f"action must be finite, got {float(action[world, column])} for "
        f"{columns[column]} in world {world}. Nothing was done.",
        name="action",
        worlds=[world],
    )
