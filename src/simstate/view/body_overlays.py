"""Overlays of bodies: frames, velocities, wrenches and inertia, as quantities say."""

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
    """The frames that two quantities give the points and the axes of."""
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
    """A vector quantity of bodies, drawn at the point that another one gives."""
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
    """External forces and torques at the bodies' centres of mass."""
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
    """A force or torque as an arrow with its value near the tip; nothing if zero.

    Args:
        seen: the world, whose bodies the value avoids.
        at: where it begins, world axes [m]; (3,).
        value: itself, in the unit; (3,).
        drawn: as it is drawn [m]; (3,).
        ink: its colour.
        unit: of the value.
        text: what it is.
    """
    length = float(np.linalg.norm(drawn))
    if length <= LEAST:
        return []
    written = f"{np.linalg.norm(value):.3g} {unit}"
    place = seen.outside(at + drawn)
    return [Arrow(at, drawn, ink, text), Label(place, length, written)]


def inertia_boxes(seen: OneWorld) -> list[Shape]:
    """Boxes of even density that have each body's mass and principal moments."""
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
    """Half the sides of the box of even density with this mass and inertia [m]."""
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
    """Each body's label, and its values of two quantities."""
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
