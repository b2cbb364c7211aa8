"""All overlays, each with a description."""

from __future__ import annotations

from dataclasses import dataclass

from simstate.view import body_overlays as bodies
from simstate.view import scene_overlays as scene
from simstate.view.body_overlays import Draw


@dataclass(frozen=True)
class Overlay:
    """Shapes that are drawn in addition to the geometry of a world."""

    name: str
    about: str
    """Description: point, axes and unit."""
    draw: Draw


OVERLAYS = {
    overlay.name: overlay
    for overlay in (
        Overlay(
            "link frames",
            "body_link_pos_w and body_link_quat_w: x red, y green, z blue",
            bodies.link_frames,
        ),
        Overlay(
            "COM frames",
            "body_com_pos_w and body_com_quat_w: centre of mass and principal axes",
            bodies.com_frames,
        ),
        Overlay(
            "link velocities",
            "body_link_lin_vel_w [m/s], at the links' origins, world axes",
            bodies.link_velocities,
        ),
        Overlay(
            "COM velocities",
            "body_com_lin_vel_w [m/s], at the centres of mass, world axes",
            bodies.com_velocities,
        ),
        Overlay(
            "angular velocities",
            "body_link_ang_vel_w [rad/s], world axes",
            bodies.angular_velocities,
        ),
        Overlay(
            "contacts",
            "points, normals from the first geom to the second, and the forces on the "
            "second [N], world axes, of the current state",
            scene.contacts,
        ),
        Overlay(
            "external wrenches",
            "body_external_wrench: force (red) and torque (purple) at the centres of "
            "mass, world axes [N, N·m]",
            bodies.wrenches,
        ),
        Overlay(
            "rays", "from origin_w to hit_pos_w of every ray sensor [m]", scene.rays
        ),
        Overlay(
            "joints",
            "axes at the anchors with ranges and limits; red: within 2 % of a limit",
            scene.joints,
        ),
        Overlay(
            "targets",
            "joint_pos_target [rad or m]: path of each link's COM to its position if "
            "only its joint moved to the target",
            scene.targets,
        ),
        Overlay(
            "tendons", "paths of spatial tendons, over wrapped geoms", scene.tendons
        ),
        Overlay(
            "inertia",
            "boxes of uniform density with each body's mass and principal moments",
            bodies.inertia_boxes,
        ),
    )
}
"""Overlays by name, in the order in which they are listed."""
