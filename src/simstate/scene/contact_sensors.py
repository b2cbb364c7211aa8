"""Adding the contact sensors of a configuration to a scene's specification.

They are MuJoCo's contact sensors. Each is between one element and one body, subtree or
geom. If the other side consists of several, an element has a sensor for each, and
`sim.contacts` combines them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco

from simstate.base.checks import instance_of, number, one_of, whole_number
from simstate.base.errors import (
    ModelError,
    UnknownNameError,
    unknown_name,
)
from simstate.scene.element_names import matching
from simstate.scene.scene_cfg import ContactCfg

GROUND = "ground"
"""Name of everything that belongs to the world body."""
SELF = "self"
"""Name for contacts among the elements of the named side."""

_Side = tuple[mujoco.mjtObj, str]
"""One side of a contact as MuJoCo's sensors specify it: kind and name of an object."""

_ANY: _Side = (mujoco.mjtObj.mjOBJ_UNKNOWN, "")
_BODY, _SUBTREE = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY
_GEOM = mujoco.mjtObj.mjOBJ_GEOM
_STRONGEST_FIRST, _NET = 2, 3
"""Values of MuJoCo's `reduce`: maxforce and netforce."""

_FIELDS = mujoco.mjtConDataField
_NET_DATA = (
    _FIELDS.mjCONDATA_FOUND, _FIELDS.mjCONDATA_FORCE, _FIELDS.mjCONDATA_TORQUE,
    _FIELDS.mjCONDATA_POS,
)  # fmt: skip
_SINGLE_DATA = (
    _FIELDS.mjCONDATA_FOUND, _FIELDS.mjCONDATA_FORCE, _FIELDS.mjCONDATA_TORQUE,
    _FIELDS.mjCONDATA_DIST, _FIELDS.mjCONDATA_POS, _FIELDS.mjCONDATA_NORMAL,
    _FIELDS.mjCONDATA_TANGENT,
)  # fmt: skip


@dataclass(frozen=True)
class BuiltContacts:
    """The sensors of one ContactCfg in the compiled model."""

    cfg: ContactCfg
    names: tuple[str, ...]
    """Names of the elements, "entity/name", or pairs "entity/one & entity/other"."""
    net: tuple[tuple[str, ...], ...]
    """Sensors of the net forces of each element, one for each other side: count, force,
    torque, position."""
    single: tuple[tuple[str, ...], ...]
    """Sensors of the strongest contacts of each element: found, force, torque,
    distance, position, normal, tangent."""


def add_contacts(
    spec: mujoco.MjSpec, contacts: Mapping[str, ContactCfg]
) -> dict[str, BuiltContacts]:
    """Add MuJoCo's sensors for each configuration."""
    tree = _Tree(spec) if contacts else None
    built: dict[str, BuiltContacts] = {}
    for name, cfg in contacts.items():
        assert tree is not None
        _check(name, cfg)
        built[name] = _add(spec, tree, name, cfg)
    return built


