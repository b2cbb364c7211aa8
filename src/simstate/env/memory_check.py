"""Attributes of an environment's parts outside their slots, which no snapshot has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import SnapshotError
from simstate.base.places import place_of_function, remember_place
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

_DEPTH = 3
"""Maximum depth of inspected containers."""


class Parts:
    """The objects that a user may have written: class terms, actions and commands.

    Numbers, tensors and arrays among their attributes, also within lists, dictionaries
    and networks, must keep their initial values. State in variables of a module or a
    closure is not detected.
    """

    def __init__(self, env: Env) -> None:
        self._env = env
        self._known = self._marks()

    def check(self) -> None:
        """Raise if a part has state that is in no slot."""
        for key, mark in self._marks().items():
            if self._known.get(key) != mark:
                raise self._error(*key)

    def _error(self, label: str, name: str) -> SnapshotError:
        """Return the error for an attribute of a part, which knows the part's class."""
        word = _word(name)
        error = SnapshotError(
            f"The {label} changes {name!r}, which is in no slot: no snapshot has it, "
            "and no reset or undo changes it. Keep the state of each world in "
            f"self.{word} = env.memory({word!r}, shape) and write into it, "
            f"self.{word}[:] = …; keep values that all worlds share in "
            "env.memory(…, shared=True), and create constants in __init__.",
            name=name,
        )
        kind = type(dict(self._objects())[label])
        remember_place(error, place_of_function(vars(kind).get("__init__")))
        return error

    def _marks(self) -> dict[tuple[str, str], object]:
        """Return, by part and attribute, a mark that changes with the attribute."""
        slots = worlds_of(self._env.sim).ledger.slots.values()
        known = {slot.tensor.untyped_storage().data_ptr() for slot in slots}
        return {
            (label, name): mark
            for label, part in self._objects()
            for key, value in getattr(part, "__dict__", {}).items()
            for name, mark in _leaves(key, value, known, _DEPTH)
        }

    def _objects(self) -> Iterator[tuple[str, object]]:
        for term in self._env.terms:
            if not isinstance(term.function, FunctionType):
                yield term.label, term.function
        for name, action in self._env.actions.items():
            yield f"action term {name!r}", action
        for name, command in self._env.commands.items():
            yield f"command term {name!r}", command
        for name, action in self._env.actions.mirrors.items():
            yield f"action term {name!r} on the host", action
        for name, command in self._env.commands.mirrors.items():
            yield f"command term {name!r} on the host", command


class _Mark:
    """A tensor and its version; it keeps the tensor, so that no other gets its id."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        # Inference tensors have no version: writes to them are not detected.
        self._version = -1 if tensor.is_inference() else tensor._version

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Mark)
            and self._tensor is other._tensor
            and self._version == other._version
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def _leaves(
    name: str, value: Any, slots: set[int], depth: int
) -> Iterator[tuple[str, object]]:
    """Yield the numbers in a value by name, each with a mark that changes with it."""
    if isinstance(value, Tensor):
        if value.numel() and value.untyped_storage().data_ptr() not in slots:
            yield name, _Mark(value)
    elif isinstance(value, bool | int | float | complex):
        yield name, value
    elif isinstance(value, np.ndarray) and isinstance(value.base, Tensor):
        yield from _leaves(name, value.base, slots, depth)
    elif isinstance(value, np.ndarray | np.generic):
        yield name, value.tobytes()
    elif isinstance(value, torch.nn.Module):
        tensors = {**dict(value.named_parameters()), **dict(value.named_buffers())}
        for key, tensor in tensors.items():
            yield from _leaves(f"{name}.{key}", tensor, slots, depth)
    elif depth and isinstance(value, Mapping):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(f"{name}[{key!r}]", item, slots, depth - 1)
    elif depth and isinstance(value, Sequence | Set) and not isinstance(value, str):
        yield f"{name} (length)", len(value)  # pyright: ignore[reportUnknownArgumentType]
        for i, item in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _leaves(f"{name}[{i}]", item, slots, depth - 1)


def _word(name: str) -> str:
    """Return the attribute of a path, such as `a` of "a[0].b"."""
    return name.partition("[")[0].partition(" ")[0].partition(".")[0]
