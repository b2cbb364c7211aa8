"""Observation terms: functions `(env, **params)` with a row for each world.

They return (num_envs, k) numbers, or (num_envs, H, W, C) pictures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import PURE, Contract
from simstate.base.errors import InvalidInputError, listed
from simstate.entity import EntityData
from simstate.entity.dynamics import Dynamics
from simstate.env import observation_mirrors as mirror
from simstate.env.contracts import contract
from simstate.env.entity_cfg import SceneEntityCfg, resolves_entities
from simstate.env.host_view import chosen, either, height_above_ground
from simstate.env.symmetry import Symmetry, mirrors, unchanged
from simstate.env.terms import XYZ, columns, columns_of, fixed_columns
from simstate.sensors import Camera, ContactSensor, RaySensor

if TYPE_CHECKING:
    from simstate.env.env import Env

ROBOT = SceneEntityCfg("robot")
_XYZ = fixed_columns("x", "y", "z")


@resolves_entities
@columns(columns_of("joint"))
@contract(EntityData.joint_pos)
@either
def joint_pos_rel(
    env: Env, asset_cfg: SceneEntityCfg = ROBOT, biased: bool = False
) -> Tensor:
    """Joint positions relative to their defaults [rad or m]; (num_envs, joints).

    `biased`: True for the positions that the encoders report.
    """
    data = env.scene[asset_cfg.name].data
    position = data.joint_pos_biased if biased else data.joint_pos
    return chosen(position - data.default_joint_pos, asset_cfg.joint_ids)


@resolves_entities
@columns(columns_of("joint"))
@contract(EntityData.joint_vel)
@either
def joint_vel_rel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Joint velocities relative to their defaults [rad/s or m/s]; (num_envs, J)."""
    data = env.scene[asset_cfg.name].data
    return chosen(data.joint_vel - data.default_joint_vel, asset_cfg.joint_ids)


