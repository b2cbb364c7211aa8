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

from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.engine.engine import model_value
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.env.parameter_events import (
    Distribution,
    Operation,
    combined,
    drawn_numbers,
    randomize_parameter,
)
from simstate.env.pose_events import place_on_tile, randomize_orientation
from simstate.env.random_poses import drawn_vectors
from simstate.env.scene_needs import moves_com
from simstate.env.state_events import (
    Impulses,
    apply_external_wrench,
    push_by_setting_velocity,
    reset_joints,
    reset_root_state,
)
from simstate.scene.objects import OBJECTS

if TYPE_CHECKING:
    from simstate.env.env import Env

__all__ = [
    "Impulses",
    "apply_external_wrench",
    "place_on_tile",
    "push_by_setting_velocity",
    "randomize_com",
    "randomize_delay",
    "randomize_encoder_bias",
    "randomize_friction",
    "randomize_gains",
    "randomize_joints",
    "randomize_mass",
    "randomize_orientation",
    "randomize_parameter",
    "reset_joints",
    "reset_root_state",
]


@resolves_entities
def randomize_mass(
    env: Env,
    env_ids: Tensor,
    mass_range: Range,
    operation: Operation = "scale",
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the mass of each chosen link [kg]; its inertia grows with it.

    A link with more mass has it in the same places. `distribution` and `shared` (one
    draw for all links of a world) are as in `randomize_parameter`.
    """
    bodies = _model_ids(env, asset_cfg, "body")
    mass = _about(
        env, env_ids, "body_mass", bodies, mass_range, operation, distribution, shared
    )
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
    shift = drawn_vectors(env, env_ids, len(bodies), com_range)
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
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Scale stiffness and damping of the chosen position or velocity actuators.

    `distribution` and `shared` are as in `randomize_parameter`.
    """
    actuators = _model_ids(env, asset_cfg, "actuator")
    _check_servos(env, asset_cfg, actuators)
    count = len(actuators)
    stiffness, damping = (
        _spread(env, env_ids, count, span, distribution, shared)
        for span in (stiffness_range, damping_range)
    )
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
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw a parameter of the chosen joints, in its own unit; it must stay ≥ 0.

    `distribution` and `shared` are as in `randomize_parameter`.
    """
    known = ("damping", "armature", "frictionloss")
    if parameter not in known:
        raise unknown_name("parameter of joints", parameter, known)
    index = env.scene[asset_cfg.name].index
    names = asset_cfg.names_of("joint")
    dofs = [index.dof_adr[index.joints.names.index(name)] for name in names]
    field = f"dof_{parameter}"
    values = _about(
        env, env_ids, field, dofs, value_range, operation, distribution, shared
    )
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
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw what the encoders of the chosen joints add to the truth [rad or m].

    `joint_pos_biased` shows it, and servos go to where their encoder says they should.
    `distribution` and `shared` are as in `randomize_parameter`.
    """
    entity = env.scene[asset_cfg.name]
    count = len(asset_cfg.names_of("joint"))
    bias = _spread(env, env_ids, count, bias_range, distribution, shared)
    entity.set_encoder_bias(bias, asset_cfg.joint_ids, env_ids)


def _about(
    env: Env,
    env_ids: Tensor,
    name: str,
    elements: list[int],
    span: Range,
    operation: Operation,
    distribution: Distribution,
    shared: bool,
) -> Tensor:
    """A parameter drawn about the model's own value; shape (n, elements)."""
    count = len(elements)
    drawn = _spread(env, env_ids, count, span, distribution, shared)
    nominal = _nominal(env, name, elements).expand(env_ids.shape[0], count)
    return combined(nominal, drawn, operation)


def _spread(
    env: Env,
    env_ids: Tensor,
    count: int,
    span: Range,
    distribution: Distribution,
    shared: bool,
) -> Tensor:
    """A number for each of a world's elements, or one for all; (n, count)."""
    drawn = drawn_numbers(env, env_ids, 1 if shared else count, span, distribution)
    return drawn.expand(-1, count)


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
