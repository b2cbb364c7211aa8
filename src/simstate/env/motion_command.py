"""A recorded motion of a file, to be tracked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.contract import NO, Contract
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index
from simstate.entity import EntityData
from simstate.env.commands import Command, CommandCfg, Range
from simstate.env.contracts import quantity_contracts
from simstate.env.entity_cfg import Patterns, SceneEntityCfg
from simstate.env.motion_files import read_motion
from simstate.env.motion_reference import MotionFrames, MotionReference
from simstate.env.random_poses import drawn_directions, from_euler
from simstate.math import quaternion
from simstate.math.vector import norm

if TYPE_CHECKING:
    from simstate.env.env import Env

AtEnd: TypeAlias = Literal["restart", "hold"]
Tracked: TypeAlias = Literal[
    "joint_pos",
    "joint_vel",
    "root_pos",
    "root_quat",
    "body_pos",
    "body_quat",
    "body_lin_vel",
    "body_ang_vel",
]
"""What can be compared with the motion."""


@dataclass(kw_only=True)
class MotionCommandCfg(CommandCfg):
    """A motion of the root link and the joints, from a file, which an entity is to do.

    A reset places the entity in the motion at a time that is drawn.
    """

    ranges = (*CommandCfg.ranges, "start", "joint_pos_range")
    resampling_time_s: Range = (1e9, 1e9)
    """Range of the time after which a world goes on elsewhere in the motion [s]."""
    file: str | Path
    """A .csv or .npz file, as `simstate.data.datasets.read_motion` takes it."""
    motion_joints: Sequence[str] | None = None
    """The joints of the file, in its order; None: all of the entity's, in theirs."""
    fps: float | None = None
    """Frames per second of a .csv file, which does not say it."""
    body_names: Patterns = None
    """Regular expressions on the links that are compared; None: all."""
    start: Range = (0.0, 1.0)
    """Shares of the motion between which an episode begins; (0, 0): at its begin."""
    at_end: AtEnd = "restart"
    """Where the motion ends: "restart" goes on elsewhere in it, "hold" stays there."""
    aligned: bool = True
    """Whether links are compared as seen from the root link: the motion is moved over
    ground and turned about z to where the entity is."""
    joint_pos_range: Range = (0.0, 0.0)
    """What a reset adds to the joints' positions [rad or m]."""
    pose_range: Mapping[str, Range] = field(default_factory=dict[str, Range])
    """What it adds to the root link's pose, as in `events.reset_root_state`."""
    velocity_range: Mapping[str, Range] = field(default_factory=dict[str, Range])
    """What it adds to its velocity."""

    def make(self, name: str, env: Env) -> MotionCommand:
        """The term, in the environment's scene."""
        return MotionCommand(name, self, env)


