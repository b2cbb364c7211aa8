"""Conversion between MuJoCo's qpos and qvel and Drake's positions and velocities.

Drake orders joints by its own tree. The velocity of a free body is angular, then
linear, both along world axes. A ball joint has roll, pitch and yaw, and its angular
velocity is along the parent's axes.
"""

# pydrake comes without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RollPitchYaw, RotationMatrix

from simstate.base.errors import InvalidInputError
from simstate.simulators.adapted_simulator import Array, BodyStates
from simstate.simulators.drake_model import DrakeModel

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_SINGULAR = 1e-6
"""Minimum distance of a pitch from ± 90° [rad], where Drake's rates are singular."""


class DrakeCoordinates:
    """Reads and writes one context of a plant in MuJoCo's coordinates."""

    def __init__(self, drake: DrakeModel) -> None:
        self.drake = drake
        model, plant = drake.model, drake.plant
        self._nq, self._nv = plant.num_positions(), plant.num_velocities()
        self._joints = [
            (
                int(model.jnt_type[j]),
                int(model.jnt_qposadr[j]),
                int(model.jnt_dofadr[j]),
                joint.position_start(),
                joint.velocity_start(),
            )
            for j, joint in enumerate(drake.joints)
        ]

    def write(self, context: Any, qpos: Array, qvel: Array) -> None:
        """Write MuJoCo's qpos (nq,) and qvel (nv,) into a context."""
        plant = self.drake.plant
        plant.SetPositions(context, self.positions(qpos))
        plant.SetVelocities(context, self.velocity_map(qpos) @ qvel)

    def positions(self, qpos: Array) -> Array:
        """Return Drake's positions for MuJoCo's qpos; a singular ball joint raises."""
        positions = np.zeros(self._nq)
        for j, (kind, adr, _, start, _) in enumerate(self._joints):
            if kind == _FREE:
                positions[start : start + 4] = _unit(qpos[adr + 3 : adr + 7])
                positions[start + 4 : start + 7] = qpos[adr : adr + 3]
            elif kind == _BALL:
                positions[start : start + 3] = self._angles(j, qpos[adr : adr + 4])
            else:
                positions[start] = qpos[adr]
        return positions

    def _angles(self, joint: int, quat: Array) -> Array:
        """Return roll, pitch and yaw of a ball joint; raise where they are singular."""
        angles = RollPitchYaw(RotationMatrix(Quaternion(_unit(quat)))).vector()
        if abs(abs(angles[1]) - np.pi / 2) < _SINGULAR:
            name = self.drake.names.joint[joint]
            raise InvalidInputError(
                f"Drake represents the ball joint {name!r} by roll, pitch and yaw, "
                "which are singular at this pitch of ±90°. Nothing was written.",
                name=name,
            )
        return angles

    def velocity_map(self, qpos: Array) -> Array:
        """Return the matrix T(qpos) in Drake's velocities = T qvel; shape (nv, nv)."""
        turn = np.zeros((self._nv, self.drake.model.nv))
        for kind, adr, dof, _, start in self._joints:
            if kind == _FREE:
                rot = RotationMatrix(Quaternion(_unit(qpos[adr + 3 : adr + 7])))
                turn[start : start + 3, dof + 3 : dof + 6] = rot.matrix()
                turn[start + 3 : start + 6, dof : dof + 3] = np.eye(3)
            elif kind == _BALL:
                rot = RotationMatrix(Quaternion(_unit(qpos[adr : adr + 4])))
                turn[start : start + 3, dof : dof + 3] = rot.matrix()
            else:
                turn[start, dof] = 1.0
        return turn

    def qpos(self, context: Any) -> Array:
        """MuJoCo's qpos; shape (nq,)."""
        positions = self.drake.plant.GetPositions(context)
        qpos = np.zeros(self.drake.model.nq)
        for kind, adr, _, start, _ in self._joints:
            if kind == _FREE:
                qpos[adr + 3 : adr + 7] = positions[start : start + 4]
                qpos[adr : adr + 3] = positions[start + 4 : start + 7]
            elif kind == _BALL:
                angles = RollPitchYaw(positions[start : start + 3])
                qpos[adr : adr + 4] = angles.ToQuaternion().wxyz()
            else:
                qpos[adr] = positions[start]
        return qpos

    def qvel(self, context: Any, qpos: Array) -> Array:
        """MuJoCo's qvel; shape (nv,). The map of velocities is orthogonal."""
        return self.velocity_map(qpos).T @ self.drake.plant.GetVelocities(context)

    def read(self, contexts: Sequence[Any]) -> BodyStates:
        """Return the states of some worlds, bodies by Drake's kinematics."""
        drake = self.drake
        motion = BodyStates.blank(drake.model, len(contexts))
        for row, context in enumerate(contexts):
            motion.qpos[row] = self.qpos(context)
            motion.qvel[row] = self.qvel(context, motion.qpos[row])
            for b, body in enumerate(drake.bodies):
                pose = drake.plant.EvalBodyPoseInWorld(context, body)
                vel = drake.plant.EvalBodySpatialVelocityInWorld(context, body)
                motion.body_pos[row, b] = pose.translation()
                motion.body_quat[row, b] = pose.rotation().ToQuaternion().wxyz()
                motion.body_vel[row, b] = vel.translational()
                motion.body_ang_vel[row, b] = vel.rotational()
        return motion


def _unit(quat: Array) -> Array:
    return quat / np.linalg.norm(quat)
