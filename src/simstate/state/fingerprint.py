"""Fingerprint of a compiled model, short enough to be stored with a snapshot."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from simstate.scene.element_names import OBJECTS

Fingerprint = dict[str, dict[str, Any]]
"""`sizes` by name, `names` of the elements by kind, and a digest of each `field`."""

_PARTS = ("sizes", "names", "fields")
_SIZES = (
    "nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "neq", "nmocap",
    "nuserdata", "nhistory", "npluginstate",
)  # fmt: skip
_NAMED = {"body": "nbody", "joint": "njnt", "actuator": "nactuator", "equality": "neq"}

_READINGS = ("sensor_", "cam_")
_LOOKS = ("light_", "mat_", "tex_", "skin_", "mesh_texcoord", "mesh_normal")
_TEXTS = ("text_", "name")
_ENDINGS = ("_rgba", "_matid", "_user", "pathadr")
"""Prefixes and suffixes of fields on which motion does not depend: sensors, cameras,
colours and names. Fields of a sensor's history, which is state, have a size."""


def fingerprint(model: mujoco.MjModel) -> Fingerprint:
    """Sizes, names and a digest of every array and option that motion depends on."""
    names = {
        kind: [
            mujoco.mj_id2name(model, OBJECTS[kind].value, i) or ""
            for i in range(int(getattr(model, size)))
        ]
        for kind, size in _NAMED.items()
    }
    fields = {
        prefix + name: _digest(value)
        for prefix, owner in (("", model), ("opt.", model.opt))
        for name in dir(owner)
        if not name.startswith(("_", *_READINGS, *_LOOKS, *_TEXTS))
        if not name.endswith(_ENDINGS)
        for value in [getattr(owner, name)]
        if isinstance(value, np.ndarray) or (prefix and not callable(value))
    }
    sizes = {name: int(getattr(model, name)) for name in _SIZES}
    return {"sizes": sizes, "names": names, "fields": fields}


_known: weakref.WeakKeyDictionary[mujoco.MjModel, Fingerprint]
_known = weakref.WeakKeyDictionary()


def simulated_fingerprint(model: mujoco.MjModel) -> Fingerprint:
    """Return the fingerprint of a simulation's model, computed once; not to be written.

    Engines run a copy of the model, so that later changes to it do not count.
    """
    found = _known.get(model)
    if found is None:
        found = _known[model] = fingerprint(model)
    return found


def check_fingerprint(found: Any) -> None:
    """Raise ValueError unless `differences` can compare it."""
    parts = [found[key] for key in _PARTS] if _has_parts(found) else []
    if not parts or not all(isinstance(names, list) for names in parts[1].values()):
        raise ValueError(f"a model's fingerprint has {', '.join(_PARTS)} by name")


def _has_parts(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(found.get(key), dict)  # pyright: ignore[reportUnknownMemberType]
        for key in _PARTS
    )


def differences(ours: Fingerprint, theirs: Mapping[str, Any]) -> list[str]:
    """Return the differences between two models in words; empty if they are equal."""
    found: list[str] = []
    for name, size in ours["sizes"].items():
        other = theirs["sizes"].get(name)
        if other != size:
            found.append(f"{name} is {size} here, {other} there")
    for kind, names in ours["names"].items():
        others = theirs["names"].get(kind, [])
        here = [name for name in names if name not in others]
        there = [name for name in others if name not in names]
        if here or there:
            found.append(f"{kind} names only here {here}, only there {there}")
        elif names != others:
            found.append(f"the order of the {kind} names")
    changed = changed_fields(ours, theirs)
    if changed and not found:
        found.append(f"the values of {', '.join(changed)}")
    return found


def changed_fields(ours: Fingerprint, theirs: Mapping[str, Any]) -> list[str]:
    """Return the fields of two models, which both have, whose values differ."""
    return [
        name
        for name, digest in ours["fields"].items()
        if theirs["fields"].get(name, digest) != digest
    ]


def _digest(value: Any) -> str:
    data = np.ascontiguousarray(value).tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
