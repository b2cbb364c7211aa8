"""SceneEntityCfg: an entity of the scene and some of its elements, by name."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

import numpy as np
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.base.ids import Index, as_index
from simstate.entity import Entity, SceneEntities
from simstate.world.worlds import worlds_of

Patterns = str | Sequence[str] | None
Params = ParamSpec("Params")
Result = TypeVar("Result")

_KINDS = {
    "joint": "joints",
    "body": "bodies",
    "geom": "geoms",
    "site": "sites",
    "actuator": "actuators",
    "sensor": "sensors",
    "tendon": "tendons",
}
"""Kinds of elements that can be chosen, with their plural in Entity's `find_…`."""


@dataclass(frozen=True)
class SceneEntityCfg:
    """An entity of the scene, and those of its elements that a term uses.

    Names are regular expressions that match in full; None is all elements of a kind.
    Terms get it resolved, so that `joint_ids` and the like index the entity's tensors.
    Where all elements are meant, they also do so unresolved.
    """

    name: str
    joint_names: Patterns = None
    body_names: Patterns = None
    geom_names: Patterns = None
    site_names: Patterns = None
    actuator_names: Patterns = None
    sensor_names: Patterns = None
    tendon_names: Patterns = None
    preserve_order: bool = False
    """Keep the order of the names given, instead of the entity's."""
    _found: dict[str, tuple[Index, tuple[str, ...]]] = field(
        default_factory=dict[str, tuple[Index, tuple[str, ...]]],
        init=False,
        repr=False,
        compare=False,
    )
    """Ids and names by kind; empty until it is resolved."""

    @property
    def is_resolved(self) -> bool:
        """True if its ids are resolved."""
        return bool(self._found)

    def resolve(self, scene: SceneEntities) -> SceneEntityCfg:
        """Return a copy with ids; raise for a name that matches nothing."""
        return self.resolve_in(scene[self.name])

    def resolve_in(self, entity: Entity) -> SceneEntityCfg:
        """Return a copy with ids in this entity."""
        resolved = dataclasses.replace(self)
        device = worlds_of(entity).device
        for kind, plural in _KINDS.items():
            patterns = getattr(self, f"{kind}_names")
            if patterns is None:
                names = list(getattr(entity, f"{kind}_names"))
                ids = list(range(len(names)))
            else:
                find = getattr(entity, f"find_{plural}")
                ids, names = find(patterns, self.preserve_order)
            resolved._found[kind] = (as_index(ids, device), tuple(names))
        sensors = resolved._found["sensor"][1]
        columns = as_index(_sensor_columns(entity, sensors), device)
        resolved._found["sensor column"] = (columns, ())
        return resolved

    def on_host(self) -> SceneEntityCfg:
        """Return a copy whose ids index NumPy arrays."""
        resolved = dataclasses.replace(self)
        for kind, (ids, names) in self._found.items():
            index: Any = ids.numpy() if isinstance(ids, Tensor) else ids
            resolved._found[kind] = (index, names)
        return resolved

    @cached_property
    def joint_ids(self) -> Index:
        """The joints, as columns of `joint_pos`."""
        return self._ids("joint")

    @cached_property
    def body_ids(self) -> Index:
        """The links, as columns of `body_link_pos_w`."""
        return self._ids("body")

    @cached_property
    def geom_ids(self) -> Index:
        """The geoms, as columns of `geom_pos_w`."""
        return self._ids("geom")

    @cached_property
    def site_ids(self) -> Index:
        """The sites, as columns of `site_pos_w`."""
        return self._ids("site")

    @cached_property
    def actuator_ids(self) -> Index:
        """The actuators, as columns of `actuator_force`."""
        return self._ids("actuator")

    @cached_property
    def tendon_ids(self) -> Index:
        """The tendons, as columns of `tendon_len`."""
        return self._ids("tendon")

    @cached_property
    def sensor_columns(self) -> Index:
        """The sensors, as columns of `sim.data.sensordata`."""
        return self._of("sensor column")[0]

    def names_of(self, kind: str) -> tuple[str, ...]:
        """The names of the chosen "joint", "site" …, in the order of the ids."""
        return self._of(kind)[1]

    def _ids(self, kind: str) -> Index:
        if not self.is_resolved and getattr(self, f"{kind}_names") is None:
            return slice(None)  # all of them, in whichever scene
        return self._of(kind)[0]

    def _of(self, kind: str) -> tuple[Index, tuple[str, ...]]:
        if not self.is_resolved:
            raise InvalidInputError(
                f"{self} has no ids yet: pass it in a term's params, or use "
                "resolve(env.scene).",
                name=self.name,
            )
        return self._found[kind]


def resolves_entities(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Resolve entities without ids, so that a term can also be called directly.

    The first argument of the term is the environment. In calls of a step, entities are
    resolved already.
    """
    signature = inspect.signature(function)
    defaults = {
        name
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.default, SceneEntityCfg)
    }

    @functools.wraps(function)
    def called(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        values = kwargs.values()
        if defaults <= kwargs.keys() and not any(map(_has_no_ids, (*args, *values))):
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        view: Any = next(iter(bound.arguments.values()))
        for name, value in bound.arguments.items():
            if _has_no_ids(value):
                resolved = value.resolve(view.scene)
                is_host = getattr(view, "xp", None) is np
                bound.arguments[name] = resolved.on_host() if is_host else resolved
        return function(*bound.args, **bound.kwargs)

    called.resolving = (called, function)  # pyright: ignore[reportAttributeAccessIssue]
    return called


def without_resolving(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return the function below `resolves_entities`, for calls with resolved entities.

    A user's decorator around it is kept.
    """
    wrapper, inner = getattr(function, "resolving", (None, function))
    return inner if wrapper is function else function


def _has_no_ids(value: object) -> bool:
    return isinstance(value, SceneEntityCfg) and not value.is_resolved


def exactly_one(
    label: str, kind: str, name: str, found: tuple[list[int], list[str]]
) -> int:
    """Return the id of the only element that a setting, `name`, has found."""
    ids, names = found
    if len(ids) != 1:
        raise InvalidInputError(
            f"The {label} is for one {kind}, but its name matches {listed(names)}.",
            name=name,
        )
    return ids[0]


def _sensor_columns(entity: Entity, names: Sequence[str]) -> list[int]:
    """Return the columns of sensordata of some sensors, in the order of the names."""
    model = worlds_of(entity).model
    columns: list[int] = []
    for name in names:
        sensor = entity.index.sensors.ids[entity.sensor_names.index(name)]
        first = int(model.sensor_adr[sensor])
        columns += range(first, first + int(model.sensor_dim[sensor]))
    return columns
