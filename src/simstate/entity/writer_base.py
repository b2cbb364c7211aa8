"""What the writers of an entity share: checked values, and the fields they go to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.entity.data import EntityData
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
from simstate.math import quaternion
from simstate.math.vector import norm
from simstate.scene import EntityIndex

if TYPE_CHECKING:
    from simstate.simulation import Simulation


class WriterBase:
    """Checks what is to be written, and finds where it goes."""

    index: EntityIndex
    data: EntityData
    sim: Simulation

    @property
    def _num_joints(self) -> int:
        return len(self.index.joints)

    def _rows(
        self, name: str, values: Values, shape: tuple[int, ...], env_ids: Ids
    ) -> tuple[Selection, Tensor]:
        """The selected worlds, and finite values of the right shape for them."""
        rows = self.sim.select_envs(env_ids)
        like = self.sim.engine.field("qpos")
        tensor = as_values(values, name, rows.count, shape, like)
        check_finite(tensor, name)
        return rows, tensor

    def _chosen(self, kind: str, ids: Ids, of: Sequence[int]) -> list[int]:
        """Those of the model's ids `of` that the entity's own ids select."""
        device = self.sim.device
        selection = select(ids, len(of), kind, device)
        return [int(of[i]) for i in int_list(selection.tensor(device))]

    def _elements(self, kind: str, ids: Ids, of: Sequence[int]) -> tuple[Index, int]:
        """The same as columns of a field, and how many they are."""
        chosen = self._chosen(kind, ids, of)
        return as_index(chosen, self.sim.device), len(chosen)

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
        self.sim.fresh.write(field, rows, columns, tensor)

    def _set_target(
        self, kind: str, target: Values, joint_ids: Ids, env_ids: Ids
    ) -> None:
        """Write targets into the controls that take them."""
        device = self.sim.device
        joints = select(joint_ids, self._num_joints, "joint", device)
        rows = self.sim.select_envs(env_ids)
        like = self.sim.engine.field("qpos")
        values = as_values(target, "target", rows.count, (joints.count,), like)
        inputs = getattr(self.index, f"{kind}_inputs")
        chosen = int_list(joints.tensor(device))
        without = [k for k, joint in enumerate(chosen) if joint not in inputs.joints]
        if not bool(values[:, without].isnan().all()):
            names = [self.index.joints.names[chosen[k]] for k in without]
            raise InvalidInputError(
                f"These joints of {self.index.name} have no actuator that takes a "
                f"{kind} target: {listed(names)}. Pass joint_ids without them, or NaN "
                "as their target. Nothing was written."
            )
        place = {joint: k for k, joint in enumerate(chosen)}
        taken = [k for k, joint in enumerate(inputs.joints) if joint in place]
        columns = as_index([inputs.ctrl[k] for k in taken], device)
        scale = self.data.target_inputs(kind)[2][:, taken]
        if scale.shape[0] > 1:
            scale = scale[rows.index]
        picked = values[:, [place[inputs.joints[k]] for k in taken]]
        check_finite(picked, "target")
        self.sim.fresh.write("ctrl", rows, columns, picked * scale)

    def _of_worlds(self, parameter: str, rows: Selection) -> Tensor:
        """A model parameter in the selected worlds; (n or 1, …)."""
        values = self.data.parameter(parameter)
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

    def _write_pose(self, rows: Selection, bodies: Sequence[int], pose: Tensor) -> None:
        """Write poses (n, B, 7) of free and mocap bodies, quaternions normalised."""
        pose = unit_pose(pose, "pose")
        free = [k for k, body in enumerate(bodies) if body in self.index.free_body_ids]
        if free:
            adrs = [self._free_adr(bodies[k], self.index.free_qpos_adr) for k in free]
            columns = self._block_columns(adrs, 7)
            self.sim.fresh.write("qpos", rows, columns, pose[:, free].flatten(1))
        mocap = [k for k in range(len(bodies)) if k not in free]
        if mocap:
            ids = [int(self.sim.model.body_mocapid[bodies[k]]) for k in mocap]
            columns = as_index(ids, self.sim.device)
            self.sim.fresh.write("mocap_pos", rows, columns, pose[:, mocap, :3])
            self.sim.fresh.write("mocap_quat", rows, columns, pose[:, mocap, 3:])

    def _write_velocity(
        self, rows: Selection, bodies: Sequence[int], vel: Tensor
    ) -> None:
        """Write velocities (n, B, 6) of free bodies, at their origins, world axes."""
        quats = self._free_quats(rows, bodies)
        # A free joint keeps its angular velocity in body axes.
        ang_vel_b = quaternion.rotate_inverse(quats, vel[..., 3:])
        lin_vel = vel[..., :3].expand_as(ang_vel_b)
        adrs = [self._free_adr(body, self.index.free_dof_adr) for body in bodies]
        values = torch.cat([lin_vel, ang_vel_b], dim=-1).flatten(1)
        self.sim.fresh.write("qvel", rows, self._block_columns(adrs, 6), values)

    def _free_quats(self, rows: Selection, bodies: Sequence[int]) -> Tensor:
        """Orientations of free bodies as they are in qpos, normalised; (n, B, 4)."""
        adrs = [self._free_adr(body, self.index.free_qpos_adr) + 3 for body in bodies]
        columns = self._block_columns(adrs, 4)
        qpos = self.sim.engine.field("qpos")[rows.index]
        quats = qpos[:, columns].reshape(qpos.shape[0], len(adrs), 4)
        return quaternion.normalize(quats)

    def _free_adr(self, body: int, addresses: tuple[int, ...]) -> int:
        return addresses[self.index.free_body_ids.index(body)]

    def _block_columns(self, adrs: Sequence[int], width: int) -> Index:
        columns = [adr + k for adr in adrs for k in range(width)]
        return as_index(columns, self.sim.device)


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


def index_tensor(index: Index, like: Tensor) -> Tensor:
    """The ids of an index as a tensor on the device of `like`."""
    if isinstance(index, Tensor):
        return index
    return torch.arange(index.start, index.stop, device=like.device)
