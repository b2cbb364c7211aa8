"""Attitude: the form of an orientation and its direction of rotation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import instance_of, one_of
from simstate.base.errors import InvalidInputError
from simstate.math import euler, quaternion
from simstate.math.conventions.checked_values import (
    check_rotation,
    check_sequence,
    check_unit,
)

Form: TypeAlias = Literal[
    "quaternion_wxyz",
    "quaternion_xyzw",
    "quaternion_jpl",
    "matrix",
    "euler",
    "mrp",
    "crp",
    "rotation_vector",
]
Sense: TypeAlias = Literal["active", "passive"]
Turns: TypeAlias = Literal["world_to_body", "body_to_world"]

_ANGLES: tuple[Form, ...] = ("euler", "rotation_vector")


@dataclass(frozen=True)
class Attitude:
    """The representation of an attitude.

    An active rotation from world to body rotates vectors as it rotates the world's axes
    onto the body's; a passive one from body to world maps the components of a vector
    in body axes to those in world axes. These two have the same components, and so have
    the other two.

    Quaternions are Hamilton's (ij = k), except for "quaternion_jpl": JPL's, with
    ij = −k, scalar last and passive, as in Shuster's and MSCKF papers. The JPL
    quaternion from world to body has the components of Hamilton's active one in the
    order xyzw.
    """

    form: Form = "quaternion_wxyz"
    """Quaternion in either order or by JPL's convention, matrix, Euler angles, modified
    (the set of length ≤ 1) or classical Rodrigues parameters, or rotation vector."""
    sense: Sense | None = None
    """Active (vectors are rotated) or passive (axes are changed).

    None: passive for JPL's quaternions, active for all other forms.
    """
    turns: Turns = "world_to_body"
    """Axes from which and to which it rotates."""
    sequence: str = ""
    """Sequence of Euler angles, such as "izyx"; see `simstate.math.euler`."""

    def __post_init__(self) -> None:
        one_of("attitude form", self.form, get_args(Form))
        is_jpl = self.form == "quaternion_jpl"
        if self.sense is None:
            object.__setattr__(self, "sense", "passive" if is_jpl else "active")
        one_of("sense of rotation", self.sense, get_args(Sense))
        one_of("direction of rotation", self.turns, get_args(Turns))
        if is_jpl and self.sense == "active":
            raise InvalidInputError(
                "A JPL quaternion is passive by definition, got sense='active'. For an "
                "active quaternion, scalar last, use Attitude('quaternion_xyzw')."
            )
        if self.form == "quaternion_xyzw" and self.sense == "passive":
            back = "body_to_world" if self.turns == "world_to_body" else "world_to_body"
            raise InvalidInputError(
                f"A passive quaternion xyzw, {self.turns}, fits two conventions whose "
                "components differ in sign. Hamilton's (ij = k) is "
                f"Attitude('quaternion_xyzw', 'active', {back!r}); JPL's (ij = −k) is "
                f"Attitude('quaternion_jpl', turns={self.turns!r})."
            )
        if self.form == "euler":
            check_sequence(self.sequence)
        elif instance_of("sequence", self.sequence, str):
            raise InvalidInputError(
                f"A sequence is for Euler angles, got {self.sequence!r} with the form "
                f"{self.form!r}."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one attitude: (4,), (3,) or (3, 3)."""
        if self.form == "matrix":
            return (3, 3)
        return (4,) if self.form.startswith("quaternion") else (3,)

    @property
    def has_angles(self) -> bool:
        """True if its components are angles, which have a unit."""
        return self.form in _ANGLES

    @property
    def is_body_to_world(self) -> bool:
        """True if, as a matrix R, it gives vec_world = R @ vec_body."""
        return (self.sense == "active") == (self.turns == "world_to_body")

    def check(self, values: Tensor, name: str) -> None:
        """Raise unless the values (..., *shape) represent rotations."""
        if self.form == "matrix":
            check_rotation(values, name)
        elif self.form.startswith("quaternion"):
            check_unit(values, name)

    def decode(self, values: Tensor) -> Tensor:
        """Return the quaternion quat_wb, wxyz, of values, angles in radians."""
        quat = _DECODE[self.form](values, self.sequence)
        return quat if self.is_body_to_world else quaternion.conjugate(quat)

    def encode(self, quat_wb: Tensor) -> Tensor:
        """Return the values, angles in radians, of a unit quaternion quat_wb, wxyz."""
        quat = quaternion.canonical(quat_wb)
        quat = quat if self.is_body_to_world else quaternion.conjugate(quat)
        return _ENCODE[self.form](quat, self.sequence)


def _crp(quat: Tensor) -> Tensor:
    """Return classical Rodrigues parameters (..., 3); raise for rotations by 180°."""
    if bool((quat[..., 0].abs() <= torch.finfo(quat.dtype).eps).any()):
        raise InvalidInputError(
            "A rotation by 180° has no classical Rodrigues parameters (tan 90° is "
            "infinite). Use 'mrp', a quaternion or a matrix."
        )
    return quaternion.to_crp(quat)


_DECODE: dict[Form, Callable[[Tensor, str], Tensor]] = {
    "quaternion_wxyz": lambda values, _: quaternion.normalize(values),
    "quaternion_xyzw": lambda values, _: quaternion.normalize(
        torch.roll(values, 1, dims=-1)
    ),
    # The matrix of JPL's algebra is the transpose of Hamilton's.
    "quaternion_jpl": lambda values, _: quaternion.conjugate(
        quaternion.normalize(torch.roll(values, 1, dims=-1))
    ),
    "matrix": lambda values, _: quaternion.from_matrix(values),
    "euler": euler.to_quaternion,
    "mrp": lambda values, _: quaternion.from_mrp(values),
    "crp": lambda values, _: quaternion.from_crp(values),
    "rotation_vector": lambda values, _: quaternion.from_rotation_vector(values),
}

_ENCODE: dict[Form, Callable[[Tensor, str], Tensor]] = {
    "quaternion_wxyz": lambda quat, _: quat,
    "quaternion_xyzw": lambda quat, _: torch.roll(quat, -1, dims=-1),
    "quaternion_jpl": lambda quat, _: torch.roll(
        quaternion.conjugate(quat), -1, dims=-1
    ),
    "matrix": lambda quat, _: quaternion.to_matrix(quat),
    "euler": euler.from_quaternion,
    "mrp": lambda quat, _: quaternion.to_mrp(quat),
    "crp": lambda quat, _: _crp(quat),
    "rotation_vector": lambda quat, _: quaternion.to_rotation_vector(quat),
}
