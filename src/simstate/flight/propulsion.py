"""Rotors and propellers: thrust and torque as functions of their speed.

The speed [rad/s] is a control of the aircraft (`ControlCfg(range=…, time_constant=…)`)
with lag and saturation, and part of the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.checks import instance_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Values
from simstate.engine import core
from simstate.flight.flight_state import FlightState
from simstate.flight.flight_table import (
    AircraftForm,
    CompilableLoad,
    FlightTable,
    LoadForm,
)
from simstate.flight.loads import Load
from simstate.flight.table import Table
from simstate.math.vector import cross, dot, norm
from simstate.step.forces.force_parameters import Numbers, Parameters

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

SEA_LEVEL_DENSITY = 1.225
"""Density of air at sea level [kg/m³]."""


class _Spinning(CompilableLoad, ABC):
    """Common parts of rotor and propeller: position, axis, direction, inertia."""

    def __init__(
        self,
        control: str,
        position: Values,
        axis: Values,
        direction: int,
        inertia: Numbers,
    ) -> None:
        if direction not in (-1, 1):
            raise InvalidInputError(
                "direction must be 1 for a right-handed rotation about the axis, or "
                f"−1; got {direction}.",
                name="direction",
            )
        self.control = control
        self.direction = direction
        self.parameters = Parameters(f"{type(self).__name__} {control!r}")
        self.parameters.declare("position", position, 3, unit="m")
        given = self.parameters.declare("axis", axis, 3)
        if bool((norm(given) < 1e-9).any()):
            raise InvalidInputError(
                f"The axis of {control!r} must not be zero.", name="axis"
            )
        self.parameters.declare("inertia", inertia, unit="kg·m²", at_least=0)

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its row of the parameters."""
        self.parameters.attach(sim)

    def __call__(self, t: Tensor, state: FlightState) -> Load:
        """Return the thrust at the hub, and the torques on the airframe about it."""
        del t
        if self.control not in state.controls:
            raise unknown_name("control of the aircraft", self.control, state.controls)
        speed = state.controls[self.control].double()
        axis = self.parameters["axis"] / norm(self.parameters["axis"])
        thrust, torque = self.thrust_and_torque(state, speed, axis)
        spin = self.direction * self.parameters["inertia"][:, None] * axis
        momentum = spin * speed[:, None]
        gain = spin * state.control_rates.get(self.control, 0 * speed)[:, None]
        moment = -self.direction * torque[:, None] * axis
        moment = moment - gain - cross(state.ang_vel_b.double(), momentum)
        return Load(
            force=thrust[:, None] * axis,
            moment=moment,
            axes="body",
            point=self.parameters["position"],
        )

    def _form(
        self, aircraft: AircraftForm, numbers: Sequence[Tensor | float], *tables: Table
    ) -> LoadForm | None:
        """Return the form for the core, with further values, and tables of J."""
        if self.control not in aircraft.controls:
            return None
        given, table = self.parameters, FlightTable()
        index = aircraft.controls.index(self.control)
        table.add(index, self.direction, float(bool(tables)))
        if not all(table.add_grid(each, ("advance_ratio",)) for each in tables):
            return None
        own = [given[name] for name in ("position", "axis", "inertia")]
        return LoadForm(core.LoadKind.ROTOR, [*own, *numbers], table)

    @abstractmethod
    def thrust_and_torque(
        self, state: FlightState, speed: Tensor, axis: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Thrust [N] and the air's torque against the rotation [N·m]; (num_envs,)."""


class Rotor(_Spinning):
    """A load model: thrust and torque are proportional to the square of the speed.

    The thrust, the air's torque on the blades, the rotor's gyroscopic torque and the
    reaction to its angular acceleration act on the airframe.

    Args:
        control: the control that is its speed Ω [rad/s].
        thrust_coefficient: thrust / Ω² at 1.225 kg/m³ [N·s²]; a number or (num_envs,).
        torque_coefficient: torque / Ω² at 1.225 kg/m³ [N·m·s²].
        position: of the hub, body axes from the origin [m]; (3,).
        axis: the direction of the thrust, body axes; (3,): up is (0, 0, −1).
        direction: 1 if it turns right-handed about its axis, −1 if left-handed.
        inertia: about its axis [kg·m²].
    """

    def __init__(
        self,
        control: str,
        thrust_coefficient: Numbers,
        torque_coefficient: Numbers = 0.0,
        *,
        position: Values = (0.0, 0.0, 0.0),
        axis: Values = (0.0, 0.0, -1.0),
        direction: int = 1,
        inertia: Numbers = 0.0,
    ) -> None:
        super().__init__(control, position, axis, direction, inertia)
        declare = self.parameters.declare
        declare("thrust_coefficient", thrust_coefficient, unit="N·s²", at_least=0)
        declare("torque_coefficient", torque_coefficient, unit="N·m·s²", at_least=0)

    def compiled(self, aircraft: AircraftForm) -> LoadForm | None:
        """Return it for the core."""
        names = ("thrust_coefficient", "torque_coefficient")
        return self._form(aircraft, [self.parameters[name] for name in names])

    def thrust_and_torque(
        self, state: FlightState, speed: Tensor, axis: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Thrust [N] and the air's torque against the rotation [N·m]; (num_envs,)."""
        del axis
        square = speed * speed.abs() * state.density / SEA_LEVEL_DENSITY
        given = self.parameters
        return given["thrust_coefficient"] * square, given[
            "torque_coefficient"
        ] * square


class Propeller(_Spinning):
    """A propeller by its thrust and power coefficients over the advance ratio.

    J = V / (n D) with the velocity V through the air along the axis and n = Ω / 2π
    revolutions per second; thrust is C_T ρ n² D⁴, power C_P ρ n³ D⁵.

    Args:
        control: the control that is its speed Ω [rad/s], ≥ 0.
        diameter: D [m]; a number or (num_envs,).
        thrust_table: C_T over {"advance_ratio": …}.
        power_table: C_P likewise.
        position: of the hub, body axes from the origin [m]; (3,).
        axis: the direction of the thrust, body axes; (3,): forward is (1, 0, 0).
        direction: 1 if it turns right-handed about its axis, −1 if left-handed.
        inertia: about its axis [kg·m²].
    """

    def __init__(
        self,
        control: str,
        diameter: Numbers,
        thrust_table: Table,
        power_table: Table,
        *,
        position: Values = (0.0, 0.0, 0.0),
        axis: Values = (1.0, 0.0, 0.0),
        direction: int = 1,
        inertia: Numbers = 0.0,
    ) -> None:
        super().__init__(control, position, axis, direction, inertia)
        self.parameters.declare("diameter", diameter, unit="m", more_than=0)
        self._tables = thrust_table, power_table
        for name, table in zip(
            ("thrust_table", "power_table"), self._tables, strict=True
        ):
            instance_of(name, table, Table)
            if table.variables != ("advance_ratio",):
                raise InvalidInputError(
                    "A propeller's tables must be over advance_ratio, got "
                    f"{', '.join(table.variables)}.",
                    name=name,
                )

    def compiled(self, aircraft: AircraftForm) -> LoadForm | None:
        """Return it for the core."""
        diameter = self.parameters["diameter"]
        return self._form(aircraft, [diameter, 0.0], *self._tables)

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its row of the parameters."""
        super().attach(sim)
        for table in self._tables:
            table.attach(sim)

    def thrust_and_torque(
        self, state: FlightState, speed: Tensor, axis: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Thrust [N] and the air's torque against the rotation [N·m]; (num_envs,)."""
        diameter, turns = self.parameters["diameter"], speed / (2 * torch.pi)
        along = dot(state.air_vel_b.double(), axis)[:, 0]
        # At rest the advance ratio is undefined, but the thrust is zero anyway.
        ratio = along / (turns * diameter).clamp(min=1e-6)
        thrust, power = (table({"advance_ratio": ratio}) for table in self._tables)
        scale = state.density * turns.square() * diameter**4
        return thrust * scale, power * scale * diameter / (2 * torch.pi)
