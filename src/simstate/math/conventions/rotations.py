"""Passive and active rotations and transforms in aerospace notation, checked.

`R_pas_A_to_B` maps components: r_B = R_pas_A_to_B @ r_A. `R_act_A_to_B` rotates the
vector itself as it rotates axes A onto axes B. Each is the other's transpose. All
functions accept any leading batch shape; angles are in degrees unless `unit="rad"`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values, int_list
from simstate.math import euler, quaternion, transform
from simstate.math.conventions.checked_values import (
    AngleUnit,
    as_tensor,
    check_rotation,
    check_sequence,
    check_unit,
    in_radians,
    together,
)
from simstate.math.vector import apply


def passive_from_active(R_act: Values) -> Tensor:
    """Return R_pas_A_to_B of R_act_A_to_B; shape (..., 3, 3)."""
    return _rotation(R_act, "R_act").mT


def active_from_passive(R_pas: Values) -> Tensor:
    """Return R_act_A_to_B of R_pas_A_to_B; shape (..., 3, 3)."""
    return _rotation(R_pas, "R_pas").mT


def rotate(R: Values, vector: Values) -> Tensor:
    """Return R @ vector: rotated (active) or in other axes (passive); (..., 3)."""
    return apply(*together(R=(_rotation(R, "R"), 3, 3), vector=(vector, 3)))


def active_from_angles(
    angles: Values, sequence: str, unit: AngleUnit = "deg"
) -> Tensor:
    """Return R_act of Euler angles; shape (..., 3, 3).

    Tait-Bryan angles (..., 3) are listed as [roll, pitch, yaw] for every sequence; see
    `simstate.math.euler` for the ids.
    """
    check_sequence(sequence)
    given = as_tensor(angles, "angles", 3) * in_radians(unit)
    return quaternion.to_matrix(euler.to_quaternion(given, sequence))


def passive_from_angles(
    angles: Values, sequence: str, unit: AngleUnit = "deg"
) -> Tensor:
    """Return R_pas_A_to_B; the Euler angles rotate axes A onto axes B; (..., 3, 3)."""
    return active_from_angles(angles, sequence, unit).mT


def angles_from_active(
    R_act: Values,
    sequence: str,
    unit: AngleUnit = "deg",
) -> Tensor:
    """Return Euler angles of R_act, each in (−180, 180] degrees; shape (..., 3).

    At a pole, where two rotations are about one line, the last in intrinsic order is
    zero; the angles still reproduce the matrix to rounding.
    """
    check_sequence(sequence)
    quat = quaternion.from_matrix(_rotation(R_act, "R_act"))
    scale = in_radians(unit)
    given = euler.from_quaternion(quat, sequence) / scale
    # In float32, an angle just above −π becomes −180° in the division.
    return torch.where(given <= -torch.pi / scale, torch.pi / scale, given)


def angles_from_passive(
    R_pas: Values,
    sequence: str,
    unit: AngleUnit = "deg",
) -> Tensor:
    """Return Euler angles from axes A to axes B of R_pas_A_to_B; shape (..., 3)."""
    return angles_from_active(_rotation(R_pas, "R_pas").mT, sequence, unit)


def body_rates_from_angle_rates(
    angles: Values, rates: Values, sequence: str, unit: AngleUnit = "deg"
) -> Tensor:
    """Return the angular velocity in body axes of Euler angle rates; shape (..., 3).

    Args:
        angles: Euler angles from fixed to body axes; (..., 3).
        rates: time derivatives of the angles, in the same order; (..., 3).
        sequence: the id of the sequence; see `simstate.math.euler`.
        unit: of the angles and, per second, of the rates and of the result.
    """
    check_sequence(sequence)
    given, speed = together(angles=(angles, 3), rates=(rates, 3))
    return euler.rates_to_body(given * in_radians(unit), speed, sequence)


def angle_rates_from_body_rates(
    angles: Values, ang_vel_b: Values, sequence: str, unit: AngleUnit = "deg"
) -> Tensor:
    """Return Euler angle rates of an angular velocity in body axes; shape (..., 3).

    Raise at a pole of the sequence, where two rotations are about one line.

    Args:
        angles: Euler angles from fixed to body axes; (..., 3).
        ang_vel_b: angular velocity relative to the fixed axes, body axes; (..., 3).
        sequence: the id of the sequence; see `simstate.math.euler`.
        unit: of the angles and, per second, of the velocity and of the result.
    """
    check_sequence(sequence)
    given, speed = together(angles=(angles, 3), ang_vel_b=(ang_vel_b, 3))
    found = euler.rates_from_body(given * in_radians(unit), speed, sequence)
    # Because of rounding, rates at a pole may be huge instead of infinite.
    limit = speed.abs().amax(dim=-1) / (16 * torch.finfo(found.dtype).eps)
    at_pole = ~(found.abs().amax(dim=-1) <= limit)
    if bool(at_pole.any()):
        where = int_list(at_pole.nonzero()[0])
        raise InvalidInputError(
            f"The angles at {where} are at a pole of {sequence!r}: two rotations are "
            "about one line there, and the rates are unbounded. Use another "
            "sequence, or a quaternion.",
            name="angles",
        )
    return found


def R_to_quat_wxyz(R_act: Values) -> Tensor:
    """Return the quaternion wxyz, w ≥ 0, of R_act; accurate at 180°; (..., 4)."""
    return quaternion.from_matrix(_rotation(R_act, "R_act"))


def active_from_quat(quat: Values) -> Tensor:
    """Return R_act of a unit quaternion wxyz; shape (..., 3, 3)."""
    return quaternion.to_matrix(check_unit(as_tensor(quat, "quat", 4), "quat"))


def passive_transform(R_pas_A_to_B: Values, b_A_a: Values) -> Tensor:
    """Return T_pas_A_a_to_B_b; point b is at `b_A_a` from a in axes A; (..., 4, 4).

    It maps a position from point a in axes A to that from point b in axes B.
    """
    rot = _rotation(R_pas_A_to_B, "R_pas_A_to_B")
    return transform.passive(*together(R_pas_A_to_B=(rot, 3, 3), b_A_a=(b_A_a, 3)))


def active_transform(R_act: Values, shift: Values) -> Tensor:
    """Return the transform that rotates a position, then adds `shift`; (..., 4, 4)."""
    rot = _rotation(R_act, "R_act")
    return transform.from_parts(*together(R_act=(rot, 3, 3), shift=(shift, 3)))


def compose(*transforms: Values) -> Tensor:
    """Return the product of transforms, the first applied first; (..., 4, 4)."""
    if not transforms:
        raise InvalidInputError("There is no transform to compose: give at least one.")
    checked = {f"transform {k}": _transform(one) for k, one in enumerate(transforms)}
    parts = {name: (one, 4, 4) for name, one in checked.items()}
    return transform.compose(*together(**parts))


def invert(rigid: Values) -> Tensor:
    """Return the inverse transform; of a passive one, from B to A; (..., 4, 4)."""
    return transform.invert(_transform(rigid))


def apply_to_position(rigid: Values, position: Values) -> Tensor:
    """Return the position, rotated and translated; shape (..., 3)."""
    rigid = _transform(rigid)
    return transform.apply_to_position(
        *together(transform=(rigid, 4, 4), position=(position, 3))
    )


def apply_to_vector(rigid: Values, vector: Values) -> Tensor:
    """Return a free vector (velocity, force), rotated but not translated; (..., 3)."""
    rigid = _transform(rigid)
    return transform.apply_to_vector(
        *together(transform=(rigid, 4, 4), vector=(vector, 3))
    )


def _rotation(values: Values, name: str) -> Tensor:
    return check_rotation(as_tensor(values, name, 3, 3), name)


def _transform(values: Values) -> Tensor:
    tensor = as_tensor(values, "transform", 4, 4)
    check_rotation(tensor[..., :3, :3], "The rotation of the transform")
    last = tensor.new_tensor([0.0, 0.0, 0.0, 1.0])
    if not torch.equal(tensor[..., 3, :], last.expand_as(tensor[..., 3, :])):
        raise InvalidInputError(
            "The last row of a homogeneous transform must be (0, 0, 0, 1)."
        )
    return tensor
