"""The elements of a model: kinds, default names and matching of names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import mujoco

from simstate.base.errors import unknown_name
from simstate.scene.model_fields import KINDS

NAMED_KINDS = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
    "site": "sites",
    "camera": "cameras",
    "light": "lights",
    "tendon": "tendons",
    "actuator": "actuators",
    "sensor": "sensors",
    "equality": "equalities",
    "pair": "pairs",
    "exclude": "excludes",
    "key": "keys",
    "flex": "flexes",
    "mesh": "meshes",
    "skin": "skins",
    "hfield": "hfields",
    "texture": "textures",
    "material": "materials",
    "numeric": "numerics",
    "text": "texts",
    "tuple": "tuples",
}
"""Kinds of elements that are named if they have no name, and their lists in MjSpec."""

OBJECTS: dict[str, mujoco.mjtObj] = {
    kind: getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    for kind in (
        "body", "joint", "geom", "site", "camera", "light", "tendon", "actuator",
        "sensor", "equality", "pair", "material",
    )
}  # fmt: skip
"""MuJoCo's object type of each kind."""

_SHORT = {"jnt": "joint", "dof": "joint", "cam": "camera", "eq": "equality",
          "mat": "material"}  # fmt: skip

OBJECTS_OF_FIELDS = {
    prefix: OBJECTS[_SHORT.get(prefix, prefix)]
    for prefix in (
        "body", "geom", "site", "cam", "light", "jnt", "dof", "actuator", "tendon",
        "pair", "eq", "mat",
    )
}  # fmt: skip
"""Prefixes of a model's fields, and the elements that they belong to."""


def name_elements(spec: mujoco.MjSpec) -> dict[str, list[str]]:
    """Name each unnamed element of a compiled specification `<kind>_<id>`.

    Return the names of the elements in the order of their ids, by size.
    """
    names: dict[str, list[str]] = {}
    for size, kind in KINDS.items():
        if kind not in NAMED_KINDS:
            continue
        elements: list[Any] = sorted(
            getattr(spec, NAMED_KINDS[kind]), key=lambda element: element.id
        )
        names[size] = all_named([element.name for element in elements], kind)
        for element, name in zip(elements, names[size], strict=True):
            if not element.name:
                element.name = name
    return names


def all_named(names: Sequence[str], kind: str, first: int = 0) -> list[str]:
    """Return the names with empty ones replaced by `<kind>_<id>`, ids from `first`."""
    taken, found = set(names), list[str]()
    for k, name in enumerate(names, first):
        if not name:
            name = unused_name(f"{kind}_{k}", taken)
            taken.add(name)
        found.append(name)
    return found


def unused_name(name: str, taken: set[str]) -> str:
    """Return the name, with underscores appended until it is unused."""
    while name in taken:
        name += "_"
    return name


def matching(
    patterns: str | Sequence[str],
    names: Sequence[str],
    kind: str,
    preserve_order: bool = False,
) -> list[str]:
    """Return the names that match a pattern in full, each once.

    They are in the order of `names`, or of the patterns if `preserve_order`. Raise if
    a pattern matches nothing.
    """
    if not isinstance(patterns, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise unknown_name(f"{kind} (a name or a regex)", str(patterns), names)
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise unknown_name(f"{kind} (a name or a regex)", str(pattern), names)
    known = frozenset(names)
    found: dict[str, None] = {}
    for pattern in patterns:
        # An exact name has precedence: names may contain special characters of a regex.
        hits = [pattern] if pattern in known else _hits(pattern, names, kind)
        if not hits:
            raise unknown_name(kind, pattern, names)
        found.update(dict.fromkeys(hits))
    if preserve_order:
        return list(found)
    return [name for name in names if name in found]


def _hits(pattern: str, names: Sequence[str], kind: str) -> list[str]:
    """Return the names that a regular expression matches in full."""
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise unknown_name(f"{kind} (invalid regex: {error})", pattern, names) from None
    return [name for name in names if matches(name)]
