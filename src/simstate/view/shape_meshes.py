"""Shapes as triangles, for pictures that are drawn without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from simstate.view.shapes import (
    BLUE,
    GREEN,
    RED,
    Arrow,
    Axes,
    Box,
    Colour,
    Path,
    Point,
    Shape,
    matrix_of,
    of_kind,
)

Triangles = tuple[np.ndarray, np.ndarray]
"""Corners, world axes [m], (n, 3, 3), and colours 0 … 255, (n, 3)."""


def shape_triangles(shapes: Sequence[Shape], size: float) -> Iterator[Triangles]:
    """Yield the triangles of shapes; line widths are proportional to `size` [m]."""
    thin = 0.006 * size
    for arrow in of_kind(shapes, Arrow):
        head = min(0.06 * size, 0.4 * float(np.linalg.norm(arrow.vector)))
        length = float(np.linalg.norm(arrow.vector))
        if length > 0.0:
            neck = arrow.start + arrow.vector * (1.0 - head / length)
            tip = arrow.start + arrow.vector
            yield _cone(arrow.start, neck, thin, thin, arrow.colour)
            yield _cone(neck, tip, head / 2.5, 0.0, arrow.colour)
    for point in of_kind(shapes, Point):
        corners = point.pos + point.radius * _ball()
        yield corners, _ink(point.colour, corners)
    for axes in of_kind(shapes, Axes):
        for column, colour in zip(
            matrix_of(axes.quat).T, (RED, GREEN, BLUE), strict=True
        ):
            yield _cone(axes.pos, axes.pos + axes.length * column, thin, thin, colour)
    for box in of_kind(shapes, Box):
        for start, end in _edges(box):
            yield _cone(start, end, 0.5 * thin, 0.5 * thin, box.colour)
    for path in of_kind(shapes, Path):
        for start, end in zip(path.points[:-1], path.points[1:], strict=True):
            if np.linalg.norm(end - start) > 1e-12:
                yield _cone(start, end, 0.5 * thin, 0.5 * thin, path.colour)


def _cone(
    start: np.ndarray, end: np.ndarray, first: float, last: float, colour: Colour
) -> Triangles:
    """Return a truncated cone between two points with a radius at each [m]."""
    along = (end - start) / np.linalg.norm(end - start)
    helper = np.eye(3)[int(np.argmin(np.abs(along)))]
    across = np.cross(along, helper)
    across /= np.linalg.norm(across)
    angles = np.linspace(0.0, 2.0 * np.pi, 9)[:, None]
    ring = np.cos(angles) * across + np.sin(angles) * np.cross(along, across)
    low, high = start + first * ring, end + last * ring
    sides = np.stack([low[:-1], low[1:], high[1:]], axis=1)
    rest = np.stack([low[:-1], high[1:], high[:-1]], axis=1)
    base = np.stack([np.broadcast_to(start, (8, 3)), low[1:], low[:-1]], axis=1)
    corners = np.concatenate([sides, rest, base])
    return corners, _ink(colour, corners)


def _ball() -> np.ndarray:
    """Return the triangles of a ball of radius 1; (n, 3, 3)."""
    polar = np.linspace(0.0, np.pi, 7)[:, None]
    round_ = np.linspace(0.0, 2.0 * np.pi, 13)[None]
    grid = np.stack(
        [
            np.sin(polar) * np.cos(round_),
            np.sin(polar) * np.sin(round_),
            np.cos(polar) + 0.0 * round_,
        ],
        axis=-1,
    )
    a, b = grid[:-1, :-1], grid[1:, :-1]
    c, d = grid[1:, 1:], grid[:-1, 1:]
    halves = [np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]
    return np.concatenate([half.reshape(-1, 3, 3) for half in halves])


def _edges(box: Box) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the twelve edges of a box, world axes [m]."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = box.pos + (signs * box.half) @ matrix_of(box.quat).T
    pairs = [(i, j) for i in range(8) for j in range(i) if bin(i ^ j).count("1") == 1]
    ends = [(corners[i], corners[j]) for i, j in pairs]
    return [(a, b) for a, b in ends if np.linalg.norm(a - b) > 1e-12]


def _ink(colour: Colour, corners: np.ndarray) -> np.ndarray:
    return np.tile(np.array(colour, dtype=np.float64), (len(corners), 1))
