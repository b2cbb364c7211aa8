"""Kinds of ground made of boxes: sharp edges, where a heightfield has slopes.

A generator is `(size, difficulty, rng)`: the edge of a tile [m], from 0 to 1; it
returns boxes on level ground, shape (n, 6): the centre (x, y, z) from the tile's centre
at height zero, and half the lengths along x, y, z [m].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from simstate.base.errors import InvalidInputError
from simstate.scene.terrain.generators import PLATFORM_M, STEP_M, Array

BoxGenerator: TypeAlias = "Callable[[float, float, np.random.Generator], Array]"


@dataclass(frozen=True)
class Boxes:
    """A user-defined kind of ground, made of boxes."""

    make: BoxGenerator


def box_stairs_up(size: float, difficulty: float, rng: np.random.Generator) -> Array:
    """Steps of 3 … 20 cm that lead up and away from the middle, of boxes."""
    del rng
    rise = 0.03 + 0.17 * difficulty
    rows: list[Array] = []
    for k in range(_steps(size)):
        inner = PLATFORM_M + k * STEP_M
        rows += _ring(inner, inner + STEP_M, (k + 1) * rise)
    return np.array(rows)


def box_stairs_down(size: float, difficulty: float, rng: np.random.Generator) -> Array:
    """Steps of 3 … 20 cm that lead down and away from the middle, of boxes."""
    del rng
    rise = 0.03 + 0.17 * difficulty
    count = _steps(size)
    edges = PLATFORM_M + STEP_M * np.arange(count)
    return np.array(
        [_standing(0.0, 0.0, e, e, (count - k) * rise) for k, e in enumerate(edges)]
    )


def box_field(size: float, difficulty: float, rng: np.random.Generator) -> Array:
    """Boxes of 0.45 m, each up to 2 … 15 cm high, around the platform."""
    edge = 0.45
    count = int(size / edge)
    middles = (np.arange(count) - (count - 1) / 2.0) * edge
    highest = 0.02 + 0.13 * difficulty
    rows = [
        _standing(x, y, edge / 2.0, edge / 2.0, rng.uniform(0.1, 1.0) * highest)
        for x in middles
        for y in middles
        if max(abs(x), abs(y)) > PLATFORM_M + edge / 2.0
    ]
    return np.array(rows)


BOX_GENERATORS: dict[str, BoxGenerator] = {
    function.__name__: function
    for function in (box_stairs_up, box_stairs_down, box_field)
}
"""The bundled generators of boxes, by name."""


def checked_boxes(kind: object, boxes: Array, size: float) -> Array:
    """Copy a tile's boxes; raise unless they are finite, within it and above ground."""
    boxes = np.array(boxes, dtype=np.float64)
    fits = boxes.ndim == 2 and boxes.shape[1:] == (6,) and np.isfinite(boxes).all()
    if not fits or not (boxes[:, 3:] > 0.0).all():
        raise InvalidInputError(
            f"The generator {kind!r} must return boxes as rows of a centre and half "
            f"lengths > 0, finite values of shape (n, 6), got shape {boxes.shape}.",
            name=str(kind),
        )
    beyond = np.abs(boxes[:, :2]) + boxes[:, 3:5] > size / 2.0 + 1e-9
    if beyond.any() or (boxes[:, 2] + boxes[:, 5] <= 0.0).any():
        raise InvalidInputError(
            f"The generator {kind!r} returns a box beyond its tile of {size} m, "
            "or whose top is below the ground.",
            name=str(kind),
        )
    return boxes


def _steps(size: float) -> int:
    """Return the number of steps that fit next to the platform."""
    return max(int((size / 2.0 - PLATFORM_M) / STEP_M + 1e-9), 1)


def _standing(x: float, y: float, half_x: float, half_y: float, height: float) -> Array:
    """Return a box that stands on the ground."""
    return np.array([x, y, height / 2.0, half_x, half_y, height / 2.0])


def _ring(inner: float, outer: float, height: float) -> list[Array]:
    """Return four boxes around a square, between two half edges."""
    middle, half = (inner + outer) / 2.0, (outer - inner) / 2.0
    return [
        _standing(middle, 0.0, half, outer, height),
        _standing(-middle, 0.0, half, outer, height),
        _standing(0.0, middle, inner, half, height),
        _standing(0.0, -middle, inner, half, height),
    ]
