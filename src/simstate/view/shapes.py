"""Shapes: the primitives of overlays, in the browser and in pictures.

Overlays return shapes in the axes of their world; the renderer adds the offset of the
world in the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import mujoco
import numpy as np

Colour = tuple[int, int, int]
"""Red, green and blue, 0 … 255."""

RED: Colour = (230, 60, 50)
GREEN: Colour = (60, 180, 75)
BLUE: Colour = (50, 110, 230)
ORANGE: Colour = (245, 150, 30)
PURPLE: Colour = (160, 70, 200)
TEAL: Colour = (0, 160, 160)
YELLOW: Colour = (240, 210, 40)
MAGENTA: Colour = (225, 60, 170)
GREY: Colour = (120, 120, 120)


@dataclass(frozen=True)
class Arrow:
    """A vector at a point."""

    start: np.ndarray
    """Start, world axes [m]; (3,)."""
    vector: np.ndarray
    """Vector from start to tip as drawn, world axes [m]; (3,)."""
    colour: Colour
    text: str
    """Description: element, point, axes, value and unit."""


@dataclass(frozen=True)
class Point:
    """A point, drawn as a ball."""

    pos: np.ndarray
    """Position, world axes [m]; (3,)."""
    radius: float
    """Radius [m]."""
    colour: Colour
    text: str


@dataclass(frozen=True)
class Axes:
    """The axes of a frame: x red, y green, z blue."""

    pos: np.ndarray
    """The origin, world axes [m]; (3,)."""
    quat: np.ndarray
    """Orientation wxyz; (4,)."""
    length: float
    """Length of each axis [m]."""
    text: str


@dataclass(frozen=True)
class Box:
    """A box, drawn half transparent."""

    pos: np.ndarray
    """The centre, world axes [m]; (3,)."""
    quat: np.ndarray
    """Orientation wxyz; (4,)."""
    half: np.ndarray
    """Half sides along its axes [m]; (3,)."""
    colour: Colour
    text: str


@dataclass(frozen=True)
class Path:
    """A line through points."""

    points: np.ndarray
    """Points, world axes [m]; (n, 3), n ≥ 2."""
    colour: Colour
    text: str


@dataclass(frozen=True)
class Label:
    """A text at a position, drawn over everything else."""

    pos: np.ndarray
    """Lower left corner, world axes [m]; (3,)."""
    weight: float
    """Priority: of many labels, those with the largest are drawn."""
    text: str


Shape = Arrow | Point | Axes | Box | Path | Label


Kind = TypeVar("Kind", Arrow, Point, Axes, Box, Path, Label)

MOST_LABELS = 16
"""Maximum number of labels of one overlay."""


def of_kind(shapes: Sequence[Shape], kind: type[Kind]) -> list[Kind]:
    """Return the shapes of one kind whose values are finite."""
    return [one for one in shapes if isinstance(one, kind) and _is_finite(one)]


def place_of(shape: Shape) -> np.ndarray:
    """Return the position of a shape, the tip of an arrow; world axes [m]; (3,)."""
    if isinstance(shape, Arrow):
        return shape.start + shape.vector
    return shape.points[-1] if isinstance(shape, Path) else shape.pos


def shifted(shape: Shape, offset: np.ndarray) -> Shape:
    """Return a shape at an offset, world axes [m]; (3,)."""
    if isinstance(shape, Arrow):
        return replace(shape, start=shape.start + offset)
    if isinstance(shape, Path):
        return replace(shape, points=shape.points + offset)
    return replace(shape, pos=shape.pos + offset)


def labels_of(shapes: Sequence[Shape]) -> list[Label]:
    """Return the labels to draw: those of the largest weights, in their order."""
    labels = of_kind(shapes, Label)
    if len(labels) <= MOST_LABELS:
        return labels
    order = sorted(range(len(labels)), key=lambda k: -labels[k].weight)
    return [labels[k] for k in sorted(order[:MOST_LABELS])]


def _is_finite(shape: Shape) -> bool:
    """Return True if all values of a shape are finite."""
    values: list[Any] = [x for x in vars(shape).values() if not isinstance(x, str)]
    return all(bool(np.isfinite(value).all()) for value in values)


def matrix_of(quat: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion wxyz; (3, 3)."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quat / np.linalg.norm(quat))
    return matrix.reshape(3, 3)
