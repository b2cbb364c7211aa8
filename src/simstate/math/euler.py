"""Euler angles in every sequence, to and from quaternions, also exact at the poles.

A sequence id is "i" (intrinsic: each rotation is about the axes as rotated so far) or
"e" (extrinsic: about the fixed axes), then the axes in the order of rotation: "izyx" is
yaw, pitch, roll. Tait-Bryan angles are listed as (about x, about y, about z), which
is (roll, pitch, yaw), in any order of rotation. The angles of a proper Euler sequence
such as "izxz", which uses one axis twice, are listed in the order of rotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product

import torch
from torch import Tensor

from simstate.math import quaternion
from simstate.math.elementwise import atan2, hypot
from simstate.math.vector import cross, dot

SEQUENCES = tuple(
    f"{kind}{first}{second}{third}"
    for kind, first, second, third in product("ie", "xyz", "xyz", "xyz")
    if first != second and second != third
)
"""The 12 Tait-Bryan and 12 proper Euler sequences."""


@dataclass(frozen=True)
class Sequence:
    """A parsed sequence id."""

    axes: tuple[int, int, int]
    """Axes of rotation in intrinsic order: 0, 1, 2 are x, y, z."""
    columns: tuple[int, int, int]
    """Indices of the angles of these rotations."""

    @property
    def is_proper(self) -> bool:
        """True if the first and the last rotation are about the same axis."""
        return self.axes[0] == self.axes[2]


@lru_cache
def parse(sequence: str) -> Sequence:
    """Return the rotations of a sequence id, which must be one of SEQUENCES."""
    letters = sequence[1:]
    turns = [(letter, k) for k, letter in enumerate(letters)]
    if sequence[0] == "e":
        turns.reverse()  # about fixed axes, the last rotation is the outermost
    axes = tuple("xyz".index(letter) for letter, _ in turns)
    proper = letters[0] == letters[2]
    columns = tuple(k for _, k in turns) if proper else axes
    return Sequence((axes[0], axes[1], axes[2]), (columns[0], columns[1], columns[2]))


def to_quaternion(angles: Tensor, sequence: str) -> Tensor:
    """Return the quaternion wxyz of Euler angles [rad] (..., 3); shape (..., 4)."""
    parsed = parse(sequence)
    turns = (
        _about(axis, angles[..., column])
        for axis, column in zip(parsed.axes, parsed.columns, strict=True)
    )
    return reduce(quaternion.multiply, turns)


def from_quaternion(quat: Tensor, sequence: str) -> Tensor:
    """Return the angles [rad] of a unit quaternion, each in (−π, π]; shape (..., 3).

    At a pole of the sequence, the first and the last rotation are about one line; the
    last in intrinsic order (the roll of "izyx") is then zero. Near a pole, each of them
    is sensitive to rounding, but together they still represent the rotation.
    """
    parsed = parse(sequence)
    i, j, k = parsed.axes
    k = 3 - i - j if parsed.is_proper else k
    # Half the sum and half the difference of the outer angles are the arguments of
    # two complex numbers made of the components (Bernardes and Viollet, 2022).
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    w, x, y, z = (quat[..., n] for n in (0, i + 1, j + 1, k + 1))
    z = sign * z
    if not parsed.is_proper:
        # A rotation by 90° about the middle axis makes the sequence a proper one.
        w, x, y, z = w - y, x - z, y + w, z + x
    total, spread = atan2(x, w), atan2(z, y)
    near, far = hypot(y, z), hypot(w, x)
    middle = 2.0 * atan2(near, far)
    first, last = total + spread, total - spread
    rounding = 16 * torch.finfo(quat.dtype).eps
    first_pole, second_pole = near <= rounding * far, far <= rounding * near
    first = torch.where(first_pole, 2.0 * total, first)
    first = torch.where(second_pole, 2.0 * spread, first)
    last = torch.where(first_pole | second_pole, torch.zeros_like(last), last)
    if not parsed.is_proper:
        last = -sign * last
        middle = middle - 0.5 * torch.pi
    turns = [wrap(first), wrap(middle), wrap(last)]
    ordered = [turns[parsed.columns.index(column)] for column in range(3)]
    return torch.stack(ordered, dim=-1)


def rates_to_body(angles: Tensor, rates: Tensor, sequence: str) -> Tensor:
    """Return the angular velocity in body axes of angle rates; shape (..., 3).

    Args:
        angles: [rad], listed as the sequence lists them; (..., 3).
        rates: of the angles, in the same order; (..., 3). The result has their unit.
        sequence: one of SEQUENCES.
    """
    return (torch.stack(_turn_axes(angles, sequence), dim=-1) @ rates[..., None])[
        ..., 0
    ]


def rates_from_body(angles: Tensor, ang_vel_b: Tensor, sequence: str) -> Tensor:
    """Return the rates of angles of an angular velocity in body axes; shape (..., 3).

    They grow without bound towards a pole of the sequence, and are not finite at it.

    Args:
        angles: [rad], listed as the sequence lists them; (..., 3).
        ang_vel_b: body axes; (..., 3). The result has its unit.
        sequence: one of SEQUENCES.
    """
    first, second, third = _turn_axes(angles, sequence)
    across = cross(second, third)
    rows = [across, cross(third, first), cross(first, second)]
    return torch.cat([dot(row, ang_vel_b) for row in rows], dim=-1) / dot(first, across)


def _turn_axes(angles: Tensor, sequence: str) -> list[Tensor]:
    """Return the axis of rotation of each angle, body axes; three of (..., 3)."""
    parsed = parse(sequence)
    inner = torch.zeros_like(angles[..., :1]).expand(*angles.shape[:-1], 4).clone()
    inner[..., 0] = 1.0
    found: dict[int, Tensor] = {}
    # From the innermost rotation outwards: later rotations move an axis along.
    for axis, column in zip(parsed.axes[::-1], parsed.columns[::-1], strict=True):
        unit = torch.zeros_like(angles)
        unit[..., axis] = 1.0
        found[column] = quaternion.rotate_inverse(inner, unit)
        inner = quaternion.multiply(_about(axis, angles[..., column]), inner)
    return [found[column] for column in range(3)]


def wrap(angle: Tensor) -> Tensor:
    """Return the equivalent angle [rad] in (−π, π]."""
    turns = torch.ceil((angle - torch.pi) / (2.0 * torch.pi))
    # Near π, rounding may make the difference exceed π.
    return (angle - turns * (2.0 * torch.pi)).clamp(max=torch.pi)


def _about(axis: int, angle: Tensor) -> Tensor:
    """Return the quaternion of a rotation by `angle` about x, y or z; (..., 4)."""
    parts = [torch.zeros_like(angle) for _ in range(4)]
    parts[0], parts[axis + 1] = torch.cos(0.5 * angle), torch.sin(0.5 * angle)
    return torch.stack(parts, dim=-1)
