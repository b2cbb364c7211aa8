"""Termination terms: functions `(env, **params)` that return (num_envs,) booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.host_view import chosen, either, height_above_ground
from simstate.env.motion_command import Tracked, motion_command
from simstate.env.observations import ROBOT, sensors

if TYPE_CHECKING:
    from simstate.env.env import Env


@either
def time_out(env: Env) -> Tensor:
    """The episode has lasted `episode_length_s`; (num_envs,)."""
    return env.episode_length_buf >= env.max_episode_length


@resolves_entities
@either
def bad_orientation(
    env: Env, limit_angle: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """The root link's z is more than an angle [rad] from upright; (num_envs,)."""
    gravity = env.scene[asset_cfg.name].data.projected_gravity_b
    return env.xp.arccos((-gravity[:, 2]).clip(-1.0, 1.0)) > limit_angle


@resolves_entities
@either
def base_height_below(
    env: Env, height: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """The root link's origin is below a height above ground [m]; (num_envs,)."""
    return height_above_ground(env, env.scene[asset_cfg.name]) < height


@resolves_entities
@either
def terrain_out_of_bounds(
    env: Env, margin: float = 1.0, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """The root link is less than `margin` [m] from the terrain's edge; (num_envs,).

    Use it as a time-out: `TerminationTermCfg(…, time_out=True)`.
    """
    if env.terrain is None:
        raise InvalidInputError(
            "terrain_out_of_bounds needs a scene with a terrain.", name="terrain"
        )
    position = env.scene[asset_cfg.name].data.root_link_pos_w[:, :2]
    x, y = env.terrain.terrain.half_size
    away = abs(position)
    return (away[:, 0] > x - margin) | (away[:, 1] > y - margin)


@resolves_entities
@either
def joint_pos_out_of_range(
    env: Env, low: float, high: float, asset_cfg: SceneEntityCfg = ROBOT
) -> Tensor:
    """A joint is outside `low` to `high` [rad or m]; (num_envs,)."""
    data = env.scene[asset_cfg.name].data
    position = chosen(data.joint_pos, asset_cfg.joint_ids)
    return ((position < low) | (position > high)).any(-1)


@resolves_entities
@either
def illegal_contact(
    env: Env, asset_cfg: SceneEntityCfg, threshold: float = 1.0
) -> Tensor:
    """A touch sensor reads more than `threshold` [N]; (num_envs,)."""
    return (sensors(env, asset_cfg) > threshold).any(-1)


@either
def undesired_contact(env: Env, sensor_name: str, threshold: float = 1.0) -> Tensor:
    """An element of a contact sensor was hit by more than `threshold` [N]; (num_envs,).

    In any time step of the environment step, not only the last.
    """
    return (env.sim.contacts[sensor_name].greatest_force > threshold).any(-1)


@either
def height_over_terrain_below(env: Env, sensor_name: str, height: float) -> Tensor:
    """The mean of a height scan is below a height [m]; (num_envs,).

    `sensor_name` is that of rays: `sim.rays`.
    """
    return env.sim.rays[sensor_name].height.mean(-1) < height


@resolves_entities
def motion_lost(
    env: Env,
    command_name: str,
    tracked: Tracked,
    limit: float,
    asset_cfg: SceneEntityCfg | None = None,
) -> Tensor:
    """A joint or link is further from a motion than `limit`, in its unit; (num_envs,).

    `tracked` and `asset_cfg` are as in `rewards.motion_tracked`; "anchor_height" and
    "body_height" compare only heights.
    """
    bodies = None if asset_cfg is None else asset_cfg.body_ids
    errors = motion_command(env, command_name).errors(tracked, bodies)
    return (errors > limit).any(-1)


def motion_ended(env: Env, command_name: str) -> Tensor:
    """A motion has ended, if its command has at_end="hold"; (num_envs,)."""
    return motion_command(env, command_name).ended
