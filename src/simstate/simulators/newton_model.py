"""A compiled model in Newton, and conversion of MuJoCo's coordinates to Newton's.

Newton's quaternions are xyzw, and the velocity of a free body is that of its COM. All
joints between two bodies are one joint: first slides, then hinges about one anchor.
"""

# Newton and Warp come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mujoco
import numpy as np
import torch

from simstate.base.errors import ModelError
from simstate.engine.warp_start import initialise  # before newton: no banner
from simstate.simulators.adapted_simulator import Array, BodyStates
from simstate.simulators.drives import drives
from simstate.simulators.mjcf import link_name, plain_mjcf
from simstate.simulators.mjcf_actuators import simple_actuators
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.plain_model import ALL_TERMS, Terms, may_touch, plain_model

initialise(torch.device("cpu"))

import newton  # noqa: E402

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value
_FAR = 1e10
"""A position beyond all joints' motions."""


class NewtonModel:
    """A finalised Newton model of one world, with an index of MuJoCo's joints.

    Args:
        model: the compiled model.
        ctrl_direct: whether actuators take MuJoCo's controls, which only SolverMuJoCo
            supports, or targets of joints.
        terms: effects in addition to the smooth dynamics, as far as the model has them.
    """

    def __init__(
        self, model: mujoco.MjModel, ctrl_direct: bool, terms: Terms = ALL_TERMS
    ) -> None:
        self.names, self.terms = ModelNames(model), terms
        self.model = model = plain_model(model)
        """The model as a plain one, because Newton has no flags."""
        self.columns = [int(model.actuator_ctrladr[a]) for a in simple_actuators(model)]
        """Columns of MuJoCo's ctrl that Newton has; other actuators are left out."""
        self.messages: list[str] = []
        """Output of Newton's parser."""
        _check_joints(model, self.names)
        if ctrl_direct:
            _check_tendons(model, self.names)
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        self._parse(builder, ctrl_direct)
        if not ctrl_direct:
            self._filter_collisions(builder)
        self.newton_model: Any = builder.finalize(device="cpu")
        # The parser keeps the default gravity.
        self.newton_model.set_gravity(tuple(float(g) for g in model.opt.gravity))
        self._index_bodies()
        self._index_joints()
        self.drives = drives(model)
        """The servos and motors of 1-DoF joints."""
        if not ctrl_direct:
            self._set_drives()
        com = self.newton_model.body_com.numpy().astype(np.float64)
        self.com = com[self.body_of]
        """Newton's COM of each of MuJoCo's bodies, body axes [m]; (nbody, 3)."""

    def _parse(self, builder: Any, ctrl_direct: bool) -> None:
        model = copy.copy(self.model)
        # The Featherstone solver rotates about the anchor's position before the slides.
        split = () if ctrl_direct else _bodies_that_slide_and_turn(model)
        model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON.value  # there is no PGS
        _share_anchors(model)
        with TemporaryDirectory() as folder:
            text = plain_mjcf(model, Path(folder), skip=("equality",), split=split).text
            output = io.StringIO()
            try:
                with contextlib.redirect_stdout(output):
                    builder.add_mjcf(text, ctrl_direct=ctrl_direct)
            except (ValueError, RuntimeError, KeyError) as error:
                raise ModelError(f"Newton rejects this model: {error}") from error
        self.messages += output.getvalue().splitlines()

    def _index_bodies(self) -> None:
        """Find Newton's body for each of MuJoCo's; the others are massless links."""
        labels = list(self.newton_model.body_label)
        self.body_of = np.zeros(self.model.nbody, dtype=np.int64)
        """Newton's body for each of MuJoCo's; the entry of the world is unused."""
        self._links: dict[int, tuple[int, int]] = {}
        after = 0
        for body in range(1, self.model.nbody):
            name, links = self.names.body[body], 0
            while after < len(labels) and not labels[after].endswith(f"/{name}"):
                if not labels[after].endswith(f"/{link_name(name, links)}"):
                    raise ModelError(
                        f"Newton created other bodies than MuJoCo: {labels}."
                    )
                self._links[after] = (body, links)
                links, after = links + 1, after + 1
            if after == len(labels):
                raise ModelError(f"Newton created other bodies than MuJoCo: {labels}.")
            self._links[after] = (body, links)
            self.body_of[body] = after
            after += 1

    def _index_joints(self) -> None:
        """Find each of MuJoCo's joints in Newton's coordinates and velocities."""
        mj, model = self.model, self.newton_model
        coords, dofs = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        self.coord_of = np.zeros(mj.njnt, dtype=np.int64)
        self.dof_of = np.zeros(mj.njnt, dtype=np.int64)
        self.joint_of = np.zeros(mj.njnt, dtype=np.int64)
        """Newton's joint for each of MuJoCo's."""
        for joint, child in enumerate(model.joint_child.numpy()):
            body, link = self._links[int(child)]
            first, count = mj.body_jntadr[body], mj.body_jntnum[body]
            own = list(range(first, first + count))
            if self._links.get(int(child) + 1, (0, 0))[0] == body or link:
                own = own[link : link + 1]  # of a body that was split
            for k, j in enumerate(own):
                self.coord_of[j] = coords[joint] + k
                self.dof_of[j] = dofs[joint] + k
                self.joint_of[j] = joint

    def _set_drives(self) -> None:
        """Set the gains of MuJoCo's servos, or zero if they are switched off."""
        model, count = self.newton_model, self.newton_model.joint_dof_count
        stiffness, damping = np.zeros(count, np.float32), np.zeros(count, np.float32)
        if "actuators" in self.terms:
            for drive in self.drives:
                stiffness[self.dof_of[drive.joint]] = drive.stiffness
                damping[self.dof_of[drive.joint]] = drive.damping
        model.joint_target_ke.assign(stiffness)
        model.joint_target_kd.assign(damping)
        if "joint limits" not in self.terms:
            # Not by zero stiffness: beyond a limit Newton disables servos.
            model.joint_limit_lower.fill_(-_FAR)
            model.joint_limit_upper.fill_(_FAR)

    def _filter_collisions(self, builder: Any) -> None:
        """Allow collisions of exactly those pairs of geoms that collide in MuJoCo."""
        by_name = {name: geom for geom, name in enumerate(self.names.geom)}
        shapes = {}
        for shape, label in enumerate(builder.shape_label):
            found = [name for name in by_name if label.endswith(f"/{name}")]
            if found:
                shapes[shape] = by_name[max(found, key=len)]
        for one in shapes:
            for two in shapes:
                if one < two and not may_touch(self.model, shapes[one], shapes[two]):
                    builder.add_shape_collision_filter_pair(one, two)

    def write(self, state: Any, qpos: Array, qvel: Array) -> None:
        """Write MuJoCo's qpos (nq,) and qvel (nv,) into a state."""
        coords = np.zeros(self.newton_model.joint_coord_count)
        mj = self.model
        for j in range(mj.njnt):
            at, adr = self.coord_of[j], mj.jnt_qposadr[j]
            if mj.jnt_type[j] == _FREE:
                coords[at : at + 3] = qpos[adr : adr + 3]
                coords[at + 3 : at + 7] = _unit(qpos[adr + 3 : adr + 7])[[1, 2, 3, 0]]
            elif mj.jnt_type[j] == _BALL:
                coords[at : at + 4] = _unit(qpos[adr : adr + 4])[[1, 2, 3, 0]]
            else:
                coords[at] = qpos[adr] - mj.qpos0[adr]
        state.joint_q.assign(coords.astype(np.float32))
        velocities = self.velocity_map(qpos) @ qvel
        state.joint_qd.assign(velocities.astype(np.float32))
        self._refresh(state)

    def _refresh(self, state: Any) -> None:
        newton.eval_fk(self.newton_model, state.joint_q, state.joint_qd, state)

    def velocity_map(self, qpos: Array) -> Array:
        """Return the matrix T(qpos) in Newton's velocities = T qvel; (dofs, nv)."""
        mj = self.model
        turn = np.zeros((self.newton_model.joint_dof_count, mj.nv))
        for j in range(mj.njnt):
            at, dof, adr = self.dof_of[j], mj.jnt_dofadr[j], mj.jnt_qposadr[j]
            if mj.jnt_type[j] == _FREE:
                rot = rotation(qpos[adr + 3 : adr + 7])
                com = rot @ self.com[mj.jnt_bodyid[j]]
                turn[at : at + 3, dof : dof + 3] = np.eye(3)
                turn[at : at + 3, dof + 3 : dof + 6] = -cross_matrix(com) @ rot
                turn[at + 3 : at + 6, dof + 3 : dof + 6] = rot
            elif mj.jnt_type[j] == _BALL:
                turn[at : at + 3, dof : dof + 3] = rotation(qpos[adr : adr + 4])
            else:
                turn[at, dof] = 1.0
        return turn

    def velocity_rates(self, qpos: Array, qvel: Array, rates: Array) -> Array:
        """Convert the rate of Newton's velocities to MuJoCo's d qvel/dt; (nv,)."""
        mj, rates = self.model, rates.copy()
        for j in np.flatnonzero(mj.jnt_type == _FREE):
            at, dof, adr = self.dof_of[j], mj.jnt_dofadr[j], mj.jnt_qposadr[j]
            rot = rotation(qpos[adr + 3 : adr + 7])
            ang_vel = rot @ qvel[dof + 3 : dof + 6]
            arm = rot @ self.com[mj.jnt_bodyid[j]]
            # Centripetal acceleration of the COM relative to the origin.
            rates[at : at + 3] -= np.cross(ang_vel, np.cross(ang_vel, arm))
        return np.linalg.solve(self.velocity_map(qpos), rates)

    def qpos(self, state: Any) -> Array:
        """MuJoCo's qpos; shape (nq,)."""
        mj, coords = self.model, state.joint_q.numpy().astype(np.float64)
        qpos = np.zeros(mj.nq)
        for j in range(mj.njnt):
            at, adr = self.coord_of[j], mj.jnt_qposadr[j]
            if mj.jnt_type[j] == _FREE:
                qpos[adr : adr + 3] = coords[at : at + 3]
                qpos[adr + 3 : adr + 7] = coords[at + np.array([6, 3, 4, 5])]
            elif mj.jnt_type[j] == _BALL:
                qpos[adr : adr + 4] = coords[at + np.array([3, 0, 1, 2])]
            else:
                qpos[adr] = coords[at] + mj.qpos0[adr]
        return qpos

    def qvel(self, state: Any, qpos: Array) -> Array:
        """MuJoCo's qvel; shape (nv,)."""
        velocities = state.joint_qd.numpy().astype(np.float64)
        return np.linalg.solve(self.velocity_map(qpos), velocities)

    def read(self, states: Sequence[Any]) -> BodyStates:
        """Return the states of some worlds, bodies by Newton's kinematics."""
        motion = BodyStates.blank(self.model, len(states))
        for row, state in enumerate(states):
            self._refresh(state)
            motion.qpos[row] = self.qpos(state)
            motion.qvel[row] = self.qvel(state, motion.qpos[row])
            pose, twist = self.poses(state), self._twists(state)
            motion.body_pos[row, 1:] = pose[1:, :3]
            motion.body_quat[row, 1:] = pose[1:, 3:]
            motion.body_ang_vel[row, 1:] = twist[1:, 3:]
            for b in range(1, self.model.nbody):
                com = rotation(pose[b, 3:]) @ self.com[b]
                moved = np.cross(twist[b, 3:], com)
                motion.body_vel[row, b] = twist[b, :3] - moved
        return motion

    def poses(self, state: Any) -> Array:
        """Position and quaternion wxyz of MuJoCo's bodies; shape (nbody, 7)."""
        pose = state.body_q.numpy().astype(np.float64)[self.body_of]
        pose = pose[:, [0, 1, 2, 6, 3, 4, 5]]
        pose[0] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        return pose

    def _twists(self, state: Any) -> Array:
        """Velocity of the COM and angular velocity of MuJoCo's bodies; (nbody, 6)."""
        return state.body_qd.numpy().astype(np.float64)[self.body_of]

    def set_targets(
        self, control: Any, position: Array, rate: Array, effort: Array
    ) -> None:
        """Set the targets of the joints' drives, by the dofs of MuJoCo's joints."""
        mj, model = self.model, self.newton_model
        targets = control.joint_target_q.numpy()
        by_coord = len(targets) == model.joint_coord_count
        for j in range(mj.njnt):
            if mj.jnt_type[j] not in (_FREE, _BALL):
                at = self.coord_of[j] if by_coord else self.dof_of[j]
                rest = mj.qpos0[mj.jnt_qposadr[j]]
                targets[at] = position[self.dof_of[j]] - rest
        control.joint_target_q.assign(targets)
        control.joint_target_qd.assign(rate)
        control.joint_f.assign(effort)


