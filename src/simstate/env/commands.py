"""Command terms: goals of the robot, which are redrawn at random times."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from simstate.base.checks import all_of, check_range, check_vector, number, one_of
from simstate.base.contract import NO, Contract
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, Index
from simstate.base.places import calling_place
from simstate.env.host_view import either
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.entity.mirror import SignedPermutation
    from simstate.env.env import Env
    from simstate.env.symmetry import Symmetry

Range = tuple[float, float]


_FOREVER = 1e9
"""Time until the next draw of a command that is held [s]."""


@dataclass(kw_only=True)
class CommandCfg(ABC):
    """Configuration of a command, which `make` creates."""

    asset_name: str = "robot"
    """The entity that it is for."""
    ranges: ClassVar[tuple[str, ...]] = ("resampling_time_s",)
    """The fields that are ranges."""
    resampling_time_s: Range
    """Range of the time between two draws of a command [s], rounded to steps."""

    def __post_init__(self) -> None:
        self.place = calling_place()
        """The line that it was written in, for errors."""

    @abstractmethod
    def make(self, name: str, env: Env) -> Command:
        """Return the term, in the environment's scene."""


class Command(ABC):
    """The current goal of each world, drawn at reset and again after a random time.

    A subclass defines `names`, `offset` and `sample(env_ids)`, which writes the rows of
    `command` of these worlds, for example by `uniform`; and `follow`, if the command
    depends on the state. Its `__init__` calls that of Command.
    """

    names: tuple[str, ...]
    """Name of each column of `command`."""
    contracts: Sequence[Contract] = ()
    """Unit, axes and point of each column; none: not declared."""
    offset_contracts: Sequence[Contract] = ()
    """Contracts of the columns of `offset`; a single one is that of all columns."""

    def __init__(self, name: str, cfg: CommandCfg, env: Env) -> None:
        for field in cfg.ranges:
            check_range(f"command term {name!r}", field, getattr(cfg, field))
        label = f"command term {name!r}"
        all_of(f"names of the {label}", getattr(self, "names", None), str)
        if not cfg.resampling_time_s[0] > 0.0:
            raise InvalidInputError(
                f"The {label} has resampling_time_s {cfg.resampling_time_s}: it must "
                "be (minimum, maximum) > 0.",
                name="resampling_time_s",
            )
        self.env = env
        self.entity = env.scene[cfg.asset_name]
        self._resampling_time_s = cfg.resampling_time_s
        self._place = f"env/command/{name}"
        self.command = self.memory("command", (len(self.names),))
        """The current command, by `names`; float32, shape (num_envs, columns)."""
        self.time_left = self.memory("time_left")
        """Time until the next draw [s]; shape (num_envs,)."""
        self.error_sum = self.memory("error_sum", reset=0.0)
        """The error, summed over the steps of the episode; shape (num_envs,)."""

    def memory(
        self,
        name: str,
        shape: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float32,
        reset: float | None = None,
    ) -> Tensor:
        """Return memory of the command; reset=None keeps values until a draw."""
        name, ledger = f"{self._place}/{name}", worlds_of(self.env.sim).ledger
        return ledger.memory(name, shape, dtype, reset, owner="env").tensor

    def mirror(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the signed permutation of its columns in the task's mirror image."""
        return symmetry.components(self.names, self.contracts)

    def mirror_offset(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the signed permutation of `offset`, by default of x, y and z."""
        axes = "xyz"[: self.offset.shape[1]]
        return symmetry.components(axes, self.offset_contracts)

    @property
    @abstractmethod
    def offset(self) -> Tensor:
        """Difference between the command and the state; shape (num_envs, k)."""

    def error(self) -> Tensor:
        """Return the norm of the offset; shape (num_envs,)."""
        offset = self.offset
        return self.env.xp.sqrt((offset * offset).sum(-1))

    def draw(self, env_ids: Tensor) -> None:
        """Redraw the command of these worlds."""
        self.time_left[env_ids] = self.uniform(env_ids, self._resampling_time_s)[:, 0]
        self.sample(env_ids)
        self.follow(env_ids)

    def reset(self, env_ids: Tensor) -> None:
        """Start an episode in these worlds."""
        self.draw(env_ids)

    def end(self, env_ids: Tensor) -> None:
        """End an episode in these worlds, before they are reset."""
        del env_ids  # subclasses use it

    def measure(self) -> None:
        """Add the present error to the episode's."""
        self.error_sum += self.error()

    def due(self, dt: float) -> Tensor:
        """Advance the clock [s]; return the mask of due worlds; (num_envs,)."""
        self.time_left -= dt
        return self.time_left <= dt / 2.0  # the nearest step

    def advance(self, due: Tensor) -> None:
        """Redraw the command in worlds that are due, and update it in all."""
        if due.numel():
            self.draw(due)
        self.follow(slice(None))

    @abstractmethod
    def sample(self, env_ids: Tensor) -> None:
        """Draw the command of these worlds."""

    def follow(self, rows: Index) -> None:
        """Update the parts that depend on the robot's state in these worlds."""
        del rows  # subclasses use it

    def uniform(self, env_ids: Tensor, *spans: Range) -> Tensor:
        """Draw from each range for these worlds, float32; shape (n, ranges)."""
        low, high = torch.tensor(
            spans, dtype=torch.float64, device=env_ids.device
        ).unbind(1)
        drawn = self.env.rng.uniform(env_ids, len(spans), low, high)
        return drawn.to(torch.float32)


@dataclass(kw_only=True)
class VelocityCommandCfg(CommandCfg):
    """A velocity over ground, in the axes of the root link."""

    ranges = (*CommandCfg.ranges, "lin_vel_x", "lin_vel_y", "ang_vel_z", "heading")
    lin_vel_x: Range
    """Forward [m/s]."""
    lin_vel_y: Range = (0.0, 0.0)
    """To the left [m/s]."""
    ang_vel_z: Range = (0.0, 0.0)
    """Yaw rate; limits of the yaw rate where a heading is followed [rad/s]."""
    heading: Range | None = None
    """Headings to turn to [rad]; None: the yaw rate is drawn."""
    heading_stiffness: float = 1.0
    """Yaw rate per heading error [1/s]."""
    heading_share: float = 1.0
    """Fraction of draws that follow a heading, if there is one."""
    standing_share: float = 0.0
    """Fraction of draws with zero velocities."""
    forward_share: float = 0.0
    """Fraction of draws with only a forward velocity, of the magnitude drawn."""

    def make(self, name: str, env: Env) -> VelocityCommand:
        """Return the term, in the environment's scene."""
        return VelocityCommand(name, self, env)


@either
class VelocityCommand(Command):
    """Forward, sideways [m/s] and yaw velocity [rad/s], root link's axes."""

    names = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
    offset_contracts = (Contract("m/s", "root link", "link origin"),)
    contracts = (*2 * offset_contracts, Contract("rad/s", "root link", "any"))

    def __init__(self, name: str, cfg: VelocityCommandCfg, env: Env) -> None:
        for field in ("heading_share", "standing_share", "forward_share"):
            share = getattr(cfg, field)
            number(f"{field} of command term {name!r}", share, at_least=0, at_most=1)
        number(f"heading_stiffness of command term {name!r}", cfg.heading_stiffness)
        super().__init__(name, cfg, env)
        self.cfg = cfg
        self.heading = self.memory("heading")
        """The heading to turn to, if one is followed [rad]; (num_envs,)."""
        self.follows_heading = self.memory("follows_heading", dtype=torch.bool)
        self.is_standing = self.memory("is_standing", dtype=torch.bool)
        """True where all velocities are zero; (num_envs,)."""
        self._ranges: dict[str, Tensor] = {}
        for axis, one in zip(self.names, self.contracts, strict=True):
            span = torch.tensor(getattr(cfg, axis), dtype=torch.float64)
            slot = worlds_of(env.sim).ledger.shared(
                f"{self._place}/{axis}", span, unit=one.unit, optional=True
            )
            self._ranges[axis] = slot.tensor

    def range(self, axis: str) -> Range:
        """Return the current range of a velocity [m/s, rad/s].

        Axes are "lin_vel_x", "lin_vel_y" and "ang_vel_z".
        """
        one_of("range of a velocity command", axis, self.names)
        low, high = (float(x) for x in self._ranges[axis])
        return low, high

    def hold(self, env_ids: Ids, axis: str, velocity: float) -> None:
        """Command a velocity [m/s, rad/s] in some worlds until their next reset."""
        one_of("velocity of a command", axis, self.names)
        rows = worlds_of(self.env.sim).select(env_ids).tensor(self.command.device)
        self.command[rows, self.names.index(axis)] = velocity
        self.time_left[rows] = _FOREVER
        self.is_standing[rows] = False
        self.follows_heading[rows] = False

    def set_range(self, axis: str, span: Range) -> None:
        """Change the range that a velocity is drawn from; see `range`."""
        one_of("range of a velocity command", axis, self.names)
        check_range("velocity command", axis, span)
        self._ranges[axis].copy_(torch.tensor(span, dtype=torch.float64))

    @property
    def offset(self) -> Tensor:
        """Error of the velocity in x and y, root link's axes [m/s]; (num_envs, 2).

        It does not include the yaw rate, which has another unit.
        """
        return self.command[:, :2] - self.entity.data.root_link_lin_vel_b[:, :2]

    def sample(self, env_ids: Tensor) -> None:
        """Draw velocities; some worlds stand, follow a heading or go straight."""
        cfg = self.cfg
        chance = (0.0, 1.0)
        velocity = (self.range(axis) for axis in self.names)
        spans = (*velocity, chance, cfg.heading or chance, chance)
        drawn = self.uniform(env_ids, *spans)
        self.command[env_ids] = drawn[:, :3]
        self.is_standing[env_ids] = drawn[:, 3] < cfg.standing_share
        if cfg.heading is not None:
            self.heading[env_ids] = drawn[:, 4]
            self.follows_heading[env_ids] = drawn[:, 5] < cfg.heading_share
        if cfg.forward_share:
            self._straighten(env_ids)

    def _straighten(self, env_ids: Tensor) -> None:
        """Give a fraction of these worlds only a forward velocity, without heading."""
        chance = self.uniform(env_ids, (0.0, 1.0))
        straight = chance < self.cfg.forward_share
        drawn = self.command[env_ids]
        ahead = torch.cat([drawn[:, :1].abs(), torch.zeros_like(drawn[:, 1:])], dim=1)
        self.command[env_ids] = torch.where(straight, ahead, drawn)
        self.follows_heading[env_ids] &= ~straight[:, 0]

    def follow(self, rows: Index) -> None:
        """Turn worlds that follow a heading; zero the command of those that stand."""
        xp, command = self.env.xp, self.command[rows]
        if self.cfg.heading is not None:
            now = xp.asarray(self.entity.data.heading_w[rows], dtype=xp.float32)
            off = wrapped(self.heading[rows] - now)
            rate = (self.cfg.heading_stiffness * off).clip(*self.range("ang_vel_z"))
            turned = xp.where(self.follows_heading[rows], rate, command[:, 2])
            command = xp.concatenate([command[:, :2], turned[:, None]], 1)
        standing = self.is_standing[rows][:, None]
        self.command[rows] = xp.where(standing, 0.0, command)


@dataclass(kw_only=True)
class AttitudeCommandCfg(CommandCfg):
    """An attitude for the root link, rotated from the default one about any axis."""

    max_angle: float = math.pi
    """Maximum angle from the default attitude [rad]."""
    axis: tuple[float, float, float] | None = None
    """The axis to turn about, world axes; None: any."""

    def make(self, name: str, env: Env) -> AttitudeCommand:
        """Return the term, in the environment's scene."""
        return AttitudeCommand(name, self, env)


class AttitudeCommand(Command):
    """An attitude of the root link, quaternion wxyz, body to world."""

    names = ("w", "x", "y", "z")
    contracts = (Contract("1", "world", NO),)
    offset_contracts = (Contract("rad", "root link", NO),)

    def __init__(self, name: str, cfg: AttitudeCommandCfg, env: Env) -> None:
        label = f"command term {name!r}"
        number(f"max_angle of {label}", cfg.max_angle, at_least=0, unit="rad")
        if cfg.axis is not None:
            check_vector(label, "axis", cfg.axis)
            if not any(cfg.axis):
                raise InvalidInputError(
                    f"The {label} has axis {cfg.axis}: it must have a direction.",
                    name="axis",
                )
        super().__init__(name, cfg, env)
        self.cfg = cfg
        self.command[:, 0] = 1.0  # the identity until an attitude is drawn

    @property
    def offset(self) -> Tensor:
        """Remaining rotation vector, root link's axes [rad]; shape (num_envs, 3)."""
        now = quaternion.conjugate(self.entity.data.root_link_quat_w)
        left = quaternion.multiply(now, self.command.to(now.dtype))
        return quaternion.to_rotation_vector(left)

    def sample(self, env_ids: Tensor) -> None:
        """Draw attitudes, rotated from the default one about an axis."""
        if self.cfg.axis is None:
            axis = self.env.rng.normal(env_ids, 3)
        else:
            given = torch.tensor([self.cfg.axis], dtype=torch.float64)
            axis = given.to(env_ids.device).expand(env_ids.shape[0], 3)
        limit = self.cfg.max_angle
        angle = self.env.rng.uniform(env_ids, 1, -limit, limit)
        turn = quaternion.from_rotation_vector(axis / norm(axis) * angle)
        start = self.entity.data.default_root_state[env_ids, 3:7].to(turn.dtype)
        target = quaternion.multiply(turn, start)
        self.command[env_ids] = target.to(torch.float32)


@dataclass(kw_only=True)
class HeadingCommandCfg(CommandCfg):
    """A heading for the root link."""

    ranges = (*CommandCfg.ranges, "heading")
    heading: Range = (-math.pi, math.pi)
    """Range of the headings: angles about world z of the link's x axis [rad]."""

    def make(self, name: str, env: Env) -> HeadingCommand:
        """Return the term, in the environment's scene."""
        return HeadingCommand(name, self, env)


@either
class HeadingCommand(Command):
    """A heading for the root link, as `heading_w` [rad]."""

    names = ("heading",)
    contracts = offset_contracts = (Contract("rad", "world", NO),)

    def __init__(self, name: str, cfg: HeadingCommandCfg, env: Env) -> None:
        super().__init__(name, cfg, env)
        self.cfg = cfg

    @property
    def offset(self) -> Tensor:
        """Remaining angle, in [−π, π) [rad]; shape (num_envs, 1)."""
        return wrapped(self.command - self.entity.data.heading_w[:, None])

    def mirror(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the sign of a heading, a rotation about z."""
        return symmetry.components(("about z",), self.contracts)

    def mirror_offset(self, symmetry: Symmetry) -> SignedPermutation:
        """Return the same sign."""
        return self.mirror(symmetry)

    def sample(self, env_ids: Tensor) -> None:
        """Draw headings."""
        self.command[env_ids] = self.uniform(env_ids, self.cfg.heading)


def wrapped(angle: Tensor) -> Tensor:
    """Return the angle wrapped to [−π, π) [rad]."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi
