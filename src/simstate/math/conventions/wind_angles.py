"""Angle of attack and sideslip, and rotations between the axes of flight.

The velocity is that of the aircraft through the air, along body axes (forward, right,
down). Angles are in degrees unless `unit="rad"`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import Limits, one_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import (
    AngleUnit,
    as_tensor,
    batch_of,
    check_rotation,
    in_radians,
)
from simstate.math.elementwise import atan2, hypot
from simstate.math.vector import common_batch

Definition: TypeAlias = Literal["stevens", "ptera_5_1"]
"""Definition of the angles: "stevens" (Stevens and Lewis) has α = atan2(w, u)
and β = asin(v/V); "ptera_5_1" (Ptera Software 5.1) α = asin(w/V), β = atan2(v, u)."""

FlightAxes: TypeAlias = Literal["earth", "body", "geometry", "wind", "stability"]
"""Earth: north, east, down. Body: forward, right, down. Geometry: aft, right, up.
Wind: x along the velocity. Stability: the body's, rotated about its y axis until the
velocity has no z component."""

_GEOMETRY = torch.diag(torch.tensor([-1.0, 1.0, -1.0], dtype=torch.float64))


def wind_angles(
    velocity_b: Values, definition: Definition = "stevens", unit: AngleUnit = "deg"
) -> tuple[Tensor, Tensor]:
    """Return angle of attack α and sideslip β of a velocity, body axes; shapes (...).

    At rest both are zero. An angle that is undefined for a direction of flight is zero.
    """
    one_of("definition of the wind angles", definition, get_args(Definition))
    velocity = as_tensor(velocity_b, "velocity_b", 3)
    alpha, beta = _angles(velocity, definition)
    scale = in_radians(unit)
    return alpha / scale, beta / scale


def velocity_from_wind_angles(
    speed: Values | float,
    alpha: Values | float,
    beta: Values | float,
    definition: Definition = "stevens",
    unit: AngleUnit = "deg",
) -> Tensor:
    """Return the velocity along body axes, given speed [m/s] and angles; (..., 3)."""
    one_of("definition of the wind angles", definition, get_args(Definition))
    scale = in_radians(unit)
    length = as_tensor(speed, "speed")
    Limits(at_least=0).check(length, "speed", " Change the angles instead.")
    attack = as_tensor(alpha, "alpha", like=length) * scale
    slip = as_tensor(beta, "beta", like=length) * scale
    batch_of(speed=(length, 0), alpha=(attack, 0), beta=(slip, 0))
    rot_bw = rot_body_wind(attack, slip, definition)
    return length[..., None] * rot_bw[..., :, 0]


def R_pas(
    source: FlightAxes,
    target: FlightAxes,
    *,
    velocity_b: Values | None = None,
    R_pas_E_to_B: Values | None = None,
    definition: Definition = "stevens",
) -> Tensor:
    """Return R_pas between flight axes: r_target = R @ r_source; (..., 3, 3).

    Wind and stability axes need the velocity along body axes, Earth axes the attitude.
    `definition` determines the wind axes: the body axes rotated by −α about y, then by
    β about the resulting z ("stevens"), or by the same rotations about the fixed body
    axes in that order ("ptera_5_1").
    """
    for name in (source, target):
        one_of("flight axes", name, get_args(FlightAxes))
    one_of("definition of the wind angles", definition, get_args(Definition))
    velocity = None if velocity_b is None else as_tensor(velocity_b, "velocity_b", 3)
    attitude = None
    if R_pas_E_to_B is not None:
        attitude = as_tensor(R_pas_E_to_B, "R_pas_E_to_B", 3, 3, like=velocity)
        check_rotation(attitude, "R_pas_E_to_B")
    if velocity is not None and attitude is not None:
        batch_of(velocity_b=(velocity, 1), R_pas_E_to_B=(attitude, 2))
    from_source = _to_body(source, velocity, attitude, definition)
    from_target = _to_body(target, velocity, attitude, definition)
    like = attitude if velocity is None else velocity
    if like is not None:
        from_source, from_target = from_source.to(like), from_target.to(like)
    return from_target.mT @ from_source


def _to_body(
    name: FlightAxes,
    velocity: Tensor | None,
    attitude: Tensor | None,
    definition: Definition,
) -> Tensor:
    """Return the matrix from components along the named axes to body axes."""
    if name == "body":
        return torch.eye(3, dtype=torch.float64)
    if name == "geometry":
        return _GEOMETRY
    if name == "earth":
        if attitude is None:
            raise InvalidInputError(
                "Earth axes need the attitude: give R_pas_E_to_B.", name="R_pas_E_to_B"
            )
        return attitude
    if velocity is None:
        raise InvalidInputError(
            f"{name} axes need the velocity: give velocity_b.", name="velocity_b"
        )
    if name == "stability":
        attack, _ = _angles(velocity, "stevens")
        return rot_body_wind(attack, torch.zeros_like(attack))
    return rot_body_wind(*_angles(velocity, definition), definition)


def _angles(velocity: Tensor, definition: Definition) -> tuple[Tensor, Tensor]:
    """Return α and β [rad] of a velocity along body axes; shapes (...)."""
    # −0.0 + 0.0 is 0.0, for which atan2 returns zero, not ±180°.
    u, v, w = (velocity + 0.0).unbind(-1)
    if definition == "stevens":
        return atan2(w, u), atan2(v, hypot(u, w))
    return atan2(w, hypot(u, v)), atan2(v, u)


def rot_body_wind(
    alpha: Tensor, beta: Tensor, definition: Definition = "stevens"
) -> Tensor:
    """Return the matrix from wind to body axes of angles [rad]; (..., 3, 3).

    Its first column is the direction of the velocity.
    """
    batch = common_batch(tuple(alpha.shape), tuple(beta.shape))
    alpha, beta = alpha.expand(batch), beta.expand(batch)
    ca, sa, cb, sb = alpha.cos(), alpha.sin(), beta.cos(), beta.sin()
    zero = torch.zeros_like(ca)
    if definition == "stevens":
        rows = [ca * cb, -ca * sb, -sa, sb, cb, zero, sa * cb, -sa * sb, ca]
    else:
        rows = [ca * cb, -sb, -sa * cb, ca * sb, cb, -sa * sb, sa, zero, ca]
    return torch.stack(rows, dim=-1).reshape(*batch, 3, 3)
