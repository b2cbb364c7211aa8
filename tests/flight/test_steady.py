"""Trim and modes of a glider against linear theory, by two ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, SimStateError, UnknownNameError
from simstate.flight import (
    Aerodynamics,
    Air,
    ControlCfg,
    ExponentialAtmosphere,
    FreeFlight,
    Load,
    Propeller,
    Table,
    flight_modes,
    linearise_flight,
    trim_flight,
)
from simstate.study.linear import Unknown

MASS, GRAVITY, RHO = 1.5, 9.80665, 1.1
INERTIA = np.array([[0.11, 0, -0.004], [0, 0.1, 0], [-0.004, 0, 0.2]])
AREA, SPAN, CHORD, INDUCED = 0.3, 1.6, 0.19, 0.04
C = {
    "CL": {"0": 0.25, "alpha": 4.8, "q_hat": 5.0, "elevator": 0.3},
    "CD": {"0": 0.025},
    "CY": {"beta": -0.35},
    "Cl": {"beta": -0.06, "p_hat": -0.45, "r_hat": 0.11},
    "Cm": {"0": 0.04, "alpha": -0.7, "q_hat": -11.0, "elevator": -0.9},
    "Cn": {"beta": 0.07, "p_hat": -0.05, "r_hat": -0.09},
}


def glider(num_envs=2, wind=(0.0, 0.0, 0.0), controls=None, **change):
    flight = FreeFlight(
        MASS, INERTIA, num_envs, com=(-0.4, 0.0, 0.05),
        air=Air(ExponentialAtmosphere(RHO, 1e12), wind),
        controls=controls or {"elevator": ControlCfg(range=(-0.4, 0.4))},
        **{"timestep": 0.01, **change},
    )  # fmt: skip
    flight.add_load(Aerodynamics(AREA, SPAN, CHORD, C, induced_drag=INDUCED))
    return flight


def balance(speed):
    """Glide at a speed: angle of attack, elevator and path, by hand."""
    elevator = alpha = 0.0
    path = -0.05
    for _ in range(200):
        lift = MASS * GRAVITY * math.cos(path) / (0.5 * RHO * speed**2 * AREA)
        # Two linear equations: CL = lift, Cm = 0.
        matrix = [[4.8, 0.3], [-0.7, -0.9]]
        alpha, elevator = np.linalg.solve(matrix, [lift - 0.25, -0.04])
        drag = 0.025 + INDUCED * lift**2
        path = -math.atan2(drag, lift)
    return alpha, elevator, path


def longitudinal(speed):
    """The textbook's matrix in stability axes: u, w, q, θ."""
    _, _, path = balance(speed)
    lift = MASS * GRAVITY * math.cos(path) / (0.5 * RHO * speed**2 * AREA)
    drag = 0.025 + INDUCED * lift**2
    drag_alpha, drag_q = 2 * INDUCED * lift * 4.8, 2 * INDUCED * lift * 5.0
    k = RHO * speed * AREA
    xu, xw, xq = -k * drag, 0.5 * k * (lift - drag_alpha), -0.25 * k * CHORD * drag_q
    zu, zw, zq = -k * lift, -0.5 * k * (4.8 + drag), -0.25 * k * CHORD * 5.0
    mw, mq = 0.5 * k * CHORD * -0.7, 0.25 * k * CHORD**2 * -11.0
    iy = INERTIA[1, 1]
    return np.array([
        [xu / MASS, xw / MASS, xq / MASS, -GRAVITY * math.cos(path)],
        [zu / MASS, zw / MASS, speed + zq / MASS, -GRAVITY * math.sin(path)],
        [0.0, mw / iy, mq / iy, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ])  # fmt: skip


def lateral(speed):
    """The textbook's matrix in stability axes: v, p, r, φ, with turned inertia."""
    alpha, _, path = balance(speed)
    k = 0.5 * RHO * speed * AREA
    drag = (
        0.025
        + INDUCED
        * (MASS * GRAVITY * math.cos(path) / (0.5 * RHO * speed**2 * AREA)) ** 2
    )
    turn = np.array([[math.cos(alpha), math.sin(alpha)],
                     [-math.sin(alpha), math.cos(alpha)]])  # fmt: skip
    inertia = turn @ INERTIA[np.ix_([0, 2], [0, 2])] @ turn.T
    # Moments are by body rates and in body axes: turned on both sides.
    rates = SPAN / 2 * np.array([[-0.45, 0.11], [-0.05, -0.09]])
    damping = k * SPAN * turn @ rates @ turn.T
    stiff = k * SPAN * turn @ np.array([-0.06, 0.07])
    # Wind axes: the side force is across the velocity, so drag acts on v, too.
    yv = k * (-0.35 - drag)
    top = np.linalg.solve(inertia, np.column_stack([stiff, damping]))
    return np.array([
        [yv / MASS, 0.0, -speed, GRAVITY * math.cos(path)],
        [*top[0], 0.0],
        [*top[1], 0.0],
        [0.0, 1.0, math.tan(path), 0.0],
    ])  # fmt: skip


SPEEDS = (12.0, 15.0)


def trimmed(**change):
    flight = glider(**change)
    given = {"airspeed": SPEEDS}
    result = trim_flight(flight, given, ("alpha", "flight_path", "elevator"))
    return flight, result


def test_a_glider_is_trimmed_as_by_hand():
    flight, result = trimmed()
    for world, speed in enumerate(SPEEDS):
        alpha, elevator, path = balance(speed)
        assert float(result.values["alpha"][world]) == pytest.approx(alpha, rel=1e-7)
        assert float(result.values["elevator"][world]) == pytest.approx(elevator)
        assert float(result.values["flight_path"][world]) == pytest.approx(path)
    state = flight.get_state()
    np.testing.assert_allclose(state.airspeed, SPEEDS, rtol=1e-12)
    before = state.velocity_E__E.clone()
    flight.step(60)
    after = flight.get_state().velocity_E__E
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_trim_in_wind_with_heading_and_bank_of_a_powered_aircraft():
    ratios = [0.0, 0.5, 1.0]
    flight = glider(
        wind=(3.0, -5.0, 0.0),
        controls={
            "elevator": ControlCfg(range=(-0.4, 0.4)),
            "propeller": ControlCfg(range=(0.0, 1500.0), time_constant=0.1),
        },
    )
    flight.add_load(
        Propeller(
            "propeller", 0.25, Table({"advance_ratio": ratios}, [0.1, 0.08, 0.0]),
            Table({"advance_ratio": ratios}, [0.0, 0.0, 0.0]),
        )
    )  # fmt: skip
    given = {"airspeed": 14.0, "flight_path": [0.0, 0.05], "heading": [0.3, -2.0]}
    result = trim_flight(flight, given, ("alpha", "elevator", "propeller"))
    assert bool(result.converged.all())
    state = flight.get_state()
    air = state.velocity_E__E - torch.tensor([3.0, -5.0, 0.0]).double()
    climb = torch.asin(-air[:, 2] / air.norm(dim=-1))
    np.testing.assert_allclose(climb, [0.0, 0.05], atol=1e-9)
    heading = torch.atan2(air[:, 1], air[:, 0])
    np.testing.assert_allclose(heading, [0.3, -2.0], atol=1e-9)
    assert bool((result.values["propeller"] > 100).all())
    flight.step(100)
    np.testing.assert_allclose(
        flight.get_state().velocity_E__E, state.velocity_E__E, atol=1e-5
    )


@pytest.mark.parametrize("time", ["continuous", "discrete"])
def test_phugoid_and_short_period_are_those_of_linear_theory(time):
    flight, _ = trimmed()
    model = linearise_flight(flight, time=time)
    assert model.states[:6] == ("u", "v", "w", "p", "q", "r")
    for world, speed in enumerate(SPEEDS):
        found = flight_modes(model, world)
        values = np.linalg.eigvals(longitudinal(speed))
        values = values[values.imag > 0]
        slow, fast = sorted(values, key=abs)
        for mode, want in ((found.phugoid, slow), (found.short_period, fast)):
            assert mode.frequency == pytest.approx(abs(want), rel=1e-3)
            assert mode.damping == pytest.approx(-want.real / abs(want), rel=1e-3)
            assert abs(mode.eigenvalue - want) < 1e-3 * abs(want)


def test_an_aircraft_whose_phugoid_does_not_swing_keeps_its_short_period():
    """Thrust that falls steeply with airspeed splits the phugoid into two decays."""
    flight = glider(1, velocity_E__E=(15.0, 0.0, 0.0))
    falls = 30.0  # N·s/m

    def thrust(t, state):
        push = 2.0 + falls * (15.0 - state.airspeed)
        return Load(force=torch.stack([push, 0 * push, 0 * push], dim=-1))

    flight.add_load(thrust)
    trim_flight(flight, {"airspeed": 15.0}, ("alpha", "flight_path", "elevator"))
    matrix = longitudinal(15.0)
    matrix[0, 0] -= falls / MASS  # small angles
    (want,) = (x for x in np.linalg.eigvals(matrix) if x.imag > 0)
    found = flight_modes(linearise_flight(flight))
    assert found.phugoid is None
    assert found.short_period.frequency == pytest.approx(abs(want), rel=0.05)


@pytest.mark.parametrize("time", ["continuous", "discrete"])
def test_dutch_roll_roll_and_spiral_are_those_of_linear_theory(time):
    flight, _ = trimmed()
    model = linearise_flight(flight, time=time)
    for world, speed in enumerate(SPEEDS):
        found = flight_modes(model, world)
        values = np.linalg.eigvals(lateral(speed))
        swing = values[values.imag > 0][0]
        real = sorted(values[values.imag == 0].real, key=abs)
        assert abs(found.dutch_roll.eigenvalue - swing) < 1e-3 * abs(swing)
        assert found.roll.eigenvalue.real == pytest.approx(real[-1], rel=1e-3)
        assert found.spiral.eigenvalue.real == pytest.approx(real[0], rel=1e-3)


def test_the_phugoid_of_a_run_has_the_modes_period():
    """Disturbed a little, the glider swings as its linear model says."""
    flight, _ = trimmed(timestep=0.05)
    model = linearise_flight(flight)
    phugoid = flight_modes(model, 0).phugoid
    velocity = flight.get_state().velocity_E__E
    flight.set_state(velocity_E__E=1.001 * velocity)
    path = flight.fly(round(2.2 * phugoid.period / 0.05))
    speed = path.airspeed[:, 0].numpy() - SPEEDS[0]
    time = path.time[:, 0].numpy()
    late = time > 1.0  # the short period is over
    rises = np.flatnonzero((speed[1:] > 0) & (speed[:-1] <= 0) & late[1:])
    crossing = [
        time[k] - speed[k] * (time[k + 1] - time[k]) / (speed[k + 1] - speed[k])
        for k in rises
    ]
    assert crossing[1] - crossing[0] == pytest.approx(phugoid.period, rel=2e-3)


def test_lags_of_controls_are_states():
    lagging = {"elevator": ControlCfg(range=(-0.4, 0.4), time_constant=0.08)}
    flight, _ = trimmed(controls=lagging)
    model = linearise_flight(flight, ["elevator"])
    assert model.states[-1] == "aircraft/elevator.act"
    assert float(model.a[1, -1, -1]) == pytest.approx(-12.5, rel=1e-6)
    assert float(model.b[1, -1, 0]) == pytest.approx(12.5, rel=1e-6)
    moment = 0.5 * RHO * SPEEDS[1] ** 2 * AREA * CHORD * -0.9 / INERTIA[1, 1]
    assert float(model.a[1, 4, -1]) == pytest.approx(moment, rel=1e-6)


def test_what_cannot_be_trimmed_says_so():
    flight = glider()
    for wrong, error, fields in (
        (
            lambda: trim_flight(flight, {"speed": 1.0}, ()),
            UnknownNameError,
            {"name": "speed"},
        ),
        (
            lambda: trim_flight(flight, {"alpha": 0.1}, ("alpha",)),
            InvalidInputError,
            {"name": "alpha"},
        ),
        (
            lambda: trim_flight(flight, {"airspeed": 4.0}, ("alpha", "flight_path",
                                                            "elevator")),
            SimStateError,
            {"worlds": [0, 1]},
        ),
        (lambda: linearise_flight(flight, ["rudder"]), UnknownNameError,
         {"name": "rudder"}),
        *(
            (
                lambda one=one: trim_flight(
                    flight, {"airspeed": 13.0} | one, ("alpha", "flight_path")
                ),
                InvalidInputError,
                {"name": next(iter(one))},
            )
            for one in ({"airspeed": [13.0, -13.0]}, {"airspeed": np.nan},
                        {"bank": [0.1, 30.0]}, {"elevator": [0.1, 2.0]})
        ),
    ):  # fmt: skip
        before = flight.sim.state.clone()
        with raises(error, **fields):
            wrong()
        assert torch.equal(flight.sim.state, before)
    narrow = {"elevator": Unknown(0.0, -0.01, 0.01)}
    result = trim_flight(
        flight, {"airspeed": 9.0}, ("alpha", "flight_path", "elevator"), starts=narrow,
        require=False,
    )  # fmt: skip
    assert not bool(result.converged.any())
    assert bool(result.at_bound["elevator"].all())
