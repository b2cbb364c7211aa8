"""Geodetic coordinates: latitude, longitude and height above a planet's spheroid.

Angles are in radians. Fixed axes rotate with the planet: z to the north pole, x to the
intersection of equator and prime meridian.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_float64
from simstate.math.elementwise import atan2, hypot
from simstate.math.vector import norm
from simstate.space.planets import EARTH, Planet


def position_from_geodetic(
    latitude: Values | float,
    longitude: Values | float,
    height: Values | float,
    planet: Planet = EARTH,
) -> Tensor:
    """Return the position, fixed axes [m], of geodetic coordinates; (..., 3)."""
    lat, lon = _latitude(latitude), as_float64(longitude, "longitude")
    high = as_float64(height, "height")
    e2 = planet.eccentricity_squared
    sine = lat.sin()
    normal = planet.radius / (1 - e2 * sine**2).sqrt()
    out = (normal + high) * lat.cos()
    z = (normal * (1 - e2) + high) * sine
    lon, out, z = lon + 0 * out, out + 0 * lon, z + 0 * lon
    return torch.stack([out * lon.cos(), out * lon.sin(), z], dim=-1)


def geodetic_from_position(
    position: Values, planet: Planet = EARTH
) -> tuple[Tensor, Tensor, Tensor]:
    """Return geodetic latitude, longitude [rad] and height [m] of a position; (...).

    The position is along fixed axes [m]. Exact to rounding from 50 km below the
    spheroid to any height; near the centre of the planet it raises.
    """
    pos = as_float64(position, "position", 3)
    if bool((norm(pos) < 0.1 * planet.radius).any()):
        raise InvalidInputError(
            "position must be in metres from the planet's centre, along fixed axes; it "
            "is near the centre, where there is no latitude.",
            name="position",
        )
    x, y, z = pos.unbind(-1)
    out = hypot(x, y)
    e2, flat = planet.eccentricity_squared, 1.0 - planet.flattening
    # Bowring's iteration on the reduced latitude, which is regular at the poles.
    reduced = atan2(z, flat * out)
    lat = reduced
    for _ in range(5):
        top = z + e2 / flat * planet.radius * reduced.sin() ** 3
        lat = atan2(top, out - e2 * planet.radius * reduced.cos() ** 3)
        reduced = atan2(flat * lat.sin(), lat.cos())
    sine = lat.sin()
    root = (1 - e2 * sine**2).sqrt()
    height = out * lat.cos() + z * sine - planet.radius * root
    return lat, atan2(y, x), height


def _latitude(latitude: Values | float) -> Tensor:
    """Return a latitude as float64; raise beyond ±π/2, as for degrees."""
    lat = as_float64(latitude, "latitude")
    if bool((lat.abs() > torch.pi / 2 + 1e-12).any()):
        raise InvalidInputError(
            f"latitude must be within ±π/2 [rad], got {latitude}: math.radians(…) "
            "takes degrees.",
            name="latitude",
        )
    return lat


def rot_ned_fixed(latitude: Values | float, longitude: Values | float) -> Tensor:
    """Return the matrix from fixed axes to north, east, down; (..., 3, 3)."""
    lat = _latitude(latitude)
    lon = as_float64(longitude, "longitude")
    lat, lon = lat + 0 * lon, lon + 0 * lat
    zero = torch.zeros_like(lat)
    north = torch.stack([-lat.sin() * lon.cos(), -lat.sin() * lon.sin(), lat.cos()], -1)
    east = torch.stack([-lon.sin(), lon.cos(), zero], -1)
    down = torch.stack([-lat.cos() * lon.cos(), -lat.cos() * lon.sin(), -lat.sin()], -1)
    return torch.stack([north, east, down], dim=-2)
