"""Kinds of ground: functions that return the heights of one tile.

A generator is `(reach, difficulty, rng)`: `reach` has the coordinates of each point
from the tile's centre along the world's axes, (y, x) [m], shape (2, points, points);
`difficulty` is from 0 to 1; it returns heights [m], shape (points, points). A platform
at the centre has one height, to stand on after a reset. This height is arbitrary: a
tile is shifted vertically so that the mean height of its edge is zero, which avoids
cliffs between tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Generator: TypeAlias = "Callable[[Array, float, np.random.Generator], Array]"

PLATFORM_M = 0.8
"""Half the edge of the platform in the middle of a tile [m]."""
STEP_M = 0.3
"""Depth of a stair's step [m]."""


def flat(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Level ground."""
    del difficulty, rng
    return np.zeros(reach.shape[1:])


def rough(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Uniform noise of ±(1 … 8) cm, between points 0.2 m apart."""
    points = reach.shape[1]
    spacing = reach[1, 0, 1] - reach[1, 0, 0]
    coarse = max(2, round((points - 1) * spacing / 0.2) + 1)
    size = 0.01 + 0.07 * difficulty
    noise = rng.uniform(-size, size, (coarse, coarse))
    return _stretched(noise, points)


def slope_up(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """A pyramid with slopes of up to 22°, with the platform on top."""
    del rng
    return -np.tan(0.4 * difficulty) * _beyond_platform(reach)


def slope_down(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """A pit with slopes of up to 22°, with the platform at its bottom."""
    return -slope_up(reach, difficulty, rng)


def stairs_up(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Steps of 3 … 20 cm that lead up and away from the middle."""
    del rng
    return (0.03 + 0.17 * difficulty) * np.ceil(_beyond_platform(reach) / STEP_M - 1e-9)


def stairs_down(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Steps of 3 … 20 cm that lead down and away from the middle."""
    return -stairs_up(reach, difficulty, rng)


def boxes(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Boxes of 0.45 m, each ±(2 … 15) cm high."""
    size = 0.02 + 0.13 * difficulty
    cells = np.floor(reach / 0.45).astype(int)
    cells -= cells.min(axis=(1, 2), keepdims=True)
    count: tuple[int, int] = tuple(cells.max(axis=(1, 2)) + 1)
    heights: Array = rng.uniform(-size, size, count)
    return np.where(_beyond_platform(reach) > 0.0, heights[cells[0], cells[1]], 0.0)


def gaps(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """A ditch, 0.1 … 0.7 m wide and 1 m deep, around the platform."""
    del rng
    away = _beyond_platform(reach)
    return np.where((away > 0.0) & (away < 0.1 + 0.6 * difficulty), -1.0, 0.0)


def waves(reach: Array, difficulty: float, rng: np.random.Generator) -> Array:
    """Waves of ±(3 … 20) cm along x and y, 2 m long."""
    del rng
    size = 0.03 + 0.17 * difficulty
    return 0.5 * size * (np.cos(np.pi * reach[0]) + np.cos(np.pi * reach[1]))


GENERATORS: dict[str, Generator] = {
    function.__name__: function
    for function in (
        flat, rough, slope_up, slope_down, stairs_up, stairs_down, boxes, gaps, waves,
    )
}  # fmt: skip
"""The bundled generators, by name."""


def _beyond_platform(reach: Array) -> Array:
    """Return the distances of points from the platform's edge, along the axes [m]."""
    return np.maximum(np.abs(reach).max(axis=0) - PLATFORM_M, 0.0)


def _stretched(values: Array, points: int) -> Array:
    """Interpolate a square grid of values linearly to a grid with more points."""
    at = np.linspace(0.0, len(values) - 1.0, points)
    low = np.minimum(at.astype(int), len(values) - 2)
    share = at - low
    rows = values[low] * (1.0 - share[:, None]) + values[low + 1] * share[:, None]
    return rows[:, low] * (1.0 - share) + rows[:, low + 1] * share
