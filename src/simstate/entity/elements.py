"""Names, counts and finders of an entity's elements, as attributes of Entity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from simstate.base.errors import UnknownNameError, unknown_name
from simstate.scene import EntityIndex
from simstate.scene.element_names import matching
from simstate.scene.index import Elements

Patterns = str | Sequence[str]
"""A name or a regular expression, or several."""


class _Indexed(Protocol):
    @property
    def index(self) -> EntityIndex: ...


class ElementAttribute:
    """A read-only attribute that follows from the addresses of an entity's elements.

    The class that has it declares its type: a type checker then takes it for a plain
    attribute, as the protocols of other simulators require.
    """

    def __init__(self, compute: Callable[[EntityIndex], object]) -> None:
        self._compute = compute

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, entity: _Indexed | None, owner: type) -> object:
        return self if entity is None else self._compute(entity.index)

    def __set__(self, entity: _Indexed, value: object) -> NoReturn:
        raise AttributeError(f"{self._name} of an entity is not writable.")


class Finder:
    """Return ids and names of the elements that match a regular expression in full.

    In the entity's order, or in that of the expressions if `preserve_order`. An
    expression that matches nothing raises.
    """

    def __init__(self, index: EntityIndex, elements: Elements, kind: str) -> None:
        self._index, self._elements, self._kind = index, elements, kind

    def __call__(
        self, names: Patterns, preserve_order: bool = False
    ) -> tuple[list[int], list[str]]:
        """Return positions and names of what matches, each once."""
        elements, kind = self._elements, self._kind
        try:
            found = matching(names, elements.names, kind, preserve_order)
        except UnknownNameError as error:
            name = error.name or ""
            others = _kinds_with(self._index, name)
            if not others:
                raise
            hint = f" It is the name of {' and '.join(others)}."
            raise unknown_name(kind, name, elements.names, hint) from None
        return [elements.places[name] for name in found], found


def names_of(elements: str) -> Any:
    """Declare the names of the elements of one kind."""
    return ElementAttribute(lambda index: getattr(index, elements).names)


def count_of(elements: str) -> Any:
    """Declare the number of the elements of one kind."""
    return ElementAttribute(lambda index: len(getattr(index, elements)))


def finder_of(elements: str, kind: str) -> Any:
    """Declare the search for elements of one kind, which `kind` names in errors."""
    return ElementAttribute(lambda index: Finder(index, getattr(index, elements), kind))


def _kinds_with(index: EntityIndex, name: str) -> list[str]:
    """Return the kinds of element that have a name, each with its method."""
    kinds = {
        "a body (find_bodies)": index.bodies,
        "a joint (find_joints)": index.joints,
        "a ball joint (find_ball_joints)": index.ball_joints,
        "a free joint": index.free_joints,
        "a geom (find_geoms)": index.geoms,
        "a site (find_sites)": index.sites,
        "a tendon (find_tendons)": index.tendons,
        "an actuator (find_actuators)": index.actuators,
        "a sensor (find_sensors)": index.sensors,
    }
    return [kind for kind, elements in kinds.items() if name in elements.names]
