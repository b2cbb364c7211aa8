"""Event terms: functions `(env, env_ids, **params)` that change worlds.

`env_ids` is an int64 tensor. What they draw comes from the worlds' own streams, and a
parameter is always drawn about the model's own value, so events do not pile up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import mujoco
import torch
from torch import Tensor

from simstate.engine.base import model_value
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.env.parameter_events import randomize_parameter
from simstate.env.random_poses import (
    DIRECTIONS,
    drawn_directions,
    from_euler,
    spans_of,
)
from simstate.env.scene_needs import moves_com
from simstate.errors import InvalidInputError, listed, unknown_name
from simstate.math import quaternion
from simstate.scene.objects import OBJECTS

if TYPE_CHECKING:
    from simstate.env.env import Env

__all__ = [
    "push_by_setting_velocity",
    "randomize_com",
    "randomize_delay",
    "randomize_encoder_bias",
    "randomize_friction",
    "randomize_gains",
    "randomize_joints",
    "randomize_mass",
    "randomize_parameter",
    "reset_joints",
    "reset_root_state",
]

Operation = Literal["scale", "add", "set"]
_NO_RANGE: Mapping[str, Range] = {}


@resolves_entities
def reset_root_state(
    env: Env,
    env_ids: Tensor,
    pose_range: Mapping[str, Range] = _NO_RANGE,
    velocity_range: Mapping[str, Range] = _NO_RANGE,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Place the root link about its default state, world axes [m, rad, m/s, rad/s].

    On a terrain about the middle of the world's tile, as high above it.

    Ranges by "x", "y", "z", "roll", "pitch", "yaw"; what is not named stays. The turn
    is yaw, then pitch, then roll, about the turned axes.
    """
    entity = env.scene[asset_cfg.name]
    state = entity.data.default_root_state[env_ids].clone()
    pose = drawn_directions(env, env_ids, pose_range).to(state.dtype)
    state[:, :3] += pose[:, :3]
    if env.terrain is not None:
        state[:, :3] += env.terrain.origins(env_ids)
    state[:, 3:7] = quaternion.multiply(from_euler(pose[:, 3:]), state[:, 3:7])
    if velocity_range:
        state[:, 7:] += drawn_directions(env, env_ids, velocity_range).to(state.dtype)
    entity.write_root_state_to_sim(state, env_ids)


