"""Overlays as geoms of MuJoCo's scene."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import mujoco
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

_GEOM = mujoco.mjtGeom
_DECOR = mujoco.mjtCatBit.mjCAT_DECOR.value
_DYNAMIC = mujoco.mjtCatBit.mjCAT_DYNAMIC.value
_LEAST = 1e-9


def add_shapes(
    scene: mujoco.MjvScene, shapes: Sequence[Shape], offset: np.ndarray, size: float
) -> None:
    """Add shapes at an offset; line widths are proportional to `size` [m].

    Labels are skipped: they are written over the finished picture.
    """
    thin = 0.008 * size
    for arrow in of_kind(shapes, Arrow):
        start = arrow.start + offset
        tip = start + 2.0 * arrow.vector  # MuJoCo draws arrows to half of their length
        _connect(scene, _GEOM.mjGEOM_ARROW, thin, start, tip, arrow.colour)
    for point in of_kind(shapes, Point):
        radii = np.full(3, point.radius)
        _add(scene, _GEOM.mjGEOM_SPHERE, radii, point.pos + offset, None, point.colour)
    for axes in of_kind(shapes, Axes):
        start, matrix = axes.pos + offset, matrix_of(axes.quat)
        for k, colour in enumerate((RED, GREEN, BLUE)):
            end = start + axes.length * matrix[:, k]
            _connect(scene, _GEOM.mjGEOM_CYLINDER, 0.6 * thin, start, end, colour)
    for box in of_kind(shapes, Box):
        pos, matrix = box.pos + offset, matrix_of(box.quat)
        half = np.maximum(box.half, 1e-6)
        _add(scene, _GEOM.mjGEOM_BOX, half, pos, matrix, box.colour, 0.35)
    for path in of_kind(shapes, Path):
        points = path.points + offset
        for start, end in pairwise(points):
            _connect(scene, _GEOM.mjGEOM_CAPSULE, 0.5 * thin, start, end, path.colour)


def add_surface(scene: mujoco.MjvScene, corners: np.ndarray, colour: Colour) -> None:
    """Add triangles; (n, 3, 3), world axes [m]."""
    for corner, second, third in corners:
        along, across = second - corner, third - corner
        normal = np.cross(along, across)
        length = float(np.linalg.norm(normal))
        if length > 0.0 and np.isfinite(length):
            axes = np.stack([along, across, normal / length], axis=1)
            geom = _add(scene, _GEOM.mjGEOM_TRIANGLE, np.ones(3), corner, axes, colour)
            if geom is not None:
                geom.category, geom.emission = _DYNAMIC, 0.0


def _connect(
    scene: mujoco.MjvScene,
    kind: mujoco.mjtGeom,
    width: float,
    start: np.ndarray,
    end: np.ndarray,
    colour: Colour,
) -> None:
    if np.linalg.norm(end - start) < _LEAST:
        return
    geom = _add(scene, kind, np.ones(3), start, None, colour)
    if geom is not None:
        mujoco.mjv_connector(geom, kind.value, width, start, end)


def _add(
    scene: mujoco.MjvScene,
    kind: mujoco.mjtGeom,
    size: np.ndarray,
    pos: np.ndarray,
    matrix: np.ndarray | None,
    colour: Colour,
    alpha: float = 1.0,
) -> mujoco.MjvGeom | None:
    """Add a geom that casts no shadow; None if the scene is full."""
    if scene.ngeom >= scene.maxgeom - 1:  # one is reserved for `GlRenderer`'s wall
        return None
    geom = scene.geoms[scene.ngeom]
    axes = np.eye(3) if matrix is None else matrix
    rgba = np.array([*(x / 255.0 for x in colour), alpha], np.float32)
    mujoco.mjv_initGeom(geom, kind.value, size, pos, axes.reshape(9), rgba)
    geom.category = _DECOR
    geom.emission = 0.25  # overlays stay readable in shade
    scene.ngeom += 1
    return geom
