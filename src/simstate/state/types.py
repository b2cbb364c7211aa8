"""The unified state of one world: dictionaries of tensors, by name.

Every position is that of the link's origin, along world axes [m]; `rot` is the link's
orientation as a quaternion (w, x, y, z); `vel` is the velocity of the link's origin and
`ang_vel` the link's angular velocity, both along world axes [m/s, rad/s].
"""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

from torch import Tensor

DofValue: TypeAlias = "float | Tensor"
"""A number for a 1-DoF joint [rad or m, rad/s or m/s]. For a ball joint a tensor: its
quaternion wxyz relative to the parent, shape (4,), or its angular velocity in the
body's own axes [rad/s], shape (3,)."""


class BodyState(TypedDict):
    """Pose and velocity of one link: of its origin, along world axes."""

    pos: Tensor
    """Origin of the link, world axes [m]; shape (3,)."""
    rot: Tensor
    """Orientation of the link, wxyz; shape (4,)."""
    vel: Tensor
    """Velocity of the link's origin, world axes [m/s]; shape (3,)."""
    ang_vel: Tensor
    """Angular velocity of the link, world axes [rad/s]; shape (3,)."""


class ObjectState(BodyState):
    """State of an object: of its root link, and of its joints and links if it has any.

    The linear velocity is that of the root link's origin, along world axes.
    """

    dof_pos: NotRequired[dict[str, DofValue]]
    """Joint positions by name [rad or m]."""
    dof_vel: NotRequired[dict[str, DofValue]]
    """Joint velocities by name [rad/s or m/s]."""
    body: NotRequired[dict[str, BodyState]]
    """The links by name."""


class RobotState(BodyState):
    """State of a robot: of its root link, joints and links, and what they aim at.

    The linear velocity is that of the root link's origin, along world axes. Targets
    exist for every 1-DoF joint, whether an actuator takes them or not.
    """

    dof_pos: dict[str, DofValue]
    """Joint positions by name [rad or m]."""
    dof_vel: dict[str, DofValue]
    """Joint velocities by name [rad/s or m/s]."""
    body: dict[str, BodyState]
    """The links by name."""
    dof_pos_target: dict[str, float]
    """Position targets by joint name [rad or m]."""
    dof_vel_target: dict[str, float]
    """Velocity targets by joint name [rad/s or m/s]."""
    dof_effort_target: NotRequired[dict[str, float]]
    """Effort targets by joint name [N·m or N]; not from every simulator."""


class CameraState(TypedDict, total=False):
    """Images and geometry of one camera."""

    rgb: Tensor
    """Colour, 0 … 255, uint8; shape (H, W, 3)."""
    depth: Tensor
    """Distance along the optical axis [m], 0 where nothing is hit; shape (H, W)."""
    pos: Tensor
    """Position of the camera, world axes [m]; shape (3,)."""
    look_at: Tensor
    """A point on the optical axis, 1 m in front, world axes [m]; shape (3,)."""
    intrinsic: Tensor
    """Pinhole matrix in pixels: (u, v, 1) ~ intrinsic @ (x, y, z); shape (3, 3)."""
    extrinsic: Tensor
    """World to camera, OpenCV's axes (x right, y down, z forward); shape (4, 4)."""


class State(TypedDict):
    """The state of one world."""

    objects: dict[str, ObjectState]
    """Entities that are not robots, by name."""
    robots: dict[str, RobotState]
    """Articulations with actuators, by name."""
    cameras: dict[str, CameraState]
    """Cameras by name."""
