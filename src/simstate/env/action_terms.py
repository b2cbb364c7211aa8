"""The action terms of an environment: an action has their columns side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.env.actions import Action, ActionCfg
from simstate.env.backend import backend_of
from simstate.env.contracts import checked
from simstate.env.host_view import is_either, view_of
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
        """The last action as it was given, zero after a reset."""
        self.previous = self._memory("previous_action")
        """The one before; zero after a reset."""
        self.acting = [
            name for name, action in self.items() if action.acts_every_substep
        ]
        """The terms that act in every substep."""
        self._backend = backend = backend_of(env)
        self._arrays = backend.array(self.last), backend.array(self.previous)
        self._applied = {
            name: self._apply_of(name, term) for name, term in self.items()
        }
        """The call that applies each term's columns, given as an array."""

    def _memory(self, name: str) -> Tensor:
        return self._ledger.memory(
            f"env/{name}", (len(self.columns),), self._env.dtype, owner="env"
        ).tensor

    def _apply_of(self, name: str, term: Action) -> Callable[[Any], None]:
        view, backend = view_of(self._env), self._backend
        if view is self._env:
            return term.apply
        if is_either(type(term)):
            return view.mirror(term).apply
        return lambda values: term.apply(backend.tensor(values))

    def apply(self, action: Any) -> None:
        """Remember the action, an array, and let each term write its part of it."""
        last, previous = self._arrays
        previous[:] = last
        last[:] = action
        self.write(action, self)

    def write(self, action: Any, names: Iterable[str]) -> None:
        """Let some terms write their parts of an action."""
        cast = self._backend.cast(action, self._env.sim.dtype)
        ledger, first = self._ledger, 0
        for name, term in self.items():
            stop = first + len(term.names)
            if name in names:
                ledger.scope = f"action/{name}"
                values = action if term.keeps_dtype else cast
                self._applied[name](values[:, first:stop])
            first = stop
        ledger.scope = ""

    def reset(self, env_ids: Tensor) -> None:
        """Tell the terms of worlds that begin an episode."""
        for name, term in self.items():
            with self._ledger.naming(f"action/{name}"):
                term.reset(env_ids)

    def check(self, action: object, ignored: Tensor | None) -> Any:
        """The action as an array, if it is one finite row for each world.

        In the `ignored` worlds it is zero, whatever was given.
        """
        backend = self._backend
        rows = action_rows(action, self.columns, self.last)
        if ignored is not None:
            rows = rows.index_fill(0, ignored, 0.0)
        values = backend.array(rows)
        backend.check_finite(values, None, lambda _: not_finite(rows, self.columns))
        backend.check()
        return values


def action_rows(action: object, columns: Sequence[str], like: Tensor) -> Tensor:
    """The action, if it has the shape of `like` and is on its device.

    It is float32, or has the dtype of `like`.
    """
    want = tuple(like.shape)
    if not isinstance(action, Tensor):
        raise InvalidInputError(
            f"action must be a tensor of shape {want}, got "
            f"{type(action).__name__}: pass torch.as_tensor(action)."
        )
    if action.shape != like.shape:
        raise ShapeError(
            f"action must have shape {want}, a row for each world and a column "
            f"for each of {', '.join(columns)}; got "
            f"{tuple(action.shape)}. Nothing was done.",
            name="action",
            shape=action.shape,
        )
    fits = action.device == like.device and action.dtype.is_floating_point
    if not fits or action.layout != torch.strided:
        raise InvalidInputError(
            f"action must be floating point on {like.device}, got {action.dtype} "
            f"on {action.device}, {action.layout}. Nothing was done.",
            name="action",
        )
    if action.dtype == torch.float32:  # a term may need to know that it was
        return action.detach()
    return action.detach().to(like.dtype)


def not_finite(action: Tensor, columns: Sequence[str]) -> InvalidInputError:
    """The error of an action that has a NaN or an infinity: the first of them."""
    world, column = (int(i) for i in (~torch.isfinite(action)).nonzero()[0])
    return InvalidInputError(
        f"action must be finite, got {float(action[world, column])} for "
        f"{columns[column]} in world {world}. Nothing was done.",
        name="action",
        worlds=[world],
    )
