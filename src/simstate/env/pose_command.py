"""Commands of points and poses for a site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import Tensor

from simstate.base.contract import NO, Contract
from simstate.base.errors import InvalidInputError
from simstate.env.commands import Command, CommandCfg, Range
from simstate.env.entity_cfg import exactly_one
from simstate.env.host_view import either
from simstate.math import euler, quaternion
from simstate.math.vector import norm

if TYPE_CHECKING:
    from simstate.env.env import Env

PoseFrame: TypeAlias = Literal["world", "root"]


@dataclass(kw_only=True)
class PointCommandCfg(CommandCfg):
    """Target point of a site, in world axes."""

    ranges = (*CommandCfg.ranges, "x", "y", "z")
    site_name: str
    """The site that is to be there."""
    x: Range
    """Minimum and maximum x of the point, world axes [m]."""
    y: Range
    """Its y [m]."""
    z: Range
    """Its z [m]."""

    def make(self, name: str, env: Env) -> PointCommand:
        """Return the term, in the environment's scene."""
        return PointCommand(name, self, env)


@either
class PointCommand(Command):
    """A point for a site, world axes [m]."""

    names = ("x", "y", "z")
    contracts = offset_contracts = (Contract("m", "world", "site"),)

    def __init__(self, name: str, cfg: PointCommandCfg, env: Env) -> None:
        super().__init__(name, cfg, env)
        self.cfg = cfg
        found = self.entity.find_sites([cfg.site_name])
        self.site = exactly_one(f"command term {name!r}", "site", "site_name", found)

    @property
    def offset(self) -> Tensor:
        """Vector from the site to the point, world axes [m]; shape (num_envs, 3)."""
        return self.command - self.entity.data.site_pos_w[:, self.site]

    def sample(self, env_ids: Tensor) -> None:
        """Draw points."""
        self.command[env_ids] = self.uniform(
            env_ids, self.cfg.x, self.cfg.y, self.cfg.z
        )


@dataclass(kw_only=True)
class PoseCommandCfg(CommandCfg):
    """A position and an attitude for a site."""

    ranges = (*CommandCfg.ranges, "x", "y", "z", "roll", "pitch", "yaw")
    site_name: str
    """The site that is to be there."""
    x: Range
    """Position along the first axis of `frame`, from its origin [m]."""
    y: Range
    """Along the second [m]."""
    z: Range
    """Along the third [m]."""
    roll: Range = (0.0, 0.0)
    """Attitude: yaw, then pitch, then roll, about the rotated axes [rad]."""
    pitch: Range = (0.0, 0.0)
    """As for roll [rad]."""
    yaw: Range = (0.0, 0.0)
    """As for roll [rad]."""
    frame: PoseFrame = "root"
    """Frame of the pose: "root", the moving frame of the root link, or "world"."""

    def make(self, name: str, env: Env) -> PoseCommand:
        """Return the term, in the environment's scene."""
        return PoseCommand(name, self, env)


class PoseCommand(Command):
    """A position [m] and a quaternion wxyz for a site, site to `frame`."""

    names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    offset_contracts = (Contract("m", "world", "site"),)

    def __init__(self, name: str, cfg: PoseCommandCfg, env: Env) -> None:
        if cfg.frame not in ("world", "root"):
            raise InvalidInputError(
                f"The command term {name!r} has frame {cfg.frame!r}: it must be "
                '"root" or "world".',
                name="frame",
            )
        super().__init__(name, cfg, env)
        self.cfg = cfg
        found = self.entity.find_sites([cfg.site_name])
        self.site = exactly_one(f"command term {name!r}", "site", "site_name", found)
        axes = "world" if cfg.frame == "world" else "root link"
        place, attitude = Contract("m", axes, "site"), Contract("1", axes, NO)
        self.contracts = (*3 * [place], *4 * [attitude])
        self.command[:, 3] = 1.0  # the identity until an attitude is drawn

    @property
    def pos_w(self) -> Tensor:
        """Target position of the site, world axes [m]; (num_envs, 3)."""
        asked = self.command[:, :3].to(self.env.sim.dtype)
        if self.cfg.frame == "world":
            return asked
        data = self.entity.data
        return data.root_link_pos_w + quaternion.rotate(data.root_link_quat_w, asked)

    @property
    def quat_w(self) -> Tensor:
        """Target attitude of the site, wxyz, site to world; (num_envs, 4)."""
        asked = self.command[:, 3:].to(self.env.sim.dtype)
        if self.cfg.frame == "world":
            return asked
        return quaternion.multiply(self.entity.data.root_link_quat_w, asked)

    @property
    def offset(self) -> Tensor:
        """Vector from the site to its target, world axes [m]; (num_envs, 3)."""
        return self.pos_w - self.entity.data.site_pos_w[:, self.site]

    @property
    def turn(self) -> Tensor:
        """Remaining rotation vector, world axes [rad]; (num_envs, 3)."""
        now = quaternion.conjugate(self.entity.data.site_quat_w[:, self.site])
        return quaternion.to_rotation_vector(quaternion.multiply(self.quat_w, now))

    def turn_error(self) -> Tensor:
        """Return the remaining angle [rad]; shape (num_envs,)."""
        return norm(self.turn)[:, 0]

    def sample(self, env_ids: Tensor) -> None:
        """Draw poses."""
        cfg = self.cfg
        spans = (cfg.x, cfg.y, cfg.z, cfg.roll, cfg.pitch, cfg.yaw)
        drawn = self.uniform(env_ids, *spans)
        pose = torch.cat(
            [drawn[:, :3], euler.to_quaternion(drawn[:, 3:], "izyx")], dim=1
        )
        self.command[env_ids] = pose
