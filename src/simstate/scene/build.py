"""SceneCfg → one compiled MjModel, the index of each entity, and the default state."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from simstate.base.checks import instance_of, number
from simstate.base.errors import ModelError, warn
from simstate.base.mujoco_warnings import silenced
from simstate.base.places import written_at
from simstate.scene.cameras import add_cameras
from simstate.scene.compiler_settings import carry_compiler_settings
from simstate.scene.contact_sensors import BuiltContacts, add_contacts
from simstate.scene.entity_model import EntityModel, prepare_entity, users_of
from simstate.scene.ground import add_ground, add_sun, wants_ground
from simstate.scene.index import EntityIndex, index_entities
from simstate.scene.initial import Start, carrying, default_data, unit_quat, vector
from simstate.scene.load import compile_spec
from simstate.scene.physics_options import settle
from simstate.scene.placement import Placement
from simstate.scene.ray_layout import BuiltRays, build_rays
from simstate.scene.scene_cfg import CameraCfg, EntityCfg, InitialStateCfg, SceneCfg
from simstate.scene.terrain import Terrain, TerrainCfg
from simstate.scene.verification import Match, verify_scene
from simstate.scene.world_ties import embed_skins, world_kept

_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
NOTHING_MOVES = (
    "There is nothing to simulate: the model has neither a joint nor a mocap body, so "
    "that nothing in it can move."
)
"""Warning for a model without moving bodies."""

WHOLE_MODEL = "model"
"""Name of the only entity of a simulation that was given a compiled model."""


@dataclass(frozen=True)
class BuiltScene:
    """A compiled scene: the model, each entity's index, and the state at reset."""

    model: mujoco.MjModel
    entities: dict[str, EntityIndex]
    configs: dict[str, EntityCfg | None]
    """The configuration of each entity; None for a compiled model."""
    cameras: dict[str, CameraCfg]
    """The cameras by name; the compiled model has this one or that of `camera`."""
    contacts: dict[str, BuiltContacts]
    """The contact sensors by name."""
    rays: dict[str, BuiltRays]
    """The rays by name."""
    default: mujoco.MjData
    matches: dict[str, Match] = field(default_factory=dict[str, Match])
    """Results of comparing each entity with its file; empty for a compiled model."""


def build_scene(scene: SceneCfg | mujoco.MjModel | BuiltScene) -> BuiltScene:
    """Compile a configuration, or take a compiled model as one entity "model"."""
    if isinstance(scene, BuiltScene):
        return scene
    if isinstance(scene, mujoco.MjModel):
        return scene_of_model(scene, [WHOLE_MODEL])
    _check_scene(scene)
    parts = _prepare_entities(scene.entities)
    parent = mujoco.MjSpec()
    parent.modelname = "scene"
    settle(parent, _specs(parts), scene)
    carry_compiler_settings(parent, _specs(parts))
    ground = scene.ground
    if not isinstance(ground, bool | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"SceneCfg.ground must be True, False or None, got {ground!r}."
        )
    if ground is None:
        floating = wants_ground(part.own for part in dict.fromkeys(parts.values()))
        ground = floating and scene.terrain is None
    if ground:
        add_ground(parent)
    if scene.terrain is not None:
        Terrain(instance_of("terrain", scene.terrain, TerrainCfg)).add_to(parent)
        if not ground:
            add_sun(parent)
    starts = _attach_all(parent, parts, scene.entities)
    add_cameras(parent, scene.cameras)
    contacts = add_contacts(parent, scene.contacts)
    model = compile_spec(parent, "The scene")
    _keep_camera(model, parts)
    additions = bool(ground or scene.terrain or scene.contacts) or any(
        camera.camera is None for camera in scene.cameras.values()
    )
    placements = {name: start.placement for name, start in starts.items()}
    matches = verify_scene(scene, parts, placements, model, additions)
    if any(camera.headlight for camera in scene.cameras.values()):
        model.vis.headlight.active = 0  # a light of the scene replaces it
    _check_model(model)
    entities = index_entities(model, {name: f"{name}/" for name in parts})
    default = default_data(model, entities, starts)
    configs: dict[str, EntityCfg | None] = dict(scene.entities)
    cameras = dict(scene.cameras)
    rays = build_rays(model, scene.rays)
    return BuiltScene(
        model, entities, configs, cameras, contacts, rays, default, matches
    )


