"""Commands to track recorded motions of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import number, one_of, whole_number
from simstate.base.contract import NO, Contract
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index
from simstate.entity import EntityData
from simstate.env.commands import Command, CommandCfg, Range
from simstate.env.contracts import quantity_contracts
from simstate.env.entity_cfg import Patterns, SceneEntityCfg, exactly_one
from simstate.env.motion_files import read_motion
from simstate.env.motion_reference import MotionFrames, MotionReference
from simstate.env.motion_starts import MotionStarts
from simstate.env.random_poses import drawn_directions
from simstate.math import euler, quaternion
from simstate.math.vector import norm
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

AtEnd: TypeAlias = Literal["restart", "hold"]
Tracked: TypeAlias = Literal[
    "joint_pos",
    "joint_vel",
    "root_pos",
    "root_quat",
    "root_height",
    "anchor_pos",
    "anchor_quat",
    "anchor_height",
    "body_pos",
    "body_quat",
    "body_height",
    "body_lin_vel",
    "body_ang_vel",
]
"""Quantities that can be compared with the motion."""


@dataclass(kw_only=True)
class MotionCommandCfg(CommandCfg):
    """A motion of the root link and the joints from a file, to be tracked.

    A reset draws a time and puts the entity in the motion's state at it. Of several
    motions, it draws one first.
    """

    ranges = (*CommandCfg.ranges, "start", "joint_pos_range")
    resampling_time_s: Range = (1e9, 1e9)
    """Range of the time after which a world restarts elsewhere in the motion [s]."""
    file: str | Path | Sequence[str | Path]
    """A .csv or .npz file, as in `simstate.data.datasets.read_motion`; or several with
    the same joints. Each second of them is drawn equally often."""
    motion_joints: Sequence[str] | None = None
    """The joints of the file, in its order; None: all of the entity's, in theirs."""
    fps: float | None = None
    """Frames per second of a .csv file, which does not state it."""
    body_names: Patterns = None
    """Regular expressions on the links that are compared; None: all."""
    start: Range = (0.0, 1.0)
    """Range of the start of an episode, as fractions of the motion; (0, 0): its
    start."""
    sampling: Literal["uniform", "adaptive"] = "uniform"
    """Distribution of the start: "adaptive" prefers times shortly before those at which
    episodes have failed. Worlds then depend on each other."""
    uniform_share: float = 0.1
    """Share of the starts that "adaptive" sampling draws uniformly."""
    failure_memory: int = 1000
    """Time constant, in episodes, with which "adaptive" sampling forgets failures."""
    anchor: str | None = None
    """The reference link of aligned links; None: the root link."""
    at_end: AtEnd = "restart"
    """Behaviour at the end of the motion: "restart" draws a new start, "hold" keeps the
    last frame."""
    aligned: bool = True
    """True if links are compared relative to the anchor: the motion is moved over
    ground and rotated about z to the entity's anchor."""
    joint_pos_range: Range = (0.0, 0.0)
    """Offset that a reset adds to the joints' positions [rad or m]."""
    pose_range: Mapping[str, Range] = field(default_factory=dict[str, Range])
    """Offset that it adds to the root link's pose, as in `events.reset_root_state`."""
    velocity_range: Mapping[str, Range] = field(default_factory=dict[str, Range])
    """Offset that it adds to its velocity."""

    def make(self, name: str, env: Env) -> MotionCommand:
        """Return the term, in the environment's scene."""
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
        files = [cfg.file] if isinstance(cfg.file, str | Path) else list(cfg.file)
        if not files:
            raise InvalidInputError(
                f"The command term {name!r} has no motion file.", name="file"
            )
        motions = [read_motion(file, list(joints), cfg.fps) for file in files]
        self.names = (*(f"pos {j}" for j in joints), *(f"vel {j}" for j in joints))
        super().__init__(name, cfg, env)
        self.cfg = cfg
        self.reference = MotionReference(motions, entity)
        """The motions at any time."""
        self.contracts = [
            *quantity_contracts(entity, EntityData.joint_pos, joints),
            *quantity_contracts(entity, EntityData.joint_vel, joints),
        ]
        chosen = SceneEntityCfg(entity.name, body_names=cfg.body_names)
        self._bodies = chosen.resolve_in(entity).body_ids
        root = entity.body_names[0]
        self._anchor = exactly_one(
            f"anchor of the command term {name!r}",
            "link",
            "anchor",
            entity.find_bodies(root if cfg.anchor is None else cfg.anchor),
        )
        self._joints = torch.tensor(self.reference.joints, device=env.device)
        self.clip = self.memory("clip", dtype=torch.int64)
        """The motion that each world has, as an index into `file`; (num_envs,)."""
        self.time = self.memory("time", dtype=torch.float64)
        """Time of each world in its motion [s]; (num_envs,)."""
        self.starts = MotionStarts(
            self.reference.duration, cfg, worlds_of(env.sim).ledger, self._place
        )
        """Starts of episodes."""
        self._last: tuple[Tensor, Tensor] | None = None
        """Motion and time at the end of the last step, before any redraw."""
        if cfg.sampling == "adaptive":
            clip = self.memory("last_clip", dtype=torch.int64)
            self._last = clip, self.memory("last_time", dtype=torch.float64)

    @property
    def ended(self) -> Tensor:
        """True where the motion is over; bool, shape (num_envs,)."""
        return self.time >= self.reference.duration[self.clip]

    @property
    def frames(self) -> MotionFrames:
        """The motion in each world now, where the world has it on its terrain."""
        return self._frames_at(slice(None))

    def _frames_at(self, rows: Index) -> MotionFrames:
        frames = self.reference.at(self.clip[rows], self.time[rows])
        if self.env.terrain is not None:
            origins = self.env.terrain.origins(self.env.all_ids[rows])
            frames.body_pos_w.add_(origins[:, None])
        return frames

    @property
    def offset(self) -> Tensor:
        """Error of the anchor, anchor's axes; (num_envs, 6).

        The vector to its target position [m], then the remaining rotation [rad].
        """
        frames, data, k = self.frames, self.entity.data, self._anchor
        quat = data.body_link_quat_w[:, k]
        way = frames.body_pos_w[:, k] - data.body_link_pos_w[:, k]
        turn = quaternion.multiply(quaternion.conjugate(quat), frames.body_quat_w[:, k])
        parts = [
            quaternion.rotate_inverse(quat, way),
            quaternion.to_rotation_vector(turn),
        ]
        return torch.cat(parts, dim=1)

    def error(self) -> Tensor:
        """Return the root mean square error of the joints [rad or m]; (num_envs,)."""
        return self.errors("joint_pos").square().mean(-1).sqrt()

    def errors(self, tracked: Tracked, bodies: Index | None = None) -> Tensor:
        """Return the error of each joint or link, in its unit; (num_envs, k).

        `bodies` are the links of "body_…"; None: those of the configuration.
        Attitudes as angles [rad], heights along world z [m]; k is 1 for the root link
        and the anchor.
        """
        one_of("what is tracked", tracked, get_args(Tracked))
        frames, data = self.frames, self.entity.data
        if tracked.startswith("joint"):
            now = data.read(tracked)[:, self._joints]
            return (getattr(frames, tracked) - now).abs()
        part, _, quantity = tracked.partition("_")
        is_height, field = quantity == "height", quantity.replace("height", "pos")
        anchor = slice(self._anchor, self._anchor + 1)
        links = self._bodies if bodies is None else bodies
        bodies = {"root": slice(0, 1), "anchor": anchor, "body": links}[part]
        now = data.read(f"body_link_{field}_w")[:, bodies]
        if self.cfg.aligned and part == "body":
            frames = self._aligned(frames)
        asked = getattr(frames, f"body_{field}_w")[:, bodies]
        if is_height:
            return (asked - now)[..., 2].abs()
        if quantity == "quat":
            return quaternion.angle_between(asked, now)
        return norm(asked - now)[..., 0]

    def _aligned(self, frames: MotionFrames) -> MotionFrames:
        """Return the motion, aligned in x, y and yaw with the entity's anchor."""
        data, k = self.entity.data, self._anchor
        here = data.body_link_pos_w[:, k : k + 1]
        there = frames.body_pos_w[:, k : k + 1]
        turn = _yaw(
            quaternion.multiply(
                data.body_link_quat_w[:, k],
                quaternion.conjugate(frames.body_quat_w[:, k]),
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
        """Advance time and motion [s]; return the worlds to redraw; (num_envs,)."""
        self.time.add_(dt)
        torch.minimum(self.time, self.reference.duration[self.clip], out=self.time)
        if self._last is not None:
            clip, time = self._last
            clip.copy_(self.clip)
            time.copy_(self.time)
        over = super().due(dt)
        return over | self.ended if self.cfg.at_end == "restart" else over

    def end(self, env_ids: Tensor) -> None:
        """Record the times in the motions at which these worlds have failed."""
        if self._last is not None:
            clip, time = self._last
            failed = self.env.ends.ended_by("failure")[env_ids]
            self.starts.record(clip[env_ids], time[env_ids], failed)

    def sample(self, env_ids: Tensor) -> None:
        """Draw a motion and a time for these worlds, and write the entity's state."""
        draws = self.env.rng.uniform(env_ids, 1)[:, 0]
        self.clip[env_ids], self.time[env_ids] = self.starts.at(draws)
        self._write_state(env_ids)

    def _write_state(self, env_ids: Tensor) -> None:
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
        state[:, 3:7] = quaternion.multiply(
            euler.to_quaternion(pose[:, 3:], "izyx"), state[:, 3:7]
        )
        state[:, 7:] += drawn_directions(env, env_ids, cfg.velocity_range).to(state)
        joint_pos = frames.joint_pos.clone()
        count = joint_pos.shape[1]
        joint_pos += env.rng.uniform(env_ids, count, *cfg.joint_pos_range).to(joint_pos)
        self.entity.write_root_state_to_sim(state, env_ids)
        self.entity.write_joint_state_to_sim(
            joint_pos, frames.joint_vel, self._joints, env_ids
        )

    def follow(self, rows: Index) -> None:
        """Read the clips at the current times of these worlds."""
        frames = self._frames_at(rows)
        asked = torch.cat([frames.joint_pos, frames.joint_vel], dim=1)
        self.command[rows] = asked.to(torch.float32)


def motion_command(env: Env, name: str) -> MotionCommand:
    """Return the command of this name, if it is a motion."""
    command = env.commands[name]
    if not isinstance(command, MotionCommand):
        raise InvalidInputError(
            f"The term needs a motion command; {name!r} is a {type(command).__name__}."
        )
    return command


def _yaw(quat: Tensor) -> Tensor:
    """Return the rotation about z that is closest to each rotation; (…, 4)."""
    zero = torch.zeros_like(quat[..., 0])
    turn = torch.stack([quat[..., 0], zero, zero, quat[..., 3]], dim=-1)
    return quaternion.normalize(turn)


def _check(name: str, cfg: MotionCommandCfg) -> None:
    label = f"the command term {name!r}"
    one_of(f"at_end of {label}", cfg.at_end, get_args(AtEnd))
    one_of(f"sampling of {label}", cfg.sampling, ("uniform", "adaptive"))
    number(f"uniform_share of {label}", cfg.uniform_share, at_least=0, at_most=1)
    whole_number(f"failure_memory of {label}", cfg.failure_memory, 1)
    if not 0.0 <= cfg.start[0] <= cfg.start[1] <= 1.0:
        raise InvalidInputError(
            f"The command term {name!r} has start {cfg.start}: it must be (least, "
            "greatest) between 0 and 1.",
            name="start",
        )
