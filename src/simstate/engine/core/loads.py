"""Force models as data, which the core evaluates with the dynamics.

Each is a kind, the bodies that it acts on, and numbers: one row for all worlds, or one
for each. The formulas are in loads.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simstate.errors import ShapeError

_UNIFORM_GRAVITY, _POINT_GRAVITY, _THRUSTER, _DRAG = range(4)


@dataclass(frozen=True, eq=False)
class Load:
    """One force model: what the functions below make."""

    kind: int
    bodies: NDArray[np.int32]
    """Ids of the bodies that it acts on."""
    parameters: NDArray[np.float64]
    """Its numbers; shape (1, k), or (num_worlds, k)."""
    frame: int = -1
    """The moving frame that positions and velocities are relative to; −1: none."""


def uniform_gravity(bodies: Sequence[int], acceleration: ArrayLike) -> Load:
    """Mass times an acceleration [m/s²] at COMs, world axes; (3,) or (worlds, 3)."""
    return _load(_UNIFORM_GRAVITY, bodies, _rows(acceleration))


def point_mass_gravity(
    bodies: Sequence[int], mu: ArrayLike, position: ArrayLike, frame: int = -1
) -> Load:
    """The gravity of point masses at each COM, world axes.

    In a moving frame it is what acts on the body beyond what acts on the frame, and the
    frame falls by it.

    Args:
        bodies: ids of the bodies.
        mu: gravitational parameters [m³/s²]; shape (masses,).
        position: where the masses are, world axes [m]; shape (masses, 3).
        frame: index of the moving frame; −1: none.
    """
    strengths = np.asarray(mu, np.float64).reshape(-1, 1)
    places = np.asarray(position, np.float64).reshape(-1, 3)
    numbers = np.concatenate([strengths, places], axis=1).reshape(1, -1)
    return _load(_POINT_GRAVITY, bodies, numbers, frame)


def thruster(
    body: int,
    force: ArrayLike,
    position: ArrayLike = (0.0, 0.0, 0.0),
    mass_flow: float = 0.0,
    throttle: ArrayLike = 1.0,
) -> Load:
    """A force fixed in a body, which may use up its mass.

    Args:
        body: the body's id.
        force: at full throttle, body axes [N]; shape (3,).
        position: where it acts, body axes from the body's origin [m]; shape (3,).
        mass_flow: what it uses at full throttle [kg/s].
        throttle: a number, or one for each world.
    """
    share = np.asarray(throttle, np.float64).reshape(-1, 1)
    fixed = np.concatenate(
        [np.asarray(force, np.float64), np.asarray(position, np.float64), [mass_flow]]
    )
    rows = np.broadcast_to(fixed, (len(share), 7))
    return _load(_THRUSTER, [body], np.concatenate([rows, share], axis=1))


def drag(
    body: int,
    area: ArrayLike,
    density: ArrayLike,
    wind: ArrayLike = (0.0, 0.0, 0.0),
    frame: int = -1,
) -> Load:
    """−½ ρ (C_d A) |v| v at a body's COM, for its velocity v against the air.

    Args:
        body: the body's id.
        area: drag coefficient times area [m²]; a number, or one for each world.
        density: [kg/m³]; the same.
        wind: velocity of the air, world axes [m/s]; shape (3,) or (worlds, 3).
        frame: index of the moving frame whose velocity is to be added; −1: none.
    """
    columns = [np.asarray(area, np.float64), np.asarray(density, np.float64)]
    air = _rows(wind)
    count = max(air.shape[0], *(column.size for column in columns))
    rows = [np.broadcast_to(x.reshape(-1, 1), (count, 1)) for x in columns]
    rows.append(np.broadcast_to(air, (count, 3)))
    return _load(_DRAG, [body], np.concatenate(rows, axis=1), frame)


def _rows(values: ArrayLike) -> NDArray[np.float64]:
    array = np.atleast_2d(np.asarray(values, np.float64))
    if array.ndim != 2 or array.shape[1] != 3:
        raise ShapeError(
            f"A vector must have shape (3,) or (num_worlds, 3), got {array.shape}."
        )
    return array


def _load(
    kind: int, bodies: Sequence[int], parameters: NDArray[Any], frame: int = -1
) -> Load:
    return Load(
        kind,
        np.asarray(bodies, np.int32),
        np.ascontiguousarray(parameters, np.float64),
        frame,
    )
