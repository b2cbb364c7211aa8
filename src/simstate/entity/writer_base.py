"""What the writers of an entity share: checked values, and the fields they go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from simstate.entity.reader import EntityReader
from simstate.errors import InvalidInputError, listed
from simstate.ids import (
    Ids,
    Index,
    Selection,
    Values,
    as_index,
    as_values,
    check_finite,
    int_list,
    select,
)
from simstate.ledger import Write
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.physics import Physics
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind

TARGET_NAMES: dict[TargetKind, str] = {
    "position": "joint_pos_target",
    "velocity": "joint_vel_target",
    "effort": "joint_effort_target",
}
"""The quantity that shows each kind of target."""


class WriterBase:
    """Checks what is to be written, and finds where it goes."""

    index: EntityIndex
    internals: Physics
    _reader: EntityReader

    @property
    def _num_joints(self) -> int:
        return len(self.index.joints)

    def _rows(
        self, name: str, values: Values, shape: tuple[int, ...], env_ids: Ids
    ) -> tuple[Selection, Tensor]:
        """The selected worlds, and finite values of the right shape for them."""
        rows = self.internals.select(env_ids)
        like = self.internals.engine.field("qpos")
        tensor = as_values(values, name, rows.count, shape, like)
        check_finite(tensor, name)
        return rows, tensor

    def _chosen(self, kind: str, ids: Ids, of: Sequence[int]) -> list[int]:
        """Those of the model's ids `of` that the entity's own ids select."""
        device = self.internals.device
        selection = select(ids, len(of), kind, device)
        return [int(of[i]) for i in int_list(selection.tensor(device))]

    def _elements(self, kind: str, ids: Ids, of: Sequence[int]) -> tuple[Index, int]:
        """The same as columns of a field, and how many they are."""
        chosen = self._chosen(kind, ids, of)
        return as_index(chosen, self.internals.device), len(chosen)

    def _write(self, *writes: Write) -> None:
        """Write checked values, all of them or none."""
        self.internals.ledger.write(*writes)

    def _write_columns(
        self,
        field: str,
        name: str,
        values: Values,
        kind: str,
        ids: Ids,
        of: Sequence[int],
        env_ids: Ids,
    ) -> None:
        """Write one number for each selected element into columns of a state field."""
        columns, count = self._elements(kind, ids, of)
        rows, tensor = self._rows(name, values, (count,), env_ids)
        self._write(Write(field, rows, columns, tensor))

    def _set_target(
        self, kind: TargetKind, target: Values, joint_ids: Ids, env_ids: Ids
    ) -> None:
        """Write targets: into the controls that take them, else beside them."""
        joints = select(joint_ids, self._num_joints, "joint", self.internals.device)
        rows, values = self._rows("target", target, (joints.count,), env_ids)
        self._target_writer(kind, joints)(values, rows)

    def _target_writer(
        self, kind: TargetKind, joints: Selection
    ) -> Callable[[Tensor, Selection], None]:
        """What writes targets of some joints, checked values (n, J), resolved once."""
        device, inputs = self.internals.device, self.index.target_inputs(kind)
        chosen = int_list(joints.tensor(device))
        place = {joint: k for k, joint in enumerate(chosen)}
        taken = [k for k, joint in enumerate(inputs.joints) if joint in place]
        columns = as_index([inputs.ctrl[k] for k in taken], device)
        picked = as_index([place[inputs.joints[k]] for k in taken], device)
        scales = as_index(taken, device)
        others = [k for k, joint in enumerate(chosen) if joint not in inputs.joints]
        beside = as_index([chosen[k] for k in others], device)
        slot = f"entity/{self.index.name}/{TARGET_NAMES[kind]}"

        def write(values: Tensor, rows: Selection) -> None:
            scale = self._reader.target_inputs(kind)[2][:, scales]
            if scale.shape[0] > 1:
                scale = scale[rows.index]
            writes = [Write("ctrl", rows, columns, values[:, picked] * scale)]
            if others:
                writes.append(Write(slot, rows, beside, values[:, others]))
            self._write(*writes)

        return write

    def _of_worlds(self, parameter: str, rows: Selection) -> Tensor:
        """A model parameter in the selected worlds; (n or 1, …)."""
        values = self._reader.parameter(parameter)
        return values if values.shape[0] == 1 else values[rows.index]

    def _check_root(self, method: str, velocity: bool = False) -> None:
        """Raise unless the root link can be written."""
        base = self.index.base
        if base == "free" or (base == "mocap" and not velocity):
            return
        why = {
            "fixed": "its base is fixed: place it with EntityCfg.init_state, or give "
            "it a free joint",
            "mocap": "a mocap body has no velocity: write its pose each step instead",
            "none": "it has no body",
        }[base]
        raise InvalidInputError(
            f"{method} cannot write the root of {self.index.name!r}: {why}. Nothing "
            "was written."
        )

    def _movable(self, body_ids: Ids, method: str, mocap: bool) -> list[int]:
        """The model's ids of the selected bodies, if all of them can be written."""
        bodies = self._chosen("body", body_ids, self.index.bodies.ids)
        movable = set(self.index.free_body_ids)
        if mocap:
            movable |= set(self.index.mocap_bodies.ids)
        names = dict(zip(self.index.bodies.ids, self.index.bodies.names, strict=True))
        stuck = [names[body] for body in bodies if body not in movable]
        if stuck:
            can = [names[body] for body in self.index.bodies.ids if body in movable]
            kinds = "a free joint or are mocap" if mocap else "a free joint"
            raise InvalidInputError(
                f"{method} writes links that have {kinds}; these move with their "
                f"joints: {listed(stuck)}. Writable: {listed(can)}. Nothing was "
                "written."
            )
        return bodies

    def _pose_writes(
        self, rows: Selection, bodies: Sequence[int], pose: Tensor
    ) -> list[Write]:
        """Writes of the poses (n, B, 7) of free and mocap bodies, normalised."""
        pose = unit_pose(pose, "pose")
        free = [k for k, body in enumerate(bodies) if body in self.index.free_body_ids]
        writes: list[Write] = []
        if free:
            adrs = [self._free_adr(bodies[k], self.index.free_qpos_adr) for k in free]
            columns = self._block_columns(adrs, 7)
            writes.append(Write("qpos", rows, columns, pose[:, free].flatten(1)))
        mocap = [k for k in range(len(bodies)) if k not in free]
        if mocap:
            ids = [int(self.internals.model.body_mocapid[bodies[k]]) for k in mocap]
            columns = as_index(ids, self.internals.device)
            writes.append(Write("mocap_pos", rows, columns, pose[:, mocap, :3]))
            writes.append(Write("mocap_quat", rows, columns, pose[:, mocap, 3:]))
        return writes

    def _velocity_write(
        self, rows: Selection, bodies: Sequence[int], vel: Tensor, quats: Tensor
    ) -> Write:
        """The write of velocities (n, B, 6) at the origins of free bodies, world axes.

        `quats` are the orientations that they have then; (n, B, 4).
        """
        # A free joint keeps its angular velocity in body axes.
        ang_vel_b = quaternion.rotate_inverse(quats, vel[..., 3:])
        lin_vel = vel[..., :3].expand_as(ang_vel_b)
        adrs = [self._free_adr(body, self.index.free_dof_adr) for body in bodies]
        values = torch.cat([lin_vel, ang_vel_b], dim=-1).flatten(1)
        return Write("qvel", rows, self._block_columns(adrs, 6), values)

    def _free_quats(self, rows: Selection, bodies: Sequence[int]) -> Tensor:
        """Orientations of free bodies as they are in qpos, normalised; (n, B, 4)."""
        adrs = [self._free_adr(body, self.index.free_qpos_adr) + 3 for body in bodies]
        columns = self._block_columns(adrs, 4)
        qpos = self.internals.engine.field("qpos")[rows.index]
        quats = qpos[:, columns].reshape(qpos.shape[0], len(adrs), 4)
        return quaternion.normalize(quats)

    def _free_adr(self, body: int, addresses: tuple[int, ...]) -> int:
        return addresses[self.index.free_body_ids.index(body)]

    def _block_columns(self, adrs: Sequence[int], width: int) -> Index:
        columns = [adr + k for adr in adrs for k in range(width)]
        return as_index(columns, self.internals.device)


def unit_pose(pose: Tensor, name: str) -> Tensor:
    """The poses (…, 7) with quaternions of unit length."""
    return torch.cat([pose[..., :3], unit_quat(pose[..., 3:7], name)], dim=-1)


def unit_quat(quat: Tensor, name: str) -> Tensor:
    """The quaternions scaled to unit length; a zero one raises."""
    length = norm(quat)
    if bool((length < 1e-9).any()):
        where = int_list((length[..., 0] < 1e-9).nonzero()[0])
        raise InvalidInputError(
            f"The quaternion of {name} at {where} is zero: it has no direction. "
            "Nothing was written."
        )
    return quat / length
