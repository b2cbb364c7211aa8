"""The air that aircraft fly in: its state by altitude, and its velocity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from simstate.base.checks import check_calls, instance_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Values
from simstate.entity.host import attach
from simstate.flight.atmosphere import AirState, Atmosphere, StandardAtmosphere
from simstate.flight.flight_table import AirForm, AtmosphereForm, FlightTable
from simstate.flight.table import Outside, Table
from simstate.step.forces.force_parameters import Numbers, Parameters, vectors_by_world
from simstate.step.forces.thrust_and_drag import Wind

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost


class Air:
    """A standard atmosphere, still or with wind, in Earth axes E (north, east, down).

    Args:
        atmosphere: the state of the air by altitude above sea level; None: the US
            Standard Atmosphere 1976.
        wind: the velocity of the air, Earth axes [m/s]: (3,), (num_envs, 3), or a
            field: a function of the time (num_envs,) and of the position (num_envs, 3)
            in Earth axes [m] that returns (num_envs, 3), such as a `WindField`. Wind
            from the west is (0, +, 0): the vector points where the air moves to.
        elevation: altitude of the Earth origin above sea level [m]; a number or
            (num_envs,).
    """

    def __init__(
        self,
        atmosphere: Atmosphere | None = None,
        wind: Values | Wind = (0.0, 0.0, 0.0),
        elevation: Numbers = 0.0,
    ) -> None:
        atmosphere = StandardAtmosphere() if atmosphere is None else atmosphere
        check_calls("atmosphere", atmosphere, "atmosphere.at(altitude)")
        self._atmosphere: Atmosphere = atmosphere
        self.parameters = Parameters("Air")
        self.parameters.declare("elevation", elevation, unit="m")
        self._field = wind if callable(wind) else None
        if not callable(wind):
            self.parameters.declare("wind", wind, 3, unit="m/s")
        self._sim: SteppingHost | None = None
        self.steady_wind: np.ndarray[Any, Any] | None = None
        """The wind by world, live, on the host [m/s]; (num_envs, 3). None: a field."""

    @property
    def atmosphere(self) -> Atmosphere:
        """The state of the air by altitude above sea level."""
        return self._atmosphere

    def attach(self, sim: SteppingHost) -> None:
        """Attach the air to a simulation: give every world its parameters."""
        if self._sim is not None:
            raise InvalidInputError(
                "This Air already belongs to a simulation: create one for each."
            )
        self._sim = sim
        self.parameters.attach(sim)
        if self._field is None and sim.device.type == "cpu":
            self.steady_wind = self.parameters["wind"].data.numpy()
        for part in (self.atmosphere, self._field):
            attach(part, sim)

    def compiled(self) -> AirForm | None:
        """Return the air for the core; None if Python must evaluate a part of it."""
        atmosphere = getattr(self.atmosphere, "compiled", None)
        form: AtmosphereForm | None = None if atmosphere is None else atmosphere()
        names = ("wind", "altitude", "at")
        if form is None or any(
            getattr(type(self), x) is not vars(Air)[x] for x in names
        ):
            return None
        elevation = self.parameters["elevation"]
        if self._field is None:
            return AirForm(elevation, form, self.parameters["wind"])
        field = getattr(self._field, "compiled", None)
        grid: FlightTable | None = None if field is None else field()
        return None if grid is None else AirForm(elevation, form, None, grid)

    def wind(self, t: Tensor, position_e: Tensor) -> Tensor:
        """Return the velocity of the air, Earth axes [m/s]; (num_envs, 3)."""
        if self._field is None:
            wind = self.parameters["wind"]
            is_whole = wind.shape == position_e.shape
            return wind if is_whole else wind.expand_as(position_e)
        wind = self._field(t, position_e)
        return vectors_by_world(wind, "wind(t, position)", len(position_e)).expand_as(
            position_e
        )

    def altitude(self, position_e: Tensor) -> Tensor:
        """Return the altitude of positions above sea level [m]; (..., num_envs)."""
        return self.parameters["elevation"] - position_e[..., 2].double()

    def at(self, position_e: Tensor) -> AirState:
        """Return the air at positions in Earth axes; (..., num_envs) each."""
        found = self.atmosphere.at(self.altitude(position_e))
        return instance_of("atmosphere.at(altitude)", found, AirState)


WIND_VARIABLES = ("time", "north", "east", "height")
"""Variables of a `WindField` [s, m]; height is above the Earth origin."""


class WindField:
    """Wind from a table over time, north, east and height; Earth axes [m/s].

    Args:
        axes: breakpoints by variable: any of time [s], north, east and height [m]; a
            sounding has only {"height": [...]}.
        velocity: the air's velocity at the grid's points, Earth axes [m/s];
            (n₁, …, n_k, 3).
        outside: the behaviour beyond the ends; see `Table`.
    """

    def __init__(
        self,
        axes: Mapping[str, Sequence[float] | Values],
        velocity: Values,
        outside: Outside = "clamp",
    ) -> None:
        instance_of("axes of a wind field", axes, Mapping)
        for name in axes:
            if name not in WIND_VARIABLES:
                raise unknown_name("variable of a wind field", name, WIND_VARIABLES)
        self.table = Table(axes, velocity, tail=(3,), outside=outside)

    def attach(self, sim: SteppingHost) -> None:
        """Move the table to a simulation's device."""
        self.table.attach(sim)

    def compiled(self) -> FlightTable | None:
        """Return its grid for the core; a subclass may compute something else."""
        grid = FlightTable()
        is_own = type(self).__call__ is WindField.__call__
        return grid if is_own and grid.add_grid(self.table, WIND_VARIABLES) else None

    def __call__(self, t: Tensor, position_e: Tensor) -> Tensor:
        """Return the wind at times and positions, Earth axes [m/s]; (num_envs, 3)."""
        north, east, down = position_e.double().unbind(-1)
        place = {"time": t.double(), "north": north, "east": east, "height": -down}
        return self.table(place)
