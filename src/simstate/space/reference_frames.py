"""Frames of space flight and the ways between them; positions and velocities.

| name | origin | axes |
|---|---|---|
| ECI | the planet's centre | do not turn; with `EarthRotation` those of the GCRS |
| ECEF | the planet's centre | turn with the planet: z north, x to the prime meridian |
| NED | a place on the planet | turn with the planet: north, east, down at that place |
| RTN | a satellite | turn with its orbit: outward, along-track, orbit normal |
| LVLH | a satellite | turn with its orbit: along-track, against the normal, nadir |

A velocity is that seen in the frame: from turning axes the turning is taken out. All in
SI units, float64, shapes (..., 3) that broadcast. `rot_ab` takes components along b to
components along a.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
    position: Values, velocity: Values, t: Tensor, rotation: Rotation
) -> Motion:
    """Position and velocity in ECEF of those in ECI, at times [s]; (..., 3) each."""
    pos, vel = _motion(position, velocity, t=t)
    rot = rotation(t)
    fixed = apply(rot, pos)
    return fixed, apply(rot, vel) - cross(rotation.rate(t), fixed)


def eci_from_ecef(
    position: Values, velocity: Values, t: Tensor, rotation: Rotation
) -> Motion:
    """Position and velocity in ECI of those in ECEF, at times [s]; (..., 3) each."""
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
    """Position from a place on the planet, and velocity, along north, east, down.

    The place is given by geodetic latitude, longitude [rad] and height [m].
    """
    pos, vel = _motion(position, velocity)
    place = position_from_geodetic(latitude, longitude, height, planet)
    rot = rot_ned_fixed(latitude, longitude)
    return apply(rot, pos - place), apply(rot, vel)


def ecef_from_ned(
    position: Values,
    velocity: Values,
    latitude: Values | float,
    longitude: Values | float,
    height: Values | float = 0.0,
    planet: Planet = EARTH,
) -> Motion:
    """Position and velocity in ECEF of those along north, east, down at a place."""
    pos, vel = _motion(position, velocity)
    place = position_from_geodetic(latitude, longitude, height, planet)
    back = rot_ned_fixed(latitude, longitude).mT
    return place + apply(back, pos), apply(back, vel)


def rot_rtn_eci(position: Values, velocity: Values) -> Tensor:
    """From ECI to RTN of a satellite at this position and velocity; (..., 3, 3)."""
    pos, vel = _motion(position, velocity)
    momentum = cross(pos, vel)
    if bool((norm(momentum) <= 1e-12 * norm(pos) * norm(vel)).any()):
        raise InvalidInputError(
            "A satellite that moves straight up or down, or not at all, has no orbital "
            "plane: RTN and LVLH axes are not defined.",
            name="velocity",
        )
    outward, normal = pos / norm(pos), momentum / norm(momentum)
    return torch.stack([outward, cross(normal, outward), normal], dim=-2)


def rot_lvlh_eci(position: Values, velocity: Values) -> Tensor:
    """From ECI to LVLH of a satellite at this position and velocity; (..., 3, 3)."""
    rot = rot_rtn_eci(position, velocity)
    return _LVLH_OF_RTN.to(rot) @ rot


def orbit_rate(position: Values, velocity: Values) -> Tensor:
    """Angular velocity of RTN and LVLH on a Kepler orbit, ECI [rad/s]; (..., 3)."""
    pos, vel = _motion(position, velocity)
    return cross(pos, vel) / dot(pos, pos)


def rtn_from_eci(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Motion relative to a chief satellite, along its RTN axes, as seen from them."""
    rot = rot_rtn_eci(chief_position, chief_velocity)
    return _relative(rot, position, velocity, chief_position, chief_velocity)


def eci_from_rtn(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Motion in ECI of that relative to a chief satellite along its RTN axes."""
    rot = rot_rtn_eci(chief_position, chief_velocity)
    return _absolute(rot, position, velocity, chief_position, chief_velocity)


def lvlh_from_eci(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Motion relative to a chief satellite, along its LVLH axes, as seen from them."""
    rot = rot_lvlh_eci(chief_position, chief_velocity)
    return _relative(rot, position, velocity, chief_position, chief_velocity)


def eci_from_lvlh(
    position: Values, velocity: Values, chief_position: Values, chief_velocity: Values
) -> Motion:
    """Motion in ECI of that relative to a chief satellite along its LVLH axes."""
    rot = rot_lvlh_eci(chief_position, chief_velocity)
    return _absolute(rot, position, velocity, chief_position, chief_velocity)


def _relative(
    rot: Tensor,
    position: Values,
    velocity: Values,
    chief_pos: Values,
    chief_vel: Values,
) -> Motion:
    chief, chief_speed = _motion(chief_pos, chief_vel)
    pos, vel = _motion(position, velocity, chief, chief_speed)
    apart = pos - chief
    seen = vel - chief_speed - cross(orbit_rate(chief, chief_speed), apart)
    return apply(rot, apart), apply(rot, seen)


def _absolute(
    rot: Tensor,
    position: Values,
    velocity: Values,
    chief_pos: Values,
    chief_vel: Values,
) -> Motion:
    chief, chief_speed = _motion(chief_pos, chief_vel)
    pos, vel = _motion(position, velocity, chief, chief_speed)
    apart = apply(rot.mT, pos)
    turning = cross(orbit_rate(chief, chief_speed), apart)
    return chief + apart, chief_speed + apply(rot.mT, vel) + turning


def _motion(
    position: Values, velocity: Values, *chief: Tensor, **times: Tensor
) -> Motion:
    """Both as tensors that broadcast with each other, with times and a chief's."""
    pos = as_float64(position, "position", 3)
    vel = as_float64(velocity, "velocity", 3)
    others = {name: (time, 0) for name, time in times.items()}
    others |= {f"chief[{k}]": (part, 1) for k, part in enumerate(chief)}
    batch_of(position=(pos, 1), velocity=(vel, 1), **others)
    return pos, vel
