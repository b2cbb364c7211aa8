"""Writing an entity's state: every writer takes what its quantity reads.

All values are checked before anything is written, so an error leaves the state as it
was. `env_ids` and element ids mean the same everywhere (see simstate.ids); values have
one row for each selected world, or one row for all of them, shape (1, …).
"""

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
    ndim,
    select,
)
from simstate.math import move_velocity, quaternion
from simstate.math.vector import norm
from simstate.scene import EntityIndex

if TYPE_CHECKING:
    from simstate.simulation import Simulation


class EntityWriters:
    """The writing half of Entity."""

    index: EntityIndex
    data: EntityData
    sim: Simulation

    # Root.

    def write_root_state_to_sim(self, root_state: Values, env_ids: Ids = None) -> None:
        """Write the root link's pose and velocity, world axes; shape (n, 13).

        Origin [m], quaternion wxyz, linear velocity of the origin [m/s], angular
        velocity [rad/s].
        """
        rows, values = self._rows("root_state", root_state, (13,), env_ids)
        self._check_root("write_root_state_to_sim")
        pose, vel = values[:, None, :7], values[:, None, 7:]
        if self.index.base == "mocap":
            if bool((vel != 0).any()):
                raise InvalidInputError(
                    f"{self.index.name} is a mocap body, which has no velocity: give "
                    "zeros in columns 7 to 12. Nothing was written."
                )
            self._write_pose(rows, [self.index.root_body_id], pose)
            return
        root = [self.index.root_body_id]
        pose = _unit_pose(pose, "root_state")
        self._write_pose(rows, root, pose)
        self._write_velocity(rows, root, vel)

    def write_root_link_pose_to_sim(self, pose: Values, env_ids: Ids = None) -> None:
        """Write the root link's origin [m] and quaternion wxyz, world axes; (n, 7)."""
        rows, values = self._rows("pose", pose, (7,), env_ids)
        self._check_root("write_root_link_pose_to_sim")
        self._write_pose(rows, [self.index.root_body_id], values[:, None])

    def write_root_com_pose_to_sim(self, pose: Values, env_ids: Ids = None) -> None:
        """Write the root link by its COM [m] and inertia axes wxyz, world axes; (n, 7).

        The inverse of reading `root_com_pose_w`.
        """
        rows, values = self._rows("pose", pose, (7,), env_ids)
        self._check_root("write_root_com_pose_to_sim")
        values = _unit_pose(values, "pose")
        body = self.index.root_body_id
        iquat = self._of_worlds("body_iquat", rows)[:, body]
        quat = quaternion.multiply(values[:, 3:], quaternion.conjugate(iquat))
        offset = quaternion.rotate(quat, self._of_worlds("body_ipos", rows)[:, body])
        link = torch.cat([values[:, :3] - offset, quat], dim=-1)
        self._write_pose(rows, [body], link[:, None])

    def write_root_link_velocity_to_sim(
        self, velocity: Values, env_ids: Ids = None
    ) -> None:
        """Write the root link's velocity at its origin, world axes; shape (n, 6).

        Linear [m/s] then angular [rad/s].
        """
        rows, values = self._rows("velocity", velocity, (6,), env_ids)
        self._check_root("write_root_link_velocity_to_sim", velocity=True)
        self._write_velocity(rows, [self.index.root_body_id], values[:, None])

    def write_root_com_velocity_to_sim(
        self, velocity: Values, env_ids: Ids = None
    ) -> None:
        """Write the root link's velocity at its COM, world axes; shape (n, 6).

        Linear [m/s] then angular [rad/s].
        """
        rows, values = self._rows("velocity", velocity, (6,), env_ids)
        self._check_root("write_root_com_velocity_to_sim", velocity=True)
        body = self.index.root_body_id
        ipos = self._of_worlds("body_ipos", rows)[:, body]
        offset = quaternion.rotate(self._free_quats(rows, [body])[:, 0], ipos)
        self._write_velocity(rows, [body], move_velocity(values, -offset)[:, None])

    # Bodies with a free joint, or mocap.

    def write_body_link_pose_to_sim(
        self, pose: Values, body_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write origins [m] and quaternions wxyz of free or mocap links; (n, B, 7)."""
        bodies = self._movable(body_ids, "write_body_link_pose_to_sim", mocap=True)
        rows, values = self._rows("pose", pose, (len(bodies), 7), env_ids)
        self._write_pose(rows, bodies, values)

    def write_body_link_velocity_to_sim(
        self, velocity: Values, body_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write velocities at the origins of free links, world axes; (n, B, 6)."""
        bodies = self._movable(body_ids, "write_body_link_velocity_to_sim", mocap=False)
        rows, values = self._rows("velocity", velocity, (len(bodies), 6), env_ids)
        self._write_velocity(rows, bodies, values)

    def write_mocap_pose_to_sim(self, pose: Values, env_ids: Ids = None) -> None:
        """Write origins [m] and quaternions wxyz of the mocap bodies, world axes.

        Shape (n, num_mocap_bodies, 7), or (n, 7) for a single one.
        """
        bodies = list(self.index.mocap_bodies.ids)
        if not bodies:
            raise InvalidInputError(f"{self.index.name} has no mocap body.")
        single = len(bodies) == 1 and ndim(pose, "pose") == 2
        shape = (7,) if single else (len(bodies), 7)
        rows, values = self._rows("pose", pose, shape, env_ids)
        self._write_pose(rows, bodies, values.reshape(-1, len(bodies), 7))

    def write_external_wrench_to_sim(
        self,
        forces: Values,
        torques: Values,
        body_ids: Ids = None,
        env_ids: Ids = None,
    ) -> None:
        """Apply forces [N] at the links' COMs and torques [N·m], world axes; (n, B, 3).

        They act until they are overwritten or the world is reset.
        """
        columns, count = self._elements("body", body_ids, self.index.bodies.ids)
        rows, force = self._rows("forces", forces, (count, 3), env_ids)
        _, torque = self._rows("torques", torques, (count, 3), env_ids)
        count_rows = max(force.shape[0], torque.shape[0])
        both = [part.expand(count_rows, -1, -1) for part in (force, torque)]
        wrench = torch.cat(both, dim=-1)
        self.sim.fresh.write("xfrc_applied", rows, columns, wrench)

    # Joints.

    def write_joint_state_to_sim(
        self,
        position: Values,
        velocity: Values,
        joint_ids: Ids = None,
        env_ids: Ids = None,
    ) -> None:
        """Write 1-DoF joint positions [rad or m] and velocities [.../s]; (n, J)."""
        columns, count = self._elements("joint", joint_ids, self.index.qpos_adr)
        dofs, _ = self._elements("joint", joint_ids, self.index.dof_adr)
        rows, pos = self._rows("position", position, (count,), env_ids)
        _, vel = self._rows("velocity", velocity, (count,), env_ids)
        self.sim.fresh.write("qpos", rows, columns, pos)
        self.sim.fresh.write("qvel", rows, dofs, vel)

    def write_joint_position_to_sim(
        self, position: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write 1-DoF joint positions [rad or m]; shape (n, J)."""
        self._write_columns(
            "qpos",
            "position",
            position,
            "joint",
            joint_ids,
            self.index.qpos_adr,
            env_ids,
        )

    def write_joint_velocity_to_sim(
        self, velocity: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write 1-DoF joint velocities [rad/s or m/s]; shape (n, J)."""
        self._write_columns(
            "qvel",
            "velocity",
            velocity,
            "joint",
            joint_ids,
            self.index.dof_adr,
            env_ids,
        )

    def write_joint_force_to_sim(
        self, force: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Apply forces to 1-DoF joints beside the actuators' [N·m or N]; (n, J).

        They act until they are overwritten or the world is reset.
        """
        self._write_columns(
            "qfrc_applied",
            "force",
            force,
            "joint",
            joint_ids,
            self.index.dof_adr,
            env_ids,
        )

    def write_ball_joint_quat_to_sim(
        self, quat: Values, ball_joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write ball joint orientations wxyz, relative to the parent; (n, K, 4)."""
        adrs = self._chosen("ball joint", ball_joint_ids, self.index.ball_qpos_adr)
        rows, values = self._rows("quat", quat, (len(adrs), 4), env_ids)
        values = _unit_quat(values, "quat")
        columns = self._block_columns(adrs, 4)
        self.sim.fresh.write("qpos", rows, columns, values.flatten(1))

    def write_ball_joint_ang_vel_to_sim(
        self, ang_vel: Values, ball_joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write ball joint angular velocities, body axes [rad/s]; (n, K, 3)."""
        adrs = self._chosen("ball joint", ball_joint_ids, self.index.ball_dof_adr)
        rows, values = self._rows("ang_vel", ang_vel, (len(adrs), 3), env_ids)
        columns = self._block_columns(adrs, 3)
        self.sim.fresh.write("qvel", rows, columns, values.flatten(1))

    # Inputs.

    def write_generalized_force_to_sim(
        self, force: Values, env_ids: Ids = None
    ) -> None:
        """Apply forces to the free-joint dofs, in the axes of qvel; (n, 6 per joint).

        Force at the origin, world axes [N], then torque, body axes [N·m].
        """
        adrs = [adr + k for adr in self.index.free_dof_adr for k in range(6)]
        self._write_columns(
            "qfrc_applied", "force", force, "free dof", None, adrs, env_ids
        )

    def write_ctrl_to_sim(
        self, ctrl: Values, control_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write controls, each in its actuator's own unit; shape (n, U)."""
        self._write_columns(
            "ctrl",
            "ctrl",
            ctrl,
            "control",
            control_ids,
            self.index.controls.ids,
            env_ids,
        )

    def write_act_to_sim(
        self, act: Values, activation_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write activations, each in its actuator's own unit; shape (n, A)."""
        adrs = self.index.activations.ids
        self._write_columns(
            "act", "act", act, "activation", activation_ids, adrs, env_ids
        )

    def write_equality_active_to_sim(
        self, active: Values, equality_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Switch equality constraints on (1) or off (0); shape (n, E)."""
        columns, count = self._elements(
            "equality", equality_ids, self.index.equalities.ids
        )
        switches = torch.as_tensor(active)
        if switches.dtype == torch.bool:
            active = switches.to(self.sim.dtype)
        rows, values = self._rows("active", active, (count,), env_ids)
        if not bool(((values == 0) | (values == 1)).all()):
            raise InvalidInputError("active must be 1 (on) or 0 (off) everywhere.")
        self.sim.fresh.write("eq_active", rows, columns, values)

    def set_joint_position_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the positions that position actuators go to [rad or m]; shape (n, J)."""
        self._set_target("position", target, joint_ids, env_ids)

    def set_joint_velocity_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the velocities that actuators go to [rad/s or m/s]; shape (n, J)."""
        self._set_target("velocity", target, joint_ids, env_ids)

    def set_joint_effort_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the efforts of motors and feedforward inputs [N·m or N]; shape (n, J)."""
        self._set_target("effort", target, joint_ids, env_ids)

    def set_encoder_bias(
        self, bias: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set what `joint_pos_biased` adds to `joint_pos` [rad or m]; shape (n, J)."""
        columns, count = self._elements("joint", joint_ids, range(self._num_joints))
        rows, values = self._rows("bias", bias, (count,), env_ids)
        stored = self.data.stored["encoder_bias"]
        row_ids = rows.tensor(stored.device)[:, None]
        stored[row_ids, _as_tensor(columns, stored)] = values

    def check_defaults(self, env_ids: Ids = None) -> None:
        """Raise unless the state at reset of the selected worlds can be written."""
        index = self.sim.select_envs(env_ids).index
        for name in ("default_root_state", "default_joint_pos", "default_joint_vel"):
            check_finite(
                self.data.stored[name][index], f"{self.index.name}.data.{name}"
            )
        quats = self.data.stored["default_root_state"][index][:, 3:7]
        _unit_quat(quats, f"{self.index.name}.data.default_root_state")

    def write_defaults_to_sim(self, env_ids: Ids = None) -> None:
        """Write `default_root_state`, `default_joint_pos` and `default_joint_vel`."""
        rows = self.sim.select_envs(env_ids)
        stored = self.data.stored
        if self.index.base in ("free", "mocap"):
            self.write_root_state_to_sim(
                stored["default_root_state"][rows.index], rows.index
            )
        if self._num_joints:
            self.write_joint_state_to_sim(
                stored["default_joint_pos"][rows.index],
                stored["default_joint_vel"][rows.index],
                env_ids=rows.index,
            )

    # What the writers share.

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
        pose = _unit_pose(pose, "pose")
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


def _unit_pose(pose: Tensor, name: str) -> Tensor:
    """The poses (…, 7) with quaternions of unit length."""
    return torch.cat([pose[..., :3], _unit_quat(pose[..., 3:7], name)], dim=-1)


def _unit_quat(quat: Tensor, name: str) -> Tensor:
    """The quaternions scaled to unit length; a zero one raises."""
    length = norm(quat)
    if bool((length < 1e-9).any()):
        where = int_list((length[..., 0] < 1e-9).nonzero()[0])
        raise InvalidInputError(
            f"The quaternion of {name} at {where} is zero: it has no direction. "
            "Nothing was written."
        )
    return quat / length


def _as_tensor(index: Index, like: Tensor) -> Tensor:
    if isinstance(index, Tensor):
        return index
    return torch.arange(index.start, index.stop, device=like.device)
