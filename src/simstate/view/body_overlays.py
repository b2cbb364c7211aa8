"""Overlays of bodies, drawn from quantities: frames, velocities, wrenches, inertia."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simstate.entity import EntityData
from simstate.view.one_world import OneWorld, vector_text
from simstate.view.shapes import (
    BLUE,
    GREY,
    MAGENTA,
    PURPLE,
    RED,
    TEAL,
    Arrow,
    Axes,
    Box,
    Colour,
    Label,
    Shape,
)

Draw = Callable[[OneWorld], list[Shape]]
"""Function that returns the shapes of an overlay."""

LEAST = 1e-9
"""Vectors shorter than this are not drawn [m]."""


def frames(position: str, orientation: str, share: float) -> Draw:
    """Return an overlay of frames, given quantities of their origins and axes."""
    about = EntityData.quantities[position]

    def draw(seen: OneWorld) -> list[Shape]:
        return [
            Axes(pos, quat, share * seen.size, f"{label}: {about.point_text}")
            for label, pos, quat in _rows(seen, position, orientation)
        ]

    return draw


def arrows(
    at: str, of: str, length: Callable[[OneWorld, np.ndarray], np.ndarray], ink: Colour
) -> Draw:
    """Return an overlay of a vector quantity, drawn at the position of another one."""
    about = EntityData.quantities[of]

    def draw(seen: OneWorld) -> list[Shape]:
        shapes: list[Shape] = []
        for label, pos, vector in _rows(seen, at, of):
            drawn = length(seen, vector)
            if np.linalg.norm(drawn) > LEAST:
                text = (
                    f"{label}: {of} = {vector_text(vector)} {about.unit}, at the "
                    f"{about.point_text}, {about.axes_text} axes"
                )
                shapes.append(Arrow(pos, drawn, ink, text))
        return shapes

    return draw


def wrenches(seen: OneWorld) -> list[Shape]:
    """Return the external forces and torques at the bodies' centres of mass."""
    shapes: list[Shape] = []
    for label, pos, wrench in _rows(seen, "body_com_pos_w", "body_external_wrench"):
        force, torque = wrench[:3], wrench[3:]
        text = f"{label}: external force {vector_text(force)} N at the COM, world axes"
        drawn = seen.length_of_force(force)
        shapes += load(seen, pos, force, drawn, RED, "N", text)
        text = f"{label}: external torque {vector_text(torque)} N·m, world axes"
        drawn = seen.length_of_force(torque) / seen.size
        shapes += load(seen, pos, torque, drawn, PURPLE, "N·m", text)
    return shapes


def load(
    seen: OneWorld,
    at: np.ndarray,
    value: np.ndarray,
    drawn: np.ndarray,
    ink: Colour,
    unit: str,
    text: str,
) -> list[Shape]:
    """Return an arrow for a force or torque, and its value as a label; [] if zero.

    Args:
        seen: the world; the label is placed outside its bodies.
        at: start of the arrow, world axes [m]; (3,).
        value: the force or torque, in `unit`; (3,).
        drawn: the arrow from start to tip, world axes [m]; (3,).
        ink: colour of the arrow.
        unit: unit of the value.
        text: description of the arrow.
    """
    length = float(np.linalg.norm(drawn))
    if length <= LEAST:
        return []
    written = f"{np.linalg.norm(value):.3g} {unit}"
    place = seen.outside(at + drawn)
    return [Arrow(at, drawn, ink, text), Label(place, length, written)]


def inertia_boxes(seen: OneWorld) -> list[Shape]:
    """Return boxes of uniform density with each body's mass and principal moments."""
    mass, moments = seen.parameter("body_mass"), seen.parameter("body_inertia")
    shapes: list[Shape] = []
    for entity in seen.entities.values():
        pos = seen.quantity(entity.name, "body_com_pos_w")
        quat = seen.quantity(entity.name, "body_com_quat_w")
        for k, body in enumerate(entity.index.bodies.ids):
            if mass[body] <= 0.0:
                continue
            half = box_of_inertia(float(mass[body]), moments[body])
            text = (
                f"{entity.name}/{entity.body_names[k]}: mass {mass[body]:.4g} kg, "
                f"principal moments {vector_text(moments[body])} kg·m²"
            )
            shapes.append(Box(pos[k], quat[k], half, GREY, text))
    return shapes


def box_of_inertia(mass: float, moments: np.ndarray) -> np.ndarray:
    """Return the half sides of the uniform box of this mass and inertia [m]; (3,)."""
    squares = 1.5 * (moments.sum() - 2.0 * moments) / mass
    return np.sqrt(np.maximum(squares, 0.0))


link_frames = frames("body_link_pos_w", "body_link_quat_w", 0.15)
com_frames = frames("body_com_pos_w", "body_com_quat_w", 0.1)
link_velocities = arrows(
    "body_link_pos_w", "body_link_lin_vel_w", OneWorld.length_of_speed, BLUE
)
com_velocities = arrows(
    "body_com_pos_w", "body_com_lin_vel_w", OneWorld.length_of_speed, TEAL
)
angular_velocities = arrows(
    "body_link_pos_w", "body_link_ang_vel_w", OneWorld.length_of_turn, MAGENTA
)


def _rows(
    seen: OneWorld, first: str, second: str
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each body's label, and its values of two quantities."""
    for entity in seen.entities.values():
        if not entity.num_bodies:
            continue
        values = zip(
            entity.body_names,
            seen.quantity(entity.name, first),
            seen.quantity(entity.name, second),
            strict=True,
        )
        for name, one, other in values:
            yield f"{entity.name}/{name}", one, other
