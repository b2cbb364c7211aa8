"""References of a model to its world body, preserved while it is attached to a scene.

MuJoCo's attach drops or rejects elements that name the world body of the attached
model. During the attach, references therefore name a stand-in body, and afterwards the
world again: MuJoCo attaches by reference, so the elements remain the same objects.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from simstate.base.errors import ModelError
from simstate.scene.element_names import unused_name
from simstate.scene.placement import Placement

WORLD = "world"

_BODIES = (mujoco.mjtObj.mjOBJ_BODY.value, mujoco.mjtObj.mjOBJ_XBODY.value)
_ON_BODY = (mujoco.mjtTrn.mjTRN_BODY.value,)
_WELD = mujoco.mjtEq.mjEQ_WELD.value

_REFERENCES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "cameras": (("targetbody", None),),
    "lights": (("targetbody", None),),
    "excludes": (("bodyname1", None), ("bodyname2", None)),
    "equalities": (("name1", "objtype"), ("name2", "objtype")),
    "actuators": (("target", "trntype"),),
    "sensors": (("objname", "objtype"), ("refname", "reftype")),
    "tuples": (("objname", "objtype"),),
    "flexes": (("vertbody", None), ("nodebody", None)),
    "skins": (("bodyname", None),),
}
"""Attributes of elements that may name a body, and those with the object's type."""

_FIXED = {
    "cameras": "camera", "lights": "light", "flexes": "flex", "skins": "skin",
}  # fmt: skip
"""Elements whose reference to the world cannot move along with a placed entity."""


@contextmanager
def world_kept(
    parent: mujoco.MjSpec, spec: mujoco.MjSpec, entity: str, placement: Placement
) -> Generator[None]:
    """Preserve references to the world while a specification is attached to a scene.

    Anchors and relative poses in the world move along with a placed entity; raise for
    its other references.
    """
    stand_in = _StandIn(spec)
    for kind, references in _REFERENCES.items():
        for element in getattr(spec, kind):
            tied = [stand_in.replace(element, *each) for each in references]
            if placement.is_identity:
                continue
            if kind == "equalities":
                _move_along(element, placement, *tied)
            elif any(tied) and kind in _FIXED:
                raise ModelError(
                    f"Entity {entity!r} is placed by init_state, but {_FIXED[kind]} "
                    f"{element.name!r} of its model refers to the world body, which "
                    "does not move with it. Omit pos and rot, or let it refer to a "
                    "body of the model."
                )
    yield
    stand_in.restore(parent)


class _StandIn:
    """A body that references to the world name during an attach."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self._spec = spec
        self._body: Any = None
        self._replaced: list[tuple[Any, str, list[bool] | None]] = []

    def replace(self, element: Any, attribute: str, typed: str | None) -> bool:
        """Return True if an attribute named the world; it then names the stand-in."""
        value = getattr(element, attribute)
        kinds: Any = getattr(element, typed) if typed else _BODIES[0]
        bodies = _ON_BODY if typed == "trntype" else _BODIES
        if isinstance(value, str):
            if value != WORLD or int(kinds) not in bodies:
                return False
            setattr(element, attribute, self._name())
            self._replaced.append((element, attribute, None))
            return True
        names = [str(name) for name in value]
        if WORLD not in names:
            return False
        of_bodies = [k in bodies for k in kinds] if typed else [True] * len(names)
        world = [n == WORLD and b for n, b in zip(names, of_bodies, strict=True)]
        mixed = [self._name() if w else n for n, w in zip(names, world, strict=True)]
        setattr(element, attribute, mixed)
        self._replaced.append((element, attribute, world))
        return any(world)

    def restore(self, parent: mujoco.MjSpec) -> None:
        """Restore the references to the world, and delete the stand-in."""
        for element, attribute, world in self._replaced:
            if world is None:
                setattr(element, attribute, WORLD)
                continue
            names = [str(name) for name in getattr(element, attribute)]
            names = [WORLD if w else n for n, w in zip(names, world, strict=True)]
            setattr(element, attribute, names)
        if self._body is not None:
            parent.delete(self._body)

    def _name(self) -> str:
        if self._body is None:
            taken = {body.name for body in self._spec.bodies}
            name = unused_name("world_stand_in", taken)
            self._body = self._spec.worldbody.add_body(name=name)
        return self._body.name


def _move_along(equality: Any, placement: Placement, first: bool, second: bool) -> None:
    """Move an anchor or a relative pose in the world along with the entity.

    `first` and `second` state which of the two bodies is the world; an unnamed second
    body is the world too. MuJoCo computes a relative pose that is not stated.
    """
    second = second or not equality.name2
    if int(equality.objtype) not in _BODIES or not (first or second):
        return
    data = np.array(equality.data)
    kind = int(equality.type)
    moved = placement.moved_equality(kind, data, first, second)
    if kind == _WELD and not data[6:10].any():
        moved[3:10] = data[3:10]
    equality.data = moved


def embed_skins(spec: mujoco.MjSpec, own: Any) -> None:
    """Embed skin files that have a bone on the world body in the specification.

    MuJoCo prefixes the bodies that a file names, including the world, and then does not
    find it. `own` is the compiled model, which has the contents of the file.
    """
    for skin in spec.skins:
        k = skin.id
        bones = slice(own.skin_boneadr[k], own.skin_boneadr[k] + own.skin_bonenum[k])
        bodies = own.skin_bonebodyid[bones]
        if not skin.file or bodies.all():
            continue
        vertices = slice(own.skin_vertadr[k], own.skin_vertadr[k] + own.skin_vertnum[k])
        faces = slice(own.skin_faceadr[k], own.skin_faceadr[k] + own.skin_facenum[k])
        skin.vert = own.skin_vert[vertices].flatten()
        skin.face = own.skin_face[faces].flatten()
        if own.skin_texcoordadr[k] >= 0:
            first = own.skin_texcoordadr[k]
            coordinates = own.skin_texcoord[first : first + own.skin_vertnum[k]]
            skin.texcoord = coordinates.flatten()
        names = {body.id: body.name for body in spec.bodies}
        skin.bodyname = [names[body] for body in bodies]
        skin.bindpos = own.skin_bonebindpos[bones].flatten()
        skin.bindquat = own.skin_bonebindquat[bones].flatten()
        firsts, counts = own.skin_bonevertadr[bones], own.skin_bonevertnum[bones]
        ends = firsts + counts
        pairs = list(zip(firsts, ends, strict=True))
        skin.vertid = [own.skin_bonevertid[a:b].tolist() for a, b in pairs]
        skin.vertweight = [own.skin_bonevertweight[a:b].tolist() for a, b in pairs]
        skin.file = ""
