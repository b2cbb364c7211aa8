"""Drag in thin air: a planet's rotating atmosphere, and flat panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.checks import check_calls, instance_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.engine import core
from simstate.entity.host import attach
from simstate.flight.atmosphere import (
    GAS_CONSTANT,
    HYDROSTATIC,
    MOLAR_MASS,
    Atmosphere,
    ExponentialAtmosphere,
    StandardAtmosphere,
)
from simstate.math.vector import apply, cross, dot, norm
from simstate.space.geodesy import geodetic_from_position
from simstate.space.planets import EARTH, Planet
from simstate.step.forces.compiled_force import CompiledAir, CompiledForce
from simstate.step.forces.force_parameters import Numbers, numbers
from simstate.step.forces.frame import com_in_world, frame_of
from simstate.step.forces.scene_force import SceneForce, body_id, link_id

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost


class PlanetAir:
    """The atmosphere of a planet whose pole is the inertial z axis.

    `Drag(…, density=air.density, wind=air.wind)` uses it; so does `PanelDrag`.

    Args:
        planet: shape and rotation of the planet.
        atmosphere: air by geometric altitude above the spheroid; None: the US Standard
            Atmosphere 1976, a mean state of the Earth's.
        turns: whether the air rotates with the planet.
    """

    def __init__(
        self,
        planet: Planet = EARTH,
        atmosphere: Atmosphere | None = None,
        *,
        turns: bool = True,
    ) -> None:
        self.planet = instance_of("planet", planet, Planet)
        air = StandardAtmosphere() if atmosphere is None else atmosphere
        check_calls("atmosphere", air, "atmosphere.at(altitude)")
        self.atmosphere: Atmosphere = air
        self.turns = turns

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its rows of the atmosphere's parameters."""
        attach(self.atmosphere, sim)

    def compiled_air(self, turns: bool) -> CompiledAir | None:
        """Return the air as the core evaluates it, with its rotation or without."""
        shape, air = self.planet, self.atmosphere
        rate = shape.rotation_rate if turns and self.turns else 0.0
        if type(self) is not PlanetAir:  # which may compute anything
            return None
        if type(air) is ExponentialAtmosphere:
            table = core.PlanetAirTable(shape.radius, shape.flattening, rate)
            names = ("density", "scale_height", "base")
            return CompiledAir(table, [air.parameters[name] for name in names])
        if type(air) is StandardAtmosphere:
            table = core.PlanetAirTable(
                *(shape.radius, shape.flattening, rate, air.altitude == "geopotential"),
                air.layers.numpy(), air.above.numpy(), HYDROSTATIC,
                MOLAR_MASS / GAS_CONSTANT,
            )  # fmt: skip
            given = air.parameters
            no_offset = (given["temperature_offset"], 0.0, 0.0)
            return CompiledAir(table, [given["density_factor"], 1.0, 1.0], [no_offset])
        return None

    def density(self, position: Tensor) -> Tensor:
        """Return the density at positions along inertial axes [kg/m³]; (num_envs,)."""
        _, _, height = geodetic_from_position(position, self.planet)
        return self.atmosphere.at(height).density

    def wind(self, t: Tensor, position: Tensor) -> Tensor:
        """Return the velocity of the air, inertial axes [m/s]; (num_envs, 3)."""
        del t
        if not self.turns:
            return torch.zeros_like(position)
        x, y, _ = position.unbind(-1)
        rate = self.planet.rotation_rate
        return torch.stack([-rate * y, rate * x, torch.zeros_like(x)], dim=-1)


class PanelDrag(SceneForce):
    """Drag of flat panels fixed in a body, by their area projected on the flow.

    The force −½ ρ C_d A max(0, n · v) v acts at each panel's centre, whose velocity
    relative to the air is v; the body gets its moment, too. A plate with flow from both
    sides is two panels. Panels do not shade each other.

    Values are in `parameters`, with a row for each world.

    Args:
        entity: the entity's name.
        body: the body's name in the entity.
        normals: outward normals, body axes; (panels, 3).
        areas: areas [m²]; (panels,).
        centres: positions from the body's origin, body axes [m]; (panels, 3).
        air: the atmosphere.
        coefficient: drag coefficients C_d; a number, (panels,) or (num_envs, panels).
    """

    def __init__(
        self,
        entity: str,
        body: str,
        normals: Values,
        areas: Values,
        centres: Values,
        air: PlanetAir | None = None,
        coefficient: Numbers = 2.2,
    ) -> None:
        self.entity, self.body = entity, body
        self.air = air or PlanetAir()
        facing = numbers(normals, "normals")
        if facing.ndim < 2 or bool((norm(facing) < 1e-9).any()):
            raise InvalidInputError(
                "normals must have shape (panels, 3) and lengths > 0, got "
                f"{tuple(facing.shape)}.",
                name="normals",
            )
        count = facing.shape[-2]
        drag = numbers(coefficient, "coefficient")
        declare = self.parameters.declare
        declare("normals", facing / norm(facing), count, 3)
        declare("areas", areas, count, unit="m²", more_than=0)
        declare("centres", centres, count, 3, unit="m")
        declare(
            "coefficient", drag.expand(count) if drag.ndim == 0 else drag, count,
            at_least=0,
        )  # fmt: skip

    def attach(self, sim: SteppingHost) -> None:
        """Find the body."""
        self._body = body_id(sim, self.entity, self.body)
        self._link = link_id(sim, self.entity, self.body)
        super().attach(sim)
        self.air.attach(sim)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the panels for the core, in air that it can evaluate."""
        del start, end
        if self._sim is None:
            return None
        air, given = self.air.compiled_air(True), self.parameters
        if air is None:
            return None
        return CompiledForce(
            core.LoadKind.PANELS,
            [self._body],
            air.numbers,
            [given[name] for name in ("normals", "areas", "coefficient", "centres")],
            air.table.row(),
            frame_of(self._sim, self._body),
            limits=air.limits,
        )

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the drag and its moment about the body's COM to the loads."""
        data, given = sim.scene[self.entity].data, self.parameters
        pos, vel = com_in_world(sim, self.entity, self._link)
        density = self.air.density(pos)
        rot = sim.data.xmat[:, self._body].double()
        spin = data.body_link_ang_vel_w[:, self._link].double()
        origin = sim.data.xpos[:, self._body] - sim.data.xipos[:, self._body]
        arms = origin.double()[:, None] + apply(rot[:, None], given["centres"])
        stream = (vel - self.air.wind(t, pos))[:, None] + cross(spin[:, None], arms)
        inflow = dot(apply(rot[:, None], given["normals"]), stream).clamp(min=0)
        size = given["coefficient"] * given["areas"] * density[:, None]
        force = -0.5 * size[..., None] * inflow * stream
        loads = sim.data.xfrc_applied
        loads[:, self._body, :3] += force.sum(1).to(loads.dtype)
        loads[:, self._body, 3:] += cross(arms, force).sum(1).to(loads.dtype)


def box_panels(size: Values) -> tuple[Tensor, Tensor, Tensor]:
    """Return normals, areas and centres of a box about the origin; size (3,) [m]."""
    edges = numbers(size, "size")
    if tuple(edges.shape) != (3,) or bool((edges <= 0).any()):
        raise InvalidInputError(
            f"size must be three lengths > 0 [m], got {size}.", name="size"
        )
    eye = torch.eye(3, dtype=torch.float64)
    normals = torch.cat([eye, -eye])
    faces = edges.prod() / edges
    return normals, torch.cat([faces, faces]), normals * edges / 2
