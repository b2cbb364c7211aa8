"""Event terms: functions `(env, env_ids, **params)` that change worlds.

`env_ids` is an int64 tensor. What they draw comes from the worlds' own streams, and a
parameter is always drawn about the model's own value, so events do not pile up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from simstate.env.commands import Range
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.observations import ROBOT
from simstate.errors import unknown_name
from simstate.math import quaternion

if TYPE_CHECKING:
    from simstate.env.env import Env

Operation = Literal["scale", "add", "set"]
_NO_RANGE: Mapping[str, Range] = {}
_POSE = ("x", "y", "z", "roll", "pitch", "yaw")


def reset_root_state(
    env: Env,
    env_ids: Tensor,
    pose_range: Mapping[str, Range] = _NO_RANGE,
    velocity_range: Mapping[str, Range] = _NO_RANGE,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> None:
    """Place the root link about its default state, world axes [m, rad, m/s, rad/s].

    Ranges by "x", "y", "z", "roll", "pitch", "yaw"; what is not named stays. The turn
    is yaw, then pitch, then roll, about the turned axes.
    """
    entity = env.scene[asset_cfg.name]
    state = entity.data.default_root_state[env_ids].clone()
    pose = _drawn(env, env_ids, pose_range).to(state.dtype)
    state[:, :3] += pose[:, :3]
    state[:, 3:7] = quaternion.multiply(from_euler(pose[:, 3:]), state[:, 3:7])
    state[:, 7:] += _drawn(env, env_ids, velocity_range).to(state.dtype)
    entity.write_root_state_to_sim(state, env_ids)


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
    dtype = data.default_joint_pos.dtype
    position = data.default_joint_pos[env_ids][:, ids] + env.rng.uniform(
        env_ids, count, *position_range
    ).to(dtype)
    velocity = data.default_joint_vel[env_ids][:, ids] + env.rng.uniform(
        env_ids, count, *velocity_range
    ).to(dtype)
    limits = data.joint_pos_limits[env_ids][:, ids]
    position = position.clamp(limits[..., 0], limits[..., 1])
    entity.write_joint_state_to_sim(position, velocity, ids, env_ids)


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
    velocity += _drawn(env, env_ids, velocity_range).to(velocity.dtype)
    entity.write_root_link_velocity_to_sim(velocity, env_ids)


def from_euler(angles: Tensor) -> Tensor:
    """The turn of roll, pitch, yaw [rad] as a quaternion wxyz; (n, 3) → (n, 4)."""
    axes = torch.eye(3, dtype=angles.dtype, device=angles.device)
    roll, pitch, yaw = (
        quaternion.from_rotation_vector(angles[:, k : k + 1] * axes[k])
        for k in range(3)
    )
    return quaternion.multiply(quaternion.multiply(yaw, pitch), roll)


def _drawn(env: Env, env_ids: Tensor, ranges: Mapping[str, Range]) -> Tensor:
    """Numbers for x, y, z, roll, pitch and yaw, zero where not named; (n, 6)."""
    for name in ranges:
        if name not in _POSE:
            raise unknown_name("direction of a range", name, _POSE)
    spans = torch.tensor(
        [ranges.get(name, (0.0, 0.0)) for name in _POSE], dtype=torch.float64
    ).to(env.device)
    return env.rng.uniform(env_ids, 6, spans[:, 0], spans[:, 1])
