"""Pinocchio as an oracle, in an environment of its own: `make test-dynamics`.

A floating robot and a fixed arm are built from the same masses, inertias, joints and
offsets in both libraries, link by link; then random states are compared: Jacobians,
their rates, mass matrix, bias and gravity forces, energies, centroidal momentum matrix.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import torch

from simstate import EntityCfg, SceneCfg, Simulation

_HINGE, _SLIDE = mujoco.mjtJoint.mjJNT_HINGE.value, mujoco.mjtJoint.mjJNT_SLIDE.value
_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value


def _pose(pos: np.ndarray, quat: np.ndarray) -> pin.SE3:
    w, x, y, z = quat
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.array(pos))


def to_pinocchio(
    model: mujoco.MjModel,
) -> tuple[pin.Model, dict[int, int], dict[int, pin.SE3]]:
    """Pinocchio's model; the joint that carries each body, and its place on it."""
    built = pin.Model()
    built.gravity.linear = np.array(model.opt.gravity)
    joints: dict[int, int] = {0: 0}
    places: dict[int, pin.SE3] = {0: pin.SE3.Identity()}
    for body in range(1, model.nbody):
        parent = int(model.body_parentid[body])
        offset = places[parent] * _pose(model.body_pos[body], model.body_quat[body])
        current = joints[parent]
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            kind, axis = int(model.jnt_type[joint]), np.array(model.jnt_axis[joint])
            made = {
                _FREE: pin.JointModelFreeFlyer(),
                _BALL: pin.JointModelSpherical(),
                _HINGE: pin.JointModelRevoluteUnaligned(axis),
                _SLIDE: pin.JointModelPrismaticUnaligned(axis),
            }[kind]
            anchor = pin.SE3(np.eye(3), np.array(model.jnt_pos[joint]))
            if kind == _FREE:
                offset = pin.SE3.Identity()  # its position is along world axes
                anchor = pin.SE3.Identity()
            current = built.addJoint(current, made, offset * anchor, f"j{joint}")
            offset = anchor.inverse()
        joints[body], places[body] = current, offset
        about = _pose(model.body_ipos[body], model.body_iquat[body])
        inertia = pin.Inertia(
            float(model.body_mass[body]), np.zeros(3), np.diag(model.body_inertia[body])
        )
        built.appendBodyToJoint(joints[body], inertia, places[body] * about)
    armature = np.zeros(built.nv)
    armature[:] = model.dof_armature
    built.armature = armature
    return built, joints, places


def states(model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray):
    """The same state for Pinocchio: xyzw, a free body's velocity in its own axes.

    And what takes MuJoCo's qvel to Pinocchio's, which is a rotation at free joints.
    """
    q, turn = qpos.copy(), np.eye(model.nv)
    for joint in range(model.njnt):
        kind, adr = int(model.jnt_type[joint]), int(model.jnt_qposadr[joint])
        if kind in (_FREE, _BALL):
            first = adr + (3 if kind == _FREE else 0)
            w, x, y, z = qpos[first : first + 4]
            q[first : first + 4] = x, y, z, w
            if kind == _FREE:
                dof = int(model.jnt_dofadr[joint])
                rot = pin.Quaternion(w, x, y, z).toRotationMatrix()
                turn[dof : dof + 3, dof : dof + 3] = rot.T
    return q, turn @ qvel, turn


def compare(name: str) -> float:
    """The greatest error of all quantities in a few states, relative to their size."""
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=name)}, ground=False, timestep=None
    )
    sim = Simulation(scene, num_envs=4)
    model, rng = sim.model, np.random.default_rng(0)
    for world in range(4):
        qpos = sim.data.qpos[world].numpy().copy()
        mujoco.mj_integratePos(model, qpos, rng.normal(size=model.nv), 0.7)
        sim.data.qpos[world] = torch.as_tensor(qpos)
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=(4, model.nv)))
    theirs, joints, places = to_pinocchio(model)
    data, worst = theirs.createData(), 0.0
    robot, own = sim.scene["robot"], sim.dynamics
    static = [body for body, joint in joints.items() if body and joint == 0]
    mass_of = model.body_mass[static][:, None]
    fixed = mass_of * sim.data.xipos[0, static].numpy()
    for world in range(4):
        q, v, turn = states(
            model, sim.data.qpos[world].numpy(), sim.data.qvel[world].numpy()
        )
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        pin.computeAllTerms(theirs, data, q, v)
        mass = np.triu(data.M) + np.triu(data.M, 1).T
        pairs.append((own.mass_matrix[world].numpy(), turn.T @ mass @ turn))
        gravity = pin.computeGeneralizedGravity(theirs, data, q)
        pairs.append((own.gravity_force[world].numpy(), turn.T @ gravity))
        kinetic = 0.5 * v @ mass @ v  # Pinocchio's own leaves out the armature
        pairs.append((own.kinetic_energy[world].numpy(), np.array(kinetic)))
        # Pinocchio leaves out what is fixed to the world.
        potential = pin.computePotentialEnergy(theirs, data, q)
        potential -= (fixed @ model.opt.gravity).sum()
        pairs.append((own.gravity_energy[world].numpy(), np.array(potential)))
        pin.ccrba(theirs, data, q, v)
        moving = data.mass[0] * np.array(data.com[0])
        centre = (moving + fixed.sum(axis=0)) / model.body_mass.sum()
        pairs.append((own.com_pos_w[world].numpy(), centre))
        known = np.array(data.Ag)
        known[3:] += pin.skew(np.array(data.com[0]) - centre) @ known[:3]
        matrix = own.centroidal_momentum_matrix[world].numpy()
        pairs.append((matrix, known @ turn))
        world_axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.computeJointJacobians(theirs, data, q)
        for body, joint in joints.items():
            if body:
                known = pin.getJointJacobian(theirs, data, joint, world_axes).copy()
                arm = data.oMi[joint].rotation @ places[body].translation
                known[:3] -= pin.skew(arm) @ known[3:]
                got = robot.jacobian(model.body(body).name.removeprefix("robot/"))
                pairs.append((got[world].numpy(), known @ turn))
        for got, known in pairs:
            size = max(1.0, float(np.abs(known).max()))
            worst = max(worst, float(np.abs(got - known).max()) / size)
    return worst


if __name__ == "__main__":
    for name in ("quadruped", "humanoid", "arm", "cube"):
        worst = compare(name)
        print(f"{name}: largest relative error against Pinocchio {worst:.1e}")
        assert worst < 1e-10, name
