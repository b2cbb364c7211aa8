"""Mapping by name whose error for an unknown name lists the known ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, TypeVar

from simstate.base.errors import UnknownNameError, unknown_name

_T = TypeVar("_T")


class Named(Mapping[str, _T]):
    """Objects of one kind by name, in the order in which they were declared."""

    kind: ClassVar[str]
    """Noun for one object in messages."""
    how_to_declare: ClassVar[str] = ""
    """Hint for an empty collection; `{name}` is replaced by the requested name."""

    def __init__(self, things: Mapping[str, _T]) -> None:
        self._things = dict(things)

    def __getitem__(self, name: str) -> _T:
        if isinstance(name, str) and name in self._things:  # pyright: ignore[reportUnnecessaryIsInstance]
            return self._things[name]
        if not self._things and self.how_to_declare:
            raise UnknownNameError(
                f"The scene has no {self.kind} {name!r}, and no other one: "
                + self.how_to_declare.format(name=repr(name)),
                name=str(name),
            )
        raise unknown_name(self.kind, name, self._things)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._things) or 'none'})"

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)
