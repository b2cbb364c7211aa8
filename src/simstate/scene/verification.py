"""Verification that a compiled scene contains the models of its files.

It runs whenever a scene is built. Differences that the configuration does not request
raise an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from simstate.base.errors import SceneMismatchError
from simstate.scene.array_comparison import ArrayComparison, FileDifference, Requests
from simstate.scene.entity_model import EntityModel, users_of
from simstate.scene.model_fields import AT_START
from simstate.scene.model_rows import ModelRows, element_ids, element_names
from simstate.scene.placement import Placement
from simstate.scene.scene_cfg import EntityCfg, SceneCfg
from simstate.scene.settings_comparison import (
    model_differences,
    settings_differences,
    statistics_differences,
)

_CAMERA_FIELDS = ("cam_resolution", "cam_fovy", "cam_sensorsize", "cam_intrinsic")
"""Arrays that `CameraCfg(camera=…)` sets."""
_JOINT_FIELDS = ("dof_armature", "dof_frictionloss", "dof_M0", *AT_START)
"""Arrays that an actuator's armature and friction change."""
_COM_FIELDS = (
    "body_simple", "dof_simplenum", "M_rownnz", "M_colind", "D_rownnz", "D_colind",
    "D_diag", "mapM2D", "mapD2M", "B_rownnz", "B_colind",
)  # fmt: skip
"""Arrays that depend on MuJoCo's shortcuts for bodies with their COM at the origin."""
_DELAY_FIELDS = ("actuator_history", "actuator_historyadr")
"""Arrays of the control histories of actuators."""
_MASK_FIELDS = (
    "body_contype", "body_conaffinity", "body_bvhadr", "body_bvhnum", "bvh_aabb",
    "bvh_child", "bvh_depth", "bvh_nodeid",
)  # fmt: skip
"""Arrays that the compiler derives from the collision masks of geoms."""


class Match(NamedTuple):
    """The result of a comparison without differences."""

    arrays: int
    """Number of arrays of the entity's model that were compared."""


def verify_scene(
    scene: SceneCfg,
    parts: Mapping[str, EntityModel],
    placements: Mapping[str, Placement],
    model: mujoco.MjModel,
    additions: bool,
) -> dict[str, Match]:
    """Compare a compiled scene with each entity's model; raise if they differ.

    `additions` is True if the scene has more than its entities.
    """
    files = {users[0]: parts[users[0]].configured for users in users_of(parts)}
    options = {"timestep": scene.timestep, "gravity": scene.gravity, **scene.options}
    given = [name for name, value in options.items() if value is not None]
    check = _Raise(alone=len(parts) == 1 and not additions)
    check(settings_differences(files, model, given))
    ids = element_ids(model)
    matches: dict[str, Match] = {}
    for users in users_of(parts):
        part = parts[users[0]]
        if part.configured is not part.own:
            check(_configured_differences(users[0], part, scene.entities[users[0]]))
        placed = {
            k: placements[name]
            for k, name in enumerate(users)
            if not placements[name].is_identity
        }
        alone = len(parts) == 1 and not additions and not placed
        if alone:
            sized = [*given, *scene.sizes]
            check(model_differences(users[0], part.configured, model, sized))
        elif len(parts) == 1:
            stated = _stated_statistics(part.spec)
            check(statistics_differences(users[0], part.own, model, stated))
        names = part.names
        if part.configured is not part.own:
            names = element_names(part.configured)
        prefixes = [f"{name}/" for name in users]
        rows = ModelRows(part.configured, names, model, ids, prefixes)
        requests = Requests(_requested(scene, users, names, given), alone=alone)
        comparison = ArrayComparison(rows, names, requests, placed)
        check(comparison.differences())
        matches |= dict.fromkeys(users, Match(comparison.compared))
    return matches


class _Raise:
    """Raise an error for the first of some differences."""

    def __init__(self, alone: bool) -> None:
        self._alone = alone

    def __call__(self, differences: Iterable[FileDifference]) -> None:
        found = list(itertools.islice(differences, 1000))
        if not found:
            return
        first = found[0]
        what = " of ".join(filter(None, (first.field, first.element)))
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        fix = (
            "To run this file without a scene, use "
            "Simulation(mujoco.MjModel.from_xml_path(…))."
        )
        raise SceneMismatchError(
            f"Entity {first.entity!r} differs from its file in {what}{more}: "
            f"{first.in_scene} in the scene, {first.in_file} in the file. "
            f"MuJoCo does not carry it over to a scene. {fix}",
            name=first.field,
            element=first.element,
            in_file=first.in_file,
            in_scene=first.in_scene,
        )


def _configured_differences(
    name: str, part: EntityModel, cfg: EntityCfg
) -> Iterable[FileDifference]:
    """Compare the configured model with the file, except what is requested."""
    fields = ["jnt_actuatorid", "tendon_actuatorid", "tree_sleep_policy"]
    for actuator in cfg.actuators:
        if actuator.armature is not None or actuator.friction is not None:
            fields += _JOINT_FIELDS
    if cfg.com_varies:
        fields += _COM_FIELDS
    if cfg.max_delay_s is not None:
        fields += _DELAY_FIELDS
    for collision in cfg.collisions:
        fields += [f"geom_{name}" for name in collision.stated]
        fields += _MASK_FIELDS
    ids = element_ids(part.configured)
    dropped: frozenset[str] = frozenset()
    if not cfg.keep_model_actuators:
        dropped = frozenset({"nactuator"})
        ids["nactuator"] = {}  # those added may have the same names
    rows = ModelRows(part.own, part.names, part.configured, ids, [""])
    requests = Requests(dict.fromkeys(fields, None), dropped)
    for each in ArrayComparison(rows, part.names, requests).differences():
        yield each._replace(entity=name)


def _requested(
    scene: SceneCfg,
    users: Sequence[str],
    names: Mapping[str, Sequence[str]],
    given: Sequence[str],
) -> dict[str, frozenset[int] | None]:
    """Return the arrays that the scene's cameras and options may change."""
    cameras: set[int] = set()
    for cfg in scene.cameras.values():
        entity, _, camera = (cfg.camera or "").partition("/")
        if entity in users and camera in names["ncam"]:
            cameras.add(list(names["ncam"]).index(camera))
    requested: dict[str, frozenset[int] | None] = {}
    if cameras:
        requested |= dict.fromkeys(_CAMERA_FIELDS, frozenset(cameras))
    if given:
        requested["efm0_L"] = None  # depends on the time step
    return requested


def _stated_statistics(spec: mujoco.MjSpec) -> list[str]:
    """Return the names of the statistics that a file states."""
    names = ("center", "extent", "meaninertia", "meanmass", "meansize")
    return [name for name in names if not np.isnan(getattr(spec.stat, name)).any()]
