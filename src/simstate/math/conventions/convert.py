"""Conversion of states between any two conventions, exact and invertible."""

from __future__ import annotations

from torch import Tensor

from simstate.base.errors import ConventionError, InvalidInputError
from simstate.base.ids import Values
from simstate.math import inertia as inertias
from simstate.math import quaternion
from simstate.math.conventions import axes
from simstate.math.conventions.checked_values import in_radians
from simstate.math.conventions.convention import Along, Convention
from simstate.math.conventions.points import check_inertia
from simstate.math.conventions.rigid_body_state import RigidBodyState
from simstate.math.vector import cross


def convert(
    state: RigidBodyState,
    source: Convention | None = None,
    target: Convention | None = None,
) -> RigidBodyState:
    """Convert states to another convention: `convert(state, target)`.

    `convert(state, source, target)` also checks that the states are in `source`. Both
    conventions describe the same world with the same origin, and the same body with
    the same origin; only the directions of axes differ.
    """
    if not isinstance(state, RigidBodyState):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            f"state must be a RigidBodyState, got {type(state).__name__}: create one "
            "with RigidBodyState.from_vector(convention, vector)."
        )
    wanted, stated = (source, None) if target is None else (target, source)
    wanted = check_convention(wanted)
    if stated is not None and check_convention(stated) != state.convention:
        raise ConventionError(
            f"The states are in {state.convention.name}, not in {stated.name}: "
            f"use convert(state, {wanted.name}).",
            name=state.convention.name,
        )
    return _Change(state, wanted).result()


def check_convention(given: Convention | None) -> Convention:
    """Return the argument; raise unless it is a Convention."""
    if isinstance(given, Convention):
        return given
    raise InvalidInputError(
        f"The target must be a Convention, got {given!r}: try "
        "convert(state, simstate.math.conventions.ROS).",
        name="convention",
    )


def convert_inertia(inertia: Values, source: Convention, target: Convention) -> Tensor:
    """Return inertia about the COM in the target's body axes [kg·m²]; (..., 3, 3)."""
    matrix = check_inertia(inertia)
    bodies = check_convention(target).body, check_convention(source).body
    rot = axes.rotation(*bodies, "body").to(matrix)
    return inertias.turn(matrix, rot)


class _Change:
    """The conversion of one state to another convention."""

    def __init__(self, state: RigidBodyState, target: Convention) -> None:
        self.state, self.target, self.source = state, target, state.convention
        self.quat = state.quat_wb
        """The attitude in the source's world and body axes."""

    def result(self) -> RigidBodyState:
        """Return the state in the target convention."""
        state, source, target = self.state, self.source, self.target
        attitude = target.attitude.encode(self._turned())
        unit = in_radians(target.angle_unit)
        if target.attitude.has_angles:
            attitude = attitude / unit
        angular = self._components(
            state.angular_velocity, source.angular_axes, target.angular_axes
        )
        if source.angle_unit != target.angle_unit:
            angular = angular * (in_radians(source.angle_unit) / unit)
        com = None if state.com is None else self._along(state.com, "body")
        parts = (self._position(), attitude, self._linear(), angular)
        return RigidBodyState.trusted(target, parts, com)

    def _turned(self) -> Tensor:
        """Return the attitude in the target's world and body axes, wxyz; (..., 4)."""
        target, source, quat = self.target, self.source, self.quat
        if (target.world, target.body) == (source.world, source.body):
            return quat
        world = axes.quaternion_between(target.world, source.world, "world")
        body = axes.quaternion_between(source.body, target.body, "body")
        turned = quaternion.multiply(world.to(quat).expand_as(quat), quat)
        turned = quaternion.multiply(turned, body.to(quat).expand_as(quat))
        return quaternion.normalize(turned)

    def _position(self) -> Tensor:
        """Return the position of the target's point in its world axes [m]; (..., 3)."""
        position = self._along(self.state.position, "world")
        sign = _sign(self.source.position_point, self.target.position_point)
        if not sign:
            return position
        return position + sign * self._components(self._com(), "body", "world")

    def _linear(self) -> Tensor:
        """Return the velocity of the target's point along its axes [m/s]; (..., 3)."""
        source, target = self.source, self.target
        linear = self._components(
            self.state.linear_velocity, source.linear_axes, target.linear_axes
        )
        sign = _sign(source.velocity_point, target.velocity_point)
        if not sign:
            return linear
        rates = self.state.angular_velocity_rad
        if source.angular_axes == "world":
            rates = quaternion.rotate_inverse(self.quat, rates)
        more = cross(rates, self._com())
        return linear + sign * self._components(more, "body", target.linear_axes)

    def _components(self, vec: Tensor, of: Along, to: Along) -> Tensor:
        """Map components along the source's axes `of` to the target's axes `to`."""
        if of == "body" and to == "world":
            vec = quaternion.rotate(self.quat, vec)
        elif of == "world" and to == "body":
            vec = quaternion.rotate_inverse(self.quat, vec)
        return self._along(vec, to)

    def _along(self, vec: Tensor, kind: Along) -> Tensor:
        """Map components along the source's world or body axes to the target's."""
        if kind == "world":
            return axes.components(vec, self.target.world, self.source.world, kind)
        return axes.components(vec, self.target.body, self.source.body, kind)

    def _com(self) -> Tensor:
        if self.state.com is None:
            raise InvalidInputError(
                f"{self.source.name} and {self.target.name} use different points, "
                "the body's origin and its centre of mass, and the state does not have "
                "their offset: give it com=(x, y, z), the centre of mass from the "
                "origin in body axes [m]; zeros if they coincide.",
                name="com",
            )
        return self.state.com


def _sign(source: str, target: str) -> float:
    """Return 1 from the origin to the COM, −1 back, 0 if the point is the same."""
    return float(target == "com") - float(source == "com")
