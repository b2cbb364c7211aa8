"""Frames of space flight, and conversion of positions and velocities between them.

| name | origin | axes |
|---|---|---|
| ECI | the planet's centre | inertial; with `EarthRotation` those of the GCRS |
| ECEF | the planet's centre | fixed in the planet: z north, x to the prime meridian |
| NED | a point on the planet | fixed in the planet: north, east, down at that point |
| RTN | a satellite | rotate with its orbit: outward, along-track, orbit normal |
| LVLH | a satellite | rotate with its orbit: along-track, negative normal, nadir |

A velocity is relative to its frame, including the frame's rotation. Values are in SI
units and float64, with shapes (..., 3) that broadcast. `rot_ab` maps components along b
to components along a.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.checks import check_calls
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_float64, batch_of
from simstate.math.vector import apply, cross, dot, norm
from simstate.space.geodesy import position_from_geodetic, rot_ned_fixed
from simstate.space.planets import EARTH, Planet
from simstate.space.rotation import Rotation

Motion = tuple[Tensor, Tensor]
"""Position [m] and velocity [m/s]; (..., 3) each."""

_LVLH_OF_RTN = torch.tensor(
    [[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]], dtype=torch.float64
)


def ecef_from_eci(
    position: Values, velocity: Values, t: Values | float, rotation: Rotation
) -> Motion:
    """Convert position and velocity from ECI to ECEF at times [s]; (..., 3) each."""
    check_calls("rotation", rotation, "rotation(t)", "rotation.rate(t)")
    t = as_float64(t, "t")
    pos, vel = _motion(position, velocity, t=t)
    rot = rotation(t)
    fixed = apply(rot, pos)
    return fixed, apply(rot, vel) - cross(rotation.rate(t), fixed)


def eci_from_ecef(
    position: Values, velocity: Values, t: Values | float, rotation: Rotation
) -> Motion:
    """Convert position and velocity from ECEF to ECI at times [s]; (..., 3) each."""
    check_calls("rotation", rotation, "rotation(t)", "rotation.rate(t)")
    t = as_float64(t, "t")
    pos, vel = _motion(position, velocity, t=t)
    back = rotation(t).mT
    return apply(back, pos), apply(back, vel + cross(rotation.rate(t), pos))


def ned_from_ecef(
    position: Values,
    velocity: Values,
    latitude: Values | float,
    longitude: Values | float,
    height: Values | float = 0.0,
    planet: Planet = EARTH,
) -> Motion:
    """Convert position and velocity from ECEF to north, east, down at a point.

    The point has geodetic latitude, longitude [rad] and height [m].
    """
    pos, vel = _motion(position, velocity)
    origin = position_from_geodetic(latitude, longitude, height, planet)
    rot = rot_ned_fixed(latitude, longitude)
    return apply(rot, pos - origin), apply(rot, vel)


def ecef_from_ned(
    position: Values,
    velocity: Values,
    latitude: Values | float,
    longitude: Values | float,
    height: Values | float = 0.0,
    planet: Planet = EARTH,
) -> Motion:
    """Convert position and velocity from north, east, down at a point to ECEF."""
    pos, vel = _motion(position, velocity)
    origin = position_from_geodetic(latitude, longitude, height, planet)
    back = rot_ned_fixed(latitude, longitude).mT
    return origin + apply(back, pos), apply(back, vel)


def rot_rtn_eci(position: Values, velocity: Values) -> Tensor:
    """Return the matrix from ECI to RTN of a satellite; (..., 3, 3)."""
    pos, vel = _motion(position, velocity)
    momentum = cross(pos, vel)
    if bool((norm(momentum) <= 1e-12 * norm(pos) * norm(vel)).any()):
        raise InvalidInputError(
            "RTN and LVLH axes need an orbital plane: position and velocity must not "
            "be parallel.",
            name="velocity",
        )
    outward, normal = pos / norm(pos), momentum / norm(momentum)
    return torch.stack([outward, cross(normal, outward), normal], dim=-2)


def rot_lvlh_eci(position: Values, velocity: Values) -> Tensor:
    """Return the matrix from ECI to LVLH of a satellite; (..., 3, 3)."""
    rot = rot_rtn_eci(position, velocity)
    return _LVLH_OF_RTN.to(rot) @ rot


def orbit_rate(position: Values, velocity: Values) -> Tensor:
    """Return the angular velocity of RTN and LVLH on a Kepler orbit, ECI [rad/s]."""
    pos, vel = _motion(position, velocity)
    return cross(pos, vel) / dot(pos, pos)


def rtn_from_eci(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Convert position and velocity from ECI to RTN of a chief satellite."""
    rot = rot_rtn_eci(chief_position, chief_velocity)
    return _relative(rot, position, velocity, chief_position, chief_velocity)


def eci_from_rtn(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Convert position and velocity from RTN of a chief satellite to ECI."""
    rot = rot_rtn_eci(chief_position, chief_velocity)
    return _absolute(rot, position, velocity, chief_position, chief_velocity)


def lvlh_from_eci(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Convert position and velocity from ECI to LVLH of a chief satellite."""
    rot = rot_lvlh_eci(chief_position, chief_velocity)
    return _relative(rot, position, velocity, chief_position, chief_velocity)


def eci_from_lvlh(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Convert position and velocity from LVLH of a chief satellite to ECI."""
    rot = rot_lvlh_eci(chief_position, chief_velocity)
    return _absolute(rot, position, velocity, chief_position, chief_velocity)


def _relative(
    rot: Tensor,
    position: Values,
    velocity: Values,
    chief_position: Values,
    chief_velocity: Values,
) -> Motion:
    chief, chief_vel = _motion(chief_position, chief_velocity)
    pos, vel = _motion(position, velocity, chief, chief_vel)
    offset = pos - chief
    rate = vel - chief_vel - cross(orbit_rate(chief, chief_vel), offset)
    return apply(rot, offset), apply(rot, rate)


def _absolute(
    rot: Tensor,
    position: Values,
    velocity: Values,
    chief_position: Values,
    chief_velocity: Values,
) -> Motion:
    chief, chief_vel = _motion(chief_position, chief_velocity)
    pos, vel = _motion(position, velocity, chief, chief_vel)
    offset = apply(rot.mT, pos)
    turning = cross(orbit_rate(chief, chief_vel), offset)
    return chief + offset, chief_vel + apply(rot.mT, vel) + turning


def _motion(
    position: Values, velocity: Values, *chief: Tensor, **times: Tensor
) -> Motion:
    """Return both as tensors; they must broadcast with times and those of a chief."""
    pos = as_float64(position, "position", 3)
    vel = as_float64(velocity, "velocity", 3)
    others = {name: (time, 0) for name, time in times.items()}
    others |= {f"chief[{k}]": (part, 1) for k, part in enumerate(chief)}
    batch_of(position=(pos, 1), velocity=(vel, 1), **others)
    return pos, vel
