"""Force models as data, which the core evaluates with the dynamics.

Each is a kind, the bodies that it acts on, and numbers: one row for all worlds, or one
for each. The formulas are in loads.c. Those of planets are made in planets.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    table: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    """Numbers that all worlds share, one after the other; see planets.py."""


def uniform_gravity(bodies: Sequence[int], acceleration: ArrayLike) -> Load:
    """Mass times an acceleration [m/s²] at COMs, world axes; (3,) or (worlds, 3)."""
    return _load(_UNIFORM_GRAVITY, bodies, _rows(acceleration))


def point_mass_gravity(
    bodies: Sequence[int],
    mu: ArrayLike,
    position: ArrayLike,
    frame: int = -1,
    gradient_torque: bool = False,
) -> Load:
    """The gravity of point masses at each COM, world axes.

    In a moving frame it is what acts on the body beyond what acts on the frame, and the
    frame falls by it.

    Args:
        bodies: ids of the bodies.
        mu: gravitational parameters [m³/s²]; (masses,) or (worlds, masses).
        position: where the masses are, world axes [m]; (masses, 3) or (worlds, masses,
            3).
        frame: index of the moving frame; −1: none.
        gradient_torque: whether bodies feel the torque of the field's gradient.
    """
    places = np.asarray(position, np.float64)
    places = places.reshape(-1, 3)[None] if places.ndim < 3 else places
    strengths = np.asarray(mu, np.float64).reshape(-1, places.shape[1])[..., None]
    count = max(len(places), len(strengths))
    parts = [np.broadcast_to(x, (count, *x.shape[1:])) for x in (strengths, places)]
    numbers = np.concatenate(parts, axis=2).reshape(count, -1)
    flag = np.full((count, 1), float(gradient_torque))
    return _load(_POINT_GRAVITY, bodies, np.concatenate([numbers, flag], axis=1), frame)


def thruster(
    body: int,
    force: ArrayLike,
    position: ArrayLike = (0.0, 0.0, 0.0),
    mass_flow: ArrayLike = 0.0,
    throttle: ArrayLike = 1.0,
    dry_mass: ArrayLike = 0.0,
) -> Load:
    """A force fixed in a body, which may use up its mass.

    Args:
        body: the body's id.
        force: at full throttle, body axes [N]; (3,) or (worlds, 3).
        position: where it acts, body axes from the body's origin [m]; likewise.
        mass_flow: what it uses at full throttle [kg/s]; a number, or one for each
            world.
        throttle: likewise.
        dry_mass: the body's mass [kg] from which on there is no thrust; likewise.
    """
    vectors = [_rows(force), _rows(position)]
    numbers = [
        np.asarray(x, np.float64).reshape(-1, 1)
        for x in (mass_flow, throttle, dry_mass)
    ]
    return _load(_THRUSTER, [body], _side_by_side(*vectors, *numbers))


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
    numbers = [np.asarray(x, np.float64).reshape(-1, 1) for x in (area, density)]
    return _load(_DRAG, [body], _side_by_side(*numbers, _rows(wind)), frame)


def _side_by_side(*parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of one row for all worlds, or of one for each."""
    count = max(len(part) for part in parts)
    return np.concatenate(
        [np.broadcast_to(part, (count, part.shape[1])) for part in parts], axis=1
    )


def _rows(values: ArrayLike) -> NDArray[np.float64]:
    array = np.atleast_2d(np.asarray(values, np.float64))
    if array.ndim != 2 or array.shape[1] != 3:
        raise ShapeError(
            f"A vector must have shape (3,) or (num_worlds, 3), got {array.shape}.",
            name="vector",
            shape=array.shape,
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


def function(address: int, parameters: ArrayLike = (0.0,)) -> Load:
    """A C function by its address: `force(mjModel*, mjData*, parameters, world)`."""
    table = np.array([address], np.int64).view(np.float64)
    bodies = np.zeros(0, np.int32)
    return Load(8, bodies, np.atleast_2d(np.asarray(parameters, np.float64)), -1, table)
