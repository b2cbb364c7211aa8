"""Gravity of point masses: an inertial sum, or third bodies about a central one.

They differ in the motion of the origin: in `PointMassGravity` it is unaccelerated, in
`CentralGravity` it is the central body, which the others attract.
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
from simstate.entity.host import attach
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
    """Gravitational parameters, live [m³/s²]; (num_envs, masses)."""
    position: Tensor
    """Positions, world axes, live [m]; (num_envs, masses, 3)."""

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
        """The field of a mass that is at the origin in all worlds, else None."""
        is_moved = bool(self.position.any())
        return None if is_moved else CompiledField(core.Field(), self.mu)


class PointMassGravity(Gravity):
    """The gravity of point masses at given positions in an inertial frame; world axes.

    One mass at rest, or the sum of several that move about their common centre. For a
    central body at the origin that others perturb use `CentralGravity`: the origin is
    then accelerated, and this acceleration must be subtracted.

    For orbits at kilometres per second see `MovingFrame`, which takes this as its
    gravity.

    Args:
        mu: the gravitational parameters G·M [m³/s²]; a number, one per mass, or
            (num_envs, masses).
        position: of the masses [m]: (3,), (masses, 3) or (num_envs, masses, 3); or a
            function of time that returns (num_envs, masses, 3).
        entity: the entity whose bodies it acts on; None: all bodies of the scene.
        gradient_torque: True to apply the torque of the field's gradient, too.
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
        """The parameters as given [m³/s²]; (masses,) or (num_envs, masses)."""
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
        """Find the bodies; raise if a mass at the origin would be accelerated."""
        if self._move is not None:
            self._check_motion(sim)
        super().attach(sim)

    def positions(self, t: Tensor) -> Tensor:
        """Return the masses' positions, world axes [m]; (1 or num_envs, masses, 3)."""
        if self._move is None:
            return self.parameters.rows("position").to(t.device)
        return self._move(t.double())

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return the acceleration at points, world axes [m/s²]; (num_envs, k, 3)."""
        from_mass, mu = self._from_masses(t, pos)
        return point_mass.acceleration(mu, from_mass).sum(dim=2)

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """Return the difference of accelerations, without cancellation [m/s²]."""
        from_mass, mu = self._from_masses(t, pos)
        return point_mass.difference(mu, from_mass, offset[:, :, None]).sum(dim=2)

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return ∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3)."""
        from_mass, mu = self._from_masses(t, pos)
        return point_mass.gradient(mu, from_mass).sum(dim=2)

    def compiled_form(self, start: float, end: float) -> CompiledMasses | None:
        """Return the masses for the core, unless they move."""
        del start, end
        if self._move is not None:
            return None
        return CompiledMasses(self.parameters["mu"], self.parameters["position"])

    def _from_masses(self, t: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        """Return masses to points [m], (n, k, masses, 3), and mu, (n, 1, masses, 1)."""
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
                "others move and attract it, which no inertial frame allows. For a "
                "central body that others perturb use CentralGravity(PointMassGravity("
                "mu), [ThirdBody(mu, position)]); for an inertial sum give all masses "
                "their motion about the common centre.",
                name="positions",
            )


class ThirdBody:
    """A point mass that perturbs the orbits about a central body.

    Args:
        mu: its gravitational parameter G·M [m³/s²]; a number or (num_envs,).
        position: relative to the central body, world axes [m]: a function of time that
            returns (num_envs, 3), or a constant of shape (3,) or (num_envs, 3).
        name: its name in errors.
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
        """Give each world its rows of the parameters; check the position once."""
        self.parameters.attach(sim)
        attach(self._move, sim)
        self.position(worlds_of(sim).engine.field("time").double())

    def position(self, t: Tensor) -> Tensor:
        """Return the position relative to the central body [m]; (1 or num_envs, 3)."""
        if self._move is None:
            return self.parameters.rows("position").to(t.device)
        place = self._move(t.double())
        return vectors_by_world(place, f"The position of {self.name}", len(t))

    def path(self, start: float, end: float) -> core.Polynomials | None:
        """Return its motion between two times [s] for the core; None: in Python."""
        polynomials = getattr(self._move, "polynomials", None)
        return None if polynomials is None else polynomials(start, end)

    @property
    def stays(self) -> bool:
        """True if its position is constant, and thus a parameter."""
        return self._move is None

    def mass(self, like: Tensor) -> Tensor:
        """Return its gravitational parameter [m³/s²]; (1 or num_envs, 1, 1)."""
        return self.parameters.rows("mu").to(like.device)[:, None, None]


class CentralGravity(Gravity):
    """A central body at the origin, and others that perturb it and its satellites.

    The origin is the central body's centre, which the others attract, too. Their
    effect on a satellite is the difference (the direct and the indirect term), computed
    without cancellation.

    Args:
        central: the central body's own field: a `PointMassGravity` of one mass at the
            origin, harmonics, or a user-defined `Gravity` about the origin.
        third_bodies: the perturbing bodies.
        entity: the entity whose bodies it acts on; None: all bodies of the scene.
        gradient_torque: True to apply the torque of the field's gradient, too.
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
        """Return the acceleration relative to the origin [m/s²]; (num_envs, k, 3)."""
        total = self.central.acceleration(t, pos)
        for body in self.third_bodies:
            from_body = -body.position(t)[:, None]
            total = total + point_mass.difference(body.mass(pos), from_body, pos)
        return total

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """Return the difference of accelerations, without cancellation [m/s²]."""
        total = self.central.difference(t, pos, offset)
        for body in self.third_bodies:
            from_body = pos - body.position(t)[:, None]
            total = total + point_mass.difference(body.mass(pos), from_body, offset)
        return total

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return ∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3)."""
        total = self.central.gradient(t, pos)
        for body in self.third_bodies:
            from_body = pos - body.position(t)[:, None]
            total = total + point_mass.gradient(body.mass(pos), from_body)
        return total

    def compiled_form(self, start: float, end: float) -> CompiledField | None:
        """Return the field for the core, if it can evaluate every motion."""
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
        wrong = "it already has third bodies: pass all of them to one CentralGravity"
    if isinstance(central, PointMassGravity):
        if central.mu.shape[-1] != 1:
            wrong = f"it has {central.mu.shape[-1]} masses"
        elif "position" not in central.parameters:
            wrong = "its mass moves"
        elif bool(central.parameters["position"].any()):
            wrong = "its mass is not at the origin"
    if wrong:
        raise InvalidInputError(
            f"`central` must be the field of one body at the origin, but {wrong}. Use "
            "PointMassGravity(mu), and ThirdBody(mu, position) for the others.",
            name="central",
        )
