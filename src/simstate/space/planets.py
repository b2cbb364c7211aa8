"""Planets as data: mass, shape and rotation, with sources of the values."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError


@dataclass(frozen=True)
class Planet:
    """A planet or a moon as a spheroid that rotates about its shortest axis, z."""

    name: str
    mu: float
    """Gravitational parameter G·M [m³/s²]."""
    radius: float
    """Equatorial radius of the reference spheroid [m]."""
    flattening: float
    """(a − b) / a of the reference spheroid."""
    rotation_rate: float
    """Angular velocity about +z, relative to the stars [rad/s]."""
    j2: float
    """Second zonal coefficient, unnormalised, for `radius`."""

    @property
    def polar_radius(self) -> float:
        """Polar radius of the reference spheroid [m]."""
        return self.radius * (1.0 - self.flattening)

    @property
    def eccentricity_squared(self) -> float:
        """Squared eccentricity of the reference spheroid's meridian, e²."""
        return self.flattening * (2.0 - self.flattening)


EARTH = Planet(
    "Earth", 3.986004418e14, 6378137.0, 1 / 298.257223563, 7.2921150e-5, 1.08262982e-3
)
"""WGS 84 (NGA.STND.0036), whose J2 is −√5 C̄₂₀."""
MOON = Planet("Moon", 4.902800118e12, 1737400.0, 0.0, 2.6616995e-6, 2.0337e-4)
"""G·M of DE440; mean radius, rotation of the IAU (2015); J2 of GRGM660 at `radius`."""
MARS = Planet("Mars", 4.282837362e13, 3396190.0, 0.00589, 7.0882181e-5, 1.95639e-3)
"""G·M and J2 of MRO110C, J2 at `radius`; spheroid and rotation of the IAU (2015)."""

MU_SUN = 1.32712440018e20
"""Gravitational parameter of the Sun [m³/s²]; DE405."""
ASTRONOMICAL_UNIT = 149597870700.0
"""[m]; IAU 2012."""


def check_length(
    name: str, what: str, length: Tensor, mu: float, share: float = 0.9
) -> None:
    """Raise if a length is inside the planet that `mu` belongs to, as in kilometres.

    Also raise if `mu` is not positive, or is a planet's in km³/s² next to metres.

    Args:
        name: name of the argument with the length.
        what: name of the length in the error.
        length: the largest distance from the planet's centre [m]; any shape.
        mu: the gravitational parameter; that of an unknown body allows any length.
        share: the fraction of the planet's radius below which a length is rejected.
    """
    number("mu", mu, more_than=0, unit="m³/s²")
    for planet in (EARTH, MOON, MARS):
        in_metres = length.isfinite() & (length > planet.polar_radius)
        if abs(mu * 1e9 / planet.mu - 1.0) <= 1e-3 and bool(in_metres.any()):
            raise InvalidInputError(
                f"mu is {mu:g} m³/s², which is that of {planet.name} in km³/s²: with "
                "lengths in metres, multiply it by 1e9.",
                name="mu",
            )
        if abs(mu / planet.mu - 1.0) > 1e-3:
            continue
        inside = length < share * planet.polar_radius
        if bool(inside.any()):
            raise InvalidInputError(
                f"{what} is {float(length[inside].min()):g} m, deep inside "
                f"{planet.name} (radius {planet.radius:g} m). Lengths are in metres: "
                "was it given in kilometres?",
                name=name,
            )
