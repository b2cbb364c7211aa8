"""Event terms: functions `(env, env_ids, **params)` that change worlds.

`env_ids` is an int64 tensor. Draws come from the random streams of the worlds.
Parameters are always drawn relative to the model's value, so repeated events do not
accumulate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import mujoco
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.inertia_events import (
    randomize_com,
    randomize_mass,
    randomize_pseudo_inertia,
)
from simstate.env.observations import ROBOT
from simstate.env.parameter_events import (
    Distribution,
    Operation,
    about,
    combined,
    draw_fitted_parameters,
    model_ids,
    nominal,
    randomize_parameter,
    spread,
)
from simstate.env.pose_events import (
    place_on_tile,
    randomize_headlight,
    randomize_orientation,
)
from simstate.env.state_events import (
    Impulses,
    apply_external_wrench,
    push_by_setting_velocity,
    reset_joints,
    reset_root_state,
)

if TYPE_CHECKING:
    from simstate.env.env import Env

__all__ = [
    "Impulses",
    "apply_external_wrench",
    "draw_fitted_parameters",
    "place_on_tile",
    "push_by_setting_velocity",
    "randomize_com",
    "randomize_delay",
    "randomize_effort_limits",
    "randomize_encoder_bias",
    "randomize_friction",
    "randomize_gains",
    "randomize_headlight",
    "randomize_joints",
    "randomize_mass",
    "randomize_orientation",
    "randomize_parameter",
    "randomize_pseudo_inertia",
    "randomize_tendons",
    "reset_joints",
    "reset_root_state",
]

_ON_JOINTS = (
    mujoco.mjtTrn.mjTRN_JOINT.value,
    mujoco.mjtTrn.mjTRN_JOINTINPARENT.value,
)


@resolves_entities
def randomize_friction(
    env: Env,
    env_ids: Tensor,
    friction_range: Range,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the sliding friction of the chosen geoms, one number for all of a world.

    MuJoCo uses the larger friction of two geoms in contact, or that of the one with the
    higher priority. Geoms whose friction would have no effect are refused.
    """
    if not 0.0 <= friction_range[0] <= friction_range[1]:
        raise InvalidInputError(
            f"friction_range must be (least, greatest) ≥ 0, got {friction_range}.",
            name="friction_range",
        )
    geoms = model_ids(env, asset_cfg, "geom")
    _check_friction_counts(env, geoms, friction_range[0])
    drawn = env.rng.uniform(env_ids, 1, *friction_range)
    friction = nominal(env, "geom_friction", geoms).repeat(env_ids.shape[0], 1, 1)
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
    actuators = model_ids(env, asset_cfg, "actuator")
    _check_servos(env, asset_cfg, actuators)
    count = len(actuators)
    stiffness, damping = (
        spread(env, env_ids, count, span, distribution, shared)
        for span in (stiffness_range, damping_range)
    )
    worlds = env_ids.shape[0]
    gain = nominal(env, "actuator_gainprm", actuators).repeat(worlds, 1, 1)
    bias = nominal(env, "actuator_biasprm", actuators).repeat(worlds, 1, 1)
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
    drawn = value_range, operation, distribution, shared
    _write_not_negative(env, env_ids, f"dof_{parameter}", dofs, *drawn)


