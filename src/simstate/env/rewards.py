"""Reward terms: functions `(env, **params)` that return (num_envs,) rewards per second.

A step adds weight × value × env.step_dt to the return, so that the return of an episode
does not depend on the time step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.host_view import chosen, either, height_above_ground
from simstate.env.motion_command import Tracked, motion_command
from simstate.env.observations import ROBOT, site_offset

if TYPE_CHECKING:
    from simstate.env.env import Env

_TIE = 1e-9
"""Fraction of a period that is added to phases, so that rounding errors of either sign
at the start or end of a stance have the same effect."""


@either
def is_alive(env: Env) -> Tensor:
    """1 in worlds whose episode has not been terminated; (num_envs,)."""
    return ~env.terminated * 1.0


@either
def is_terminated(env: Env) -> Tensor:
    """1 in worlds that were terminated, not timed out, in this step; (num_envs,)."""
    return env.terminated * 1.0


@either
def command_error(env: Env, command_name: str) -> Tensor:
    """Error of a command, in its unit; (num_envs,)."""
    return env.commands[command_name].error()


@either
def command_tracked(env: Env, command_name: str, std: float) -> Tensor:
    """exp(−error²/std²) of a command; 1 where there is no error; (num_envs,)."""
    return env.xp.exp(-(env.commands[command_name].error() ** 2) / std**2)


@resolves_entities
def motion_tracked(
    env: Env,
    command_name: str,
    tracked: Tracked,
    std: float,
    asset_cfg: SceneEntityCfg | None = None,
) -> Tensor:
    """exp(−mean(e²)/std²) of the errors of joints or links in a motion; (num_envs,).

    `tracked` is "joint_pos" or "joint_vel"; "root_", "anchor_" or "body_" with "pos",
    "quat" or "height"; "body_lin_vel" or "body_ang_vel". `std` is in its unit (angles
    in rad). `asset_cfg` chooses the links; None: those of the command.
    """
    bodies = None if asset_cfg is None else asset_cfg.body_ids
    errors = motion_command(env, command_name).errors(tracked, bodies)
    return (-errors.square().mean(-1) / std**2).exp()


@resolves_entities
@either
def joint_cos(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Mean cosine of joint angles: 1 at zero, −1 half a turn away; (num_envs,)."""
    position = chosen(env.scene[asset_cfg.name].data.joint_pos, asset_cfg.joint_ids)
    return env.xp.cos(position).mean(-1)


