"""Cameras of pictures: pinhole projection, named directions, orbits and framing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError, unknown_name

DIRECTIONS = {
    "front": (1.0, 0.0, 0.15),
    "side": (0.0, -1.0, 0.15),
    "above": (-0.01, 0.0, 1.0),
    "corner": (0.7, -0.7, 0.34),
}
"""Directions from the subject to the camera, world axes."""
_MARGIN = 1.06
"""Distance of the camera relative to the closest one that shows everything."""


@dataclass(frozen=True)
class Orbit:
    """A camera that orbits the moving parts, with MuJoCo's angles.

    Args:
        azimuth: direction of view about the vertical [deg]; 90 looks along +y.
        elevation: direction of view above the horizon [deg]; negative looks down.
        distance: distance from the subject [m]; None: so that it fits the picture.
        turn: rate of the azimuth [deg/s], in simulated time.
    """

    azimuth: float = 135.0
    elevation: float = -25.0
    distance: float | None = None
    turn: float = 0.0

    def direction(self, seconds: float) -> np.ndarray:
        """Return the direction from the subject to the camera at a time [s]; (3,)."""
        azimuth = np.radians(self.azimuth + self.turn * seconds)
        elevation = np.radians(self.elevation)
        level = np.cos(elevation)
        forward = [level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)]
        return -np.array(forward)


Camera = str | Orbit | tuple[Sequence[float], Sequence[float]]
"""A direction of `DIRECTIONS`, a camera of the model by name, an orbit, or the camera's
position and the point it looks at, world axes [m]."""


@dataclass(frozen=True)
class Eye:
    """A pinhole camera."""

    position: np.ndarray
    """Position, world axes [m]; (3,)."""
    look_at: np.ndarray
    """A point in the middle of the picture, world axes [m]; (3,)."""
    width: int
    height: int
    fovy: float = 0.75
    """Vertical field of view [rad]."""
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """A direction that is upwards in the picture, world axes."""

    @property
    def rot_wc(self) -> np.ndarray:
        """Rotation from camera axes (x right, y down, z forward) to world; (3, 3)."""
        forward = self.look_at - self.position
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, self.up)
        if np.linalg.norm(right) < 1e-9:  # straight up or down
            right = np.array([0.0, -1.0, 0.0])
        right = right / np.linalg.norm(right)
        return np.stack([right, np.cross(forward, right), forward], axis=1)

    @property
    def focal(self) -> float:
        """Focal length [px]."""
        return self.height / 2.0 / np.tan(self.fovy / 2.0)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return column, row [px] and depth [m] of points; (n, 3) → (n, 3)."""
        seen = (points - self.position) @ self.rot_wc
        depth = seen[:, 2]
        ahead = np.where(np.abs(depth) < 1e-12, 1e-12, depth)
        column = self.width / 2.0 + self.focal * seen[:, 0] / ahead
        row = self.height / 2.0 + self.focal * seen[:, 1] / ahead
        return np.stack([column, row, depth], axis=1)

    def rays(self, pixels: np.ndarray | None = None) -> np.ndarray:
        """Return directions through pixels, world axes, of depth 1; (n, 3).

        Args:
            pixels: row · width + column of each, (n,); None: all of them.
        """
        if pixels is None:
            pixels = np.arange(self.height * self.width)
        rows, columns = np.divmod(pixels, self.width)
        x = (columns + 0.5 - self.width / 2.0) / self.focal
        y = (rows + 0.5 - self.height / 2.0) / self.focal
        rays = np.stack([x, y, np.ones_like(x)], axis=1) @ self.rot_wc.T
        return rays.astype(np.float32)  # half the memory, enough for a background


def check_camera(model: mujoco.MjModel, camera: Camera) -> None:
    """Raise unless a camera is valid for a model."""
    if isinstance(camera, Orbit):
        number("azimuth", camera.azimuth)
        number("elevation", camera.elevation, at_least=-90.0, at_most=90.0)
        number("turn", camera.turn)
        if camera.distance is not None:
            number("distance", camera.distance, more_than=0)
        return
    if isinstance(camera, str):
        known = [*DIRECTIONS, *(model.camera(k).name for k in range(model.ncam))]
        if camera not in known:
            raise unknown_name("camera", camera, [name for name in known if name])
        return
    points = [np.asarray(point, dtype=np.float64) for point in camera]
    if [point.shape for point in points] != [(3,), (3,)]:
        raise InvalidInputError(
            "A camera is a name, an Orbit, or two points: its position and the point "
            f"it looks at, each with x, y, z; got {camera!r}."
        )
    if not np.isfinite(points).all() or np.allclose(points[0], points[1]):
        raise InvalidInputError(
            "A camera's position and the point it looks at must be finite and differ, "
            f"got {camera!r}."
        )


def model_eye(
    model: mujoco.MjModel,
    name: str,
    pos: np.ndarray,
    mat: np.ndarray,
    size: Sequence[int],
) -> Eye:
    """Return a camera of the model; `mat` has its axes: x right, y up, z back."""
    fovy = float(np.radians(model.cam_fovy[model.camera(name).id])) or 0.75
    up = (float(mat[0, 1]), float(mat[1, 1]), float(mat[2, 1]))
    return Eye(pos, pos - mat[:, 2], size[0], size[1], fovy, up)


def fitting_distance(
    corners: np.ndarray, goal: np.ndarray, direction: np.ndarray, size: Sequence[int]
) -> float:
    """Return the distance of the camera at which all corners are in view [m].

    Args:
        corners: points to show, world axes [m]; (n, 3).
        goal: the point in the middle of the picture, world axes [m]; (3,).
        direction: direction from the goal to the camera, world axes; (3,).
        size: width and height [px].
    """
    eye = Eye(goal + direction / np.linalg.norm(direction), goal, size[0], size[1])
    right, down, forward = ((corners - goal) @ eye.rot_wc).T
    slope = np.tan(eye.fovy / 2.0)
    across = np.abs(right) / (slope * size[0] / size[1])
    needed = np.maximum(across, np.abs(down) / slope) - forward
    return max(_MARGIN * float(needed.max()), 1e-3)
