"""Where worlds are put side by side, and how large what is in them is."""

from __future__ import annotations

import math

import mujoco
import numpy as np

_HFIELD = mujoco.mjtGeom.mjGEOM_HFIELD.value
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value


def offsets(count: int, spacing: float) -> np.ndarray:
    """Places of worlds in a square grid about the origin, world axes [m]; (count, 3).

    Row by row along x, then y; the first world alone is at the origin.
    """
    side = math.ceil(math.sqrt(count))
    rows = math.ceil(count / side)
    y, x = np.divmod(np.arange(count), side)
    places = np.zeros((count, 3))
    places[:, 0] = (x - (side - 1) / 2.0) * spacing
    places[:, 1] = (y - (rows - 1) / 2.0) * spacing
    return places


def shown_worlds(world: int, count: int, num_envs: int) -> list[int]:
    """The `count` worlds that are shown when `world` is the one looked at.

    They are counted in blocks, so that going on to the next world moves none.
    """
    count = min(count, num_envs)
    first = min(world // count * count, num_envs - count)
    return list(range(first, first + count))


def bounds(
    model: mujoco.MjModel, geom_pos: np.ndarray, corners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest corner of all that moves, else of all, world axes [m]; (3,).

    `geom_pos` are the centres of the geoms, (ngeom, 3); `corners` those of flexible
    bodies, (n, 3).
    """
    limited = np.isin(model.geom_type, (_PLANE, _HFIELD), invert=True)
    moving = limited & (model.body_weldid[model.geom_bodyid] != 0)
    chosen = moving if moving.any() else limited
    chosen &= np.isfinite(geom_pos).all(axis=1)
    if len(corners) and np.isfinite(corners).all():
        chosen &= moving
        centres = np.concatenate([geom_pos[chosen], corners])
        radii = np.append(model.geom_rbound[chosen], np.zeros(len(corners)))[:, None]
        return (centres - radii).min(0), (centres + radii).max(0)
    if not chosen.any():
        return np.full(3, -0.5), np.full(3, 0.5)
    centres, radii = geom_pos[chosen], model.geom_rbound[chosen][:, None]
    return (centres - radii).min(0), (centres + radii).max(0)


def shares_ground(model: mujoco.MjModel) -> bool:
    """Whether the worlds are places on one ground, which a grid would tear apart."""
    return bool((model.geom_type == _HFIELD).any())
