"""MotionReference: motions of files on an entity, at any time.

MuJoCo's kinematics gives the poses of the bodies in each frame. Between two frames,
positions and velocities are interpolated linearly, attitudes at constant angular
velocity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.entity import Entity
from simstate.env.motion_files import MotionClip
from simstate.math import quaternion
from simstate.scene.index import EntityIndex
from simstate.world.worlds import worlds_of


@dataclass(frozen=True)
class MotionFrames:
    """The motion in each frame, or at some times; a row for each.

    World axes, quaternions (w, x, y, z), velocities of links' origins.
    """

    joint_pos: Tensor
    """The joints of the motion [rad or m]; (n, joints)."""
    joint_vel: Tensor
    """[rad/s or m/s]; (n, joints)."""
    body_pos_w: Tensor
    """Origins of all links of the entity, the root link first [m]; (n, bodies, 3)."""
    body_quat_w: Tensor
    """Link to world; (n, bodies, 4)."""
    body_lin_vel_w: Tensor
    """[m/s]; (n, bodies, 3)."""
    body_ang_vel_w: Tensor
    """[rad/s]; (n, bodies, 3)."""


class MotionReference:
    """Motions on an entity's joints, all of whose links follow from them."""

    def __init__(self, motions: Sequence[MotionClip], entity: Entity) -> None:
        self.joints = _joints(motions[0], entity)
        """The motions' joints, as columns of `joint_pos` of the entity."""
        if min(map(len, motions)) < 2:
            raise InvalidInputError("A motion to track has at least two frames.")
        if entity.index.base != "free":
            raise InvalidInputError(
                f"A motion moves the root link, that of {entity.name!r} is not free."
            )
        like = entity.data.default_joint_pos
        tables = zip(*(_tables(motion, entity) for motion in motions), strict=True)
        self._frames = MotionFrames(
            *(torch.as_tensor(np.concatenate(parts)).to(like) for parts in tables)
        )
        """The frames of all motions, one motion after the other."""
        lengths = torch.tensor([len(motion) for motion in motions], device=like.device)
        self._first = lengths.cumsum(0) - lengths
        self._last = lengths - 1
        self._fps = like.new_tensor([motion.fps for motion in motions])
        self.duration = (self._last / self._fps.double()).to(torch.float64)
        """From the first frame of each motion to the last [s]; (motions,)."""

    def at(self, clip: Tensor, time: Tensor) -> MotionFrames:
        """Return motions at some times [s], clamped to their start and end."""
        frames, last = self._frames, self._last[clip]
        place = (time.to(self._fps) * self._fps[clip]).clamp(min=0.0).minimum(last)
        within = place.long().minimum(last - 1)
        share, before = place - within, self._first[clip] + within
        return MotionFrames(
            **{
                field.name: _between(getattr(frames, field.name), before, share, field)
                for field in dataclasses.fields(frames)
            }
        )


def _between(
    table: Tensor, before: Tensor, share: Tensor, field: dataclasses.Field[Tensor]
) -> Tensor:
    """Return a table, interpolated between frames and those after them."""
    start, end = table[before], table[before + 1]
    share = share.reshape(-1, *(1,) * (table.ndim - 1))
    if "quat" not in field.name:
        return start + share * (end - start)
    turn = quaternion.multiply(quaternion.conjugate(start), end)
    part = share * quaternion.to_rotation_vector(turn)
    return quaternion.multiply(start, quaternion.from_rotation_vector(part))


def _joints(motion: MotionClip, entity: Entity) -> list[int]:
    known = list(entity.joint_names)
    for name in motion.joint_names:
        if name not in known:
            raise unknown_name(f"joint of {entity.name!r} in the motion", name, known)
    return [known.index(name) for name in motion.joint_names]


def _tables(motion: MotionClip, entity: Entity) -> list[np.ndarray]:
    """Return the fields of MotionFrames, by MuJoCo's kinematics in every frame."""
    index, model = entity.index, worlds_of(entity).model
    columns = _joints(motion, entity)
    lin_vel, ang_vel = _root_velocity(motion)
    data = mujoco.MjData(model)
    data.qpos[list(index.qpos_adr)] = entity.data.default_joint_pos[0].cpu().numpy()
    bodies = list(index.bodies.ids)
    kept = np.zeros((len(motion), len(bodies), 13))
    for k in range(len(motion)):
        _set_root(index, data, motion, k, lin_vel[k], ang_vel[k])
        data.qpos[[index.qpos_adr[c] for c in columns]] = motion.joint_pos[k]
        data.qvel[[index.dof_adr[c] for c in columns]] = motion.joint_vel[k]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        kept[k, :, :3], kept[k, :, 3:7] = data.xpos[bodies], data.xquat[bodies]
        for row, body in enumerate(bodies):
            _link_velocity(model, data, body, kept[k, row, 7:])
    lin, ang = kept[..., 10:], kept[..., 7:10]  # as MuJoCo has them: turns first
    joints = [motion.joint_pos, motion.joint_vel]
    return [*joints, kept[..., :3], kept[..., 3:7], lin, ang]


def _set_root(
    index: EntityIndex,
    data: mujoco.MjData,
    motion: MotionClip,
    frame: int,
    lin_vel: np.ndarray,
    ang_vel: np.ndarray,
) -> None:
    """Set a free root link to a frame; MuJoCo has its angular velocity in body axes."""
    qpos, dof = index.free_qpos_adr[0], index.free_dof_adr[0]
    quat = np.array(motion.root_quat[frame], dtype=np.float64)
    own, back = np.zeros(3), np.zeros(4)
    mujoco.mju_negQuat(back, quat)
    mujoco.mju_rotVecQuat(own, ang_vel, back)
    data.qpos[qpos : qpos + 7] = [*motion.root_pos[frame], *quat]
    data.qvel[dof : dof + 6] = [*lin_vel, *own]


def _link_velocity(
    model: mujoco.MjModel, data: mujoco.MjData, body: int, out: np.ndarray
) -> None:
    """Angular and linear velocity of a link at its origin, world axes; (6,)."""
    kind = mujoco.mjtObj.mjOBJ_XBODY.value
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, kind, body, velocity, 0)
    out[:] = velocity


def _root_velocity(motion: MotionClip) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular velocity of the root link, world axes; (frames, 3) each.

    The file's own, if it has them, else differences of the neighbouring frames.
    """
    own = [motion.bodies.get(f"body_{kind}_vel_w") for kind in ("lin", "ang")]
    if own[0] is not None and own[1] is not None:
        return np.asarray(own[0][:, 0], float), np.asarray(own[1][:, 0], float)
    lin_vel = np.gradient(motion.root_pos, 1.0 / motion.fps, axis=0)
    quat = torch.as_tensor(motion.root_quat)
    last = len(quat) - 1
    after = quat[[min(k + 1, last) for k in range(last + 1)]]
    before = quat[[max(k - 1, 0) for k in range(last + 1)]]
    turn = quaternion.multiply(after, quaternion.conjugate(before))
    steps = np.full((last + 1, 1), 2.0)
    steps[0] = steps[-1] = 1.0
    turned = quaternion.to_rotation_vector(turn).numpy()
    return lin_vel, turned * motion.fps / steps
