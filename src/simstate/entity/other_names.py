"""Names of MuJoCo and others that `entity.data` does not have, and what there is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from simstate.base.errors import UnknownNameError, unknown_name
from simstate.engine.fields import FIELDS

_WITHOUT_POINT = re.compile(
    r"(root|body)_(pose|pos|quat|vel|lin_vel|ang_vel|acc|lin_acc|ang_acc)_([wb])"
)
_POSES = ("pose", "pos", "quat")

_DECLARED = "declared with SceneCfg(contacts={…})"

_OTHER_NAMES = {
    "root_state_w": "root_link_pose_w and root_com_vel_w",
    "root_link_state_w": "root_link_pose_w and root_link_vel_w",
    "root_com_state_w": "root_com_pose_w and root_com_vel_w",
    "body_state_w": "body_link_pose_w and body_com_vel_w",
    "body_link_state_w": "body_link_pose_w and body_link_vel_w",
    "body_com_state_w": "body_com_pose_w and body_com_vel_w",
    "projected_gravity": "projected_gravity_b",
    "heading": "heading_w",
    "applied_torque": "qfrc_actuator",
    "joint_torques": "qfrc_actuator",
    "computed_torque": "entity.dynamics.computed_actuator_force",
    "body_incoming_joint_wrench_b": "entity.dynamics.incoming_wrench_w, world axes",
    "mass_matrix": "entity.dynamics.mass_matrix",
    "jacobian": "entity.jacobian(name)",
    "contact": f"sim.contacts[name], {_DECLARED}",
    "contacts": f"sim.contacts[name], {_DECLARED}",
    "contact_force": f"sim.contacts[name].force_w, {_DECLARED}",
    "contact_forces": f"sim.contacts[name].force_w, {_DECLARED}",
    "net_forces_w": f"sim.contacts[name].force_w, {_DECLARED}",
    "net_contact_forces": f"sim.contacts[name].force_w, {_DECLARED}",
    "air_time": f"sim.contacts[name].air_time, {_DECLARED}",
    "current_air_time": f"sim.contacts[name].air_time, {_DECLARED}",
    "contact_time": f"sim.contacts[name].contact_time, {_DECLARED}",
    "height_scan": "sim.rays[name].height, declared with SceneCfg(rays={…})",
    "joint_limits": "joint_pos_limits",
    "default_joint_limits": "joint_pos_limits",
    "default_joint_pos_limits": "joint_pos_limits",
    "soft_joint_limits": "soft_joint_pos_limits",
    "default_mass": "body_mass",
    "default_inertia": "body_inertia, the principal moments",
    "joint_armature": 'sim.expand("dof_armature")',
    "joint_damping": 'sim.expand("actuator_biasprm"), of position actuators',
    "joint_stiffness": 'sim.expand("actuator_gainprm"), of position actuators',
    "gravity_vec_w": "sim.model.opt.gravity",
    "GRAVITY_VEC_W": "sim.model.opt.gravity",
    "body_names": "entity.body_names",
    "joint_names": "entity.joint_names",
    "is_fixed_base": "entity.is_fixed_base",
    "tendon_length": "tendon_len",
    "tendon_velocity": "tendon_vel",
    "write_root_state": "entity.write_root_state_to_sim",
    "write_root_pose": "entity.write_root_link_pose_to_sim",
    "write_root_velocity": "entity.write_root_link_velocity_to_sim, in world axes",
    "write_joint_state": "entity.write_joint_state_to_sim",
    "write_joint_position": "entity.write_joint_position_to_sim",
    "write_joint_velocity": "entity.write_joint_velocity_to_sim",
    "write_external_wrench": "entity.write_external_wrench_to_sim",
    "write_ctrl": "entity.write_ctrl_to_sim",
}


def unknown_quantity(
    entity: str, name: str, known: Mapping[str, object]
) -> UnknownNameError:
    """The error for an attribute that `entity.data` does not have, with the right one.

    Isaac Lab's names without a point are of the link for poses and of the centre of
    mass for velocities and accelerations.
    """
    where = f"{entity}.data has no {name!r}"
    if name in _OTHER_NAMES:
        return UnknownNameError(
            f"{where}: here it is {_OTHER_NAMES[name]}.", name=name, known=known
        )
    if name in FIELDS:
        return UnknownNameError(
            f"{where}: MuJoCo's own, for the whole scene, is sim.data.{name}.",
            name=name,
            known=known,
        )
    found = _WITHOUT_POINT.fullmatch(name)
    if found:
        subject, kind, axes = found.groups()
        link, com = (f"{subject}_{point}_{kind}_{axes}" for point in ("link", "com"))
        names = [option for option in (link, com) if option in known]
        if names:
            isaac = link if kind in _POSES else com
            theirs = f" Isaac Lab's is {isaac}." if isaac in names else ""
            return UnknownNameError(
                f"{where}: the point is part of the name, {' or '.join(names)}."
                f"{theirs}",
                name=name,
                known=names,
            )
    return unknown_name(f"quantity of {entity}.data", name, known)
