"""Declared values as NumPy arrays, for computations on the host.

A call of NumPy's takes a fraction of the time of one of torch's, which matters for few
worlds. The arrays share the memory of the tensors and cannot be written.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.engine import FIELDS
from simstate.world.declared import Declared, DeclaredSet, Reader
from simstate.world.worlds import Worlds

Array = np.ndarray[Any, Any]
S = TypeVar("S", bound=DeclaredSet[Any])


def read_only(values: Tensor) -> Array:
    """Return the memory of a tensor on the host as an array that cannot be written."""
    array = values.detach().numpy()
    array.flags.writeable = False
    return array


class _Kept(NamedTuple):
    """An array and the state that it belongs to."""

    token: int | None
    """The token of freshness; None: live memory, the same array in every state."""
    array: Array
    tensor: Tensor | None
    """The tensor that has the memory; None: no tensor has it."""


class DeclaredArray:
    """A declared value, read as an array at the current state."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._name = declared.name
        self._needs = declared.needs
        self._follows = declared.follows

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._declared
        reader: Reader = owner._reader
        fresh = reader.fresh
        fresh.ensure(self._needs, reader, self._name)
        kept: _Kept | None = owner._kept.get(self._name)
        if kept is not None:
            token = kept.token
            if token is None:
                return kept.array
            if token == fresh.tokens[self._follows]:
                tensor = kept.tensor
                if tensor is None or tensor is self._declared.current(reader):
                    return kept.array
        kept = owner._kept[self._name] = self._read(reader)
        return kept.array

    def __set__(self, owner: Any, value: object) -> None:
        raise self._declared.written(owner._reader)

    def _read(self, reader: Reader) -> _Kept:
        declared = self._declared
        token = reader.fresh.tokens[self._follows]
        array = reader.compute_array(declared)
        if array is not None:
            array.flags.writeable = False
            return _Kept(token, array, None)
        tensor = declared.current(reader)
        memo = reader.memo.get(self._name)
        is_live = declared.is_view and memo is not None and memo.version is None
        return _Kept(None if is_live else token, read_only(tensor), tensor)


def as_arrays(source: S) -> S:
    """Return an object with the same declared values, which reads them as arrays."""
    kind: type[S] = _array_class(type(source))
    copy = object.__new__(kind)
    vars(copy).update(vars(source), _kept={})
    return copy


@cache
def _array_class(kind: type) -> Any:
    """Return a subclass whose declared values are arrays."""
    names = [name for base in kind.__mro__ for name in vars(base)]
    found = {name: getattr(kind, name) for name in dict.fromkeys(names)}
    body: dict[str, Any] = {
        name: DeclaredArray(value)
        for name, value in found.items()
        if isinstance(value, Declared)
    }
    known = tuple(body)

    def read(self: Any, name: str) -> Any:
        """Return a value by name."""
        if name not in known:
            raise unknown_name(f"value of {self._reader.name}", name, known)
        return getattr(self, name)

    return type(f"{kind.__name__}Arrays", (kind,), {**body, "read": read})


class _FieldArray:
    """A raw field, read as an array at the current state."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        tensor = owner._worlds.read_field(self._name)
        kept = owner._kept.get(self._name)
        if kept is None or kept[0] is not tensor:
            kept = owner._kept[self._name] = (tensor, read_only(tensor))
        return kept[1]


class _FieldArraysBase:
    """The memory of `field_arrays`."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._kept: dict[str, tuple[Tensor, Array]] = {}


_FieldArrays = type(
    "FieldArrays", (_FieldArraysBase,), {name: _FieldArray(name) for name in FIELDS}
)


def field_arrays(worlds: Worlds) -> Any:
    """Return MuJoCo's fields for all worlds as attributes that are arrays."""
    return _FieldArrays(worlds)
