"""What the parts of an environment keep besides their slots, which no snapshot has."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING

from torch import Tensor

from simstate.errors import SnapshotError

if TYPE_CHECKING:
    from simstate.env.env import Env


class Parts:
    """The objects that a user may have written: class terms, actions and commands."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._known = {
            (label, name): (id(value), value._version)
            for label, name, value in self._own_tensors()
        }

    def check(self) -> None:
        """Raise if a part remembers something of each world that is in no slot.

        Tensors that it made and has not changed since are its constants.
        """
        for label, name, value in self._own_tensors():
            if self._known.get((label, name)) != (id(value), value._version):
                raise SnapshotError(
                    f"The {label} remembers {name!r} of each world in a tensor of its "
                    "own, so that no snapshot has it and no reset changes it. Make it "
                    f"with env.memory({name!r}, {tuple(value.shape[1:])})."
                )

    def _own_tensors(self) -> Iterator[tuple[str, str, Tensor]]:
        """Tensors with a row for each world that lie in no slot's memory."""
        slots = self._env.sim.internals.ledger.slots.values()
        known = {slot.tensor.untyped_storage().data_ptr() for slot in slots}
        for label, part in self._objects():
            for name, value in getattr(part, "__dict__", {}).items():
                is_per_world = (
                    isinstance(value, Tensor)
                    and value.ndim > 0
                    and value.shape[0] == self._env.num_envs
                )
                if is_per_world and value.untyped_storage().data_ptr() not in known:
                    yield label, name, value

    def _objects(self) -> Iterator[tuple[str, object]]:
        for term in self._env.terms:
            if not isinstance(term.function, FunctionType):
                yield term.label, term.function
        for name, action in self._env.actions.items():
            yield f"action term {name!r}", action
        for name, command in self._env.commands.items():
            yield f"command term {name!r}", command
