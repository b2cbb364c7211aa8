"""ModelMirror: the mirror image of the complete state of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from simstate.base.errors import ModelError
from simstate.entity.mirror import EntityMirror, vector_signs

_DRIVES_JOINT = mujoco.mjtTrn.mjTRN_JOINT.value


class ModelMirror:
    """Positions, velocities and controls of all worlds' mirror images."""

    def __init__(self, model: mujoco.MjModel, mirrors: Sequence[EntityMirror]) -> None:
        self._model = model
        self._q_index, self._q_sign = np.arange(model.nq), np.ones(model.nq)
        self._q_shift = np.zeros(model.nq)
        """Offsets of joints whose reference is not zero."""
        self._v_index, self._v_sign = np.arange(model.nv), np.ones(model.nv)
        self._u_index, self._u_sign = np.arange(model.nu), np.ones(model.nu)
        for mirror in mirrors:
            self._add(mirror)

    def _add(self, mirror: EntityMirror) -> None:
        index, normal = mirror.entity.index, mirror.normal
        polar, axial = vector_signs(normal, False), vector_signs(normal, True)
        for q, v in zip(index.free_qpos_adr, index.free_dof_adr, strict=True):
            self._q_sign[q : q + 7] = (*polar, 1.0, *axial)
            self._v_sign[v : v + 6] = (*polar, *axial)
        balls = index.ball_joints.names
        columns = mirror.columns_of(balls, mirror.ball_joint)
        for k, other in enumerate(columns.index):
            q, v = index.ball_qpos_adr[k], index.ball_dof_adr[k]
            p, w = index.ball_qpos_adr[other], index.ball_dof_adr[other]
            self._q_index[q : q + 4] = np.arange(p, p + 4)
            self._v_index[v : v + 3] = np.arange(w, w + 3)
            self._q_sign[q : q + 4], self._v_sign[v : v + 3] = (1.0, *axial), axial
        columns = mirror.columns_of(index.joints.names, mirror.joint)
        for k, (other, sign) in enumerate(
            zip(columns.index, columns.sign, strict=True)
        ):
            q, v = index.qpos_adr[k], index.dof_adr[k]
            p = index.qpos_adr[other]
            self._q_index[q], self._q_sign[q] = p, sign
            self._q_shift[q] = self._model.qpos0[q] - sign * self._model.qpos0[p]
            self._v_index[v], self._v_sign[v] = index.dof_adr[other], sign
        self._add_controls(mirror)

    def _add_controls(self, mirror: EntityMirror) -> None:
        """Find the mirror images of the actuators that drive one joint each."""
        model, index = self._model, mirror.entity.index
        axial = vector_signs(mirror.normal, axial=True)
        images: dict[int, tuple[int, Any]] = {}
        joints, balls = index.joints, index.ball_joints
        for name, joint in zip(joints.names, joints.ids, strict=True):
            other, sign = mirror.joint(name)
            images[joint] = joints.ids[joints.names.index(other)], sign
        for name, joint in zip(balls.names, balls.ids, strict=True):
            other = mirror.ball_joint(name)
            images[joint] = balls.ids[balls.names.index(other)], axial
        driven = [
            (k, int(model.actuator_trnid[k, 0]))
            for k in range(model.nactuator)
            if model.actuator_trntype[k] == _DRIVES_JOINT
            and int(model.actuator_trnid[k, 0]) in images
        ]
        taken: set[int] = set()
        for k, joint in driven:
            partner, signs = images[joint]
            gear = model.actuator_gear[model.actuator_outadr[k], :3] * signs
            inputs = _columns(model, k)
            for other, at in driven:
                found = model.actuator_gear[model.actuator_outadr[other], :3]
                same = [np.allclose(found, sign * gear) for sign in (1.0, -1.0)]
                theirs = _columns(model, other)
                fits = at == partner and len(theirs) == len(inputs)
                if fits and other not in taken and any(same):
                    self._u_index[inputs] = theirs
                    self._u_sign[inputs] = 1.0 if same[0] else -1.0
                    taken.add(other)
                    break
            else:
                raise ModelError(
                    f"Actuator {model.actuator(k).name!r} has no mirror image: none "
                    f"drives joint {model.joint(partner).name!r} with the same gear."
                )

    def qpos(self, qpos: Any) -> Any:
        """Return the mirrored positions."""
        return qpos[self._q_index] * self._q_sign + self._q_shift

    def qvel(self, qvel: Any) -> Any:
        """Return the mirrored velocities."""
        return qvel[self._v_index] * self._v_sign

    def ctrl(self, ctrl: Any) -> Any:
        """Return the mirrored controls."""
        return ctrl[self._u_index] * self._u_sign


def _columns(model: mujoco.MjModel, actuator: int) -> np.ndarray[Any, Any]:
    """Return the columns of ctrl of an actuator."""
    first = int(model.actuator_ctrladr[actuator])
    return np.arange(first, first + int(model.actuator_ctrlnum[actuator]))
