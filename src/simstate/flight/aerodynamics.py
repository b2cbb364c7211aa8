"""Aerodynamic loads from coefficients: stability derivatives, tables, or functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import torch
from torch import Tensor

from simstate.base.checks import has_shape, instance_of, one_of
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
from simstate.flight.loads import Load, NamedPoint
from simstate.flight.table import Table
from simstate.step.forces.force_parameters import Numbers, Parameters
from simstate.step.forces.force_parameters import numbers as numbers_of

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

Variables: TypeAlias = Mapping[str, Tensor]
"""Variables of coefficients, by name; (num_envs,) each."""
Term: TypeAlias = (
    "float | Mapping[str, Numbers] | Table | Callable[[Variables], Tensor]"
)
"""A term of a coefficient: a constant; derivatives by variable, with the constant "0";
a table; or a function of the variables."""
ForceAxes: TypeAlias = Literal["wind", "stability", "body"]

LIFT_FORCES, BODY_FORCES = ("CD", "CY", "CL"), ("CX", "CY", "CZ")
MOMENTS = ("Cl", "Cm", "Cn")
VARIABLES = (
    "alpha", "beta", "mach", "airspeed", "altitude", "p_hat", "q_hat", "r_hat",
)  # fmt: skip
"""Variables of a flight state in addition to the controls: angles [rad], airspeed
[m/s], altitude [m], and the rates relative to the air p·b/2V, q·c/2V and r·b/2V."""


class Aerodynamics(CompilableLoad):
    """A load model: forces and moments from coefficients, in the local air.

    Forces are coefficient · q̄ · area. In wind or stability axes they are CD (drag,
    aft), CY (right) and CL (lift, up); in body axes CX (forward), CY (right) and CZ
    (down).
    Moments, always in body axes, are Cl · q̄ · area · span (right wing down),
    Cm · q̄ · area · chord (nose up) and Cn · q̄ · area · span (nose right).

    Pass it to `FreeFlight.add_load`. Values may differ between worlds, and are in
    `parameters` ("area", "CL_alpha", …).

    Args:
        area: reference area [m²]; a number or (num_envs,), as all values here.
        span: reference span b [m].
        chord: reference chord c [m].
        coefficients: by name, each a term or several, which are added:
            {"CL": {"0": 0.3, "alpha": 5.1, "elevator": 0.4}, "CD": Table(…), …}.
            A variable is one of `VARIABLES` or a control of the aircraft.
        axes: the axes of the forces.
        point: the point of action and reference point of the moments: "com", "origin",
            or a position from the origin in body axes [m].
        induced_drag: factor of CL² that is added to CD.
    """

    def __init__(
        self,
        area: Numbers,
        span: Numbers,
        chord: Numbers,
        coefficients: Mapping[str, Term | Sequence[Term]],
        *,
        axes: ForceAxes = "wind",
        point: NamedPoint | Values = "com",
        induced_drag: Numbers = 0.0,
    ) -> None:
        one_of("axes of aerodynamic forces", axes, get_args(ForceAxes))
        self.axes: ForceAxes = axes
        self.point = point
        self.forces = BODY_FORCES if axes == "body" else LIFT_FORCES
        self.parameters = Parameters("Aerodynamics")
        for name, value, unit in (
            ("area", area, "m²"), ("span", span, "m"), ("chord", chord, "m"),
        ):  # fmt: skip
            self.parameters.declare(name, value, unit=unit, more_than=0)
        self.parameters.declare("induced_drag", induced_drag, at_least=0)
        if axes == "body" and bool(self.parameters["induced_drag"].any()):
            raise InvalidInputError(
                "induced_drag depends on CL, which body axes do not have: use wind or "
                "stability axes, or omit it.",
                name="induced_drag",
            )
        known = (*self.forces, *MOMENTS)
        self._terms: dict[str, list[Table | Callable[[Variables], Tensor]]] = {}
        self._derivatives: dict[str, list[str]] = {}
        instance_of("coefficients", coefficients, Mapping)
        for name, given in coefficients.items():
            if name not in known:
                raise unknown_name(f"coefficient in {axes} axes", name, known)
            self._read(name, given)

    def _read(self, name: str, given: Term | Sequence[Term]) -> None:
        self._terms[name], self._derivatives[name] = [], []
        for term in _listed(given):
            if isinstance(term, Mapping):
                for variable, value in cast("Mapping[str, Numbers]", term).items():
                    self._declare(name, variable, value)
            elif callable(term):
                self._terms[name].append(term)
            else:
                self._declare(name, "0", term)

    def _declare(self, name: str, variable: str, value: Numbers) -> None:
        if variable in self._derivatives[name]:
            raise InvalidInputError(
                f"{name} has two derivatives by {variable!r}.", name=variable
            )
        self.parameters.declare(f"{name}_{variable}", value)
        self._derivatives[name].append(variable)

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its row of the parameters."""
        self.parameters.attach(sim)
        for terms in self._terms.values():
            for term in terms:
                if isinstance(term, Table):
                    term.attach(sim)

    def compiled(self, aircraft: AircraftForm) -> LoadForm | None:
        """Return the model for the core; None if a term is a function or unknown."""
        given, table = self.parameters, FlightTable()
        numbers: list[Tensor | float] = [
            given[name] for name in ("area", "span", "chord", "induced_drag")
        ]
        points, place = ("com", "origin"), torch.zeros(1, 3, dtype=torch.float64)
        if not isinstance(self.point, str):
            place = numbers_of(self.point, "point").reshape(-1, 3)
        elif self.point not in points:
            return None  # Python reports the error
        numbers.append(place)
        kind = points.index(self.point) if isinstance(self.point, str) else 2
        table.add(get_args(ForceAxes).index(self.axes), kind)
        for name in (*self.forces, *MOMENTS):
            derivatives = self._derivatives.get(name, [])
            names = ["0", *aircraft.variables]
            if not set(derivatives) <= set(names):
                return None
            table.add(len(derivatives), *(names.index(x) - 1 for x in derivatives))
            numbers += [given[f"{name}_{x}"] for x in derivatives]
            terms = self._terms.get(name, [])
            table.add(len(terms))
            for term in terms:
                if not isinstance(term, Table):
                    return None
                if not table.add_grid(term, aircraft.variables):
                    return None
        return LoadForm(core.LoadKind.AERODYNAMICS, numbers, table)

    def variables(self, state: FlightState) -> dict[str, Tensor]:
        """Return the variables of the coefficients at a state; (num_envs,) each."""
        air = state.air_state
        speed = state.airspeed
        per_length = 0.5 / speed.clamp(min=1e-3)
        p, q, r = (state.air_ang_vel_b * per_length[..., None]).unbind(-1)
        span, chord = self.parameters["span"], self.parameters["chord"]
        return {
            "alpha": state.alpha,
            "beta": state.beta,
            "mach": speed / air.speed_of_sound,
            "airspeed": speed,
            "altitude": state.altitude,
            "p_hat": p * span,
            "q_hat": q * chord,
            "r_hat": r * span,
            **state.controls,
        }

    def coefficients(self, state: FlightState) -> dict[str, Tensor]:
        """Return all coefficients at a state; (num_envs,) each."""
        variables = self.variables(state)
        zero = torch.zeros_like(variables["alpha"])
        found = dict.fromkeys((*self.forces, *MOMENTS), zero)
        for name in self._terms:
            found[name] = self._coefficient(name, variables, zero)
        if "CL" in found:
            drag = self.parameters["induced_drag"] * found["CL"].square()
            found["CD"] = found["CD"] + drag
        return found

    def _coefficient(self, name: str, variables: Variables, zero: Tensor) -> Tensor:
        total = zero
        for variable in self._derivatives[name]:
            value = self.parameters[f"{name}_{variable}"]
            if variable == "0":
                total = total + value
            elif variable in variables:
                total = total + value * variables[variable]
            else:
                raise unknown_name(f"variable of {name}", variable, variables)
        for term in self._terms[name]:
            value = term(variables)
            has_shape(f"{name} of a term", value, tuple(zero.shape))
            total = total + value
        return total

    def __call__(self, t: Tensor, state: FlightState) -> tuple[Load, Load]:
        """Return the aerodynamic force and moment."""
        del t
        found = self.coefficients(state)
        given = self.parameters
        pressure = state.dynamic_pressure * given["area"]
        force = torch.stack([found[name] for name in self.forces], dim=-1)
        if self.axes != "body":  # drag is aft and lift is up, opposite to the axes
            force = force * force.new_tensor([-1.0, 1.0, -1.0])
        lengths = torch.stack([given["span"], given["chord"], given["span"]], dim=-1)
        moment = torch.stack([found[name] for name in MOMENTS], dim=-1) * lengths
        pressure = pressure[:, None]
        return (
            Load(force=pressure * force, axes=self.axes, point=self.point),
            Load(moment=pressure * moment, axes="body"),
        )


def _listed(given: object) -> list[Term]:
    """Return one term or several as a list."""
    if isinstance(given, list | tuple):
        return list(cast("Sequence[Term]", given))
    return [cast("Term", given)]