@resolves_entities
def reset_joints(
    env: Env,
    env_ids: Tensor,
    position_range: Range = (0.0, 0.0),
    velocity_range: Range = (0.0, 0.0),
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Place joints about their defaults, within the limits [rad or m, rad/s or m/s]."""
    entity = env.scene[asset_cfg.name]
    data, ids = entity.data, asset_cfg.joint_ids
    count = len(asset_cfg.names_of("joint"))
    position = data.default_joint_pos[env_ids][:, ids]
    velocity = data.default_joint_vel[env_ids][:, ids]
    position += env.rng.uniform(env_ids, count, *position_range)
    if any(velocity_range):
        velocity += env.rng.uniform(env_ids, count, *velocity_range)
    limits = data.joint_pos_limits[env_ids][:, ids]
    position = position.clamp(limits[..., 0], limits[..., 1])
    entity.write_joint_state_to_sim(position, velocity, ids, env_ids)


@resolves_entities
def push_by_setting_velocity(
    env: Env,
    env_ids: Tensor,
    velocity_range: Mapping[str, Range],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Add to the root link's velocity at its origin, world axes [m/s, rad/s].

    Ranges by "x", "y", "z", "roll", "pitch", "yaw".
    """
    entity = env.scene[asset_cfg.name]
    velocity = entity.data.root_link_vel_w[env_ids].clone()
    velocity += drawn_directions(env, env_ids, velocity_range).to(velocity.dtype)
    entity.write_root_link_velocity_to_sim(velocity, env_ids)


@resolves_entities
def randomize_mass(
    env: Env,
    env_ids: Tensor,
    mass_range: Range,
    operation: Operation = "scale",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the mass of each chosen link [kg]; its inertia grows with it.

    A link with more mass has it in the same places.
    """
    bodies = _model_ids(env, asset_cfg, "body")
    mass = _about(env, env_ids, "body_mass", bodies, mass_range, operation)
    if not bool((mass > 0.0).all()):
        raise InvalidInputError(
            f"mass_range {mass_range} with operation {operation!r} makes a mass of "
            f"{float(mass.min())} kg: it must stay > 0."
        )
    nominal = _nominal(env, "body_mass", bodies)
    inertia = _nominal(env, "body_inertia", bodies) * (mass / nominal)[..., None]
    env.sim.write_parameter("body_mass", mass, bodies, env_ids)
    env.sim.write_parameter("body_inertia", inertia, bodies, env_ids)


@moves_com
@resolves_entities
def randomize_com(
    env: Env,
    env_ids: Tensor,
    com_range: Mapping[str, Range],
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Move the centre of mass of each chosen link, in the link's axes [m].

    Ranges by "x", "y", "z".
    """
    bodies = _model_ids(env, asset_cfg, "body")
    spans = spans_of(env, com_range, DIRECTIONS[:3])
    shape = (env_ids.shape[0], len(bodies), 3)
    shift = env.rng.uniform(env_ids, 3 * len(bodies)).reshape(shape)
    shift = spans[:, 0] + (spans[:, 1] - spans[:, 0]) * shift
    position = _nominal(env, "body_ipos", bodies) + shift
    env.sim.write_parameter("body_ipos", position, bodies, env_ids)


@resolves_entities
def randomize_friction(
    env: Env,
    env_ids: Tensor,
    friction_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the sliding friction of the chosen geoms, one number for all of a world.

    MuJoCo takes the greater friction of two geoms that touch, or that of the one with
    the higher priority: geoms that would not have their way are refused.
    """
    if not 0.0 <= friction_range[0] <= friction_range[1]:
        raise InvalidInputError(
            f"friction_range must be (least, greatest) ≥ 0, got {friction_range}."
        )
    geoms = _model_ids(env, asset_cfg, "geom")
    _check_friction_counts(env, asset_cfg, geoms, friction_range[0])
    drawn = env.rng.uniform(env_ids, 1, *friction_range)
    friction = _nominal(env, "geom_friction", geoms).repeat(env_ids.shape[0], 1, 1)
    friction[..., 0] = drawn
    env.sim.write_parameter("geom_friction", friction, geoms, env_ids)


@resolves_entities
def randomize_gains(
    env: Env,
    env_ids: Tensor,
    stiffness_range: Range = (1.0, 1.0),
    damping_range: Range = (1.0, 1.0),
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Scale stiffness and damping of the chosen position or velocity actuators."""
    actuators = _model_ids(env, asset_cfg, "actuator")
    _check_servos(env, asset_cfg, actuators)
    count = len(actuators)
    stiffness = env.rng.uniform(env_ids, count, *stiffness_range)
    damping = env.rng.uniform(env_ids, count, *damping_range)
    worlds = env_ids.shape[0]
    gain = _nominal(env, "actuator_gainprm", actuators).repeat(worlds, 1, 1)
    bias = _nominal(env, "actuator_biasprm", actuators).repeat(worlds, 1, 1)
    # force = gain·ctrl + bias₁·length + bias₂·velocity. A position servo's gain is its
    # stiffness, a velocity servo's its damping.
    is_position = bias[..., 1] != 0.0
    gain[..., 0] *= torch.where(is_position, stiffness, damping)
    bias[..., 1] *= stiffness
    bias[..., 2] *= damping
    env.sim.write_parameter("actuator_gainprm", gain, actuators, env_ids)
    env.sim.write_parameter("actuator_biasprm", bias, actuators, env_ids)


@resolves_entities
def randomize_joints(
    env: Env,
    env_ids: Tensor,
    parameter: Literal["damping", "armature", "frictionloss"],
    value_range: Range,
    operation: Operation = "scale",
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw a parameter of the chosen joints, in its own unit; it must stay ≥ 0."""
    known = ("damping", "armature", "frictionloss")
    if parameter not in known:
        raise unknown_name("parameter of joints", parameter, known)
    index = env.scene[asset_cfg.name].index
    names = asset_cfg.names_of("joint")
    dofs = [index.dof_adr[index.joints.names.index(name)] for name in names]
    field = f"dof_{parameter}"
    values = _about(env, env_ids, field, dofs, value_range, operation)
    if not bool((values >= 0.0).all()):
        raise InvalidInputError(
            f"value_range {value_range} with operation {operation!r} makes a "
            f"{parameter} of {float(values.min())}: it must stay ≥ 0."
        )
    env.sim.write_parameter(field, values, dofs, env_ids)


@resolves_entities
def randomize_delay(
    env: Env, env_ids: Tensor, delay_range: Range, asset_cfg: SceneEntityCfg = ROBOT
) -> None:
    """Draw the delay of the chosen actuators [s], one for all of a world.

    It acts in whole physics steps. The actuators are declared with `max_delay_s`, or
    have a history in the model.
    """
    actuators = _model_ids(env, asset_cfg, "actuator")
    model = env.sim.model
    samples = model.actuator_history[actuators, 0]
    room = float(min(samples, default=0) - 1) * env.sim.timestep
    if not 0.0 <= delay_range[0] <= delay_range[1]:
        raise InvalidInputError(
            f"delay_range must be (least, greatest) ≥ 0, got {delay_range}."
        )
    if delay_range[1] > room:
        raise InvalidInputError(
            f"delay_range {delay_range} needs a history of {delay_range[1]:g} s, the "
            f"actuators of {asset_cfg.name!r} have {max(room, 0.0):g} s: declare them "
            f"with max_delay_s={delay_range[1]:g}."
        )
    delay = env.rng.uniform(env_ids, 1, *delay_range).expand(-1, len(actuators))
    env.sim.write_parameter("actuator_delay", delay, actuators, env_ids)


@resolves_entities
def randomize_encoder_bias(
    env: Env,
    env_ids: Tensor,
    bias_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw what the encoders of the chosen joints add to the truth [rad or m].

    `joint_pos_biased` shows it, and servos go to where their encoder says they should.
    """
    entity = env.scene[asset_cfg.name]
    count = len(asset_cfg.names_of("joint"))
    bias = env.rng.uniform(env_ids, count, *bias_range)
    entity.set_encoder_bias(bias, asset_cfg.joint_ids, env_ids)


def _about(
    env: Env,
    env_ids: Tensor,
    name: str,
    elements: list[int],
    span: Range,
    operation: Operation,
) -> Tensor:
    """A parameter drawn about the model's own value; shape (n, elements)."""
    drawn = env.rng.uniform(env_ids, len(elements), *span)
    nominal = _nominal(env, name, elements)
    if operation == "scale":
        return nominal * drawn
    if operation == "add":
        return nominal + drawn
    if operation == "set":
        return drawn
    raise unknown_name("operation", operation, ("scale", "add", "set"))


def _nominal(env: Env, name: str, elements: list[int]) -> Tensor:
    """The model's own values of a parameter, float64; shape (1, elements, …)."""
    values = torch.as_tensor(model_value(env.sim.model, name)[elements])
    return values.to(dtype=torch.float64, device=env.device)[None]


def _model_ids(env: Env, asset_cfg: SceneEntityCfg, kind: str) -> list[int]:
    """The ids of the chosen elements in the compiled scene."""
    prefix = env.scene[asset_cfg.name].index.prefix
    return [
        mujoco.mj_name2id(env.sim.model, OBJECTS[kind].value, prefix + name)
        for name in asset_cfg.names_of(kind)
    ]


def _check_friction_counts(
    env: Env, asset_cfg: SceneEntityCfg, geoms: list[int], least: float
) -> None:
    """Raise if another geom that these can touch would decide the friction."""
    model = env.sim.model
    for geom in geoms:
        meets = (model.geom_contype & model.geom_conaffinity[geom]) != 0
        meets |= (model.geom_conaffinity & model.geom_contype[geom]) != 0
        meets[geoms] = False
        priority = model.geom_priority[geom]
        stronger = model.geom_priority > priority
        rougher = (model.geom_priority == priority) & (
            model.geom_friction[:, 0] > least
        )
        (deciding,) = (meets & (stronger | rougher)).nonzero()
        if len(deciding):
            kind = mujoco.mjtObj.mjOBJ_GEOM.value
            names = [mujoco.mj_id2name(model, kind, int(k)) for k in deciding]
            raise InvalidInputError(
                f"A friction of {least} of geom "
                f"{mujoco.mj_id2name(model, kind, geom)!r} would have no effect where "
                f"it meets {listed(names, 5)}: of two geoms MuJoCo takes the higher "
                "priority, and among equals the greater friction. Give the geoms of "
                f"{asset_cfg.name!r} a higher priority in the model, or ask for more."
            )


def _check_servos(env: Env, asset_cfg: SceneEntityCfg, actuators: list[int]) -> None:
    """Raise unless all of these are plain position or velocity servos."""
    model = env.sim.model
    affine = mujoco.mjtBias.mjBIAS_AFFINE.value
    others = [
        name
        for name, k in zip(asset_cfg.names_of("actuator"), actuators, strict=True)
        if k < 0 or model.actuator_biastype[k] != affine
    ]
    if others:
        raise InvalidInputError(
            "randomize_gains is for position and velocity actuators; these are "
            f"something else: {listed(others)}. Choose others with actuator_names."
        )
