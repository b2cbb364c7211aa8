"""Writing an entity's state: every writer takes what its quantity reads.

All values are checked before anything is written, so an error leaves the state as it
was. `env_ids` and element ids mean the same everywhere (see simstate.base.ids); values
have one row for each selected world, or one row for all of them, shape (1, …).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, Values, ndim
from simstate.entity.links import normalize_pose, unit_quat
from simstate.entity.writer_base import WriterBase
from simstate.math import move_velocity, quaternion
from simstate.scene.index import TargetKind
from simstate.world import Write


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
        root = [self.index.root_body_id]
        if self.index.base != "free":
            if bool((vel != 0).any()):
                kind = "mocap" if self.index.base == "mocap" else "on a fixed base"
                raise InvalidInputError(
                    f"The root link of {self.index.name!r} is {kind} and has no "
                    "velocity: give zeros in columns 7 to 12. Nothing was written."
                )
            self._write(*self._pose_writes(rows, root, pose))
            return
        pose = normalize_pose(pose, "root_state")
        self._write(
            *self._pose_writes(rows, root, pose),
            self._links.vel_write(rows, root, vel, pose[..., 3:]),
        )

    def write_root_link_pose_to_sim(self, pose: Values, env_ids: Ids = None) -> None:
        """Write the root link's origin [m] and quaternion wxyz, world axes; (n, 7).

        A root that is fixed to the world is moved, with all that hangs from it,
        until the world is reset: body_pos and body_quat of these worlds are written.
        """
        rows, values = self._rows("pose", pose, (7,), env_ids)
        self._check_root("write_root_link_pose_to_sim")
        self._write(
            *self._pose_writes(rows, [self.index.root_body_id], values[:, None])
        )

    def write_root_com_pose_to_sim(self, pose: Values, env_ids: Ids = None) -> None:
        """Write the root link by its COM [m] and inertia axes wxyz, world axes; (n, 7).

        The inverse of reading `root_com_pose_w`.
        """
        rows, values = self._rows("pose", pose, (7,), env_ids)
        self._check_root("write_root_com_pose_to_sim")
        values = normalize_pose(values, "pose")
        body = self.index.root_body_id
        iquat = self._of_worlds("body_iquat", rows)[:, body]
        quat = quaternion.multiply(values[:, 3:], quaternion.conjugate(iquat))
        offset = quaternion.rotate(quat, self._of_worlds("body_ipos", rows)[:, body])
        link = torch.cat([values[:, :3] - offset, quat], dim=-1)
        self._write(*self._pose_writes(rows, [body], link[:, None]))

    def write_root_link_velocity_to_sim(
        self, velocity: Values, env_ids: Ids = None
    ) -> None:
        """Write the root link's velocity at its origin, world axes; shape (n, 6).

        Linear [m/s] then angular [rad/s].
        """
        rows, values = self._rows("velocity", velocity, (6,), env_ids)
        self._check_root("write_root_link_velocity_to_sim", velocity=True)
        root = [self.index.root_body_id]
        quats = self._links.free_quats(rows, root)
        self._write(self._links.vel_write(rows, root, values[:, None], quats))

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
        quats = self._links.free_quats(rows, [body])
        offset = quaternion.rotate(quats[:, 0], ipos)
        vel = move_velocity(values, -offset)[:, None]
        self._write(self._links.vel_write(rows, [body], vel, quats))

    # Bodies with a free joint, or mocap.

    def write_body_link_pose_to_sim(
        self, pose: Values, body_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write origins [m] and quaternions wxyz of links, world axes; (n, B, 7).

        Of those with a free joint, of mocap bodies, and of a root on a fixed base.
        """
        bodies = self._movable(body_ids, "write_body_link_pose_to_sim")
        rows, values = self._rows("pose", pose, (len(bodies), 7), env_ids)
        self._write(*self._pose_writes(rows, bodies, values))

    def write_body_link_velocity_to_sim(
        self, velocity: Values, body_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write velocities at the origins of free links, world axes; (n, B, 6)."""
        bodies = self._movable(body_ids, "write_body_link_velocity_to_sim", True)
        rows, values = self._rows("velocity", velocity, (len(bodies), 6), env_ids)
        quats = self._links.free_quats(rows, bodies)
        self._write(self._links.vel_write(rows, bodies, values, quats))

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
        self._write(
            *self._pose_writes(rows, bodies, values.reshape(-1, len(bodies), 7))
        )

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
        self._write(Write("xfrc_applied", rows, columns, wrench))

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
        self._write(Write("qpos", rows, columns, pos), Write("qvel", rows, dofs, vel))

    def write_joint_position_to_sim(
        self, position: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write 1-DoF joint positions [rad or m]; shape (n, J)."""
        joints = ("joint", joint_ids, self.index.qpos_adr)
        self._write_columns("qpos", "position", position, joints, env_ids)

    def write_joint_velocity_to_sim(
        self, velocity: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write 1-DoF joint velocities [rad/s or m/s]; shape (n, J)."""
        joints = ("joint", joint_ids, self.index.dof_adr)
        self._write_columns("qvel", "velocity", velocity, joints, env_ids)

    def write_joint_force_to_sim(
        self, force: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Apply forces to 1-DoF joints, in addition to actuators [N·m or N]; (n, J).

        They act until they are overwritten or the world is reset.
        """
        joints = ("joint", joint_ids, self.index.dof_adr)
        self._write_columns("qfrc_applied", "force", force, joints, env_ids)

    def write_ball_joint_quat_to_sim(
        self, quat: Values, ball_joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write ball joint orientations wxyz, relative to the parent; (n, K, 4)."""
        adrs = self._chosen("ball joint", ball_joint_ids, self.index.ball_qpos_adr)
        rows, values = self._rows("quat", quat, (len(adrs), 4), env_ids)
        values = unit_quat(values, "quat")
        columns = self._block_columns(adrs, 4)
        self._write(Write("qpos", rows, columns, values.flatten(1)))

    def write_ball_joint_ang_vel_to_sim(
        self, ang_vel: Values, ball_joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write ball joint angular velocities, body axes [rad/s]; (n, K, 3)."""
        adrs = self._chosen("ball joint", ball_joint_ids, self.index.ball_dof_adr)
        rows, values = self._rows("ang_vel", ang_vel, (len(adrs), 3), env_ids)
        columns = self._block_columns(adrs, 3)
        self._write(Write("qvel", rows, columns, values.flatten(1)))

    # Inputs.

    def write_generalized_force_to_sim(
        self, force: Values, env_ids: Ids = None
    ) -> None:
        """Apply forces to the free-joint dofs, in the axes of qvel; (n, 6 per joint).

        Force at the origin, world axes [N], then torque, body axes [N·m].
        """
        adrs = [adr + k for adr in self.index.free_dof_adr for k in range(6)]
        dofs = ("free dof", None, adrs)
        self._write_columns("qfrc_applied", "force", force, dofs, env_ids)

    def write_ctrl_to_sim(
        self, ctrl: Values, control_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write controls, each in its actuator's own unit; shape (n, U)."""
        controls = ("control", control_ids, self.index.controls.ids)
        self._write_columns("ctrl", "ctrl", ctrl, controls, env_ids)

    def write_act_to_sim(
        self, act: Values, activation_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Write activations, each in its actuator's own unit; shape (n, A)."""
        activations = ("activation", activation_ids, self.index.activations.ids)
        self._write_columns("act", "act", act, activations, env_ids)

    def write_equality_active_to_sim(
        self, active: Values, equality_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Switch equality constraints on (1) or off (0); shape (n, E)."""
        columns, count = self._elements(
            "equality", equality_ids, self.index.equalities.ids
        )
        switches = torch.as_tensor(active)
        if switches.dtype == torch.bool:
            active = switches.to(self._worlds.dtype)
        rows, values = self._rows("active", active, (count,), env_ids)
        if not bool(((values == 0) | (values == 1)).all()):
            raise InvalidInputError("active must be 1 (on) or 0 (off) everywhere.")
        self._write(Write("eq_active", rows, columns, values))

    def set_joint_position_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the positions that joints are to go to [rad or m]; shape (n, J).

        Position actuators take them as their controls. A joint without one keeps its
        target, to be read by `joint_pos_target`, states and your own controllers.
        """
        self._set_target("position", target, joint_ids, env_ids)

    def set_joint_velocity_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the velocities that joints are to have [rad/s or m/s]; shape (n, J).

        As `set_joint_position_target`, for actuators that take velocities.
        """
        self._set_target("velocity", target, joint_ids, env_ids)

    def set_joint_effort_target(
        self, target: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set the efforts of motors and feedforward inputs [N·m or N]; shape (n, J).

        As `set_joint_position_target`, for actuators that take efforts.
        """
        self._set_target("effort", target, joint_ids, env_ids)

    def _target_writer(
        self, kind: TargetKind, joint_ids: Ids = None
    ) -> Callable[[Tensor], None]:
        """A function that sets targets of some joints in all worlds; (num_envs, J).

        As `set_joint_…_target`, with names resolved once and values not checked: for
        what is called in every step. On the host they may be an array.
        """
        targets, rows = self._targets(kind, joint_ids), self._worlds.everywhere
        if not targets.are_controls:
            return lambda values: self._write(
                *targets.writes(torch.as_tensor(values), rows)
            )
        return targets.write

    def _wrench_writer(self, body_ids: Ids = None) -> Callable[[Tensor, Tensor], None]:
        """A function that applies forces and torques in all worlds; (num_envs, B, 3).

        As `write_external_wrench_to_sim`, with ids resolved once and values not
        checked: for what is called in every step.
        """
        columns, _ = self._elements("body", body_ids, self.index.bodies.ids)
        rows = self._worlds.everywhere

        def write(forces: Tensor, torques: Tensor) -> None:
            wrench = torch.cat([forces, torques], dim=-1)
            self._write(Write("xfrc_applied", rows, columns, wrench))

        return write

    def set_encoder_bias(
        self, bias: Values, joint_ids: Ids = None, env_ids: Ids = None
    ) -> None:
        """Set what `joint_pos_biased` adds to `joint_pos` [rad or m]; shape (n, J)."""
        columns, count = self._elements("joint", joint_ids, range(self._num_joints))
        rows, values = self._rows("bias", bias, (count,), env_ids)
        slot = f"entity/{self.index.name}/encoder_bias"
        self._write(Write(slot, rows, columns, values))


# For simstate's own modules: entities show users only what they may call.


def target_writer(
    entity: EntityWriters, kind: TargetKind, joint_ids: Ids = None
) -> Callable[[Tensor], None]:
    """Return a function that sets targets of some joints; (num_envs, J)."""
    return entity._target_writer(kind, joint_ids)  # pyright: ignore[reportPrivateUsage]


def wrench_writer(
    entity: EntityWriters, body_ids: Ids = None
) -> Callable[[Tensor, Tensor], None]:
    """Return a function that applies forces and torques; (num_envs, B, 3) each."""
    return entity._wrench_writer(body_ids)  # pyright: ignore[reportPrivateUsage]
