"""Curriculum terms: functions `(env, env_ids, **params)` that make a task harder.

They run for worlds whose episode has ended, before these are reset, and return a number
for the log. A curriculum reads many worlds, so a world's course depends on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env.commands import Range, VelocityCommand
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.math.vector import norm

if TYPE_CHECKING:
    from simstate.env.env import Env


def reward_weight(
    env: Env, env_ids: Tensor, term_name: str, stages: tuple[tuple[int, float], ...]
) -> float:
    """Change the weight of a reward term at given environment steps.

    `stages` has (step, weight); before the first step the weight is unchanged.
    """
    del env_ids
    due = [stage for stage in stages if env.common_step_counter >= stage[0]]
    if due:
        env.rewards.set_weight(term_name, sorted(due, key=itemgetter(0))[-1][1])
    return env.rewards.weight(term_name)


def velocity_stages(
    env: Env,
    env_ids: Tensor,
    command_name: str,
    stages: Sequence[tuple[int, Range | Mapping[str, Range]]],
) -> dict[str, float]:
    """Change the ranges of a velocity command at given environment steps.

    `stages` has (step, ranges); before the first step the ranges are unchanged. Ranges
    are (minimum, maximum) by "lin_vel_x", "lin_vel_y" [m/s] and "ang_vel_z" [rad/s]; a
    range without a name is that of "lin_vel_x". Returns the maximum of each range.
    """
    del env_ids
    command = _velocity_command(env, command_name)
    for step, ranges in sorted(stages, key=itemgetter(0)):
        named = ranges if isinstance(ranges, Mapping) else {"lin_vel_x": ranges}
        for axis, span in named.items():
            command.range(axis)  # known, whether it is due or not
            if env.common_step_counter >= step:
                command.set_range(axis, span)
    return {axis: command.range(axis)[1] for axis in command.names}


def forward_velocity(
    env: Env,
    env_ids: Tensor,
    command_name: str,
    reward_name: str,
    share: float = 0.8,
    step: float = 0.1,
    limit: float = 2.0,
) -> float:
    """Raise the commanded forward velocities [m/s] once the current ones are tracked.

    If the ended episodes earned `share` of the reward term's maximum, the upper end of
    the range grows by `step` up to `limit`. Returns the upper end.
    """
    command = _velocity_command(env, command_name)
    low, high = command.range("lin_vel_x")
    steps = env.episode_length_buf[env_ids].clamp(min=1)
    earned = env.rewards.episode_sum(reward_name)[env_ids] / (steps * env.step_dt)
    if float(earned.mean()) >= share * env.rewards.weight(reward_name):
        high = min(high + step, limit)
        command.set_range("lin_vel_x", (low, high))
    return high


def _velocity_command(env: Env, name: str) -> VelocityCommand:
    command = env.commands[name]
    if not isinstance(command, VelocityCommand):
        raise InvalidInputError(
            f"The curriculum needs a velocity command; {name!r} is a "
            f"{type(command).__name__}."
        )
    return command


@resolves_entities
def terrain_levels(
    env: Env,
    env_ids: Tensor,
    up_share: float = 0.4,
    down_share: float = 0.1,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> float:
    """Move worlds to harder or easier tiles, by the distance that they have walked.

    A world that is more than `up_share` of a tile's size from its start goes up a
    level, from the last one to a random level; one that is less than `down_share` away
    goes down. Returns the mean level of all worlds.
    """
    places = env.terrain
    if places is None:
        raise InvalidInputError("terrain_levels needs a scene with a terrain.")
    size, levels = places.terrain.cfg.size, places.terrain.cfg.levels
    position = env.scene[asset_cfg.name].data.root_link_pos_w[env_ids, :2]
    gone = norm(position - places.origins(env_ids)[:, :2])[:, 0]
    level = places.level[env_ids]
    level = level + (gone > up_share * size).long() - (gone < down_share * size).long()
    drawn = (env.rng.uniform(env_ids, 1)[:, 0] * levels).long().clamp(max=levels - 1)
    level = level.clamp(min=0)
    places.level[env_ids] = level.where(level < levels, drawn.to(level.device))
    return float(places.level.double().mean())
