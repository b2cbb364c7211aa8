"""Tables of a planet's gravity and air, which the worlds of a load share.

A table is one row of values; gravity.h and air.h describe their order.
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
    """A vector over time as Chebyshev polynomials, in segments of equal length."""

    start: float
    """Start of the first segment [s]."""
    segment: float
    """Length of each segment [s]."""
    coefficients: Array
    """Coefficients; (segments, degree + 1, 3)."""

    def covers(self, start: float, end: float) -> bool:
        """Return True if the polynomials cover the time from start to end [s]."""
        last = self.start + self.segment * len(self.coefficients)
        return self.start <= start and end <= last

    def row(self) -> Array:
        """Return all values in one row."""
        segments, count, _ = self.coefficients.shape
        head = [self.start, self.segment, segments, count - 1]
        return np.concatenate([head, self.coefficients.reshape(-1)])


@dataclass(frozen=True, eq=False)
class Harmonics:
    """Factors of the recursion and weights of its functions; see simstate.space."""

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
        """Return all values in one row."""
        parts = (self.a, self.b, self.d, self.acceleration, self.gradient)
        return np.concatenate([np.ravel(part) for part in parts])


@dataclass(frozen=True, eq=False)
class EarthAngle:
    """The Earth's rotation: its angle at t = 0, and its pole over time."""

    ut1_minus_tt: float
    """UT1 − TT [s]."""
    days: float
    """Time since J2000, terrestrial time [days]."""
    day_fraction: float
    """Fraction of `days` after the decimal point, at full precision."""
    pole: Polynomials
    """X, Y and s of the pole [rad]."""


@dataclass(frozen=True, eq=False)
class Field:
    """The part of a central body's gravity that all worlds share."""

    harmonics: Harmonics | None = None
    """Harmonics of the field; None: a point mass."""
    rotation: EarthAngle | None = None
    """Rotation of the Earth; None: uniform, by the parameters."""
    bodies: Sequence[Polynomials | None] = ()
    """Positions of other bodies relative to the central body [m]; None: given by the
    parameters."""

    def covers(self, start: float, end: float) -> bool:
        """Return True if all polynomials cover the time from start to end [s]."""
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
        """Return the table of gravity.h."""
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
    """The part of a planet's atmosphere that all worlds share."""

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
        """Return the table of air.h."""
        layers = np.zeros((0, 4)) if self.layers is None else self.layers
        above = np.zeros((0, 2)) if self.above is None else self.above
        head = [
            self.radius, self.flattening, self.rotation_rate, float(self.geopotential),
            len(layers), len(above), self.hydrostatic, self.gas,
        ]  # fmt: skip
        return np.concatenate([head, layers.reshape(-1), above.reshape(-1)])