class _Tree:
    """The bodies of a specification: names, geoms and children."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self.spec = spec
        self.bodies = [body.name for body in spec.bodies if body.name != "world"]
        self.geoms = [geom.name for geom in spec.geoms if geom.name]
        self.body_of = {geom.name: geom.parent.name for geom in spec.geoms}
        self.children: dict[str, list[str]] = {"world": []}
        for body in spec.bodies:
            if body.name != "world":
                self.children.setdefault(body.name, [])
                self.children.setdefault(body.parent.name, []).append(body.name)

    def subtree(self, body: str) -> set[str]:
        """Return the body and all its descendants."""
        found = {body}
        for child in self.children[body]:
            found |= self.subtree(child)
        return found

    def cover(self, bodies: set[str], top: str = "world") -> Iterable[_Side]:
        """Yield the fewest subtrees and bodies that make up a set of bodies."""
        if self.subtree(top) <= bodies:
            yield (_SUBTREE, top)
            return
        if top in bodies:
            yield (_BODY, top)
        for child in self.children[top]:
            yield from self.cover(bodies, child)


def _add(spec: mujoco.MjSpec, tree: _Tree, name: str, cfg: ContactCfg) -> BuiltContacts:
    """Add the sensors of net forces first: adjacent ones are read together."""
    names = elements = _elements(tree, cfg)
    if cfg.against == SELF:
        pairs = _pairs(tree, name, cfg, elements)
        names = [f"{one} & {other}" for one, other in pairs]
        elements = [one for one, _ in pairs]
        side = _GEOM if cfg.kind == "geom" else _BODY
        others = [[(side, other)] for _, other in pairs]
    else:
        others = [list(_others(tree, name, cfg, element)) for element in elements]
    kind = {"body": _BODY, "subtree": _SUBTREE, "geom": _GEOM}[cfg.kind]
    parts: list[tuple[tuple[str, ...], ...]] = []
    for part, data, reduce, num in (
        ("net", _NET_DATA, _NET, 1),
        ("single", _SINGLE_DATA, _STRONGEST_FIRST, cfg.strongest),
    ):
        bits = sum(1 << bit.value for bit in data)
        sensors: list[tuple[str, ...]] = []
        for k, (element, sides) in enumerate(zip(elements, others, strict=True)):
            # Without a slash in its name, the sensor belongs to no entity.
            labels = [f"contacts:{name}:{part}:{k}:{j}" for j in range(len(sides))]
            for sensor, (other_kind, other) in zip(labels, sides, strict=True):
                spec.add_sensor(
                    name=sensor,
                    type=mujoco.mjtSensor.mjSENS_CONTACT,
                    objtype=kind,
                    objname=element,
                    reftype=other_kind,
                    refname=other,
                    intprm=[bits, reduce, num],
                )
            sensors.append(tuple(labels))
        parts.append(tuple(sensors))
    return BuiltContacts(cfg, tuple(names), *parts)


def _elements(tree: _Tree, cfg: ContactCfg) -> list[str]:
    """Return the names of the elements `of`."""
    if cfg.kind == "geom":
        return matching(cfg.of, tree.geoms, "geom of the scene")
    return matching(cfg.of, tree.bodies, "body of the scene")


def _others(tree: _Tree, name: str, cfg: ContactCfg, element: str) -> Iterable[_Side]:
    """Return the sides against which one element is measured."""
    own = tree.subtree(element) if cfg.kind == "subtree" else set[str]()
    if cfg.against is None:
        # MuJoCo would count a contact within a subtree, with an arbitrary sign.
        everything = tree.subtree("world")
        return tree.cover(everything - own) if own else (_ANY,)
    patterns = [cfg.against] if isinstance(cfg.against, str) else list(cfg.against)
    bodies, geoms = _named(tree, patterns)
    inside = own & bodies | {g for g in geoms if tree.body_of[g] in own}
    if inside:
        raise ModelError(
            f"Contact sensor {name!r} is of the subtree of {element!r} against "
            f"{sorted(inside)[0]!r}, which is part of it: contacts within a subtree "
            'are not counted. Use kind="body" for forces between its bodies.',
            name=name,
        )
    sides = list(tree.cover(bodies))
    return [*sides, *((_GEOM, geom) for geom in geoms)]


def _pairs(
    tree: _Tree, name: str, cfg: ContactCfg, elements: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs of named elements that can collide, each once."""
    if cfg.kind == "subtree":
        raise ModelError(
            f'Contact sensor {name!r} is against "self", so its kind must be '
            '"body" or "geom": subtrees may contain one another.',
            name=name,
        )
    rules = _CollisionRules(tree)
    geoms: dict[str, list[Any]] = {element: [] for element in elements}
    for geom in tree.spec.geoms:
        key = geom.name if cfg.kind == "geom" else geom.parent.name
        if key in geoms:
            geoms[key].append(geom)
    found = [
        (one, other)
        for one, other in itertools.combinations(elements, 2)
        if any(
            rules.can_collide(a, b)
            for a, b in itertools.product(geoms[one], geoms[other])
        )
    ]
    if not found:
        raise ModelError(
            f'Contact sensor {name!r} is of {cfg.of!r} against "self", but no two of '
            "these elements can collide in the model.",
            name=name,
        )
    return found


class _CollisionRules:
    """MuJoCo's rules for which geoms of a specification collide."""

    def __init__(self, tree: _Tree) -> None:
        spec = tree.spec
        self._pairs = {frozenset((p.geomname1, p.geomname2)) for p in spec.pairs}
        self._excluded = {frozenset((x.bodyname1, x.bodyname2)) for x in spec.excludes}
        self._filters_parents = not (
            spec.option.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT.value
        )
        self._weld = {"world": "world"}
        """Topmost body that each body is welded to, as `body_weldid`."""
        self._weld_parent = {"world": "world"}
        for body in spec.bodies[1:]:  # parents before their children
            above = self._weld[body.parent.name]
            self._weld[body.name] = body.name if body.joints else above
            self._weld_parent.setdefault(self._weld[body.name], above)

    def can_collide(self, one: Any, other: Any) -> bool:
        """Return True if contacts between two geoms are not filtered out."""
        if frozenset((one.name, other.name)) in self._pairs:
            return True
        bodies = one.parent.name, other.parent.name
        if frozenset(bodies) in self._excluded or self._is_filtered(*bodies):
            return False
        return bool(one.contype & other.conaffinity or other.contype & one.conaffinity)

    def _is_filtered(self, one: str, other: str) -> bool:
        """Return True for bodies welded to each other, and for parent and child.

        Bodies welded to the world collide with their children.
        """
        one, other = self._weld[one], self._weld[other]
        if one == other:
            return True
        if not self._filters_parents or "world" in (one, other):
            return False
        return one == self._weld_parent[other] or other == self._weld_parent[one]


def _named(tree: _Tree, patterns: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the bodies that match patterns, and geoms for patterns without a body."""
    bodies: set[str] = set()
    geoms: list[str] = []
    for pattern in patterns:
        if pattern == GROUND:
            bodies.add("world")
            continue
        found = _match(pattern, tree.bodies)
        if found:
            bodies.update(found)
            continue
        found = _match(pattern, tree.geoms)
        if not found:
            known = list(dict.fromkeys([GROUND, *tree.bodies, *tree.geoms]))
            raise unknown_name("body or geom of the scene", str(pattern), known)
        geoms += found
    return bodies, list(dict.fromkeys(geoms))


def _match(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that match a pattern, possibly none."""
    try:
        return matching(pattern, names, "name")
    except UnknownNameError:
        return []


def _check(name: str, cfg: ContactCfg) -> None:
    """Raise unless a configuration is valid."""
    instance_of(f"contacts[{name!r}]", cfg, ContactCfg)
    one_of(f"kind of contact sensor {name!r}", cfg.kind, ("body", "subtree", "geom"))
    whole_number(f"strongest of contact sensor {name!r}", cfg.strongest, 1)
    whole_number(f"history of contact sensor {name!r}", cfg.history, 0)
    number(f"threshold of contact sensor {name!r}", cfg.threshold, at_least=0, unit="N")
