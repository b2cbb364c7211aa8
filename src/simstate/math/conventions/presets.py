"""Conventions of MuJoCo and of programs that are used with it.

If a library has several, the preset is that of its state vector or its usual message,
as its docstring states.
"""

from __future__ import annotations

from dataclasses import replace

from simstate.math.conventions.attitude import Attitude
from simstate.math.conventions.convention import Convention

_XYZW = Attitude("quaternion_xyzw")

MUJOCO = Convention(name="MUJOCO")
"""As in MuJoCo's frame sensors, `root_link_pose_w` and `root_link_vel_w`:
z-up world, origin, quaternion wxyz, both velocities along world axes [m/s, rad/s]."""

MUJOCO_QVEL = replace(MUJOCO, name="MUJOCO_QVEL", angular_axes="body")
"""qpos and qvel of a free joint: like MUJOCO, but the angular velocity is along body
axes while the linear one is along world axes."""

ISAACLAB_2 = replace(MUJOCO, name="ISAACLAB_2", velocity_point="com")
"""`root_state_w` of Isaac Lab 2: pose of the link's origin, wxyz, but the velocity of
the centre of mass; world axes."""

ISAACLAB_3 = replace(ISAACLAB_2, name="ISAACLAB_3", attitude=_XYZW)
"""`root_state_w` of Isaac Lab 3: as in Isaac Lab 2, but quaternions are xyzw."""

ROS = Convention(
    name="ROS", world="ENU", attitude=_XYZW, linear_axes="body", angular_axes="body"
)
"""nav_msgs/Odometry: ENU and FLU (REP 103), xyzw, and the twist along the axes of the
child frame, which is the body."""

PX4 = Convention(name="PX4", world="NED", body="FRD", angular_axes="body")
"""VehicleOdometry with both frames NED: FRD body, wxyz from body to NED components,
velocity along NED, rates along the body's axes [rad/s]."""

PTERA = Convention(
    name="PTERA",
    world="NED",
    body="FRD",
    attitude=Attitude("matrix", "passive", "world_to_body"),
    angle_unit="deg",
    position_point="com",
    velocity_point="com",
    angular_axes="body",
)
"""Ptera Software: position_E_Eo and velocity_E__E of the CG in Earth axes (NED),
R_pas_E_to_BP1, omegas_BP1__E in body axes (FRD) [deg/s]."""

DRAKE = Convention(name="DRAKE", order=("attitude", "position", "angular", "linear"))
"""A floating base with a quaternion: wxyz before the position, angular before linear
velocity, both along world axes, of the body's origin."""

PINOCCHIO = Convention(
    name="PINOCCHIO", attitude=_XYZW, linear_axes="body", angular_axes="body"
)
"""A free flyer: xyzw, and both velocities along the body's own axes, of its origin."""

PYBULLET = Convention(
    name="PYBULLET", attitude=_XYZW, position_point="com", velocity_point="com"
)
"""getBasePositionAndOrientation and getBaseVelocity: position and velocity of the
centre of mass, xyzw, world axes. Where the URDF turns the inertial frame, Bullet's
quaternion is that frame's: remove that rotation first."""

AEROSANDBOX = Convention(
    name="AEROSANDBOX",
    world="NED",
    body="FRD",
    attitude=Attitude("euler", sequence="izyx"),
    position_point="com",
    velocity_point="com",
    linear_axes="body",
    angular_axes="body",
    order=("position", "linear", "attitude", "angular"),
)
"""DynamicsRigidBody3DBodyEuler: (x_e, y_e, z_e), (u_b, v_b, w_b), (phi, theta, psi)
[rad], (p, q, r) [rad/s], all of the centre of mass, Earth axes NED, body axes FRD."""

PRESETS: dict[str, Convention] = {
    preset.name: preset
    for preset in (
        MUJOCO,
        MUJOCO_QVEL,
        ISAACLAB_2,
        ISAACLAB_3,
        ROS,
        PX4,
        PTERA,
        DRAKE,
        PINOCCHIO,
        PYBULLET,
        AEROSANDBOX,
    )
}
"""All presets by name."""