@resolves_entities
@either
def track_lin_vel(
    env: Env, command_name: str, std: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """exp(−|v* − v|²/std²) of the velocity in the root link's x and y; (num_envs,)."""
    velocity = env.scene[asset_cfg.name].data.root_link_lin_vel_b[:, :2]
    error = env.commands[command_name].command[:, :2] - velocity
    return env.xp.exp(-_squares(error) / std**2)


@resolves_entities
@either
def track_ang_vel(
    env: Env, command_name: str, std: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """exp(−(ω* − ω)²/std²) of the yaw rate in the root link's z; (num_envs,)."""
    rate = env.scene[asset_cfg.name].data.root_link_ang_vel_b[:, 2]
    error = env.commands[command_name].command[:, 2] - rate
    return env.xp.exp(-error * error / std**2)


@resolves_entities
@either
def lin_vel_z_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Square of the velocity along the root link's z [m²/s²]; (num_envs,)."""
    return env.scene[asset_cfg.name].data.root_link_lin_vel_b[:, 2] ** 2


@resolves_entities
@either
def ang_vel_xy_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Square of the roll and pitch rates [rad²/s²]; (num_envs,)."""
    return _squares(env.scene[asset_cfg.name].data.root_link_ang_vel_b[:, :2])


@resolves_entities
@either
def flat_orientation_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Squared component of gravity in the root link's x-y plane; (num_envs,)."""
    return _squares(env.scene[asset_cfg.name].data.projected_gravity_b[:, :2])


@resolves_entities
@either
def upright(env: Env, std: float, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """exp(−|g|²/std²) of gravity's component g in the link's x-y plane; (num_envs,)."""
    return env.xp.exp(-flat_orientation_l2(env, asset_cfg=asset_cfg) / std**2)


@resolves_entities
@either
def base_height_l2(
    env: Env, height: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """Squared error of the root link's height above ground [m²]; (num_envs,)."""
    return (height_above_ground(env, env.scene[asset_cfg.name]) - height) ** 2


@resolves_entities
@either
def base_height_share(
    env: Env, low: float, high: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """Fraction of the root link's height between `low` and `high` [m].

    0 below, 1 above; the height is above the ground; (num_envs,).
    """
    height = height_above_ground(env, env.scene[asset_cfg.name])
    return ((height - low) / (high - low)).clip(0.0, 1.0)


@resolves_entities
@either
def sites_close(
    env: Env, std: float, asset_cfg: SceneEntityCfg, target_cfg: SceneEntityCfg
) -> Tensor:
    """exp(−d²/std²) of the distance of two sites, of any entities; (num_envs,)."""
    distances = _squares(site_offset(env, asset_cfg, target_cfg))
    return env.xp.exp(-distances / std**2)


@resolves_entities
@either
def joint_pos_deviation_l2(
    env: Env, asset_cfg: SceneEntityCfg = ROBOT, target: float | None = None
) -> Tensor:
    """Sum of squared distances of joints from a target; (num_envs,).

    Without a `target` [rad or m], from their default positions.
    """
    data = env.scene[asset_cfg.name].data
    goal = data.default_joint_pos if target is None else target
    return _squares(chosen(data.joint_pos - goal, asset_cfg.joint_ids))


@resolves_entities
@either
def joint_vel_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Sum of squared joint velocities [rad²/s² or m²/s²]; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    return _squares(chosen(data.joint_vel, asset_cfg.joint_ids))


@resolves_entities
@either
def joint_acc_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Sum of squared joint accelerations, last evaluation; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    return _squares(chosen(data.joint_acc, asset_cfg.joint_ids))


@resolves_entities
@either
def joint_torques_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Sum of squared actuator forces on joints, last evaluation; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    return _squares(chosen(data.qfrc_actuator, asset_cfg.joint_ids))


@resolves_entities
@either
def joint_pos_limits(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Excess of joints beyond their soft limits, summed [rad or m]; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    limits = chosen(data.soft_joint_pos_limits, asset_cfg.joint_ids)
    position = chosen(data.joint_pos, asset_cfg.joint_ids)
    below = (limits[..., 0] - position).clip(0.0, None)
    above = (position - limits[..., 1]).clip(0.0, None)
    return (below + above).sum(-1)


@either
def action_rate_l2(env: Env) -> Tensor:
    """Sum of squared changes of the action since the last step; (num_envs,)."""
    return _squares(env.action - env.previous_action)


@either
def action_l2(env: Env) -> Tensor:
    """Sum of squares of the action; (num_envs,)."""
    return _squares(env.action)


@resolves_entities
@either
def gait(
    env: Env,
    asset_cfg: SceneEntityCfg,
    offsets: tuple[float, ...],
    period_s: float,
    stance: float,
    command_name: str,
    threshold: float = 1.0,
) -> Tensor:
    """Fraction of the feet whose contact agrees with the gait; (num_envs,).

    Foot k stands while (phase + offsets[k]) % 1 < stance, and swings otherwise. Where
    the command is zero, all feet stand.
    """
    readings = chosen(env.sim.data.sensordata, asset_cfg.sensor_columns)
    touching = readings > threshold
    return _in_step(env, touching, offsets, period_s, stance, command_name)


@either
def contact_gait(
    env: Env,
    sensor_name: str,
    offsets: tuple[float, ...],
    period_s: float,
    stance: float,
    command_name: str,
) -> Tensor:
    """As `gait`, with the elements of a contact sensor as feet; (num_envs,)."""
    found = env.sim.contacts[sensor_name].found
    return _in_step(env, found, offsets, period_s, stance, command_name)


def _in_step(
    env: Env,
    touching: Tensor,
    offsets: tuple[float, ...],
    period_s: float,
    stance: float,
    command_name: str,
) -> Tensor:
    """Return the fraction of the feet whose contact agrees with a gait; (num_envs,)."""
    xp, phase = env.xp, env.phase(period_s)[:, None]
    shift = xp.asarray(offsets, dtype=xp.float64, device=phase.device)
    standing = (phase + (shift + _TIE)) % 1.0 < stance
    at_rest = (env.commands[command_name].command == 0.0).all(-1)
    standing = standing | at_rest[:, None]
    return (touching == standing).sum(-1) / len(offsets)


@either
def feet_air_time(
    env: Env, sensor_name: str, threshold: float, command_name: str | None = None
) -> Tensor:
    """Time in the air beyond `threshold` of feet that touch down now [s]; (num_envs,).

    Divided by the step's duration, so that a step adds weight × seconds. It is zero
    where the command, if there is one, is zero. `sensor_name` is a contact sensor.
    """
    feet = env.sim.contacts[sensor_name]
    beyond = (feet.last_air_time - threshold) * feet.first_contact(env.step_dt)
    reward = beyond.sum(-1) / env.step_dt
    if command_name is None:
        return reward
    return reward * (env.commands[command_name].command != 0.0).any(-1)


@resolves_entities
@either
def feet_slide(env: Env, sensor_name: str, asset_cfg: SceneEntityCfg) -> Tensor:
    """Horizontal speed of feet that touch, summed [m/s]; (num_envs,).

    The bodies of `asset_cfg` are the elements of the contact sensor, in its order.
    """
    velocity = _of_elements(env, sensor_name, asset_cfg, "body_link_lin_vel_w")
    touches = env.sim.contacts[sensor_name].found
    return (_length(env, velocity[..., :2]) * touches).sum(-1)


@resolves_entities
@either
def feet_clearance(
    env: Env, sensor_name: str, asset_cfg: SceneEntityCfg, height: float
) -> Tensor:
    """Squared distance of feet in the air from a height, world z [m²]; (num_envs,).

    Multiplied by their horizontal speed [m/s] and summed over feet.
    The bodies of `asset_cfg` are the elements of the contact sensor, in its order.
    """
    position = _of_elements(env, sensor_name, asset_cfg, "body_link_pos_w")
    velocity = _of_elements(env, sensor_name, asset_cfg, "body_link_lin_vel_w")
    off = ~env.sim.contacts[sensor_name].found
    error = (position[..., 2] - height) ** 2
    return (error * _length(env, velocity[..., :2]) * off).sum(-1)


@resolves_entities
@either
def feet_swing_height(
    env: Env, sensor_name: str, asset_cfg: SceneEntityCfg, height: float
) -> Tensor:
    """(h/height − 1)² of feet that touch down now, summed; (num_envs,).

    h is the maximum height above z = 0 of the foot's site in its swing [m]. The sites
    of `asset_cfg` belong to the contact sensor's elements, in their order.
    """
    feet = env.sim.contacts[sensor_name]
    sites = chosen(env.scene[asset_cfg.name].data.site_pos_w, asset_cfg.site_ids)
    highest = env.memory("highest", (feet.num_elements,), unit="m")
    height_now = env.xp.maximum(highest, sites[..., 2])
    highest[:] = env.xp.where(feet.found, highest, height_now)
    lands = feet.first_contact(env.step_dt)
    cost = ((highest / height - 1.0) ** 2 * lands).sum(-1)
    highest[:] = env.xp.where(lands, 0.0, highest)
    return cost


@either
def landing_force(env: Env, sensor_name: str) -> Tensor:
    """Forces on elements of a contact sensor that touch down now [N]; (num_envs,)."""
    feet = env.sim.contacts[sensor_name]
    return (_length(env, feet.force_w) * feet.first_contact(env.step_dt)).sum(-1)


@either
def undesired_contacts(env: Env, sensor_name: str, threshold: float = 1.0) -> Tensor:
    """Number of elements with over `threshold` [N] in any time step; (num_envs,)."""
    hit = env.sim.contacts[sensor_name].greatest_force > threshold
    return hit.sum(-1) * 1.0


@resolves_entities
@either
def joint_power(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Sum of absolute joint powers, by the last evaluated forces [W]; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    power = data.qfrc_actuator * data.joint_vel
    return abs(chosen(power, asset_cfg.joint_ids)).sum(-1)


@resolves_entities
@either
def angular_momentum_l2(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Square of the angular momentum about the COM [(kg·m²/s)²]; (num_envs,)."""
    return _squares(env.scene[asset_cfg.name].dynamics.angular_momentum_w)


@either
def height_over_terrain_l2(env: Env, sensor_name: str, height: float) -> Tensor:
    """Squared error of the mean height of a scan by `sim.rays` [m²]; (num_envs,)."""
    return (env.sim.rays[sensor_name].height.mean(-1) - height) ** 2


def _squares(values: Tensor) -> Tensor:
    """Sum of squares along the last dimension."""
    return (values * values).sum(-1)


def _length(env: Env, vectors: Tensor) -> Tensor:
    """Lengths of vectors along the last dimension."""
    return env.xp.sqrt(_squares(vectors))


def _of_elements(
    env: Env, sensor_name: str, asset_cfg: SceneEntityCfg, quantity: str
) -> Tensor:
    """Return a quantity of a contact sensor's bodies; (num_envs, E, …)."""
    names = [f"{asset_cfg.name}/{name}" for name in asset_cfg.names_of("body")]
    elements = list(env.sim.contacts[sensor_name].element_names)
    if names != elements:
        raise InvalidInputError(
            f"The bodies of asset_cfg are {listed(names)}, those of the contact sensor "
            f"{sensor_name!r} {listed(elements)}: choose the same, in the same order.",
            name=sensor_name,
        )
    return chosen(env.scene[asset_cfg.name].data.read(quantity), asset_cfg.body_ids)
