"""Parameters of a Newton model, for its Featherstone solver."""

# Newton and Warp come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.newton_model import NewtonModel, rotation
from simstate.simulators.parameters import Parameters
from simstate.simulators.parameters.body_parameters import canonical, inertia_numbers
from simstate.simulators.parameters.joint_parameters import dof_count
from simstate.simulators.parameters.scene_parameters import EXPLICIT_EULER

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
UNLIMITED = 1e6
"""Newton's value for no limit."""


_ABSENT: Parameters = {
    kind: {}
    for kind in (
        "gravity compensation", "dry friction", "higher powers of damping",
        "higher powers of stiffness", "spring stiffness", "force limit",
        "other actuator", "tendon", "fluid", "equality",
    )
}  # fmt: skip
"""The kinds of parameters that the Featherstone solver does not use."""


def read_parameters(scene: NewtonModel, timestep: float) -> Parameters:
    """Read all parameters that the Featherstone solver uses, in MuJoCo's frames."""
    gravity = scene.newton_model.gravity.numpy().reshape(-1)[:3].astype(np.float64)
    return {
        **_ABSENT,
        **_bodies(scene),
        **_joints(scene),
        **_drives(scene),
        "gravity": {"gravity": gravity},
        "time step": {"timestep": np.array([timestep])},
        "integrator": {"the scene": np.array([EXPLICIT_EULER])},
    }


def _bodies(scene: NewtonModel) -> dict[str, dict[str, Array]]:
    model = scene.newton_model
    mass, com = model.body_mass.numpy(), model.body_com.numpy()
    inertia = model.body_inertia.numpy()
    found: dict[str, dict[str, Array]] = {
        "mass": {},
        "centre of mass": {},
        "inertia": {},
    }
    for body in range(1, scene.model.nbody):
        name, at = scene.names.body[body], scene.body_of[body]
        found["mass"][name] = _wide(mass[at : at + 1])
        found["centre of mass"][name] = _wide(com[at])
        found["inertia"][name] = inertia_numbers(inertia[at])
    return {**found, **_poses(scene)}


def _poses(scene: NewtonModel) -> dict[str, dict[str, Array]]:
    """Return the poses of bodies in their parents with all joints at rest."""
    mj, state = scene.model, scene.newton_model.state()
    scene.write(state, mj.qpos0, np.zeros(mj.nv))
    pose = scene.poses(state)
    positions: dict[str, Array] = {}
    orientations: dict[str, Array] = {}
    for body in range(1, mj.nbody):
        first, parent = mj.body_jntadr[body], mj.body_parentid[body]
        if first >= 0 and mj.jnt_type[first] == _FREE:
            continue
        own, above = pose[body], pose[parent]
        rot = rotation(above[3:])
        relative = rot.T @ rotation(own[3:])
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(relative).ravel())
        name = scene.names.body[body]
        positions[name] = rot.T @ (own[:3] - above[:3])
        orientations[name] = canonical(quat)
    return {"position in parent": positions, "orientation in parent": orientations}


def _joints(scene: NewtonModel) -> dict[str, dict[str, Array]]:
    mj, model = scene.model, scene.newton_model
    axes = model.joint_axis.numpy().astype(np.float64)
    on_child = model.joint_X_c.numpy().astype(np.float64)
    low, high = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    found: dict[str, dict[str, Array]] = {
        kind: {}
        for kind in ("joint axis", "joint anchor", "joint range", "armature", "damping")
    }
    for j in range(mj.njnt):
        name, dof = scene.names.joint[j], int(scene.dof_of[j])
        dofs = slice(dof, dof + dof_count(mj, j))
        found["armature"][name] = _wide(model.joint_armature.numpy()[dofs])
        damping = _wide(model.joint_damping.numpy()[dofs])
        free = mj.jnt_type[j] == _FREE
        found["damping"][name] = np.zeros_like(damping) if free else damping
        if free:
            continue
        child = on_child[scene.joint_of[j]]
        found["joint anchor"][name] = child[:3]
        if mj.jnt_type[j] == _BALL:
            continue
        found["joint axis"][name] = rotation(child[[6, 3, 4, 5]]) @ axes[dof]
        rest = mj.qpos0[mj.jnt_qposadr[j]]
        limits = np.array([low[dof], high[dof]], dtype=np.float64)
        unlimited = np.abs(limits) >= UNLIMITED
        limits = np.where(unlimited, np.copysign(np.inf, limits), limits + rest)
        found["joint range"][name] = limits
    return found


def _drives(scene: NewtonModel) -> dict[str, dict[str, Array]]:
    model = scene.newton_model
    stiffness = _wide(model.joint_target_ke.numpy())
    damping = _wide(model.joint_target_kd.numpy())
    found: dict[str, dict[str, Array]] = {
        kind: {} for kind in ("servo stiffness", "servo damping", "force per control")
    }
    for drive in scene.drives:
        name, dof = scene.names.joint[drive.joint], scene.dof_of[drive.joint]
        found["servo stiffness"][name] = stiffness[dof : dof + 1]
        found["servo damping"][name] = damping[dof : dof + 1]
        efforts = [i.factor for i in drive.inputs if i.kind == "effort"]
        if efforts:
            found["force per control"][name] = np.array(efforts)
    return found


def _wide(values: np.ndarray) -> Array:
    return values.astype(np.float64)
