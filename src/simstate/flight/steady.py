"""Steady flight of an aircraft: trim, linear models in its own coordinates, modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.checks import Limits, all_of, instance_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.flight.free_flight import FreeFlight
from simstate.math.conventions.rotations import passive_from_angles
from simstate.math.conventions.wind_angles import rot_body_wind
from simstate.simulation import Simulation
from simstate.step.forces.force_parameters import Numbers, by_world, numbers
from simstate.study.linear import (
    LinearModel,
    Mode,
    TrimResult,
    Unknown,
    linearise,
    trim,
)

CONDITIONS = {
    "airspeed": (20.0, 0.1, 1e4, 10.0),
    "alpha": (0.05, -1.5, 1.5, 0.1),
    "beta": (0.0, -1.0, 1.0, 0.1),
    "bank": (0.0, -1.5, 1.5, 0.1),
    "flight_path": (0.0, -1.5, 1.5, 0.1),
    "heading": (0.0, -10.0, 10.0, 0.1),
}
"""Parameters of straight flight: airspeed [m/s], angle of attack, sideslip, bank, climb
angle relative to the air and heading [rad]; each with start, bounds and scale."""

STATES = ("u", "v", "w", "p", "q", "r", "phi", "theta", "psi", "north", "east", "down")
UNITS = ("m/s",) * 3 + ("rad/s",) * 3 + ("rad",) * 3 + ("m",) * 3
LONGITUDINAL, LATERAL = ("u", "w", "q", "theta"), ("v", "p", "r", "phi")


def trim_flight(
    flight: FreeFlight,
    given: Mapping[str, Numbers],
    free: Sequence[str],
    *,
    aircraft: str | None = None,
    starts: Mapping[str, Unknown] | None = None,
    tolerance: float = 1e-9,
    require: bool = True,
) -> TrimResult:
    """Trim an aircraft for straight, steady flight: no acceleration, no rotation.

    The variables of the flight are either given or free: airspeed [m/s], alpha, beta,
    bank, flight_path, heading [rad], and the controls. Other conditions (heading, beta,
    bank) are zero, and other controls keep their positions. For a glider, pass
    {"airspeed": 15} as given and ("alpha", "flight_path", "elevator") as free; if
    "throttle" is free, give the flight_path. Position and air do not change.

    Args:
        flight: the flight, whose state is changed.
        given: conditions and controls by name; numbers or (num_envs,).
        free: the names of the unknowns.
        aircraft: the aircraft's name, if there are several.
        starts: starts and bounds of unknowns, instead of the defaults.
        tolerance: maximum acceleration [m/s², rad/s²].
        require: True to raise an error if a world does not converge.
    """
    instance_of("flight", flight, FreeFlight)
    instance_of("given", given, Mapping)
    free = all_of("free", free, str)
    name = flight.resolve_name(aircraft)
    controls = tuple(flight.get_state(name).controls)
    known = (*CONDITIONS, *controls)
    for one in (*given, *free):
        if one not in known:
            raise unknown_name("condition or control", one, known)
    both = set(given) & set(free)
    if both:
        raise InvalidInputError(
            f"{min(both)!r} is both given and free: remove it from one of them.",
            name=min(both),
        )
    sim = flight.sim
    fixed = {
        n: by_world(sim, n, _limits(flight, name, n).check(numbers(x, n), n))
        for n, x in given.items()
    }
    zero = torch.zeros(sim.num_envs, dtype=torch.float64)
    start_state = flight.get_state(name)

    def write(values: Mapping[str, Tensor]) -> None:
        now = dict.fromkeys(CONDITIONS, zero) | fixed | dict(values)
        _write_conditions(flight, name, start_state.wind_e, now)
        commands = {n: x for n, x in now.items() if n in controls}
        flight.set_controls(commands, aircraft=name, settled=True)

    entity = flight.aircraft[name]

    def residual() -> Tensor:
        data = entity.data
        return torch.cat(
            [data.body_com_lin_acc_w[:, 0], data.body_com_ang_acc_w[:, 0]], dim=1
        )

    unknowns = {n: (starts or {}).get(n, _usual(flight, name, n)) for n in free}
    return trim(sim, unknowns, write, residual, tolerance=tolerance, require=require)


def _limits(flight: FreeFlight, aircraft: str, name: str) -> Limits:
    """Return the limits of a given condition or control."""
    if name == "airspeed":
        return Limits(at_least=0.0, unit="m/s")
    if name in CONDITIONS:
        return Limits(at_least=-2 * torch.pi, at_most=2 * torch.pi, unit="rad")
    low, high = flight.control_range(name, aircraft)
    return Limits(at_least=low, at_most=high)


def _usual(flight: FreeFlight, aircraft: str, name: str) -> Unknown:
    """Return the default start of an unknown."""
    if name in CONDITIONS:
        start, low, high, scale = CONDITIONS[name]
        return Unknown(start, low, high, scale)
    low, high = flight.control_range(name, aircraft)
    start, width = flight.get_state(aircraft).controls[name].double(), high - low
    if width == float("inf"):
        return Unknown(start, low, high)
    # At the end of its range a control may have no effect, such as a throttle at zero.
    at_end = (start <= low) | (start >= high)
    start = torch.where(at_end, 0.5 * (low + high), start)
    return Unknown(start, low, high, 0.1 * width)


def _write_conditions(
    flight: FreeFlight, aircraft: str, wind: Tensor, now: Mapping[str, Tensor]
) -> None:
    """Write attitude and velocity of straight flight in the given wind."""
    climb, heading, bank = now["flight_path"], now["heading"], now["bank"]
    zero = torch.zeros_like(climb)
    # Axes along the path, rolled by the bank about it, then wind to body.
    path = torch.stack([bank, climb, heading], dim=-1)
    rot_pe = passive_from_angles(path, "izyx", "rad")
    rot_bp = rot_body_wind(now["alpha"], now["beta"])
    velocity = now["airspeed"][:, None] * rot_pe[:, 0] + wind
    rest = torch.stack([zero, zero, zero], dim=-1)
    flight.set_state(
        R_pas_E_to_BP1=rot_bp @ rot_pe, velocity_E__E=velocity, omegas_BP1__E=rest,
        aircraft=aircraft,
    )  # fmt: skip


def linearise_flight(
    flight: FreeFlight,
    inputs: Sequence[str] | None = None,
    *,
    aircraft: str | None = None,
    time: str = "continuous",
) -> LinearModel:
    """Return the linear model about the current flight, in aircraft coordinates.

    States are u, v, w (velocity of the Cg along body axes), p, q, r, phi, theta, psi,
    north, east, down, then lags of controls and processes under their names.

    Args:
        flight: the flight, in steady flight (see `trim_flight`).
        inputs: names of the aircraft's controls; None: all of them.
        aircraft: the name of the aircraft, which must be the only one.
        time: "continuous" or "discrete".
    """
    instance_of("flight", flight, FreeFlight)
    if len(flight.aircraft) > 1:
        raise InvalidInputError(
            "linearise_flight is for a single aircraft: use linearise(flight.sim) for "
            "several."
        )
    name = flight.resolve_name(aircraft)
    controls = tuple(flight.get_state(name).controls)
    names = controls if inputs is None else tuple(inputs)
    for one in names:
        if one not in controls:
            raise unknown_name("control of the aircraft", one, controls)
    sim = flight.sim
    views = {n: sim.data.ctrl[:, flight.control_column(n, name)] for n in names}

    def own(sim: Simulation) -> Tensor:
        del sim
        state = flight.get_state(name)
        return torch.cat(
            [
                state.velocity_BP1__E, state.ang_vel_b, state.roll_pitch_yaw,
                state.position_E_Eo,
            ],
            dim=1,
        )  # fmt: skip

    def rest(sim: Simulation) -> Tensor:
        processes = [] if sim.integration is None else sim.integration.processes
        return torch.cat([sim.data.act, *(p.value for p in processes)], dim=1)

    full = linearise(sim, views, {"own": own, "rest": rest}, time=time)  # pyright: ignore[reportArgumentType]
    extra = full.states[2 * sim.model.nv :]
    extra_units = full.units[2 * sim.model.nv :]
    if sim.model.nv != 6:
        raise InvalidInputError(
            "linearise_flight is for rigid aircraft, but this one has moving parts: "
            "use linearise(flight.sim)."
        )
    moved = full.in_outputs((*UNITS, *extra_units))
    labels = (*STATES, *extra)
    return LinearModel(
        moved.a, moved.b, moved.c, moved.d, labels, (*UNITS, *extra_units), names,
        labels, moved.timestep, moved.output_units,
    )  # fmt: skip


@dataclass(frozen=True)
class FlightModes:
    """The classical modes of an aircraft; None if it has no such mode."""

    phugoid: Mode | None
    short_period: Mode | None
    dutch_roll: Mode | None
    roll: Mode | None
    spiral: Mode | None


def flight_modes(model: LinearModel, env_id: int = 0) -> FlightModes:
    """Return the classical modes of a world of a `linearise_flight` model.

    Longitudinal modes are those of u, w, q, theta only, lateral ones of v, p, r, phi:
    heading, position and the density gradient are omitted, as in textbooks. A single
    longitudinal oscillation is the phugoid if u and theta participate in it more than
    w and q, else the short period.
    """
    instance_of("model", model, LinearModel)
    swings = [m for m in model.part(LONGITUDINAL).modes(env_id) if m.is_oscillation]
    phugoid = swings[-1] if swings else None
    short_period = swings[0] if len(swings) > 1 else None
    if len(swings) == 1 and not _is_phugoid(swings[0]):
        phugoid, short_period = None, swings[0]
    sides = model.part(LATERAL).modes(env_id)
    rolls = [mode for mode in sides if mode.is_oscillation]
    decays = [mode for mode in sides if not mode.is_oscillation]
    return FlightModes(
        phugoid=phugoid,
        short_period=short_period,
        dutch_roll=rolls[0] if rolls else None,
        roll=decays[0] if decays else None,
        spiral=decays[-1] if len(decays) > 1 else None,
    )


def _is_phugoid(mode: Mode) -> bool:
    """Return True if u and theta participate in a longitudinal mode more than w, q."""
    return mode.participation["u"] + mode.participation["theta"] > 0.5