@mirrors(mirror.cos_sin)
@resolves_entities
@columns(columns_of("joint", (".cos", ".sin")))
@contract(PURE)
@either
def joint_pos_cos_sin(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Cosine and sine of joint angles, continuous over full turns; (num_envs, 2J).

    In pairs, joint by joint.
    """
    xp, data = env.xp, env.scene[asset_cfg.name].data
    angle = chosen(data.joint_pos, asset_cfg.joint_ids)
    return xp.stack([xp.cos(angle), xp.sin(angle)], -1).reshape(len(angle), -1)


@resolves_entities
@columns(_XYZ)
@contract(EntityData.root_link_lin_vel_b)
@either
def base_lin_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Velocity of the root link's origin, root link's axes [m/s]; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.root_link_lin_vel_b


@resolves_entities
@columns(_XYZ)
@contract(EntityData.root_link_ang_vel_b)
@either
def base_ang_vel(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Angular velocity of the root link, its own axes [rad/s]; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.root_link_ang_vel_b


@resolves_entities
@columns(_XYZ)
@contract(EntityData.projected_gravity_b)
@either
def projected_gravity(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Direction of gravity, root link's axes, unit length; (num_envs, 3)."""
    return env.scene[asset_cfg.name].data.projected_gravity_b


@mirrors(unchanged)
@resolves_entities
@contract("m", axes="world", point="link origin")
@either
def base_height(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Height of the root link's origin above the ground [m]; (num_envs, 1).

    The ground is the terrain, or z = 0.
    """
    return height_above_ground(env, env.scene[asset_cfg.name])[:, None]


@mirrors(mirror.scan)
@resolves_entities
@contract("m", axes="world", point="link origin")
def terrain_scan(
    env: Env,
    size: tuple[float, float] = (1.6, 1.0),
    spacing: float = 0.2,
    asset_cfg: SceneEntityCfg = ROBOT,
) -> Tensor:
    """Height of the root link's origin above points of the terrain [m]; (num_envs, k).

    The points are a grid of `size` about the root link that turns with its heading,
    row by row from the rear right: x forward, y to the left. It reads only the
    heightfield, which is fast and ignores other geoms.
    """
    if env.terrain is None:
        raise InvalidInputError("terrain_scan needs a scene with a terrain.")
    data = env.scene[asset_cfg.name].data
    position, heading = data.root_link_pos_w, data.heading_w
    along = [
        torch.arange(-edge / 2.0, edge / 2.0 + 1e-9, spacing).to(position)
        for edge in size
    ]
    x, y = (grid.flatten() for grid in torch.meshgrid(*along, indexing="ij"))
    cos, sin = heading.cos()[:, None], heading.sin()[:, None]
    ahead = torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)
    points = position[:, None, :2] + ahead
    return position[:, 2:3] - env.terrain.terrain.height_at(points)


@resolves_entities
@columns(columns_of("site", XYZ))
@contract(EntityData.site_pos_w)
@either
def site_pos(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Positions of sites, world axes [m]; (num_envs, 3 sites)."""
    position = env.scene[asset_cfg.name].data.site_pos_w
    return chosen(position, asset_cfg.site_ids).reshape(len(position), -1)


@mirrors(mirror.between_sites)
@resolves_entities
@columns(_XYZ)
@contract(EntityData.site_pos_w)
@either
def site_offset(
    env: Env, asset_cfg: SceneEntityCfg, target_cfg: SceneEntityCfg
) -> Tensor:
    """Vector from a site to another one, world axes [m]; (num_envs, 3).

    Each of `asset_cfg` and `target_cfg` chooses one site, of any entity.
    """
    return _one_site(env, target_cfg) - _one_site(env, asset_cfg)


def _one_site(env: Env, site: SceneEntityCfg) -> Tensor:
    """Return the position of the only chosen site, world axes [m]; (num_envs, 3)."""
    names = site.names_of("site")
    if len(names) != 1:
        raise InvalidInputError(
            f"site_offset needs one site of {site.name!r}, and site_names matches "
            f"{listed(names)}: give it one name.",
            name="site_names",
        )
    position = env.scene[site.name].data.site_pos_w
    return chosen(position, site.site_ids).reshape(len(position), -1)


def _sensor_columns(env: Env, asset_cfg: SceneEntityCfg, **params: object) -> list[str]:
    del params
    entity = env.scene[asset_cfg.name]
    names: list[str] = []
    for name in asset_cfg.names_of("sensor"):
        width = entity.sensor(name).shape[1]
        names += [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
    return names


def _sensor_contracts(env: Env, asset_cfg: SceneEntityCfg) -> list[Contract]:
    """The contracts of the sensors."""
    entity = env.scene[asset_cfg.name]
    parts = [entity.sensor_contract(name) for name in asset_cfg.names_of("sensor")]
    return [Contract(s.unit, s.axes, s.point) for s in parts for _ in range(*s.columns)]


@mirrors(mirror.one_column_sensors)
@resolves_entities
@columns(_sensor_columns)
@contract(_sensor_contracts)
@either
def sensors(env: Env, asset_cfg: SceneEntityCfg) -> Tensor:
    """Readings of the model's sensors, MuJoCo's units and axes; (num_envs, k).

    `asset_cfg.sensor_names` chooses them. Touch and force sensors have the values of
    the last dynamics evaluation, as `sim.data.sensordata`.
    """
    return chosen(env.sim.data.sensordata, asset_cfg.sensor_columns)


@mirrors(mirror.one_column_sensors)
@resolves_entities
@columns(_sensor_columns)
@contract(PURE)
@either
def contacts(env: Env, asset_cfg: SceneEntityCfg, threshold: float = 1.0) -> Tensor:
    """1 where a touch sensor reads more than `threshold` [N], else 0; (num_envs, k)."""
    return (sensors(env, asset_cfg) > threshold) * 1.0


def _contact_columns(
    env: Env, sensor_name: str, ends: tuple[str, ...] = ("",)
) -> list[str]:
    names = env.sim.contacts[sensor_name].element_names
    return [name + end for name in names for end in ends]


@mirrors(Symmetry.contacts)
@columns(_contact_columns)
@contract(ContactSensor.found)
@either
def contact_found(env: Env, sensor_name: str) -> Tensor:
    """1 where an element of a contact sensor touches, else 0; (num_envs, elements)."""
    return env.sim.contacts[sensor_name].found * 1.0


@mirrors(Symmetry.contacts)
@columns(_contact_columns)
@contract(ContactSensor.air_time)
@either
def contact_air_time(env: Env, sensor_name: str) -> Tensor:
    """Time since each element of a contact sensor lifted off [s]; (num_envs, E)."""
    return env.sim.contacts[sensor_name].air_time


@mirrors(mirror.contact_forces)
@columns(partial(_contact_columns, ends=XYZ))
@contract(ContactSensor.force_w)
@either
def contact_force(env: Env, sensor_name: str) -> Tensor:
    """Net force on each element of a contact sensor, world axes [N]; (num_envs, 3E)."""
    return env.sim.contacts[sensor_name].force_w.reshape(env.num_envs, -1)


def _ray_columns(env: Env, sensor_name: str, **params: object) -> list[str]:
    del params
    return [f"ray {k}" for k in range(env.sim.rays[sensor_name].num_rays)]


@columns(_ray_columns)
@contract(RaySensor.height)
@either
def height_scan(
    env: Env, sensor_name: str, offset: float = 0.0, limit: float = 1.0
) -> Tensor:
    """Height above the ground of the body that carries rays [m]; (num_envs, rays).

    `offset`, the usual height, is subtracted, and the result clipped to ± `limit`.
    `sensor_name` is the name of the rays in `sim.rays`.
    """
    return (env.sim.rays[sensor_name].height - offset).clip(-limit, limit)


@columns(_ray_columns)
@contract(RaySensor.distance)
@either
def ray_distance(env: Env, sensor_name: str) -> Tensor:
    """Distance to the hit along each ray [m]; (num_envs, rays)."""
    return env.sim.rays[sensor_name].distance


@mirrors(mirror.momentum)
@resolves_entities
@columns(fixed_columns("x", "y", "z", "about x", "about y", "about z"))
@contract(3 * [Dynamics.linear_momentum_w] + 3 * [Dynamics.angular_momentum_w])
@either
def momentum(env: Env, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Linear, then angular momentum about the COM, world axes; (num_envs, 6).

    Of all bodies of the entity [kg·m/s, kg·m²/s].
    """
    own = env.scene[asset_cfg.name].dynamics
    return env.xp.concatenate([own.linear_momentum_w, own.angular_momentum_w], -1)


def _action_columns(env: Env) -> list[str]:
    return env.action_names


def _action_contracts(env: Env) -> list[Contract]:
    """The contracts of the action."""
    return env.actions.contracts


@mirrors(mirror.action)
@columns(_action_columns)
@contract(_action_contracts)
@either
def last_action(env: Env) -> Tensor:
    """The last action as given; zero after a reset; (num_envs, action_dim)."""
    return env.action


def _command_columns(env: Env, command_name: str) -> list[str]:
    return list(env.commands[command_name].names)


def _command_contracts(env: Env, command_name: str) -> Sequence[Contract]:
    """The contracts of the command."""
    return env.commands[command_name].contracts


def _offset_contracts(env: Env, command_name: str) -> Sequence[Contract]:
    """The contracts of the command's offset."""
    return env.commands[command_name].offset_contracts


@mirrors(mirror.command)
@columns(_command_columns)
@contract(_command_contracts)
@either
def generated_commands(env: Env, command_name: str) -> Tensor:
    """The present command, in its own units; (num_envs, k)."""
    return env.commands[command_name].command


@mirrors(mirror.command_offset)
@contract(_offset_contracts)
@either
def command_offset(env: Env, command_name: str) -> Tensor:
    """Difference between a command and the state, in its own units; (num_envs, k)."""
    return env.commands[command_name].offset


@mirrors(mirror.clock)
@columns(fixed_columns("cos", "sin"))
@contract(PURE)
@either
def phase(env: Env, period_s: float) -> Tensor:
    """Cosine and sine of a clock that starts with the episode; (num_envs, 2)."""
    xp, angle = env.xp, env.phase(period_s) * (2.0 * math.pi)
    return xp.stack([xp.cos(angle), xp.sin(angle)], -1)


@contract(Camera.rgb)
def camera_rgb(env: Env, camera: str) -> Tensor:
    """Colours of a camera of the scene, uint8; (num_envs, H, W, 3)."""
    return env.sim.cameras[camera].rgb


@contract(PURE)
def camera_grey(env: Env, camera: str) -> Tensor:
    """Brightness of a camera's pixels (ITU-R BT.601), uint8; (num_envs, H, W, 1)."""
    rgb = env.sim.cameras[camera].rgb.to(torch.int32)
    share = torch.tensor([77, 150, 29], dtype=torch.int32, device=env.device)
    return ((rgb * share).sum(-1, keepdim=True) // 256).to(torch.uint8)


@contract(Camera.depth)
def camera_depth(env: Env, camera: str, far: float | None = None) -> Tensor:
    """Distances along a camera's optical axis [m]; (num_envs, H, W, 1).

    0 where nothing is hit. With `far`, these and longer distances are `far`.
    """
    depth = env.sim.cameras[camera].depth[..., None]
    if far is None:
        return depth
    return depth.masked_fill(depth == 0.0, far).clamp(max=far)


@contract(Camera.segmentation)
def camera_segmentation(env: Env, camera: str) -> Tensor:
    """Geom id of each pixel, −1 for none, int32; (num_envs, H, W, 1)."""
    return env.sim.cameras[camera].segmentation[..., None].to(torch.int32)


@resolves_entities
@contract(PURE)
def camera_mask(env: Env, camera: str, asset_cfg: SceneEntityCfg = ROBOT) -> Tensor:
    """Pixels that show geoms of an entity: 255, others 0; uint8 (num_envs, H, W, 1)."""
    entity = env.scene[asset_cfg.name]
    shown = torch.zeros(env.sim.model.ngeom + 1, dtype=torch.uint8, device=env.device)
    geoms = torch.as_tensor(entity.index.geoms.ids, device=env.device)
    shown[geoms[asset_cfg.geom_ids]] = 255
    return shown[env.sim.cameras[camera].segmentation[..., None]]  # the last for none
