"""The comparison of options, visual settings and statistics with those of the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np

from simstate.scene.array_comparison import FileDifference
from simstate.scene.physics_options import FLAGS, VISUAL, field_names

_NAME_SIZES = ("nnames", "nnames_map", "npaths", "nbuffer")
"""Sizes that depend on the names of elements, which a scene prefixes."""
_SIZES = {"memory": "narena", "nstack": "narena"}
"""The sizes of mjModel that attributes of <size> set under another name."""


def settings_differences(
    files: Mapping[str, mujoco.MjModel], scene: mujoco.MjModel, given: Collection[str]
) -> Iterator[FileDifference]:
    """Yield the options and visual settings that differ from an entity's file.

    An option that a file leaves at MuJoCo's default may have another entity's value.
    Visual settings must be those of one of the entities.
    """
    default = _empty_model()
    several = len(files) > 1
    for name in field_names(default.opt):
        ours, usual = getattr(scene.opt, name), getattr(default.opt, name)
        for entity, own in files.items():
            theirs = getattr(own.opt, name)
            if name not in given and not _follows(name, theirs, ours, usual, several):
                yield _difference(entity, f"opt.{name}", theirs, ours)
    for group in VISUAL:
        for name in field_names(getattr(default.vis, group)):
            ours = getattr(getattr(scene.vis, group), name)
            stated = {
                entity: getattr(getattr(own.vis, group), name)
                for entity, own in files.items()
            }
            if (
                stated
                and name != "cameraid"
                and not any(np.array_equal(ours, theirs) for theirs in stated.values())
            ):
                entity, theirs = next(iter(stated.items()))
                yield _difference(entity, f"vis.{group}.{name}", theirs, ours)


@lru_cache
def _empty_model() -> mujoco.MjModel:
    """Return a model without elements, whose options are MuJoCo's defaults."""
    return mujoco.MjModel.from_xml_string("<mujoco/>")


def model_differences(
    entity: str, own: mujoco.MjModel, scene: mujoco.MjModel, given: Collection[str]
) -> Iterator[FileDifference]:
    """Yield the sizes and statistics of a scene that differ from its only file."""
    free = {_SIZES.get(name, name) for name in given} | set(_NAME_SIZES)
    for name in field_names(own):
        if name.startswith(("n", "flg_")) and name not in free:
            theirs, ours = getattr(own, name), getattr(scene, name)
            if isinstance(theirs, int | bool) and theirs != ours:
                yield _difference(entity, name, theirs, ours)
    yield from statistics_differences(entity, own, scene, field_names(own.stat))


def statistics_differences(
    entity: str, own: mujoco.MjModel, scene: mujoco.MjModel, names: Collection[str]
) -> Iterator[FileDifference]:
    """Yield the named statistics of a scene that differ from a file."""
    for name in names:
        theirs, ours = getattr(own.stat, name), getattr(scene.stat, name)
        if not np.array_equal(theirs, ours):
            yield _difference(entity, f"stat.{name}", theirs, ours)


def _follows(name: str, theirs: Any, ours: Any, usual: Any, several: bool) -> bool:
    """Return True if a scene's option is consistent with a file's.

    In a scene of several files, one at the default may get another file's value.
    """
    if np.array_equal(theirs, ours):
        return True
    if not several:
        return False
    if name in FLAGS:  # each bit is an option by itself
        return not (int(theirs) ^ int(ours)) & (int(theirs) ^ int(usual))
    return bool(np.array_equal(theirs, usual))


def _difference(entity: str, field: str, theirs: Any, ours: Any) -> FileDifference:
    return FileDifference(entity, field, "", str(theirs), str(ours))
