"""Differences between two models or tasks, by element."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from simstate.engine.engine import model_value
from simstate.scene.element_names import OBJECTS_OF_FIELDS
from simstate.state.fingerprint import changed_fields, differences, fingerprint

_NONE = "absent"
_MOST = 5
"""Maximum number of elements to list for each field."""


def setting_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differing settings of a task, with both values; 30 equals 30.0."""
    old, new = (
        {path: json.dumps(value, ensure_ascii=False) for path, value in values.items()}
        for values in (then, now)
    )
    return [
        f"{path} is {new.get(path, _NONE)}, it was {old.get(path, _NONE)}"
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
        and (path not in old or path not in new or then[path] != now[path])
    ]


def model_changes(then: mujoco.MjModel, now: mujoco.MjModel) -> list[str]:
    """Return descriptions of the differences that affect the motion."""
    ours, theirs = fingerprint(now), fingerprint(then)
    if not differences(ours, theirs):
        return []
    changed = changed_fields(ours, theirs)
    same_size = ours["sizes"] == theirs["sizes"] and ours["names"] == theirs["names"]
    if not same_size or not changed:
        return differences(ours, theirs)
    return [text for name in changed for text in _changes_of(name, then, now)]


def _changes_of(name: str, then: mujoco.MjModel, now: mujoco.MjModel) -> list[str]:
    """Return descriptions of the elements in which a field differs."""
    old, new = (np.asarray(model_value(model, name)) for model in (then, now))
    if old.shape != new.shape:
        return [f"{name} has the shape {new.shape}, it had {old.shape}"]
    places = np.argwhere(~((old == new) | ((old != old) & (new != new))))
    lines = [
        f"{name}{_element(now, name, place)} is {new[tuple(place)]}, "
        f"it was {old[tuple(place)]}"
        for place in places[:_MOST]
    ]
    if len(places) > _MOST:
        lines.append(f"{len(places) - _MOST} more of {name}")
    return lines


def _element(model: mujoco.MjModel, name: str, place: np.ndarray) -> str:
    """Return the name of the element at an index, and its component."""
    if not len(place):
        return ""
    rest = "".join(f"[{k}]" for k in place[1:])
    kind = name.partition("_")[0]
    if kind not in OBJECTS_OF_FIELDS:
        return f"[{place[0]}]{rest}"
    row = int(model.dof_jntid[place[0]] if kind == "dof" else place[0])
    found = mujoco.mj_id2name(model, OBJECTS_OF_FIELDS[kind].value, row)
    return f" of {found or row}{rest}"