def scene_of_model(model: mujoco.MjModel, names: Sequence[str]) -> BuiltScene:
    """Return the scene of a compiled model whose elements are named "entity/element".

    If the only name is WHOLE_MODEL, that entity has all elements.
    """
    _check_model(model)
    whole = list(names) == [WHOLE_MODEL]
    prefixes = {name: "" if whole else f"{name}/" for name in names}
    entities = index_entities(model, prefixes)
    # As MuJoCo resets it: the controls are unchanged.
    start = Start(InitialStateCfg(), Placement(np.zeros(3), _IDENTITY), True, True)
    default = default_data(model, entities, dict.fromkeys(names, start))
    configs = dict.fromkeys(names, None)
    return BuiltScene(model, entities, {**configs}, {}, {}, {}, default)


def _check_model(model: mujoco.MjModel) -> None:
    """Raise if a part of the state would not be in the state tensor.

    Warn about a model in which nothing can move.
    """
    if not model.nv and not model.nmocap:
        warn(NOTHING_MOVES, UserWarning)
    sleep = mujoco.mjtEnableBit.mjENBL_SLEEP.value
    if model.opt.enableflags & sleep:
        raise ModelError(
            "The model enables sleeping, but which trees sleep is not in MuJoCo's "
            'state: a snapshot could not resume exactly. Remove sleep="enable" from '
            "its <flag>, or disable it in the scene: SceneCfg(options={'enableflags': "
            f"{model.opt.enableflags & ~sleep}}}).",
            name="sleep",
        )


def _check_scene(scene: SceneCfg) -> None:
    """Raise unless the entities and their names are valid."""
    if isinstance(scene, SceneCfg) and scene.terrain is not None and scene.ground:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "A scene has a ground plane or a terrain, not both: omit `ground`.",
            name="ground",
        )
    if not isinstance(scene, SceneCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "The scene must be a SceneCfg or a compiled MjModel, got "
            f"{type(scene).__name__}: "
            "try SceneCfg(entities={'robot': EntityCfg(model=…)}).",
            name="scene",
        )
    if not isinstance(scene.entities, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "SceneCfg.entities must be a dictionary: name → EntityCfg.", name="entities"
        )
    for name, cfg in scene.entities.items():
        if not isinstance(cfg, EntityCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"Entity {name!r} must be an EntityCfg, got {type(cfg).__name__}: try "
                f"EntityCfg(model={cfg!r}).",
                name=name,
            )
        if not name or "/" in name:
            raise ModelError(
                f"An entity's name must not be empty or contain '/', got {name!r}."
            )
        instance_of(f"init_state of {name!r}", cfg.init_state, InitialStateCfg)
        factor = cfg.soft_joint_pos_limit_factor
        what = f"soft_joint_pos_limit_factor of {name!r}"
        number(what, factor, more_than=0, at_most=1)


def _prepare_entities(entities: Mapping[str, EntityCfg]) -> dict[str, EntityModel]:
    """Return the models of the entities; entities with the same model share one."""
    prepared: dict[Hashable, EntityModel] = {}
    parts: dict[str, EntityModel] = {}
    for name, cfg in entities.items():
        key = _model_key(name, cfg)
        if key not in prepared:
            with written_at(cfg.place):
                prepared[key] = prepare_entity(name, cfg)
        parts[name] = prepared[key]
    return parts


