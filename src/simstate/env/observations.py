"""Observation terms: functions `(env, **params)` that return (num_envs, k) numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.terms import XYZ, columns, columns_of, fixed_columns

if TYPE_CHECKING:
    from simstate.env.env import Env

ROBOT = SceneEntityCfg("robot")
_XYZ = fixed_columns("x", "y", "z")


@resolves_entities
@columns(columns_of("joint"))
def joint_pos_rel(
    env: Env, asset_cfg: SceneEntityCfg = ROBOT, biased: bool = False
) -> Tensor:
    """Joint positions less their defaults [rad or m]; (num_envs, joints).

    `biased`: as the encoders report them.
    """
    data = env.scene[asset_cfg.name].data
    position = data.joint_pos_biased if biased else data.joint_pos
    return (position - data.default_joint_pos)[:, asset_cfg.joint_ids]


@resolves_entities
@columns(columns_of("joint"))
def joint_vel_rel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Joint velocities less their defaults [rad/s or m/s]; (num_envs, joints)."""
    data = env.scene[asset_cfg.name].data
    return (data.joint_vel - data.default_joint_vel)[:, asset_cfg.joint_ids]


@resolves_entities
@columns(columns_of("joint", (".cos", ".sin")))
def joint_pos_cos_sin(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Cosine and sine of joint angles, which turn over without a jump; (num_envs, 2J).

    In pairs, joint by joint.
    """
    angle = env.scene[asset_cfg.name].data.joint_pos[:, asset_cfg.joint_ids]
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)


@resolves_entities
@columns(_XYZ)
def base_lin_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Velocity of the root link's origin, root link's axes [m/s]; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.root_link_lin_vel_b


@resolves_entities
@columns(_XYZ)
def base_ang_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Angular velocity of the root link, its own axes [rad/s]; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.root_link_ang_vel_b


@resolves_entities
@columns(_XYZ)
def projected_gravity(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Direction of gravity, root link's axes, unit length; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.projected_gravity_b


@resolves_entities
def base_height(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Height of the root link's origin, world z [m]; (num_envs, 1)."""
    return env.scene[asset_cfg.name].data.root_link_pos_w[:, 2:3]


@resolves_entities
@columns(columns_of("site", XYZ))
def site_pos(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Positions of sites, world axes [m]; (num_envs, 3 sites)."""
    position = env.scene[asset_cfg.name].data.site_pos_w
    return position[:, asset_cfg.site_ids].flatten(1)


def _sensor_columns(env: Env, asset_cfg: SceneEntityCfg, **params: object) -> list[str]:
    del params
    entity = env.scene[asset_cfg.name]
    names: list[str] = []
    for name in asset_cfg.names_of("sensor"):
        width = entity.sensor(name).shape[1]
        names += [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
    return names


@resolves_entities
@columns(_sensor_columns)
def sensors(env: Env, asset_cfg: SceneEntityCfg) -> Tensor:
    """Readings of the model's sensors, MuJoCo's units and axes; (num_envs, k).

    `asset_cfg.sensor_names` chooses them. Touch and force sensors are those of the last
    dynamics evaluation, as `sim.data.sensordata`.
    """
    return env.sim.data.sensordata[:, asset_cfg.sensor_columns]


@resolves_entities
@columns(_sensor_columns)
def contacts(env: Env, asset_cfg: SceneEntityCfg, threshold: float = 1.0) -> Tensor:
    """1 where a touch sensor feels more than `threshold` [N], else 0; (num_envs, k)."""
    return (sensors(env, asset_cfg) > threshold).to(torch.float32)


def _contact_columns(
    env: Env, sensor_name: str, ends: tuple[str, ...] = ("",)
) -> list[str]:
    names = env.sim.contacts[sensor_name].element_names
    return [name + end for name in names for end in ends]


def _contact_components(env: Env, sensor_name: str) -> list[str]:
    return _contact_columns(env, sensor_name, XYZ)


@columns(_contact_columns)
def contact_found(env: Env, sensor_name: str) -> Tensor:
    """1 where an element of a contact sensor touches, else 0; (num_envs, elements)."""
    return env.sim.contacts[sensor_name].found.to(torch.float32)


@columns(_contact_columns)
def contact_air_time(env: Env, sensor_name: str) -> Tensor:
    """How long each element of a contact sensor has been off [s]; (num_envs, E)."""
    return env.sim.contacts[sensor_name].air_time


@columns(_contact_components)
def contact_force(env: Env, sensor_name: str) -> Tensor:
    """Net force on each element of a contact sensor, world axes [N]; (num_envs, 3E)."""
    return env.sim.contacts[sensor_name].force_w.flatten(1)


def _action_columns(env: Env) -> list[str]:
    return env.action_names


@columns(_action_columns)
def last_action(env: Env) -> Tensor:
    """The last action as it was given; zero after a reset; (num_envs, action_dim)."""
    return env.action


def _command_columns(env: Env, command_name: str) -> list[str]:
    return list(env.commands[command_name].names)


@columns(_command_columns)
def generated_commands(env: Env, command_name: str) -> Tensor:
    """What a command asks for now, in its own units; (num_envs, k)."""
    return env.commands[command_name].command


def command_offset(env: Env, command_name: str) -> Tensor:
    """What is missing to a command, in its own units; (num_envs, k)."""
    return env.commands[command_name].offset


@columns(fixed_columns("cos", "sin"))
def phase(env: Env, period_s: float) -> Tensor:
    """Cosine and sine of a clock that runs with the episode; (num_envs, 2)."""
    angle = env.phase(period_s) * (2.0 * torch.pi)
    return torch.stack([angle.cos(), angle.sin()], dim=-1)
