"""EntityData: every quantity of an entity, with its point, axes, unit and shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from simstate.entity import joint_quantities as j
from simstate.entity.compiled_reads import direction_b
from simstate.entity.frame_quantities import (
    BODY_COM,
    BODY_LINK,
    GEOM,
    ROOT_COM,
    ROOT_LINK,
    SITE,
    acc_w,
    ang_acc_w,
    ang_vel_b,
    ang_vel_w,
    lin_acc_w,
    lin_vel_b,
    lin_vel_w,
    pos_w,
    pose_w,
    quat_w,
    vel_w,
)
from simstate.entity.other_names import unknown_quantity
from simstate.entity.quantity import Quantity, QuantitySet
from simstate.math import quaternion


class EntityData(QuantitySet):
    """The quantities of one entity in all worlds; engine's dtype, quaternions wxyz.

    `_w`: along world axes; `_b`: along the root link's. `link`: of the body frame's
    origin; `com`: of the centre of mass. `vel` and `acc` are linear, then angular.
    `joint_…` covers joints with one degree of freedom, `ball_joint_…` the others.

    Each is computed when it is first read in a state, and kept until that moves on; a
    view of the engine's memory is live: `.clone()` keeps one. Accelerations of bodies
    are of the present state, `joint_acc` and forces of the last evaluation. Assigning
    raises and names the writer. A subclass declares more, each a `Quantity` with its
    contract, and `EntityCfg(data=…)` gives it to an entity.
    """

    # Root link.
    root_link_pose_w = pose_w(ROOT_LINK, "write_root_link_pose_to_sim")
    """Origin and quaternion of the root link, world axes [m, 1]; (num_envs, 7)."""
    root_link_pos_w = pos_w(ROOT_LINK)
    """Origin of the root link, world axes [m]; (num_envs, 3)."""
    root_link_quat_w = quat_w(ROOT_LINK)
    """Orientation of the root link, wxyz; (num_envs, 4)."""
    root_link_vel_w = vel_w(ROOT_LINK, "write_root_link_velocity_to_sim")
    """Linear (at the origin) then angular velocity of the root link, world axes
    [m/s, rad/s]; (num_envs, 6)."""
    root_link_lin_vel_w = lin_vel_w(ROOT_LINK)
    """Velocity of the root link's origin, world axes [m/s]; (num_envs, 3)."""
    root_link_ang_vel_w = ang_vel_w(ROOT_LINK)
    """Angular velocity of the root link, world axes [rad/s]; (num_envs, 3)."""
    root_link_lin_vel_b = lin_vel_b(ROOT_LINK)
    """Velocity of the root link's origin, root link's axes [m/s]; (num_envs, 3)."""
    root_link_ang_vel_b = ang_vel_b(ROOT_LINK)
    """Angular velocity of the root link, its own axes [rad/s]; (num_envs, 3)."""

    # Root centre of mass.
    root_com_pose_w = pose_w(ROOT_COM, "write_root_com_pose_to_sim")
    """COM and principal inertia axes of the root link, world axes [m, 1];
    (num_envs, 7)."""
    root_com_pos_w = pos_w(ROOT_COM)
    """COM of the root link, world axes [m]; (num_envs, 3)."""
    root_com_quat_w = quat_w(ROOT_COM)
    """Orientation of the root link's principal inertia axes, wxyz; (num_envs, 4)."""
    root_com_vel_w = vel_w(ROOT_COM, "write_root_com_velocity_to_sim")
    """Linear (at the COM) then angular velocity of the root link, world axes
    [m/s, rad/s]; (num_envs, 6)."""
    root_com_lin_vel_w = lin_vel_w(ROOT_COM)
    """Velocity of the root link's COM, world axes [m/s]; (num_envs, 3)."""
    root_com_ang_vel_w = ang_vel_w(ROOT_COM)
    """Angular velocity of the root link, world axes [rad/s]; (num_envs, 3)."""
    root_com_lin_vel_b = lin_vel_b(ROOT_COM)
    """Velocity of the root link's COM, root link's axes [m/s]; (num_envs, 3)."""
    root_com_ang_vel_b = ang_vel_b(ROOT_COM)
    """Angular velocity of the root link, its own axes [rad/s]; (num_envs, 3)."""

    # Derived from the root.
    projected_gravity_b = Quantity(
        j.projected_gravity_b, kind="projected_gravity", axes="b", unit="1", shape=(3,),
        reads=("xquat",), parameters=("opt.gravity",),
        compiled=lambda data: direction_b(data, data.gravity_direction()),
        is_local=True,
    )  # fmt: skip
    """Direction of gravity, root link's axes, unit length: (0, 0, −1) when upright;
    world −z in a world without gravity; (num_envs, 3)."""
    heading_w = Quantity(
        j.heading_w, kind="heading", axes="w", unit="rad", shape=(), reads=("xquat",),
        is_local=True,
    )  # fmt: skip
    """Angle about world z of the root link's x axis, projected to the ground, in
    (−π, π] [rad]; (num_envs,)."""

    # Bodies.
    body_link_pose_w = pose_w(BODY_LINK, "write_body_link_pose_to_sim")
    """Origin and quaternion of each link, world axes [m, 1]; (num_envs, num_bodies,
    7)."""
    body_link_pos_w = pos_w(BODY_LINK)
    """Origin of each link, world axes [m]; (num_envs, num_bodies, 3)."""
    body_link_quat_w = quat_w(BODY_LINK)
    """Orientation of each link, wxyz; (num_envs, num_bodies, 4)."""
    body_link_vel_w = vel_w(BODY_LINK, "write_body_link_velocity_to_sim")
    """Linear (at the origin) then angular velocity of each link, world axes
    [m/s, rad/s]; (num_envs, num_bodies, 6)."""
    body_link_lin_vel_w = lin_vel_w(BODY_LINK)
    """Velocity of each link's origin, world axes [m/s]; (num_envs, num_bodies, 3)."""
    body_link_ang_vel_w = ang_vel_w(BODY_LINK)
    """Angular velocity of each link, world axes [rad/s]; (num_envs, num_bodies, 3)."""
    body_link_acc_w = acc_w(BODY_LINK)
    """Linear (at the origin) then angular acceleration of each link, world axes
    [m/s², rad/s²]; (num_envs, num_bodies, 6)."""
    body_link_lin_acc_w = lin_acc_w(BODY_LINK)
    """Classical acceleration of each link's origin, world axes [m/s²]; (num_envs,
    num_bodies, 3). Evaluates the dynamics of the present state when read."""
    body_link_ang_acc_w = ang_acc_w(BODY_LINK)
    """Angular acceleration of each link, world axes [rad/s²]; (num_envs, num_bodies,
    3). Evaluates the dynamics of the present state when read."""
    body_com_pose_w = pose_w(BODY_COM)
    """COM and principal inertia axes of each link, world axes [m, 1]; (num_envs,
    num_bodies, 7)."""
    body_com_pos_w = pos_w(BODY_COM)
    """COM of each link, world axes [m]; (num_envs, num_bodies, 3)."""
    body_com_quat_w = quat_w(BODY_COM)
    """Orientation of each link's principal inertia axes, wxyz; (num_envs, num_bodies,
    4)."""
    body_com_vel_w = vel_w(BODY_COM)
    """Linear (at the COM) then angular velocity of each link, world axes
    [m/s, rad/s]; (num_envs, num_bodies, 6)."""
    body_com_lin_vel_w = lin_vel_w(BODY_COM)
    """Velocity of each link's COM, world axes [m/s]; (num_envs, num_bodies, 3)."""
    body_com_ang_vel_w = ang_vel_w(BODY_COM)
    """Angular velocity of each link, world axes [rad/s]; (num_envs, num_bodies, 3)."""
    body_com_acc_w = acc_w(BODY_COM)
    """Linear (at the COM) then angular acceleration of each link, world axes
    [m/s², rad/s²]; (num_envs, num_bodies, 6)."""
    body_com_lin_acc_w = lin_acc_w(BODY_COM)
    """Classical acceleration of each link's COM, world axes [m/s²]; (num_envs,
    num_bodies, 3). Evaluates the dynamics of the present state when read."""
    body_com_ang_acc_w = ang_acc_w(BODY_COM)
    """Angular acceleration of each link, world axes [rad/s²]; (num_envs, num_bodies,
    3). Evaluates the dynamics of the present state when read."""
    body_external_wrench = j.external_wrench(
        "external_wrench", "N, N·m", slice(6), "centre of mass"
    )
    """Force then torque applied by the user at each link's COM, world axes [N, N·m];
    (num_envs, num_bodies, 6)."""
    body_external_force = j.external_wrench(
        "external_force", "N", slice(3), "centre of mass"
    )
    """Force applied by the user at each link's COM, world axes [N]; (num_envs,
    num_bodies, 3)."""
    body_external_torque = j.external_wrench("external_torque", "N·m", slice(3, 6))
    """Torque applied by the user to each link, world axes [N·m]; (num_envs,
    num_bodies, 3)."""
    body_mass = j.parameter(
        "body_mass", "body_ids", subject="body", kind="mass", unit="kg",
        shape=("num_bodies",),
    )  # fmt: skip
    """Mass of each link [kg]; (num_envs, num_bodies)."""
    body_inertia = j.parameter(
        "body_inertia", "body_ids", subject="body", kind="inertia", unit="kg·m²",
        shape=("num_bodies", 3),
    )  # fmt: skip
    """Principal moments of inertia of each link about its COM, along the axes of
    body_com_quat_w [kg·m²]; (num_envs, num_bodies, 3)."""

    # 1-DoF joints.
    joint_pos = j.column(
        "qpos", "qpos_adr", subject="joint", kind="pos", unit="rad or m",
        count="num_joints", writer="write_joint_position_to_sim",
    )  # fmt: skip
    """Position of each hinge or slide [rad or m]; (num_envs, num_joints)."""
    joint_pos_biased = Quantity(
        lambda data: data.read("joint_pos") + data.stored("encoder_bias"),
        subject="joint", kind="pos_biased", unit="rad or m", shape=("num_joints",),
        reads=("qpos",),
    )  # fmt: skip
    """joint_pos plus encoder_bias: what the encoders report [rad or m]; (num_envs,
    num_joints)."""
    joint_vel = j.column(
        "qvel", "dof_adr", subject="joint", kind="vel", unit="rad/s or m/s",
        count="num_joints", writer="write_joint_velocity_to_sim",
    )  # fmt: skip
    """Velocity of each hinge or slide [rad/s or m/s]; (num_envs, num_joints)."""
    joint_acc = j.column(
        "qacc", "dof_adr", subject="joint", kind="acc", unit="rad/s² or m/s²",
        count="num_joints", when=j.LAST_EVALUATION,
    )  # fmt: skip
    """Acceleration of each hinge or slide in the last dynamics evaluation
    [rad/s² or m/s²]; (num_envs, num_joints)."""
    default_joint_pos = j.stored(
        kind="default_joint_pos", unit="rad or m", shape=("num_joints",)
    )
    """Position of each joint after a reset, writable in place [rad or m]; (num_envs,
    num_joints)."""
    default_joint_vel = j.stored(
        kind="default_joint_vel", unit="rad/s or m/s", shape=("num_joints",)
    )
    """Velocity of each joint after a reset, writable in place [rad/s or m/s];
    (num_envs, num_joints)."""
    default_root_state = j.stored(
        kind="default_root_state", axes="w", unit="m, 1, m/s, rad/s", shape=(13,)
    )
    """Root link after a reset: origin, quaternion wxyz, linear (at the origin) and
    angular velocity, world axes, writable in place [m, 1, m/s, rad/s]; (num_envs,
    13)."""
    joint_pos_limits = Quantity(
        j.joint_pos_limits, subject="joint", kind="pos_limits", unit="rad or m",
        shape=("num_joints", 2), reads=(), parameters=("jnt_range", "jnt_limited"),
        remedy='use sim.expand("jnt_range")[:] = …',
    )  # fmt: skip
    """Lower and upper limit of each joint, infinite where it has none [rad or m];
    (num_envs, num_joints, 2)."""
    soft_joint_pos_limits = Quantity(
        j.soft_joint_pos_limits, kind="soft_joint_pos_limits", unit="rad or m",
        shape=("num_joints", 2), reads=(), parameters=("jnt_range", "jnt_limited"),
    )  # fmt: skip
    """The limits drawn in to soft_joint_pos_limit_factor of the range [rad or m];
    (num_envs, num_joints, 2)."""
    encoder_bias = j.stored(
        kind="encoder_bias", unit="rad or m", shape=("num_joints",),
        writer="set_encoder_bias",
    )  # fmt: skip
    """Offset that the encoders add to joint_pos, writable in place [rad or m];
    (num_envs, num_joints)."""
    joint_pos_target = j.target(
        "pos_target", "rad or m", "set_joint_position_target", "position"
    )
    """Position that the controls ask of each joint; where none takes one, what was set,
    0 at first [rad or m]; (num_envs, num_joints)."""
    joint_vel_target = j.target(
        "vel_target", "rad/s or m/s", "set_joint_velocity_target", "velocity"
    )
    """Velocity that the controls ask of each joint; where none takes one, what was set,
    0 at first [rad/s or m/s]; (num_envs, num_joints)."""
    joint_effort_target = j.target(
        "effort_target", "N·m or N", "set_joint_effort_target", "effort"
    )
    """Effort that the controls ask of each joint; where none takes one, what was set,
    0 at first [N·m or N]; (num_envs, num_joints)."""

    # Ball joints.
    ball_joint_quat = Quantity(
        lambda data: quaternion.normalize(j.blocks(data, "qpos", "ball_qpos_adr", 4)),
        subject="ball_joint", kind="quat", axes_text="parent", unit="1",
        shape=("num_ball_joints", 4), reads=("qpos",),
        writer="write_ball_joint_quat_to_sim",
    )  # fmt: skip
    """Orientation of each ball joint's body relative to its place in the parent, wxyz;
    (num_envs, num_ball_joints, 4)."""
    ball_joint_ang_vel = Quantity(
        lambda data: j.blocks(data, "qvel", "ball_dof_adr", 3),
        subject="ball_joint", kind="ang_vel", axes_text="body", unit="rad/s",
        shape=("num_ball_joints", 3), reads=("qvel",),
        writer="write_ball_joint_ang_vel_to_sim",
    )  # fmt: skip
    """Angular velocity of each ball joint's body relative to the parent, in the body's
    own axes as in qvel [rad/s]; (num_envs, num_ball_joints, 3)."""

    # Forces.
    actuator_force = j.column(
        "actuator_force", "actuator_columns", kind="actuator_force",
        unit="N·m or N", count="num_actuators", when=j.LAST_EVALUATION,
    )  # fmt: skip
    """Scalar force of each actuator, in actuation space, in the last dynamics
    evaluation [N·m or N]; (num_envs, num_actuators)."""
    generalized_force = j.column(
        "qfrc_applied", "free_dofs", kind="generalized_force", unit="N, N·m",
        count="num_free_dofs", writer="write_generalized_force_to_sim",
        point_text="link origin", axes_text="world, then body",
    )  # fmt: skip
    """Force applied by the user to the free-joint dofs, six of each free joint: force
    at the origin, world axes, then torque, body axes [N, N·m]; (num_envs,
    num_free_dofs)."""
    qfrc_actuator = j.column(
        "qfrc_actuator", "dof_adr", kind="qfrc_actuator", unit="N·m or N",
        count="num_joints", when=j.LAST_EVALUATION,
    )  # fmt: skip
    """Force of all actuators on each 1-DoF joint in the last dynamics evaluation
    [N·m or N]; (num_envs, num_joints)."""
    qfrc_external = Quantity(
        j.qfrc_external, kind="qfrc_external", unit="N·m or N", shape=("num_joints",),
        reads=("xfrc_applied", "subtree_com", "xipos", "cdof"),
    )  # fmt: skip
    """Effect of the external wrenches on all bodies on each 1-DoF joint [N·m or N];
    (num_envs, num_joints)."""
    qfrc_applied = j.column(
        "qfrc_applied", "dof_adr", kind="qfrc_applied", unit="N·m or N",
        count="num_joints", writer="write_joint_force_to_sim",
    )  # fmt: skip
    """Force applied by the user to each 1-DoF joint [N·m or N]; (num_envs,
    num_joints)."""
    ctrl = j.column(
        "ctrl", "control_columns", kind="ctrl", unit="actuator's own",
        count="num_controls", writer="write_ctrl_to_sim",
    )  # fmt: skip
    """Controls of the entity's actuators, each in its own unit; (num_envs,
    num_controls)."""
    act = j.column(
        "act", "activation_columns", kind="act", unit="actuator's own",
        count="num_activations", writer="write_act_to_sim",
    )  # fmt: skip
    """Activations of the entity's actuators, each in its own unit; (num_envs,
    num_activations)."""

    # Geoms.
    geom_pose_w = pose_w(GEOM)
    """Centre and quaternion of each geom, world axes [m, 1]; (num_envs, num_geoms,
    7)."""
    geom_pos_w = pos_w(GEOM)
    """Centre of each geom, world axes [m]; (num_envs, num_geoms, 3)."""
    geom_quat_w = quat_w(GEOM)
    """Orientation of each geom, wxyz; (num_envs, num_geoms, 4)."""
    geom_vel_w = vel_w(GEOM)
    """Linear (at the centre) then angular velocity of each geom, world axes
    [m/s, rad/s]; (num_envs, num_geoms, 6)."""
    geom_lin_vel_w = lin_vel_w(GEOM)
    """Velocity of each geom's centre, world axes [m/s]; (num_envs, num_geoms, 3)."""
    geom_ang_vel_w = ang_vel_w(GEOM)
    """Angular velocity of each geom, world axes [rad/s]; (num_envs, num_geoms, 3)."""

    # Sites.
    site_pose_w = pose_w(SITE)
    """Position and quaternion of each site, world axes [m, 1]; (num_envs, num_sites,
    7)."""
    site_pos_w = pos_w(SITE)
    """Position of each site, world axes [m]; (num_envs, num_sites, 3)."""
    site_quat_w = quat_w(SITE)
    """Orientation of each site, wxyz; (num_envs, num_sites, 4)."""
    site_vel_w = vel_w(SITE)
    """Linear (at the site) then angular velocity of each site, world axes
    [m/s, rad/s]; (num_envs, num_sites, 6)."""
    site_lin_vel_w = lin_vel_w(SITE)
    """Velocity of each site, world axes [m/s]; (num_envs, num_sites, 3)."""
    site_ang_vel_w = ang_vel_w(SITE)
    """Angular velocity of each site, world axes [rad/s]; (num_envs, num_sites, 3)."""

    # Tendons, mocap bodies and equality constraints.
    tendon_len = j.column(
        "ten_length", "tendon_ids", subject="tendon", kind="len", unit="m or rad",
        count="num_tendons",
    )  # fmt: skip
    """Length of each tendon [m or rad]; (num_envs, num_tendons)."""
    tendon_vel = j.column(
        "ten_velocity", "tendon_ids", subject="tendon", kind="vel", unit="m/s or rad/s",
        count="num_tendons",
    )  # fmt: skip
    """Velocity of each tendon [m/s or rad/s]; (num_envs, num_tendons)."""
    mocap_pose_w = Quantity(
        lambda data: torch.cat(
            [
                data.raw("mocap_pos")[:, data.columns("mocap_ids")],
                quaternion.normalize(
                    data.raw("mocap_quat")[:, data.columns("mocap_ids")]
                ),
            ],
            dim=-1,
        ),
        subject="mocap", kind="pose", axes="w", unit="m, 1",
        shape=("num_mocap_bodies", 7), reads=("mocap_pos", "mocap_quat"),
        writer="write_mocap_pose_to_sim",
    )  # fmt: skip
    """Origin and quaternion of each mocap body, world axes [m, 1]; (num_envs,
    num_mocap_bodies, 7)."""
    equality_active = Quantity(
        lambda data: data.raw("eq_active")[:, data.columns("equality_ids")].to(
            data.dtype
        ),
        subject="equality", kind="active", unit="1", shape=("num_equalities",),
        reads=("eq_active",), writer="write_equality_active_to_sim",
    )  # fmt: skip
    """State of each equality constraint, active or not: 1 or 0; (num_envs,
    num_equalities)."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what other libraries' names are called here."""
            if hasattr(type(self), name) or name.startswith("_"):
                return object.__getattribute__(self, name)  # raises what was raised
            raise unknown_quantity(self._reader.name, name, self.quantities)
