"""Gravity of point masses: an inertial sum, or third bodies about a central one.

Which of the two it is changes what the origin does: in `PointMassGravity` it is
unaccelerated, in `CentralGravity` it is the central body, which the others pull at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from simstate.base.checks import has_shape
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import Values
from simstate.engine import core
from simstate.step.forces import point_mass
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.force_parameters import (
    Numbers,
    OfTime,
    Parameters,
    numbers,
    vectors_by_world,
)
from simstate.step.forces.gravity import CompiledField, Gravity
from simstate.step.forces.scene_force import SceneForce
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.forces.frame import MovingFrame
    from simstate.step.stepping_host import SteppingHost


@dataclass(frozen=True, eq=False)
class CompiledMasses:
    """Point masses as the compiled core evaluates them."""

    mu: Tensor
    """Live [m³/s²]; (num_envs, masses)."""
    position: Tensor
    """Live [m]; (num_envs, masses, 3)."""

    def force(self, gravity: Gravity, frame: MovingFrame | None) -> CompiledForce:
        """Return the force on the bodies of a gravity."""
        return CompiledForce(
            core.LoadKind.POINT_GRAVITY,
            gravity.bodies,
            [float(gravity.gradient_torque)],
            [self.mu, self.position],
            frame=frame,
        )

    @property
    def central(self) -> CompiledField | None:
        """The field of one mass at the origin; None: they are others."""
        if self.mu.shape[-1] != 1 or bool(self.position.any()):
            return None
        return CompiledField(core.Field(), self.mu)


class PointMassGravity(Gravity):
    """The gravity of point masses where they are in an inertial frame; world axes.

    One mass at rest, or the sum of several that all move as they do about their common
    centre. A central body at the origin with others that disturb is `CentralGravity`:
    the origin is then accelerated, and what that takes away must not be left out.

    For orbits at kilometres per second see `MovingFrame`, which takes this as its
    source.

    Args:
        mu: the gravitational parameters G·M [m³/s²]; a number, one per mass, or
            (num_envs, masses).
        position: where the masses are [m]: (3,), (masses, 3) or (num_envs, masses, 3);
            or a function of time that gives (num_envs, masses, 3).
        entity: whose bodies feel it; None: all bodies of the scene.
        gradient_torque: whether bodies feel the torque of the field's gradient, too.
    """

    def __init__(
        self,
        mu: Numbers,
        position: Values | OfTime = (0.0, 0.0, 0.0),
        entity: str | None = None,
        *,
        gradient_torque: bool = True,
    ) -> None:
        super().__init__(entity, gradient_torque=gradient_torque)
        given = numbers(mu, "mu")
        self.mu = given[None] if given.ndim == 0 else given
        """As given [m³/s²]; (masses,) or (num_envs, masses)."""
        count = self.mu.shape[-1]
        self.parameters.declare("mu", self.mu, count, unit="m³/s²", more_than=0)
        self._move = position if callable(position) else None
        if not callable(position):
            places = numbers(position, "position")
            places = places[None] if places.ndim == 1 else places
            if places.shape[-2:] != (count, 3):
                raise ShapeError(
                    f"mu has {count} masses: position must have shape ({count}, 3) or "
                    f"(num_envs, {count}, 3), got {tuple(places.shape)}. One mass that "
                    "differs from world to world is mu of shape (num_envs, 1).",
                    name="position",
                    shape=places.shape,
                )
            self.parameters.declare("position", places, count, 3, unit="m")

    def attach(self, sim: SteppingHost) -> None:
        """Find the bodies; refuse a sum of masses whose origin is accelerated."""
        if self._move is not None:
            self._check_motion(sim)
        super().attach(sim)

    def positions(self, t: Tensor) -> Tensor:
        """Return the masses' positions, world axes [m]; (1 or num_envs, masses, 3)."""
        if self._move is None:
            return self.parameters.rows("position").to(t.device)
        return self._move(t.double())

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """The acceleration at points, world axes [m/s²]; shape (num_envs, k, 3)."""
        from_mass, mu = self._seen(t, pos)
        return point_mass.acceleration(mu, from_mass).sum(dim=2)

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """The acceleration at `pos + offset` beyond that at `pos`, to every digit."""
        from_mass, mu = self._seen(t, pos)
        return point_mass.difference(mu, from_mass, offset[:, :, None]).sum(dim=2)

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3)."""
        from_mass, mu = self._seen(t, pos)
        return point_mass.gradient(mu, from_mass).sum(dim=2)

    def compiled_form(self, start: float, end: float) -> CompiledMasses | None:
        """Return the masses for the core, unless they move."""
        del start, end
        if self._move is not None:
            return None
        return CompiledMasses(self.parameters["mu"], self.parameters["position"])

    def _seen(self, t: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        """From the masses to points, (n, k, masses, 3), and mu, (n, 1, masses, 1)."""
        from_mass = pos.double()[:, :, None] - self.positions(t)[:, None]
        mu = self.parameters.rows("mu").to(pos.device)
        return from_mass, mu[:, None, :, None]

    def _check_motion(self, sim: SteppingHost) -> None:
        now = worlds_of(sim).engine.field("time").double()
        count = self.mu.shape[-1]
        start, later = self.positions(now), self.positions(now + 1e3)
        whole = (sim.num_envs, count, 3)
        has_shape("position(t)", start, whole, (1, count, 3))
        held = (start == 0).all(dim=-1) & (later == 0).all(dim=-1)
        moving = (start != later).any(dim=-1)
        if bool(held.any()) and bool(moving.any()):
            raise InvalidInputError(
                f"Mass {int(held.any(dim=0).nonzero()[0])} stays at the origin while "
                "others move and pull at it: the origin would have to be held. For a "
                "central body that others disturb use CentralGravity(PointMassGravity("
                "mu), [ThirdBody(mu, position)]); for an inertial sum give all masses "
                "their motion about the common centre.",
                name="positions",
            )


class ThirdBody:
    """A point mass that disturbs the orbits about a central body.

    Args:
        mu: its gravitational parameter G·M [m³/s²]; a number or (num_envs,).
        position: where it is from the central body, world axes [m]: a function of time
            that gives (num_envs, 3), or (3,) or (num_envs, 3) where it stays.
        name: what it is called in errors.
    """

    def __init__(
        self, mu: Numbers, position: Values | OfTime, name: str = "third body"
    ) -> None:
        self.name = name
        self.parameters = Parameters(name)
        self.parameters.declare("mu", mu, unit="m³/s²", more_than=0)
        self._move = position if callable(position) else None
        if not callable(position):
            self.parameters.declare("position", position, 3, unit="m")

    def attach(self, sim: SteppingHost) -> None:
        """Give each world its rows of the parameters; look once where it is."""
        self.parameters.attach(sim)
        attach = getattr(self._move, "attach", None)
        if attach is not None:
            attach(sim)
        self.position(worlds_of(sim).engine.field("time").double())

    def position(self, t: Tensor) -> Tensor:
        """Return the position from the central body, world axes [m]; (1 or N, 3)."""
        if self._move is None:
            return self.parameters.rows("position").to(t.device)
        place = self._move(t.double())
        return vectors_by_world(place, f"The position of {self.name}", len(t))

    def path(self, start: float, end: float) -> core.Polynomials | None:
        """Its motion between two times [s] as the core has it; None: by Python."""
        polynomials = getattr(self._move, "polynomials", None)
        return None if polynomials is None else polynomials(start, end)

    @property
    def stays(self) -> bool:
        """True if its position is a parameter."""
        return self._move is None

    def mass(self, like: Tensor) -> Tensor:
        """Its gravitational parameter [m³/s²]; (1 or num_envs, 1, 1)."""
        return self.parameters.rows("mu").to(like.device)[:, None, None]


class CentralGravity(Gravity):
    """A central body at the origin, and others that disturb it and its satellites.

    The origin is the central body's centre, which the others pull at, too: what they do
    to a satellite is the difference (the direct and the indirect term), computed
    without cancellation.

    Args:
        central: the central body's own field: a `PointMassGravity` of one mass at the
            origin, harmonics, or a `Gravity` of your own about the origin.
        third_bodies: what disturbs it.
        entity: whose bodies feel it; None: all bodies of the scene.
        gradient_torque: whether bodies feel the torque of the field's gradient, too.
    """

    def __init__(
        self,
        central: Gravity,
        third_bodies: Sequence[ThirdBody],
        entity: str | None = None,
        *,
        gradient_torque: bool = True,
    ) -> None:
        super().__init__(entity, gradient_torque=gradient_torque)
        _check_central(central)
        for body in third_bodies:
            if not isinstance(body, ThirdBody):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInputError(
                    f"third_bodies takes ThirdBody(mu, position), got {body!r}.",
                    name="third_bodies",
                )
        self.central = central
        self.third_bodies = tuple(third_bodies)

    def prepare(self, sim: SteppingHost) -> None:
        """Give each world its rows of the parameters of all bodies."""
        SceneForce.attach(self.central, sim)
        self.central.prepare(sim)
        for body in self.third_bodies:
            body.attach(sim)

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """The acceleration against the central body [m/s²]; (num_envs, k, 3)."""
        total = self.central.acceleration(t, pos)
        for body in self.third_bodies:
            from_body = -body.position(t)[:, None]
            total = total + point_mass.difference(body.mass(pos), from_body, pos)
        return total

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """The acceleration at `pos + offset` beyond that at `pos`; (num_envs, k, 3)."""
        total = self.central.difference(t, pos, offset)
        for body in self.third_bodies:
            from_body = pos - body.position(t)[:, None]
            total = total + point_mass.difference(body.mass(pos), from_body, offset)
        return total

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3)."""
        total = self.central.gradient(t, pos)
        for body in self.third_bodies:
            from_body = pos - body.position(t)[:, None]
            total = total + point_mass.gradient(body.mass(pos), from_body)
        return total

    def compiled_form(self, start: float, end: float) -> CompiledField | None:
        """Return the field for the core, which must know every motion."""
        form = self.central.compiled_form(start, end)
        field = None if form is None else form.central
        if field is None:
            return None
        paths: list[core.Polynomials | None] = []
        bodies: list[Tensor | float] = []
        for body in self.third_bodies:
            path = body.path(start, end)
            if path is None and not body.stays:
                return None
            paths.append(path)
            place = [body.parameters["position"]] if body.stays else [1.0, 1.0, 1.0]
            bodies += [body.parameters["mu"], *place]
        return replace(field, field=replace(field.field, bodies=paths), bodies=bodies)


def _check_central(central: Gravity) -> None:
    """Raise unless this is a field of one body at the origin."""
    wrong = "" if isinstance(central, Gravity) else f"got {central!r}"  # pyright: ignore[reportUnnecessaryIsInstance]
    if isinstance(central, CentralGravity):
        wrong = "it has third bodies already: give all of them in one"
    if isinstance(central, PointMassGravity):
        if central.mu.shape[-1] != 1:
            wrong = f"it has {central.mu.shape[-1]} masses"
        elif "position" not in central.parameters:
            wrong = "its mass moves"
        elif bool(central.parameters["position"].any()):
            wrong = "its mass is not at the origin"
    if wrong:
        raise InvalidInputError(
            f"The central body is a field about the origin, but {wrong}. Use "
            "PointMassGravity(mu), and ThirdBody(mu, position) for the others.",
            name="central",
        )
