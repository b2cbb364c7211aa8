"""Convention: the complete representation of the state of a rigid body."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal, TypeAlias, get_args

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError
from simstate.math.conventions import axes
from simstate.math.conventions.attitude import Attitude
from simstate.math.conventions.checked_values import AngleUnit, in_radians

Point: TypeAlias = Literal["origin", "com"]
Along: TypeAlias = Literal["world", "body"]
Component: TypeAlias = Literal["position", "attitude", "linear", "angular"]

COMPONENTS: tuple[Component, ...] = get_args(Component)


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Representation of a rigid body's state: axes, points, units, order.

    Conventions are equal if they agree in everything but the name.
    `dataclasses.replace(ROS, name="…", angle_unit="deg")` derives one from another.
    """

    name: str = field(compare=False)
    """Name in messages."""
    world: str = axes.Z_UP
    """Directions of the world's x, y and z: three of E, W, N, S, U, D, or "Z_UP"."""
    body: str = "FLU"
    """Directions of the body's x, y and z: three of F, A (aft), L, R, U, D."""
    attitude: Attitude = field(default_factory=Attitude)
    """Representation of the attitude."""
    angle_unit: AngleUnit = "rad"
    """Unit of Euler angles and rotation vectors, and, per second, of rates."""
    position_point: Point = "origin"
    """Reference point of the position: the body's origin or its centre of mass."""
    velocity_point: Point = "origin"
    """Reference point of the linear velocity: the origin or the centre of mass."""
    linear_axes: Along = "world"
    """The axes along which the linear velocity is given."""
    angular_axes: Along = "world"
    """The axes along which the angular velocity is given."""
    order: tuple[Component, ...] = COMPONENTS
    """The order of the blocks in a flat vector."""

    def __post_init__(self) -> None:
        axes.check(self.world, "world")
        axes.check(self.body, "body")
        if not isinstance(self.attitude, Attitude):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"attitude must be an Attitude, got {self.attitude!r}: try "
                "Attitude('quaternion_wxyz')."
            )
        in_radians(self.angle_unit)
        one_of("position point", self.position_point, get_args(Point))
        one_of("velocity point", self.velocity_point, get_args(Point))
        one_of("axes of linear velocity", self.linear_axes, get_args(Along))
        one_of("axes of angular velocity", self.angular_axes, get_args(Along))
        given = self.order
        is_list = isinstance(given, list | tuple)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_list or sorted(map(str, given)) != sorted(COMPONENTS):
            raise InvalidInputError(
                f"order must have each of {', '.join(COMPONENTS)} once, got {given!r}."
            )
        # A list would make equal conventions unequal and unhashable.
        object.__setattr__(self, "order", tuple(given))

    @property
    def size(self) -> int:
        """Number of components of a flat state."""
        return 9 + prod(self.attitude.shape)

    def describe(self) -> str:
        """Return a description of the convention in a few lines."""
        attitude = self.attitude
        form = attitude.form.replace("_", " ")
        if attitude.sequence:
            form += f" {attitude.sequence}"
        if attitude.has_angles:
            form += f" [{self.angle_unit}]"
        turns = attitude.turns.replace("_", " ")
        return "\n".join(
            (
                f"{self.name}: world {self.world}, body {self.body}",
                f"  position          {self.position_point}, world axes [m]",
                f"  attitude          {form}, {attitude.sense}, {turns}",
                f"  linear velocity   {self.velocity_point}, {self.linear_axes} axes "
                "[m/s]",
                f"  angular velocity  {self.angular_axes} axes [{self.angle_unit}/s]",
                f"  order             {', '.join(self.order)}",
            )
        )
