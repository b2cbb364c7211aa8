"""Events that write poses and velocities of robots, and forces on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.observations import ROBOT
from simstate.env.random_poses import NO_RANGE, drawn_directions, drawn_vectors
from simstate.math import euler, quaternion

if TYPE_CHECKING:
    from simstate.env.env import Env
    from simstate.env.env_cfg import EventTermCfg


@resolves_entities
def reset_root_state(
    env: Env,
    env_ids: Tensor,
    pose_range: Mapping[str, Range] = NO_RANGE,
    velocity_range: Mapping[str, Range] = NO_RANGE,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw the root link's state about its default, world axes [m, rad, m/s, rad/s].

    On a terrain, positions are relative to the middle of the world's tile.

    Ranges by "x", "y", "z", "roll", "pitch", "yaw"; missing ones are zero. The rotation
    is yaw, then pitch, then roll, about the rotated axes.
    """
    entity = env.scene[asset_cfg.name]
    state = entity.data.default_root_state[env_ids].clone()
    pose = drawn_directions(env, env_ids, pose_range).to(state.dtype)
    state[:, :3] += pose[:, :3]
    if env.terrain is not None:
        state[:, :3] += env.terrain.origins(env_ids)
    state[:, 3:7] = quaternion.multiply(
        euler.to_quaternion(pose[:, 3:], "izyx"), state[:, 3:7]
    )
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
    """Draw joints about their defaults, within limits [rad or m, rad/s or m/s]."""
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
def apply_external_wrench(
    env: Env,
    env_ids: Tensor,
    force_range: Mapping[str, Range] = NO_RANGE,
    torque_range: Mapping[str, Range] = NO_RANGE,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Draw a force at the COM and a torque on each chosen link, world axes [N, N·m].

    Ranges by "x", "y", "z". They act until the next such event, or a reset.
    """
    count = len(asset_cfg.names_of("body"))
    forces = drawn_vectors(env, env_ids, count, force_range).to(env.sim.dtype)
    torques = drawn_vectors(env, env_ids, count, torque_range).to(env.sim.dtype)
    env.scene[asset_cfg.name].write_external_wrench_to_sim(
        forces, torques, asset_cfg.body_ids, env_ids
    )


class Impulses:
    """Push each chosen link repeatedly for a limited time; an event of mode "step".

    A force at the COM and a torque, world axes [N, N·m], are drawn when a push starts
    and act for its duration; then the wrench is zero until the next push.

    Args:
        force_range: (minimum, maximum) force [N] by "x", "y", "z".
        torque_range: the same for the torque [N·m].
        duration_s: range of the time that a push lasts [s].
        pause_s: range of the time between two pushes [s].
        asset_cfg: the entity and its links.
    """

    def __init__(self, cfg: EventTermCfg, env: Env) -> None:
        given = cfg.params
        for name in ("duration_s", "pause_s"):
            span = given.get(name)
            if not isinstance(span, tuple | list) or not 0 < span[0] <= span[1]:
                raise InvalidInputError(
                    f"Impulses need {name}=(minimum, maximum) [s], > 0, got {span!r}.",
                    name=name,
                )
        self._left = env.memory("left", (), unit="s")
        self._is_pushing = env.memory("is_pushing", (), dtype=torch.bool, reset=False)
        self._pause = given["pause_s"]
        self._env = env

    def reset(self, env_ids: Tensor) -> None:
        """Start an episode with a pause."""
        self._left[env_ids] = self._drawn(env_ids, self._pause)

    def __call__(
        self,
        env: Env,
        env_ids: Tensor,
        duration_s: Range,
        pause_s: Range,
        force_range: Mapping[str, Range] = NO_RANGE,
        torque_range: Mapping[str, Range] = NO_RANGE,
        asset_cfg: SceneEntityCfg = ROBOT,
    ) -> None:
        """Start and end pushes in the worlds that are due."""
        self._left -= env.step_dt
        due = env_ids[self._left[env_ids] <= env.step_dt / 2.0]
        if not due.numel():
            return
        starts = ~self._is_pushing[due]
        begin, end = due[starts], due[~starts]
        self._is_pushing[due] = starts
        self._left[begin] = self._drawn(begin, duration_s)
        self._left[end] = self._drawn(end, pause_s)
        if begin.numel():
            apply_external_wrench(env, begin, force_range, torque_range, asset_cfg)
        if end.numel():
            apply_external_wrench(env, end, asset_cfg=asset_cfg)

    def _drawn(self, env_ids: Tensor, span: Range) -> Tensor:
        return self._env.rng.uniform(env_ids, 1, *span)[:, 0].to(self._left)
