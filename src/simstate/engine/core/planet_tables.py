"""Tables of a planet's gravity and air, which the worlds of a load share.

A table is one row of numbers; gravity.h and air.h describe their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NO_ROTATION, _UNIFORM_ROTATION, _EARTH_ROTATION = range(3)
MAX_DEGREE = 360
"""Maximum degree of a field that the core evaluates."""
MAX_BODIES = 32
"""Maximum number of perturbing bodies."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Polynomials:
    """A vector over time by Chebyshev's polynomials, in segments of one length."""

    start: float
    """When the first segment begins [s]."""
    segment: float
    """The length of each [s]."""
    coefficients: Array
    """(segments, degree + 1, 3)."""

    def covers(self, start: float, end: float) -> bool:
        """Return True if there are polynomials for all times between two [s]."""
        last = self.start + self.segment * len(self.coefficients)
        return self.start <= start and end <= last

    def row(self) -> Array:
        """All of it, one number after the other."""
        segments, count, _ = self.coefficients.shape
        head = [self.start, self.segment, segments, count - 1]
        return np.concatenate([head, self.coefficients.reshape(-1)])


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Factors of the recursion and weights of its functions: see simstate.space."""

    degree: int
    """Maximum degree of the functions, two more than the field's."""
    a: Array
    b: Array
    d: Array
    acceleration: Array
    """Weights; (functions, 3)."""
    gradient: Array
    """Weights; (functions, 6)."""

    def row(self) -> Array:
        """All of it, one number after the other."""
        parts = (self.a, self.b, self.d, self.acceleration, self.gradient)
        return np.concatenate([np.ravel(part) for part in parts])


@dataclass(frozen=True, eq=False)
class EarthAngle:
    """The Earth's rotation: its angle at t = 0, and where its pole is."""

    ut1_minus_tt: float
    """[s]."""
    days: float
    """Since J2000, terrestrial time [days]."""
    day_fraction: float
    """The same without whole days, to every digit."""
    pole: Polynomials
    """X, Y and s [rad]."""


@dataclass(frozen=True, eq=False)
class Field:
    """The part of the gravity about a central body that all worlds share."""

    harmonics: Harmonics | None = None
    """None: a point mass."""
    rotation: EarthAngle | None = None
    """The Earth's; None: uniform, by the parameters."""
    bodies: Sequence[Polynomials | None] = ()
    """Positions of the others relative to the central body [m]; None: given by the
    parameters."""

    def covers(self, start: float, end: float) -> bool:
        """Return True if all its polynomials cover the time from one to another [s]."""
        paths = [path for path in self.bodies if path is not None]
        if self.rotation is not None:
            paths.append(self.rotation.pole)
        return all(path.covers(start, end) for path in paths)

    @property
    def is_small_enough(self) -> bool:
        """True if the core supports a field of this degree and number of bodies."""
        degree = 0 if self.harmonics is None else self.harmonics.degree
        return degree <= MAX_DEGREE + 2 and len(self.bodies) <= MAX_BODIES

    def row(self) -> Array:
        """The table of gravity.h."""
        harmonics, earth = self.harmonics, self.rotation
        kind = _UNIFORM_ROTATION if earth is None else _EARTH_ROTATION
        degree = 0 if harmonics is None else harmonics.degree
        angle = [0.0, 0.0, 0.0]
        parts: list[Array] = []
        if harmonics is not None:
            parts.append(harmonics.row())
        if earth is not None:
            angle = [earth.ut1_minus_tt, earth.days, earth.day_fraction]
            parts.append(earth.pole.row())
        parts += [_STILL if path is None else path.row() for path in self.bodies]
        head = [degree, kind if degree else _NO_ROTATION, len(self.bodies), *angle]
        return np.concatenate([np.array(head, np.float64), *parts])


_STILL = np.array([0.0, 1.0, 0.0, 0.0])
"""Polynomials without a segment."""


@dataclass(frozen=True, eq=False)
class PlanetAirTable:
    """The part of the air about a planet that all worlds share."""

    radius: float
    """Equatorial radius [m]."""
    flattening: float
    rotation_rate: float
    """Rotation rate of the air [rad/s]; 0 for air at rest."""
    geopotential: bool = False
    """True if the layers use geopotential height."""
    layers: Array | None = None
    """Base, geopotential [m], temperature [K], gradient [K/m] and pressure [Pa]; (n,
    4). None: an exponential."""
    above: Array | None = None
    """Geometric altitude [m] and logarithm of the density [kg/m³]; (m, 2)."""
    hydrostatic: float = 0.0
    """g₀ M₀ / R* [K/m]."""
    gas: float = 0.0
    """M₀ / R* [kg·K/J]."""

    def row(self) -> Array:
        """The table of air.h."""
        layers = np.zeros((0, 4)) if self.layers is None else self.layers
        above = np.zeros((0, 2)) if self.above is None else self.above
        head = [
            self.radius, self.flattening, self.rotation_rate, float(self.geopotential),
            len(layers), len(above), self.hydrostatic, self.gas,
        ]  # fmt: skip
        return np.concatenate([head, layers.reshape(-1), above.reshape(-1)])