@resolves_entities
def randomize_tendons(
    env: Env,
    env_ids: Tensor,
    parameter: Literal["stiffness", "damping", "frictionloss", "armature"],
    value_range: Range,
    operation: Operation = "scale",
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw a parameter of the chosen tendons, in its own unit; it must stay ≥ 0.

    `distribution` and `shared` are as in `randomize_parameter`, which also draws other
    fields of tendons ("tendon_range", "tendon_lengthspring").
    """
    known = ("stiffness", "damping", "frictionloss", "armature")
    if parameter not in known:
        raise unknown_name("parameter of tendons", parameter, known)
    tendons = model_ids(env, asset_cfg, "tendon")
    if len(tendons) == 0:
        raise InvalidInputError(
            f"randomize_tendons: entity {asset_cfg.name!r} has no tendons.",
            name="randomize_tendons",
        )
    drawn = value_range, operation, distribution, shared
    _write_not_negative(env, env_ids, f"tendon_{parameter}", tendons, *drawn)


@resolves_entities
def randomize_effort_limits(
    env: Env,
    env_ids: Tensor,
    limit_range: Range,
    operation: Operation = "scale",
    distribution: Distribution = "uniform",
    shared: bool = False,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the maximum effort of the chosen actuators on their joints [N or N·m].

    Both directions get the same draw. If only the joint of an actuator has a limit, it
    is drawn instead. `distribution` and `shared` are as in `randomize_parameter`.
    """
    model, names = env.sim.model, asset_cfg.names_of("actuator")
    actuators = model_ids(env, asset_cfg, "actuator")
    drawn = spread(env, env_ids, len(actuators), limit_range, distribution, shared)
    rows = [_effort_limit(model, k) for k in actuators]
    unlimited = [n for n, row in zip(names, rows, strict=True) if row is None]
    if unlimited:
        raise InvalidInputError(
            f"The actuators {listed(unlimited)} of {asset_cfg.name!r} have no limit of "
            "effort, nor have their joints: give them one (effort_limit, or forcerange "
            "in MJCF), or choose others with actuator_names.",
            name="effort_limit",
        )
    found: dict[str, tuple[Tensor, list[int]]] = {}
    for field in ("actuator_forcerange", "jnt_actfrcrange"):
        chosen = [k for k, row in enumerate(rows) if row and row.field == field]
        if not chosen:
            continue
        elements = [row.element for row in rows if row and row.field == field]
        ratio = [row.ratio for row in rows if row and row.field == field]
        gear = torch.tensor(ratio, dtype=drawn.dtype, device=drawn.device)[:, None]
        sides = nominal(env, field, elements) * drawn.new_tensor([-1.0, 1.0]) * gear
        values = combined(
            sides.expand(len(env_ids), -1, -1), drawn[:, chosen, None], operation
        )
        if not bool((values >= 0.0).all()):
            raise InvalidInputError(
                f"limit_range {limit_range} with operation {operation!r} makes a limit "
                f"of {float(values.min())}: it must stay ≥ 0.",
                name="limit_range",
            )
        found[field] = values * drawn.new_tensor([-1.0, 1.0]) / gear, elements
    for field, (values, elements) in found.items():
        env.sim.write_parameter(field, values, elements, env_ids)


@resolves_entities
def randomize_delay(
    env: Env, env_ids: Tensor, delay_range: Range, asset_cfg: SceneEntityCfg = ROBOT
) -> None:
    """Draw the delay of the chosen actuators [s], one for all of a world.

    The delay has the resolution of physics steps. The actuators are declared with
    `max_delay_s`, or have a history in the model.
    """
    actuators = model_ids(env, asset_cfg, "actuator")
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
            f"with max_delay_s={delay_range[1]:g}.",
            name="delay_range",
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
    """Draw the bias of the encoders of the chosen joints [rad or m].

    It is added in `joint_pos_biased`, the position that servos control. `distribution`
    and `shared` are as in `randomize_parameter`.
    """
    entity = env.scene[asset_cfg.name]
    count = len(asset_cfg.names_of("joint"))
    bias = spread(env, env_ids, count, bias_range, distribution, shared)
    entity.set_encoder_bias(bias, asset_cfg.joint_ids, env_ids)


def _write_not_negative(
    env: Env,
    env_ids: Tensor,
    field: str,
    elements: list[int],
    span: Range,
    operation: Operation,
    distribution: Distribution,
    shared: bool,
) -> None:
    """Draw and write a parameter that must stay ≥ 0."""
    values = about(env, env_ids, field, elements, span, operation, distribution, shared)
    if not bool((values >= 0.0).all()):
        raise InvalidInputError(
            f"value_range {span} with operation {operation!r} makes a "
            f"{field.partition('_')[2]} of {float(values.min())}: it must stay ≥ 0.",
            name="value_range",
        )
    env.sim.write_parameter(field, values, elements, env_ids)


class _EffortLimit(NamedTuple):
    """Fields of the model with the limit of an actuator's effort."""

    field: str
    element: int
    ratio: float
    """Effort on the joint per unit of the field."""


def _effort_limit(model: mujoco.MjModel, actuator: int) -> _EffortLimit | None:
    """Return the limit of an actuator, or of the joint that it drives; None: none."""
    if model.actuator_forcelimited[actuator]:
        output = model.actuator_outadr[actuator]
        gear = abs(float(model.actuator_gear[output, 0])) or 1.0
        return _EffortLimit("actuator_forcerange", actuator, gear)
    joint = int(model.actuator_trnid[actuator, 0])
    if (
        model.actuator_trntype[actuator] in _ON_JOINTS
        and model.jnt_actfrclimited[joint]
    ):
        return _EffortLimit("jnt_actfrcrange", joint, 1.0)
    return None


def _check_friction_counts(env: Env, geoms: list[int], least: float) -> None:
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
                "priority, and among equals the larger friction. Give the geom a "
                "higher priority, as by EntityCfg(collisions=(CollisionCfg(geoms=…, "
                f"priority={int(model.geom_priority[deciding].max()) + 1}),)), or "
                "choose larger values.",
                name="friction",
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
            f"something else: {listed(others)}. Choose others with actuator_names.",
            name="randomize_gains",
        )
