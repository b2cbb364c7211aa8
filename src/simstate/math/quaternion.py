"""Unit quaternions (w, x, y, z), active: `rotate(quat_wb, vec_b)` gives vec_w."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.elementwise import atan2
from simstate.math.vector import cross, dot, norm

UNIT_TOLERANCE = 1e-14
"""Largest error in length for which MuJoCo regards a quaternion as a unit one."""


def normalize(quat: Tensor) -> Tensor:
    """Return the normalised quaternion; zero gives identity, as in MuJoCo; (..., 4)."""
    length = norm(quat)
    identity = quat.new_tensor([1.0, 0.0, 0.0, 0.0])
    return torch.where(length < 1e-15, identity, quat / length)


def conjugate(quat: Tensor) -> Tensor:
    """Return the inverse rotation of a unit quaternion; shape (..., 4)."""
    return torch.cat([quat[..., :1], -quat[..., 1:]], dim=-1)


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Return the rotation `right` followed by `left`, in fixed axes; shape (..., 4)."""
    lw, lv = left[..., :1], left[..., 1:]
    rw, rv = right[..., :1], right[..., 1:]
    real = lw * rw - dot(lv, rv)
    imag = lw * rv + rw * lv + cross(lv, rv)
    return torch.cat([real, imag], dim=-1)


def rotate(quat: Tensor, vec: Tensor) -> Tensor:
    """Return `vec` in the outer axes, vec_w given (quat_wb, vec_b); shape (..., 3)."""
    imag = quat[..., 1:].contiguous()
    turned = cross(imag, cross(imag, vec) + quat[..., :1] * vec)
    return torch.add(vec, turned, alpha=2.0)


def rotate_inverse(quat: Tensor, vec: Tensor) -> Tensor:
    """Return `vec` in the inner axes, vec_b given (quat_wb, vec_w); shape (..., 3)."""
    imag = quat[..., 1:].contiguous()
    turned = cross(imag, cross(imag, vec) - quat[..., :1] * vec)
    return torch.add(vec, turned, alpha=2.0)


def to_matrix(quat: Tensor) -> Tensor:
    """Return rot_wb of a unit quaternion: vec_w = rot_wb @ vec_b; (..., 3, 3)."""
    w, x, y, z = quat.unbind(-1)
    rows = [
        torch.stack(
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
        ),
        torch.stack(
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]
        ),
        torch.stack(
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
        ),
    ]
    return torch.stack(rows).permute(*range(2, quat.ndim + 1), 0, 1)


def from_matrix(rot: Tensor) -> Tensor:
    """Return the unit quaternion with w ≥ 0 of a rotation matrix (..., 3, 3); (..., 4).

    The component of largest magnitude is computed first, so that the result is accurate
    to rounding at every angle, including 180°.
    """
    m00, m11, m22 = rot[..., 0, 0], rot[..., 1, 1], rot[..., 2, 2]
    squares = torch.stack(
        [1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22,
         1 - m00 - m11 + m22],
        dim=-1,
    )  # fmt: skip
    x_w, y_w, z_w = (
        rot[..., 2, 1] - rot[..., 1, 2],
        rot[..., 0, 2] - rot[..., 2, 0],
        rot[..., 1, 0] - rot[..., 0, 1],
    )
    x_y, x_z, y_z = (
        rot[..., 1, 0] + rot[..., 0, 1],
        rot[..., 0, 2] + rot[..., 2, 0],
        rot[..., 2, 1] + rot[..., 1, 2],
    )
    w_w, x_x, y_y, z_z = squares.unbind(-1)
    rows = torch.stack(
        [
            torch.stack([w_w, x_w, y_w, z_w], dim=-1),
            torch.stack([x_w, x_x, x_y, x_z], dim=-1),
            torch.stack([y_w, x_y, y_y, y_z], dim=-1),
            torch.stack([z_w, x_z, y_z, z_z], dim=-1),
        ],
        dim=-2,
    )
    largest = squares.argmax(-1)[..., None, None].expand(*squares.shape[:-1], 1, 4)
    quat = normalize(rows.gather(-2, largest).squeeze(-2))
    return canonical(quat)


def canonical(quat: Tensor) -> Tensor:
    """Return q or −q, which are the same rotation, with w ≥ 0; shape (..., 4).

    If w is zero (a rotation by 180°), the first non-zero component is positive.
    """
    signs = torch.sign(quat)
    first = torch.zeros_like(signs[..., :1])
    for k in range(4):
        first = torch.where(first == 0, signs[..., k : k + 1], first)
    return torch.where(first < 0, -quat, quat)


def from_rotation_vector(vec: Tensor) -> Tensor:
    """Return the unit quaternion of a rotation by |vec| radians about vec; (..., 4)."""
    half = 0.5 * norm(vec)
    # torch.sinc(x) is sin(πx)/(πx), which is smooth at zero.
    scale = 0.5 * torch.sinc(half / torch.pi)
    return torch.cat([torch.cos(half), scale * vec], dim=-1)


def to_rotation_vector(quat: Tensor) -> Tensor:
    """Return the shortest rotation vector [rad] of a unit quaternion; (..., 3)."""
    quat = canonical(quat)
    real, imag = quat[..., :1], quat[..., 1:]
    length = norm(imag)
    angle = 2.0 * atan2(length, real)
    safe = torch.where(length > 0, length, torch.ones_like(length))
    return imag * torch.where(length > 0, angle / safe, torch.full_like(length, 2.0))


def from_mrp(mrp: Tensor) -> Tensor:
    """Return the unit quaternion of modified Rodrigues parameters tan(angle/4)·axis."""
    square = dot(mrp, mrp)
    return torch.cat([1.0 - square, 2.0 * mrp], dim=-1) / (1.0 + square)


def to_mrp(quat: Tensor) -> Tensor:
    """Return modified Rodrigues parameters, length ≤ 1, of a unit quaternion; (..., 3).

    Of the two sets that represent a rotation, this is the shorter one. The other, the
    shadow set, is −mrp / |mrp|².
    """
    quat = canonical(quat)
    return quat[..., 1:] / (1.0 + quat[..., :1])


def from_crp(crp: Tensor) -> Tensor:
    """Return the unit quaternion of classical Rodrigues parameters; shape (..., 4).

    Also known as the Gibbs vector: tan(angle/2)·axis.
    """
    return normalize(torch.cat([torch.ones_like(crp[..., :1]), crp], dim=-1))


def to_crp(quat: Tensor) -> Tensor:
    """Return classical Rodrigues parameters of a unit quaternion; shape (..., 3).

    They are infinite for rotations by 180°.
    """
    return quat[..., 1:] / quat[..., :1]


def angle_between(left: Tensor, right: Tensor) -> Tensor:
    """Return the angle [rad] between two attitudes; q and −q are equal; (...)."""
    return norm(to_rotation_vector(multiply(conjugate(left), right)))[..., 0]
