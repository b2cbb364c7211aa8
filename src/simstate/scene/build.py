"""SceneCfg → one compiled MjModel, the index of each entity, and the default state."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from simstate.errors import InvalidInputError, ModelError, unknown_name
from simstate.scene.cameras import add_cameras
from simstate.scene.cfg import CameraCfg, EntityCfg, InitialStateCfg, SceneCfg
from simstate.scene.index import EntityIndex, index_entity
from simstate.scene.initial import Start, default_data, unit_quat, vector
from simstate.scene.load import compile_spec, prepare_entity

_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])

WHOLE_MODEL = "model"
"""The name of the one entity of a simulation that was given a compiled model."""


@dataclass(frozen=True)
class BuiltScene:
    """A compiled scene: the model, each entity's index, and the state at reset."""

    model: mujoco.MjModel
    entities: dict[str, EntityIndex]
    configs: dict[str, EntityCfg | None]
    """The configuration of each entity; None for a compiled model."""
    cameras: dict[str, CameraCfg]
    """The cameras, which the compiled model has under these names, or their own."""
    default: mujoco.MjData


def build_scene(scene: SceneCfg | mujoco.MjModel) -> BuiltScene:
    """Compile a configuration, or take a compiled model as one entity "model"."""
    if isinstance(scene, mujoco.MjModel):
        _check_model(scene)
        entities = {WHOLE_MODEL: index_entity(scene, WHOLE_MODEL, "")}
        # As MuJoCo resets it: the controls are left alone.
        start = Start(InitialStateCfg(), np.zeros(3), _NO_TURN, True, True)
        default = default_data(scene, entities, {WHOLE_MODEL: start})
        return BuiltScene(scene, entities, {WHOLE_MODEL: None}, {}, default)
    _check_scene(scene)
    specs = {name: prepare_entity(name, cfg) for name, cfg in scene.entities.items()}
    parent = mujoco.MjSpec()
    parent.modelname = "scene"
    _set_options(parent, specs, scene)
    userdata = max((int(spec.nuserdata) for spec in specs.values()), default=0)
    for spec in (parent, *specs.values()):
        spec.nuserdata = userdata
    if scene.ground:
        _add_ground(parent)
    starts = {
        name: _attach(parent, name, spec, scene.entities[name])
        for name, spec in specs.items()
    }
    add_cameras(parent, scene.cameras)
    model = compile_spec(parent, "The scene")
    _check_model(model)
    entities = {name: index_entity(model, name, f"{name}/") for name in specs}
    default = default_data(model, entities, starts)
    configs: dict[str, EntityCfg | None] = dict(scene.entities)
    return BuiltScene(model, entities, configs, dict(scene.cameras), default)


def _check_model(model: mujoco.MjModel) -> None:
    """Raise for what would keep a part of the state outside the state tensor."""
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP.value:
        raise ModelError(
            "The model has sleeping enabled, and which trees sleep is not in MuJoCo's "
            "state: a snapshot could not go on exactly. Switch the flag off."
        )


