"""RigidBodyState: states of rigid bodies together with their convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.checks import all_of, instance_of
from simstate.base.errors import ConventionError, InvalidInputError, ShapeError
from simstate.base.ids import Values
from simstate.math import quaternion
from simstate.math.conventions.checked_values import as_tensor, batch_of, in_radians
from simstate.math.conventions.convention import Component, Convention
from simstate.math.vector import norm


@dataclass(frozen=True, eq=False, init=False)
class RigidBodyState:
    """States of rigid bodies in one convention, with any leading batch shape.

    Args:
        convention: the meaning of the values.
        position: of the convention's point, world axes [m]; (..., 3).
        attitude: in the convention's form; (..., *convention.attitude.shape).
        linear_velocity: of its point, along its axes [m/s]; (..., 3).
        angular_velocity: along its axes, in its unit per second; (..., 3).
        com: the centre of mass from the body's origin, body axes [m]; (..., 3). It is
            needed to convert a position or velocity of one to that of the other.
    """

    convention: Convention
    position: Tensor
    attitude: Tensor
    linear_velocity: Tensor
    angular_velocity: Tensor
    com: Tensor | None

    def __init__(
        self,
        convention: Convention,
        position: Values,
        attitude: Values,
        linear_velocity: Values,
        angular_velocity: Values,
        com: Values | None = None,
    ) -> None:
        if not isinstance(convention, Convention):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"convention must be a Convention, got {convention!r}: try "
                "simstate.math.conventions.MUJOCO."
            )
        shape = convention.attitude.shape
        given = {
            "position": (position, (3,)),
            "attitude": (attitude, shape),
            "linear_velocity": (linear_velocity, (3,)),
            "angular_velocity": (angular_velocity, (3,)),
        }
        if com is not None:
            given["com"] = (com, (3,))
        first = as_tensor(position, "position", 3)
        parts = {
            name: as_tensor(values, name, *tail, like=first)
            for name, (values, tail) in given.items()
        }
        convention.attitude.check(parts["attitude"], "attitude")
        batch = batch_of(**{n: (t, len(given[n][1])) for n, t in parts.items()})
        object.__setattr__(self, "convention", convention)
        object.__setattr__(self, "com", None)
        for name, tensor in parts.items():
            object.__setattr__(self, name, tensor.expand(*batch, *given[name][1]))

    @classmethod
    def trusted(
        cls,
        convention: Convention,
        parts: tuple[Tensor, Tensor, Tensor, Tensor],
        com: Tensor | None,
    ) -> RigidBodyState:
        """Return a state of tensors that are known to be valid, without checks."""
        state = object.__new__(cls)
        names = ("position", "attitude", "linear_velocity", "angular_velocity")
        values = dict(zip(names, parts, strict=True))
        for name, value in {"convention": convention, "com": com, **values}.items():
            object.__setattr__(state, name, value)
        return state

    @classmethod
    def from_vector(
        cls, convention: Convention, vector: Values, com: Values | None = None
    ) -> RigidBodyState:
        """Return the states of flat vectors in the convention's order; (..., size)."""
        flat = as_tensor(vector, "vector", convention.size)
        shape = convention.attitude.shape
        widths = dict.fromkeys(convention.order, 3)
        widths["attitude"] = convention.size - 9
        blocks = dict(
            zip(widths, torch.split(flat, list(widths.values()), dim=-1), strict=True)
        )
        attitude = blocks["attitude"].reshape(*flat.shape[:-1], *shape)
        return cls(
            convention,
            blocks["position"],
            attitude,
            blocks["linear"],
            blocks["angular"],
            com,
        )

    @property
    def vector(self) -> Tensor:
        """The state as a flat vector in the convention's order; (..., size)."""
        blocks: dict[Component, Tensor] = {
            "position": self.position,
            "attitude": self.attitude.reshape(
                *self.batch_shape, self.convention.size - 9
            ),
            "linear": self.linear_velocity,
            "angular": self.angular_velocity,
        }
        return torch.cat([blocks[name] for name in self.convention.order], dim=-1)

    @property
    def velocity(self) -> Tensor:
        """Both velocities in the convention's order and axes; (..., 6)."""
        order = self.convention.order
        pair = [self.linear_velocity, self.angular_velocity]
        if order.index("angular") < order.index("linear"):
            pair.reverse()
        return torch.cat(pair, dim=-1)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading shape of each block."""
        return tuple(self.position.shape[:-1])

    @property
    def quat_wb(self) -> Tensor:
        """Attitude as a unit quaternion wxyz, body to world components; (..., 4)."""
        form = self.convention.attitude
        scale = in_radians(self.convention.angle_unit) if form.has_angles else 1.0
        return form.decode(self.attitude * scale)

    @property
    def angular_velocity_rad(self) -> Tensor:
        """The angular velocity in radians per second, along its own axes; (..., 3)."""
        return self.angular_velocity * in_radians(self.convention.angle_unit)

    def with_com(self, com: Values | None) -> RigidBodyState:
        """Return the same state with another `com`."""
        return RigidBodyState(self.convention, *self.parts, com)

    def __getitem__(self, index: int | slice | Tensor) -> RigidBodyState:
        """Return some states of the first batch dimension."""
        if not self.batch_shape:
            raise ShapeError(
                "This is a single state, which cannot be indexed.",
                name="state",
                shape=(),
            )
        position, attitude, linear, angular = (part[index] for part in self.parts)
        com = None if self.com is None else self.com[index]
        return RigidBodyState(self.convention, position, attitude, linear, angular, com)

    def __repr__(self) -> str:
        return (
            f"RigidBodyState({self.convention.name}, batch {self.batch_shape}, "
            f"{self.position.dtype})"
        )

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Position, attitude, linear and angular velocity."""
        return (
            self.position,
            self.attitude,
            self.linear_velocity,
            self.angular_velocity,
        )


