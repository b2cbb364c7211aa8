"""Layout of worlds and pictures side by side, and the size of their contents."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from simstate.view.one_world import OneWorld

_HFIELD = mujoco.mjtGeom.mjGEOM_HFIELD.value
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value


def offsets(count: int, spacing: float) -> np.ndarray:
    """Return offsets of worlds in a square grid, world axes [m]; (count, 3).

    The grid is centred at the origin; worlds are laid out along x, then y.
    """
    side = math.ceil(math.sqrt(count))
    rows = math.ceil(count / side)
    y, x = np.divmod(np.arange(count), side)
    places = np.zeros((count, 3))
    places[:, 0] = (x - (side - 1) / 2.0) * spacing
    places[:, 1] = (y - (rows - 1) / 2.0) * spacing
    return places


def shown_worlds(world: int, count: int, num_envs: int) -> list[int]:
    """Return the ids of the `count` worlds to show, `world` among them.

    They are chosen in blocks, so that selecting the next world moves none.
    """
    count = min(count, num_envs)
    first = min(world // count * count, num_envs - count)
    return list(range(first, first + count))


def bounds(one: OneWorld) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounding box of what moves, else of everything, world axes [m]."""
    model, corners = one.model, flex_corners(one)
    geom_pos = one.field("geom_xpos")
    geom_rot = one.field("geom_xmat").reshape(-1, 3, 3)
    limited = np.isin(model.geom_type, (_PLANE, _HFIELD), invert=True)
    moving = limited & (model.body_weldid[model.geom_bodyid] != 0)
    chosen = moving if moving.any() or len(corners) else limited
    finite = np.isfinite(geom_pos).all(1) & np.isfinite(geom_rot).all((1, 2))
    chosen = chosen & finite
    rot = geom_rot[chosen]
    box = model.geom_aabb.reshape(-1, 6)[chosen]
    centres = geom_pos[chosen] + (rot @ box[:, :3, None])[..., 0]
    halves = (np.abs(rot) @ box[:, 3:, None])[..., 0]
    soft = corners[np.isfinite(corners).all(1)]
    low = np.concatenate([centres - halves, soft])
    high = np.concatenate([centres + halves, soft])
    if not len(low):
        return np.full(3, -0.5), np.full(3, 0.5)
    return low.min(0), high.max(0)


def size_of(low: np.ndarray, high: np.ndarray) -> float:
    """Return the size of a bounding box, to which overlays are scaled [m]."""
    return max(float(np.linalg.norm(high - low)) / 1.8, 1e-3)


def flex_corners(one: OneWorld) -> np.ndarray:
    """Return the vertices of all flexible bodies, world axes [m]; (n, 3)."""
    if not one.model.nflexvert:
        return np.zeros((0, 3))
    return one.field("flexvert_xpos").reshape(-1, 3)


def shares_ground(model: mujoco.MjModel) -> bool:
    """Return True if the worlds share one ground, so that no grid separates them."""
    return bool((model.geom_type == _HFIELD).any())


def tiled(pictures: np.ndarray) -> np.ndarray:
    """Return n pictures as one, in a grid; from (n, height, width, channels)."""
    count, height, width, channels = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.zeros((rows * columns, height, width, channels), dtype=pictures.dtype)
    sheet[:count] = pictures
    grid = sheet.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def reduced(picture: np.ndarray, side: int) -> np.ndarray:
    """Return an RGBA picture downsampled over squares, weighted by opacity, uint8."""
    if side == 1:
        return picture
    height, width, _ = picture.shape
    blocks = picture.reshape(height // side, side, width // side, side, 4)
    values = blocks.astype(np.float32)
    alpha = values[..., 3:]
    total = alpha.sum((1, 3))
    colour = (values[..., :3] * alpha).sum((1, 3)) / np.maximum(total, 1.0)
    mean = total / (side * side)
    return np.round(np.concatenate([colour, mean], axis=2)).astype(np.uint8)
