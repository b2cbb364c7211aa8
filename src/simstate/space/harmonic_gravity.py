"""Gravity of a planet by spherical harmonics, which turn with the planet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from simstate.base.checks import check_calls, instance_of
from simstate.base.errors import InvalidInputError
from simstate.engine import core
from simstate.entity.host import attach
from simstate.math.vector import apply
from simstate.space import harmonics
from simstate.space.coefficients import HarmonicCoefficients
from simstate.space.rotation import EarthRotation, Rotation, UniformRotation
from simstate.step import Gravity
from simstate.step.forces import point_mass
from simstate.step.forces.gravity import CompiledField

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost


class HarmonicGravity(Gravity):
    """The field of a planet at the origin, to any degree and order.

    The central term is that of a point mass, exactly; what the harmonics add is summed
    in axes that are fixed in the planet. In a `MovingFrame` both are differences
    without cancellation. For third bodies give it to `CentralGravity`.

    Args:
        coefficients: the field: `earth_coefficients(degree)`, `read_gfc(path)`,
            `zonal_coefficients(planet)`.
        rotation: rotation of the planet, `UniformRotation`, `EarthRotation` or another
            function of time that returns rot_fi; see `Rotation`. None is for fields of
            only zonal terms, which do not depend on longitude.
        entity: the entity that it acts on; None: all bodies of the scene.
        gradient_torque: whether the torque of the field's gradient acts on bodies.
    """

    def __init__(
        self,
        coefficients: HarmonicCoefficients,
        rotation: Rotation | Callable[[Tensor], Tensor] | None = None,
        entity: str | None = None,
        *,
        gradient_torque: bool = True,
    ) -> None:
        super().__init__(entity, gradient_torque=gradient_torque)
        instance_of("coefficients", coefficients, HarmonicCoefficients)
        if coefficients.degree < 2:
            raise InvalidInputError(
                f"{coefficients.name} to degree {coefficients.degree} is a point mass: "
                "use PointMassGravity.",
                name="degree",
            )
        if rotation is not None:
            check_calls("rotation", rotation, "rotation(t)")
        depends = coefficients.c[:, 1:].any() | coefficients.s[:, 1:].any()
        if rotation is None and bool(depends):
            raise InvalidInputError(
                f"{coefficients.name} depends on longitude and needs the planet's "
                "rotation: pass rotation=UniformRotation(…) or EarthRotation(…), or "
                "cut the field to order 0.",
                name="rotation",
            )
        self.coefficients = coefficients
        self.rotation = rotation
        self.parameters.declare("mu", coefficients.mu, unit="m³/s²", more_than=0)
        self.parameters.declare("radius", coefficients.radius, unit="m", more_than=0)
        c = coefficients.c.clone()
        if bool(c[0, 0]):
            c[0, 0] -= 1.0  # the central term is separate
        self.tables = harmonics.make_tables(c, coefficients.s)
        """Tables of the evaluation, as plain tensors."""

    def prepare(self, sim: SteppingHost) -> None:
        """Move the tables and the rotation to a simulation's device."""
        self.tables = self.tables.to(sim.device)
        attach(self.rotation, sim)

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return the acceleration at points, world axes [m/s²]; (num_envs, k, 3)."""
        return point_mass.acceleration(self._mu(), pos) + self._disturbance(t, pos)

    def difference(self, t: Tensor, pos: Tensor, offset: Tensor) -> Tensor:
        """Return acceleration at `pos + offset` less that at `pos`, to every digit."""
        central = point_mass.difference(self._mu(), pos, offset)
        both = torch.cat([pos, pos + offset], dim=1)
        disturbance = self._disturbance(t, both)
        count = pos.shape[1]
        return central + disturbance[:, count:] - disturbance[:, :count]

    def gradient(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return ∂acceleration/∂position, world axes [1/s²]; (num_envs, k, 3, 3)."""
        rot = self._rot_fi(t)
        fixed, radius = self._fixed(rot, pos), self.parameters.rows("radius")[:, None]
        functions = harmonics.basis(self.tables, fixed, radius)
        six = functions @ self.tables.gradient
        scale = (self._mu()[..., 0] / radius**3)[..., None, None]
        found = scale * harmonics.symmetric(six)
        if rot is not None:
            found = rot.mT[:, None] @ found @ rot[:, None]
        return point_mass.gradient(self._mu(), pos) + found

    def compiled_form(self, start: float, end: float) -> CompiledField | None:
        """Return the field for the core; None if it cannot evaluate the rotation."""
        turn = cast("Rotation | None", self.rotation)
        tables = self.tables
        rate, angle, earth = 0.0, 0.0, None
        if type(turn) is UniformRotation:
            rate, angle = turn.parameters["rate"], turn.parameters["angle"]
        elif isinstance(turn, EarthRotation):
            earth = turn.compiled_form(start, end)
        if turn is not None and type(turn) is not UniformRotation and earth is None:
            return None
        found = core.Harmonics(
            tables.degree, *(getattr(tables, name).cpu().numpy() for name in
                             ("a", "b", "d", "acceleration", "gradient")),
        )  # fmt: skip
        given = self.parameters
        field = core.Field(found, earth)
        return CompiledField(field, given["mu"], given["radius"], rate, angle)

    def _disturbance(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return the acceleration beyond the central term [m/s²]; (num_envs, k, 3)."""
        rot = self._rot_fi(t)
        fixed, radius = self._fixed(rot, pos), self.parameters.rows("radius")[:, None]
        functions = harmonics.basis(self.tables, fixed, radius)
        scale = (self._mu()[..., 0] / radius**2)[..., None]
        found = scale * (functions @ self.tables.acceleration)
        return found if rot is None else apply(rot.mT[:, None], found)

    def _mu(self) -> Tensor:
        return self.parameters.rows("mu")[:, None, None]

    def _rot_fi(self, t: Tensor) -> Tensor | None:
        return None if self.rotation is None else self.rotation(t)

    @staticmethod
    def _fixed(rot: Tensor | None, pos: Tensor) -> Tensor:
        """Return positions along axes fixed in the planet; (num_envs, k, 3)."""
        return pos.double() if rot is None else apply(rot[:, None], pos.double())