def rotation(quat: Array) -> Array:
    """The rotation matrix of a quaternion wxyz: vec_w = R @ vec_b."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, _unit(quat))
    return matrix.reshape(3, 3)


def cross_matrix(vec: Array) -> Array:
    """The matrix with `cross_matrix(a) @ b == a × b`."""
    x, y, z = vec
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _unit(quat: Array) -> Array:
    return quat / np.linalg.norm(quat)


def _share_anchors(model: mujoco.MjModel) -> None:
    """Set the anchors of slides, which have no effect, to that of their hinges."""
    for body in range(1, model.nbody):
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        own = range(first, first + count)
        hinges = [j for j in own if model.jnt_type[j] != _SLIDE]
        if hinges:
            for j in own:
                model.jnt_pos[j] = model.jnt_pos[hinges[0]]


def _bodies_that_slide_and_turn(model: mujoco.MjModel) -> list[int]:
    """The bodies that have both slides and hinges."""
    found: list[int] = []
    for body in range(1, model.nbody):
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        kinds = {bool(k == _SLIDE) for k in model.jnt_type[first : first + count]}
        if len(kinds) == 2:
            found.append(body)
    return found


def _check_joints(model: mujoco.MjModel, names: ModelNames) -> None:
    """Raise for bodies whose joints Newton would combine in another way."""
    for body in range(1, model.nbody):
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        own = list(range(first, first + count))
        slides = [model.jnt_type[j] == _SLIDE for j in own]
        hinges = [j for j, slide in zip(own, slides, strict=True) if not slide]
        apart = any(
            np.any(model.jnt_pos[j] != model.jnt_pos[hinges[0]]) for j in hinges
        )
        mixed = count > 1 and any(model.jnt_type[j] == _BALL for j in own)
        if apart or mixed or slides != sorted(slides, reverse=True):
            raise ModelError(
                f"Newton combines the joints of body {names.body[body]!r} into one: "
                "first slides, then hinges about a common anchor. These have another "
                "order or type: give each a separate body."
            )


def _check_tendons(model: mujoco.MjModel, names: ModelNames) -> None:
    """Raise for fixed tendons from which Newton would leave out joints.

    Its MuJoCo solver omits joints of a body that has several.
    """
    for tendon in range(model.ntendon):
        first, count = model.tendon_adr[tendon], model.tendon_num[tendon]
        wraps = range(first, first + count)
        kinds = model.wrap_type[first : first + count]
        if not np.all(kinds == mujoco.mjtWrap.mjWRAP_JOINT.value):
            continue
        bodies = model.jnt_bodyid[model.wrap_objid[wraps]]
        if np.any(model.body_jntnum[bodies] > 1) and _acts(model, tendon):
            raise ModelError(
                f"Newton leaves joints out of tendon {names.tendon[tendon]!r}, because "
                "their body has several: give each of its joints a separate body.",
                name=names.tendon[tendon],
            )


def _acts(model: mujoco.MjModel, tendon: int) -> bool:
    """Return True if a tendon has any effect."""
    driven = model.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON.value
    forces = ("stiffness", "damping", "frictionloss", "armature", "limited")
    return bool(
        tendon in model.actuator_trnid[driven, 0]
        or any(getattr(model, f"tendon_{what}")[tendon] for what in forces)
    )
