"""Links that can be placed: with a free joint, mocap, or fixed to the world as root.

Where such a link is stands in one place each: in qpos and qvel, in mocap_pos and
mocap_quat, or in the world's own body_pos and body_quat. Nothing here is computed from
the state, so that nothing can be stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index, Selection, as_index, int_list
from simstate.engine import OneTorchThread
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.scene import EntityIndex
from simstate.world import Write
from simstate.world.worlds import Worlds


class _PosePart(NamedTuple):
    """Columns of a pose, and where they are for links without a free joint."""

    start: int
    stop: int
    mocap_field: str
    parameter: str


_POSE = (
    _PosePart(0, 3, "mocap_pos", "body_pos"),
    _PosePart(3, 7, "mocap_quat", "body_quat"),
)

_SAME = 2e-7
"""Tolerance for a value that was stored in float32 or as text."""


class Links:
    """The links of some entities that can be placed, by their body ids."""

    def __init__(self, indexes: Sequence[EntityIndex], worlds: Worlds) -> None:
        model = worlds.model
        self._worlds = worlds
        self._qpos_adr: dict[int, int] = {}
        self._dof_adr: dict[int, int] = {}
        self._mocap: dict[int, int] = {}
        bases: list[int] = []
        for index in indexes:
            free = index.free_body_ids
            self._qpos_adr.update(zip(free, index.free_qpos_adr, strict=True))
            self._dof_adr.update(zip(free, index.free_dof_adr, strict=True))
            for body in index.mocap_bodies.ids:
                self._mocap[body] = int(model.body_mocapid[body])
            if index.base == "fixed" and not model.body_dofnum[index.root_body_id]:
                bases.append(index.root_body_id)
        self.bases = frozenset(bases)
        """Root links that are fixed to the world and moved by no joint."""
        self.free = frozenset(self._qpos_adr)
        """Links with a free joint, which have a velocity, too."""
        self.placeable = frozenset((*self._qpos_adr, *self._mocap, *bases))
        """Links whose pose can be written."""

    @property
    def base(self) -> int | None:
        """The root link of a single entity, if it is among `bases`."""
        return next(iter(self.bases), None)

    @property
    def is_placed(self) -> bool:
        """True if a fixed base may be elsewhere than in the model."""
        expanded = self._worlds.engine.expanded
        return bool(self.bases) and any(p.parameter in expanded for p in _POSE)

    # Reads.

    def base_is_at(self, rows: Selection, pose: Tensor) -> bool:
        """Return True if a fixed base is exactly at these poses; shape (n, 7)."""
        now = self.base_pose(rows)
        same = now == pose
        same[:, 3:] |= now[:, 3:] == quaternion.normalize(pose[:, 3:])
        return bool(same.all())

    def base_pose(self, rows: Selection) -> Tensor:
        """Return the pose of the fixed base, world axes [m, wxyz]; shape (n, 7)."""
        parts: list[Tensor] = []
        for part in _POSE:
            values = self._worlds.engine.parameter(part.parameter)[:, self.base]
            own = values.shape[0] > 1
            parts.append(values[rows.index] if own else values.expand(rows.count, -1))
        return torch.cat(parts, dim=-1)

    def free_quats(self, rows: Selection, bodies: Sequence[int]) -> Tensor:
        """Orientations of free links, normalised, as qpos has them; (n, B, 4)."""
        columns = self._columns([self._qpos_adr[body] + 3 for body in bodies], 4)
        quats = self._read("qpos", rows, columns)
        return quaternion.normalize(quats.reshape(rows.count, len(bodies), 4))

    def free_ang_vels(self, rows: Selection, bodies: Sequence[int]) -> Tensor:
        """Angular velocities of free links, world axes [rad/s]; (n, B, 3)."""
        columns = self._columns([self._dof_adr[body] + 3 for body in bodies], 3)
        ang_vel_b = self._read("qvel", rows, columns)
        ang_vel_b = ang_vel_b.reshape(rows.count, len(bodies), 3)
        return quaternion.rotate(self.free_quats(rows, bodies), ang_vel_b)

    def _read(self, field: str, rows: Selection, columns: Index) -> Tensor:
        """Return columns of a field in some worlds; (n, columns)."""
        values = self._worlds.engine.field(field)
        with OneTorchThread():
            if isinstance(columns, slice):  # a view: only these columns are copied
                return values[:, columns][rows.index]
            return values[rows.index][:, columns]

    # Writes.

    def pose_writes(
        self, rows: Selection, bodies: Sequence[int], pose: Tensor
    ) -> list[Write]:
        """Writes of poses with quaternions of unit length; (n, B, 7)."""
        return self._placed(rows, bodies, pose, 0, _POSE)

    def pos_writes(
        self, rows: Selection, bodies: Sequence[int], pos: Tensor
    ) -> list[Write]:
        """Writes of the links' origins, world axes [m]; (n, B, 3)."""
        return self._placed(rows, bodies, pos, 0, _POSE[:1])

    def quat_writes(
        self, rows: Selection, bodies: Sequence[int], quat: Tensor
    ) -> list[Write]:
        """Writes of the links' orientations, unit length; (n, B, 4)."""
        return self._placed(rows, bodies, quat, 3, _POSE[1:])

    def _placed(
        self,
        rows: Selection,
        bodies: Sequence[int],
        values: Tensor,
        first: int,
        parts: Sequence[_PosePart],
    ) -> list[Write]:
        """Writes of the columns from `first` on of poses; shape (n, B, columns)."""
        writes: list[Write] = []
        free = [k for k, body in enumerate(bodies) if body in self._qpos_adr]
        if free:
            adrs = [self._qpos_adr[bodies[k]] + first for k in free]
            columns = self._columns(adrs, values.shape[-1])
            of_free = values if len(free) == len(bodies) else values[:, free]
            writes.append(Write("qpos", rows, columns, of_free.flatten(1)))
            if of_free is values:
                return writes
        mocap = [k for k, body in enumerate(bodies) if body in self._mocap]
        for part in parts if mocap else ():
            ids = self._index([self._mocap[bodies[k]] for k in mocap])
            of_part = values[:, mocap, part.start - first : part.stop - first]
            writes.append(Write(part.mocap_field, rows, ids, of_part))
        fixed = [k for k, body in enumerate(bodies) if body in self.bases]
        for part in parts if fixed else ():
            of_part = values[..., part.start - first : part.stop - first]
            moved: list[int] = []
            for k in fixed:
                if not self._is_as_compiled(part.parameter, bodies[k], of_part[:, k]):
                    self._worlds.parameters.expand(part.parameter)
                    moved.append(k)
            if moved:
                ids = self._index([bodies[k] for k in moved])
                name = f"model/{part.parameter}"
                writes.append(Write(name, rows, ids, of_part[:, moved]))
        return writes

    def _is_as_compiled(self, parameter: str, base: int, values: Tensor) -> bool:
        """Return True if a base that was never moved is there already.

        Compared to the precision of float32. All worlds keep its place in common then.
        """
        if parameter in self._worlds.engine.expanded:
            return False
        now = self._worlds.engine.parameter(parameter)[:, base]
        if now.shape[-1] == 4:  # q and −q are one orientation
            now = torch.where((values * now).sum(-1, keepdim=True) < 0.0, -now, now)
        return bool(((values - now).abs() <= _SAME * (1.0 + now.abs())).all())

    def vel_write(
        self, rows: Selection, bodies: Sequence[int], vel: Tensor, quats: Tensor
    ) -> Write:
        """The write of velocities at the origins of free links, world axes; (n, B, 6).

        `quats` are the orientations that they have then; (n, B, 4).
        """
        # A free joint keeps its angular velocity in body axes.
        ang_vel_b = quaternion.rotate_inverse(quats, vel[..., 3:])
        lin_vel = vel[..., :3].expand_as(ang_vel_b)
        columns = self._columns([self._dof_adr[body] for body in bodies], 6)
        values = torch.cat([lin_vel, ang_vel_b], dim=-1)
        return Write("qvel", rows, columns, values.flatten(1))

    def lin_vel_write(
        self, rows: Selection, bodies: Sequence[int], lin_vel: Tensor
    ) -> Write:
        """Return the same of linear velocities alone; (n, B, 3)."""
        columns = self._columns([self._dof_adr[body] for body in bodies], 3)
        return Write("qvel", rows, columns, lin_vel.flatten(1))

    def ang_vel_write(
        self, rows: Selection, bodies: Sequence[int], ang_vel: Tensor, quats: Tensor
    ) -> Write:
        """Return the same of angular velocities alone; (n, B, 3)."""
        ang_vel_b = quaternion.rotate_inverse(quats, ang_vel)
        columns = self._columns([self._dof_adr[body] + 3 for body in bodies], 3)
        return Write("qvel", rows, columns, ang_vel_b.flatten(1))

    def _columns(self, adrs: Sequence[int], width: int) -> Index:
        if len(adrs) == 1:
            return slice(adrs[0], adrs[0] + width)
        return self._index([adr + k for adr in adrs for k in range(width)])

    def _index(self, ids: Sequence[int]) -> Index:
        return as_index(ids, self._worlds.device)


def normalize_pose(pose: Tensor, name: str) -> Tensor:
    """Scale the quaternions of poses (…, 7) to unit length in place; return the poses.

    A zero quaternion raises, and nothing is changed.
    """
    quat = pose[..., 3:]
    quat /= _length(quat, name)
    return pose


def unit_quat(quat: Tensor, name: str) -> Tensor:
    """Return quaternions scaled to unit length; a zero one raises."""
    return quat / _length(quat, name)


def _length(quat: Tensor, name: str) -> Tensor:
    """Return the length of each quaternion, which is finite; a zero one raises.

    One of unit length to 1e-14 has length 1, as in MuJoCo, and keeps its bits.
    """
    length = norm(quat)
    if length.numel() and length.min().item() < 1e-9:
        where = int_list((length[..., 0] < 1e-9).nonzero()[0])
        raise InvalidInputError(
            f"The quaternion of {name} at {where} is zero: it has no direction. "
            "Nothing was written.",
            name=name,
        )
    return torch.where((length - 1.0).abs() <= quaternion.UNIT_TOLERANCE, 1.0, length)