def _model_key(name: str, cfg: EntityCfg) -> Hashable:
    """Return a key that is equal for entities whose prepared models are equal.

    Two calls of a model function may differ, so its models are not shared.
    """
    source = cfg.model
    if isinstance(source, mujoco.MjSpec):
        model: Hashable = ("spec", id(source))
    elif isinstance(source, str | Path):
        model = (type(source), source)
    else:
        model = ("entity", name)
    packages = id(cfg.packages) if cfg.packages else None
    flags = bool(cfg.com_varies), bool(cfg.keep_model_actuators), cfg.max_delay_s
    return (model, packages, id(cfg.actuators), id(cfg.collisions), flags)


def _specs(parts: Mapping[str, EntityModel]) -> dict[tuple[str, ...], mujoco.MjSpec]:
    """Return each distinct specification, by the names of the entities that use it."""
    return {tuple(names): parts[names[0]].spec for names in users_of(parts)}


def _attach_all(
    parent: mujoco.MjSpec,
    parts: Mapping[str, EntityModel],
    entities: Mapping[str, EntityCfg],
) -> dict[str, Start]:
    """Attach the entities in order; all but the last user of a model get a copy."""
    last = {id(part): name for name, part in parts.items()}
    starts: dict[str, Start] = {}
    for name, part in parts.items():
        if last[id(part)] != name:
            part = dataclasses.replace(part, spec=part.spec.copy())
        starts[name] = _attach(parent, name, part, entities[name])
    return starts


def _attach(
    parent: mujoco.MjSpec, name: str, part: EntityModel, cfg: EntityCfg
) -> Start:
    """Attach the entity under `name/`, placed so that its root starts as configured."""
    pos, quat = _placement(part.own, cfg.init_state)
    placement = Placement(pos, quat)
    embed_skins(part.spec, part.own)
    keys = [key for key in part.spec.keys if key.name == cfg.init_state.keyframe]
    states_ctrl = any(len(key.ctrl) for key in keys)
    states_act = any(len(key.act) for key in keys)
    for key in keys:
        _state_poses(key, part.own)
    frame = parent.worldbody.add_frame(pos=pos, quat=quat)
    with silenced():
        try:
            with world_kept(parent, part.spec, name, placement):
                parent.attach(part.spec, prefix=f"{name}/", frame=frame)
        except ValueError as error:
            raise ModelError(
                f"Entity {name!r} cannot be attached: {error}", name=name
            ) from error
    return Start(cfg.init_state, placement, states_ctrl, states_act)


def _state_poses(key: Any, own: mujoco.MjModel) -> None:
    """State the file's poses in a keyframe that omits them.

    MuJoCo fills in those of the placed model, but does not move stated ones.
    """
    for pose in ("qpos", "mpos", "mquat"):
        if not len(getattr(key, pose)):
            setattr(key, pose, getattr(own, f"key_{pose}")[key.id])


def _keep_camera(model: mujoco.MjModel, parts: Mapping[str, EntityModel]) -> None:
    """Keep the default camera that a file names by its id."""
    for name, part in parts.items():
        camera = int(part.own.vis.global_.cameraid)
        if camera >= 0:
            full_name = f"{name}/{part.names['ncam'][camera]}"
            model.vis.global_.cameraid = model.camera(full_name).id
            return


def _placement(
    own: mujoco.MjModel, state: InitialStateCfg
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and quaternion of the frame that carries the entire entity."""
    if state.pos is None and state.rot is None:
        return np.zeros(3), _IDENTITY  # where the model has it, to the last bit
    root_pos, root_quat = np.zeros(3), _IDENTITY
    if own.nbody > 1:
        root_pos, root_quat = own.body_pos[1].copy(), own.body_quat[1].copy()
    pos = root_pos if state.pos is None else vector(state.pos, 3, "init_state.pos")
    quat = root_quat if state.rot is None else unit_quat(state.rot, "init_state.rot")
    return carrying(root_pos, root_quat, pos, quat)