def _check_scene(scene: SceneCfg) -> None:
    """Raise unless entities are what they should be, and their names usable."""
    if not isinstance(scene, SceneCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            "A simulation takes a SceneCfg or a compiled MjModel, got "
            f"{type(scene).__name__}: "
            "try SceneCfg(entities={'robot': EntityCfg(model=…)})."
        )
    if not isinstance(scene.entities, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError("SceneCfg.entities must be a dictionary: name → EntityCfg.")
    for name, cfg in scene.entities.items():
        if not isinstance(cfg, EntityCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"Entity {name!r} must be an EntityCfg, got {type(cfg).__name__}: try "
                f"EntityCfg(model={cfg!r})."
            )
        if not name or "/" in name:
            raise ModelError(
                f"An entity's name is not empty and has no '/' in it, got {name!r}."
            )
        if not 0.0 < cfg.soft_joint_pos_limit_factor <= 1.0:
            raise InvalidInputError(
                f"soft_joint_pos_limit_factor of {name!r} must be in (0, 1], got "
                f"{cfg.soft_joint_pos_limit_factor}."
            )


def _set_options(
    parent: mujoco.MjSpec, specs: dict[str, mujoco.MjSpec], scene: SceneCfg
) -> None:
    """Settle each physics option: the scene's word, else the entities', else MuJoCo's.

    The children get the result too, so that attaching them meets no conflict.
    """
    given = dict(scene.options)
    if scene.timestep is not None:
        given["timestep"] = scene.timestep
    if scene.gravity is not None:
        given["gravity"] = scene.gravity
    defaults = mujoco.MjSpec().option
    names = [name for name in dir(defaults) if not name.startswith("_")]
    for name in given:
        if name not in names:
            raise unknown_name("physics option", name, names)
    for name in names:
        value: Any = given[name] if name in given else _entities_value(name, specs)
        if value is None:
            value = getattr(defaults, name)
        for spec in (parent, *specs.values()):
            _set_option(spec, name, value)
    if not np.isfinite(parent.option.gravity).all():
        raise InvalidInputError(f"gravity must be finite, got {parent.option.gravity}.")
    if not parent.option.timestep > 0:
        raise InvalidInputError(f"timestep must be > 0, got {parent.option.timestep}.")


def _set_option(spec: mujoco.MjSpec, name: str, value: Any) -> None:
    try:
        setattr(spec.option, name, value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Physics option {name!r} cannot be {value!r}: it must be like its "
            f"default, {getattr(mujoco.MjSpec().option, name)!r}; for a choice give "
            "the number of MuJoCo's enum, such as mujoco.mjtIntegrator.mjINT_RK4.value."
        ) from error


def _entities_value(name: str, specs: dict[str, mujoco.MjSpec]) -> Any:
    """What the entities' models state for an option away from its default, or None."""
    default = getattr(mujoco.MjSpec().option, name)
    stated: dict[str, Any] = {}
    for entity, spec in specs.items():
        value = getattr(spec.option, name)
        if not np.array_equal(value, default):
            stated[entity] = copy.copy(value)
    values = list(stated.values())
    if any(not np.array_equal(value, values[0]) for value in values[1:]):
        said = ", ".join(f"{entity}: {value}" for entity, value in stated.items())
        where = name if name in ("timestep", "gravity") else f"options[{name!r}]"
        raise ModelError(
            f"The entities' models state different values of {name} ({said}). "
            f"Settle it with SceneCfg.{where}."
        )
    return values[0] if values else None


def _add_ground(parent: mujoco.MjSpec) -> None:
    """A checkered plane at z = 0 and a sun to see it by, as bright everywhere."""
    parent.add_texture(
        name="ground",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.28, 0.33, 0.38],
        rgb2=[0.22, 0.26, 0.30],
        width=256,
        height=256,
    )
    material = parent.add_material(name="ground", texrepeat=[5, 5], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "ground"
    parent.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 0.05],
        material="ground",
    )
    parent.worldbody.add_light(
        name="sun",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0, 0, 4],
        dir=[0.2, 0.1, -1],
    )


def _attach(
    parent: mujoco.MjSpec, name: str, spec: mujoco.MjSpec, cfg: EntityCfg
) -> Start:
    """Attach the entity under `name/`, so placed that its root starts as configured."""
    pos, quat = _placement(name, spec, cfg.init_state)
    keys = [key for key in spec.keys if key.name == cfg.init_state.keyframe]
    states_ctrl = any(len(key.ctrl) for key in keys)
    states_act = any(len(key.act) for key in keys)
    frame = parent.worldbody.add_frame(pos=pos, quat=quat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            parent.attach(spec, prefix=f"{name}/", frame=frame)
        except ValueError as error:
            raise ModelError(f"Entity {name!r} cannot be attached: {error}") from error
    return Start(cfg.init_state, pos, quat, states_ctrl, states_act)


def _placement(
    name: str, spec: mujoco.MjSpec, state: InitialStateCfg
) -> tuple[np.ndarray, np.ndarray]:
    """Position and quaternion of the frame that carries the whole entity."""
    own = compile_spec(spec, f"The model of entity {name!r}")
    root_pos, root_quat = np.zeros(3), _NO_TURN
    if own.nbody > 1:
        root_pos, root_quat = own.body_pos[1].copy(), own.body_quat[1].copy()
    pos = root_pos if state.pos is None else vector(state.pos, 3, "init_state.pos")
    quat = root_quat if state.rot is None else unit_quat(state.rot, "init_state.rot")
    # frame ∘ root = the wanted pose
    inverse, turn, shift = np.zeros(4), np.zeros(4), np.zeros(3)
    mujoco.mju_negQuat(inverse, root_quat)
    mujoco.mju_mulQuat(turn, quat, inverse)
    mujoco.mju_rotVecQuat(shift, root_pos, turn)
    return pos - shift, turn
