"""Writing an entity's state: every writer takes what its quantity reads.

All values are checked before anything is written, so an error leaves the state as it
was. `env_ids` and element ids mean the same everywhere (see simstate.ids); values have
one row for each selected world, or one row for all of them, shape (1, …).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from simstate.entity.writer_base import WriterBase, index_tensor, unit_pose, unit_quat
from simstate.errors import InvalidInputError
from simstate.ids import (
    Ids,
    Values,
    check_finite,
    ndim,
)
from simstate.math import move_velocity, quaternion

if TYPE_CHECKING:
    pass


class EntityWriters(WriterBase):
    """The writing half of Entity."""

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
        pose = unit_pose(pose, "root_state")
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
        values = unit_pose(values, "pose")
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
        values = unit_quat(values, "quat")
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
        stored[row_ids, index_tensor(columns, stored)] = values

    def check_defaults(self, env_ids: Ids = None) -> None:
        """Raise unless the state at reset of the selected worlds can be written."""
        index = self.sim.select_envs(env_ids).index
        for name in ("default_root_state", "default_joint_pos", "default_joint_vel"):
            check_finite(
                self.data.stored[name][index], f"{self.index.name}.data.{name}"
            )
        quats = self.data.stored["default_root_state"][index][:, 3:7]
        unit_quat(quats, f"{self.index.name}.data.default_root_state")

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