@dataclass(frozen=True)
class StateDifference:
    """Distances between two states, elementwise over the batch."""

    position: Tensor
    """Distance of the positions [m]; (...)."""
    attitude: Tensor
    """Angle of the rotation from one attitude to the other [rad]; (...)."""
    linear_velocity: Tensor
    """Length of the difference [m/s]; (...)."""
    angular_velocity: Tensor
    """Length of the difference [rad/s]; (...)."""


def difference(left: RigidBodyState, right: RigidBodyState) -> StateDifference:
    """Return the distances between two states of one convention; q and −q are equal."""
    check_same(left, right)
    batch_of(first=(left.position, 1), second=(right.position, 1))
    rates = left.angular_velocity_rad - right.angular_velocity_rad
    return StateDifference(
        norm(left.position - right.position)[..., 0],
        quaternion.angle_between(left.quat_wb, right.quat_wb),
        norm(left.linear_velocity - right.linear_velocity)[..., 0],
        norm(rates)[..., 0],
    )


def join(states: Sequence[RigidBodyState]) -> RigidBodyState:
    """Concatenate states of one convention along the first dimension."""
    states = all_of("states", states, RigidBodyState)
    if not states:
        raise InvalidInputError("There is no state to join: give at least one.")
    first = states[0]
    for state in states:
        check_same(first, state)
        if not state.batch_shape:
            raise ShapeError(
                "A single state has no dimension to join along.",
                name="states",
                shape=(),
            )
        if state.batch_shape[1:] != first.batch_shape[1:]:
            raise ShapeError(
                "States to join must agree in all but their first dimension, got "
                f"{first.batch_shape} and {state.batch_shape}.",
                name="states",
                shape=state.batch_shape,
            )
    columns = zip(*(state.parts for state in states), strict=True)
    position, attitude, linear, angular = (torch.cat(column) for column in columns)
    coms = [state.com for state in states]
    known = [com for com in coms if com is not None]
    com = torch.cat(known) if len(known) == len(coms) else None
    return RigidBodyState(first.convention, position, attitude, linear, angular, com)


def check_same(left: RigidBodyState, right: RigidBodyState) -> None:
    """Raise, with the conversion to use, if the conventions differ."""
    for state in (left, right):
        instance_of("state", state, RigidBodyState)
    if left.convention != right.convention:
        one, other = left.convention.name, right.convention.name
        raise ConventionError(
            f"The states are in two conventions, {one} and {other}. Convert one with "
            f"convert(second, {other}, {one}) or convert(first, {one}, {other}).",
            name=other,
        )