class MotionCommand(Command):
    """Positions [rad or m], then velocities of the motion's joints."""

    offset_contracts = (
        *3 * [Contract("m", "root link", "link origin")],
        *3 * [Contract("rad", "root link", NO)],
    )

    def __init__(self, name: str, cfg: MotionCommandCfg, env: Env) -> None:
        _check(name, cfg)
        entity = env.scene[cfg.asset_name]
        joints = cfg.motion_joints or entity.joint_names
        motion = read_motion(cfg.file, list(joints), cfg.fps)
        self.names = (*(f"pos {j}" for j in joints), *(f"vel {j}" for j in joints))
        super().__init__(name, cfg, env)
        self.cfg = cfg
        self.reference = MotionReference(motion, entity)
        """The motion at any time."""
        self.contracts = [
            *quantity_contracts(entity, EntityData.joint_pos, joints),
            *quantity_contracts(entity, EntityData.joint_vel, joints),
        ]
        chosen = SceneEntityCfg(entity.name, body_names=cfg.body_names)
        self._bodies = chosen.resolve_in(entity).body_ids
        self._joints = torch.tensor(self.reference.joints, device=env.device)
        self.time = self._memory("time", dtype=torch.float64)
        """How far each world is in the motion [s]; (num_envs,)."""

    @property
    def ended(self) -> Tensor:
        """Where the motion is over; bool, shape (num_envs,)."""
        return self.time >= self.reference.duration

    @property
    def frames(self) -> MotionFrames:
        """The motion in each world now, where the world has it on its terrain."""
        return self._frames_at(slice(None))

    def _frames_at(self, rows: Index) -> MotionFrames:
        frames = self.reference.at(self.time[rows])
        if self.env.terrain is not None:
            origins = self.env.terrain.origins(self.env.all_ids[rows])
            frames.body_pos_w.add_(origins[:, None])
        return frames

    @property
    def offset(self) -> Tensor:
        """What the root link misses, its own axes; (num_envs, 6).

        The way to its place [m], then the turn that is left [rad].
        """
        frames, data = self.frames, self.entity.data
        quat = data.root_link_quat_w
        way = frames.body_pos_w[:, 0] - data.root_link_pos_w
        turn = quaternion.multiply(quaternion.conjugate(quat), frames.body_quat_w[:, 0])
        parts = [
            quaternion.rotate_inverse(quat, way),
            quaternion.to_rotation_vector(turn),
        ]
        return torch.cat(parts, dim=1)

    def error(self) -> Tensor:
        """Root mean square of what the joints miss [rad or m]; (num_envs,)."""
        return self.errors("joint_pos").square().mean(-1).sqrt()

    def errors(self, tracked: Tracked) -> Tensor:
        """How far each joint or link is from the motion, in its unit; (num_envs, k).

        Attitudes as angles [rad]; k is 1 for the root link.
        """
        one_of("what is tracked", tracked, get_args(Tracked))
        frames, data = self.frames, self.entity.data
        if tracked.startswith("joint"):
            now = data.read(tracked)[:, self._joints]
            return (getattr(frames, tracked) - now).abs()
        part, _, quantity = tracked.partition("_")
        bodies = slice(0, 1) if part == "root" else self._bodies
        now = data.read(f"body_link_{quantity}_w")[:, bodies]
        if self.cfg.aligned and part == "body":
            frames = self._aligned(frames)
        asked = getattr(frames, f"body_{quantity}_w")[:, bodies]
        if quantity == "quat":
            return quaternion.angle_between(asked, now)
        return norm(asked - now)[..., 0]

    def _aligned(self, frames: MotionFrames) -> MotionFrames:
        """The motion, moved over ground and turned about z to the entity's root."""
        data = self.entity.data
        here, there = data.root_link_pos_w[:, None], frames.body_pos_w[:, :1]
        turn = _yaw(
            quaternion.multiply(
                data.root_link_quat_w,
                quaternion.conjugate(frames.body_quat_w[:, 0]),
            )
        )[:, None]
        base = torch.cat([here[..., :2], there[..., 2:]], dim=-1)
        away = quaternion.rotate(turn, frames.body_pos_w - there)
        return MotionFrames(
            frames.joint_pos,
            frames.joint_vel,
            base + away,
            quaternion.multiply(turn, frames.body_quat_w),
            quaternion.rotate(turn, frames.body_lin_vel_w),
            quaternion.rotate(turn, frames.body_ang_vel_w),
        )

    def due(self, dt: float) -> Tensor:
        """Let time and the motion run [s]; the worlds to draw anew; (num_envs,)."""
        self.time.add_(dt).clamp_(max=self.reference.duration)
        over = super().due(dt)
        return over | self.ended if self.cfg.at_end == "restart" else over

    def _draw(self, env_ids: Tensor) -> None:
        """Place these worlds somewhere in the motion, and the entity with it."""
        low, high = self.cfg.start
        share = self.env.rng.uniform(env_ids, 1, low, high)[:, 0]
        self.time[env_ids] = share * self.reference.duration
        self._put_there(env_ids)

    def _put_there(self, env_ids: Tensor) -> None:
        cfg, env, frames = self.cfg, self.env, self._frames_at(env_ids)
        state = torch.cat(
            [
                frames.body_pos_w[:, 0],
                frames.body_quat_w[:, 0],
                frames.body_lin_vel_w[:, 0],
                frames.body_ang_vel_w[:, 0],
            ],
            dim=1,
        )
        pose = drawn_directions(env, env_ids, cfg.pose_range).to(state)
        state[:, :3] += pose[:, :3]
        state[:, 3:7] = quaternion.multiply(from_euler(pose[:, 3:]), state[:, 3:7])
        state[:, 7:] += drawn_directions(env, env_ids, cfg.velocity_range).to(state)
        joint_pos = frames.joint_pos.clone()
        count = joint_pos.shape[1]
        joint_pos += env.rng.uniform(env_ids, count, *cfg.joint_pos_range).to(joint_pos)
        self.entity.write_root_state_to_sim(state, env_ids)
        self.entity.write_joint_state_to_sim(
            joint_pos, frames.joint_vel, self._joints, env_ids
        )

    def _follow(self, rows: Index) -> None:
        frames = self._frames_at(rows)
        asked = torch.cat([frames.joint_pos, frames.joint_vel], dim=1)
        self.command[rows] = asked.to(torch.float32)


def motion_command(env: Env, name: str) -> MotionCommand:
    """The command of this name, if it is a motion."""
    command = env.commands[name]
    if not isinstance(command, MotionCommand):
        raise InvalidInputError(
            f"The term needs a motion command; {name!r} is a {type(command).__name__}."
        )
    return command


def _yaw(quat: Tensor) -> Tensor:
    """The part of turns that is about z; (…, 4)."""
    zero = torch.zeros_like(quat[..., 0])
    turn = torch.stack([quat[..., 0], zero, zero, quat[..., 3]], dim=-1)
    return quaternion.normalize(turn)


def _check(name: str, cfg: MotionCommandCfg) -> None:
    one_of(f"at_end of the command term {name!r}", cfg.at_end, get_args(AtEnd))
    if not 0.0 <= cfg.start[0] <= cfg.start[1] <= 1.0:
        raise InvalidInputError(
            f"The command term {name!r} has start {cfg.start}: it must be (least, "
            "greatest) between 0 and 1."
        )
