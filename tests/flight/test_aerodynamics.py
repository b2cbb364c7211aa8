"""Tables, coefficients, controls, rotors and propellers against independent sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.flight import (
    Aerodynamics,
    Air,
    AircraftCfg,
    ControlCfg,
    ExponentialAtmosphere,
    FreeFlight,
    Propeller,
    Rotor,
    Table,
)
from simstate.integrate import RK4

F64 = torch.float64
INERTIA = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.0], [-0.02, 0.0, 0.4]])
COM = np.array([-0.3, 0.05, 0.1])
CONTROLS = {
    "elevator": ControlCfg(range=(-0.3, 0.4)),
    "aileron": ControlCfg(range=(-0.5, 0.5), time_constant=0.2),
}


@pytest.mark.parametrize("tail", [(), (3,)])
@pytest.mark.parametrize("outside", ["clamp", "extrapolate"])
def test_a_table_is_scipys_interpolation(tail, outside):
    rng = np.random.default_rng(4)
    axes = {
        "alpha": [-0.2, 0.0, 0.1, 0.4], "mach": [0.1, 0.6, 0.9], "flap": [0.0, 1.0],
    }  # fmt: skip
    values = rng.normal(size=(4, 3, 2, *tail))
    points = np.stack([rng.uniform(-0.5, 1.3, 50) for _ in axes], axis=-1)
    table = Table(axes, values, tail=tail, outside=outside)
    given = {name: torch.as_tensor(points[:, k]) for k, name in enumerate(axes)}
    ask = points
    if outside == "clamp":
        ask = np.stack(
            [np.clip(points[:, k], a[0], a[-1]) for k, a in enumerate(axes.values())],
            axis=-1,
        )
    truth = RegularGridInterpolator(
        tuple(axes.values()), values, bounds_error=False, fill_value=None
    )(ask)
    np.testing.assert_allclose(table(given), truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("outside", ["clamp", "extrapolate"])
def test_a_table_may_have_one_point_along_an_axis(outside):
    axes = {"alpha": [0.0, 0.4], "mach": [0.3], "flap": [0.0, 1.0]}
    values = np.array([[[1.0, 2.0]], [[4.0, 8.0]]])
    given = {name: torch.tensor([x]) for name, x in
             (("alpha", 0.1), ("mach", 0.7), ("flap", 0.25))}  # fmt: skip
    found = Table(axes, values, outside=outside)(given)
    truth = RegularGridInterpolator((axes["alpha"], axes["flap"]), values[:, 0])
    np.testing.assert_allclose(found, truth([0.1, 0.25]), rtol=1e-6)


def test_a_table_of_each_world_and_a_factor():
    values = np.arange(12.0).reshape(3, 4)
    table = Table({"x": [0, 1, 2, 3]}, values, per_world=True, times="rate")
    given = {"x": torch.tensor([0.5, 1.5, 3.0]), "rate": torch.tensor([1.0, -2.0, 3])}
    np.testing.assert_allclose(table(given), [0.5, -11.0, 33.0], rtol=1e-6)


def test_wrong_tables_raise():
    table = Table({"x": [0.0, 1.0]}, [1.0, 2.0], outside="raise")
    for wrong, name in (
        (lambda: table({"x": torch.tensor([0.5, 1.5])}), "x"),
        (lambda: table({"y": torch.tensor([0.5])}), "x"),
        (lambda: Table({"x": [0.0, 0.0]}, [1.0, 2.0]), "breakpoints"),
        (lambda: Table({"x": [0.0, 1.0]}, [1.0, 2.0, 3.0]), "values"),
        (lambda: Table({}, 1.0), "axes"),
        (lambda: Table({"x": [0.0, 1.0]}, [1.0, np.nan]), "values"),
        (lambda: Table({"x": [0, 1]}, [1, 2], outside="zero"), "zero"),
    ):
        with raises((InvalidInputError, ShapeError, UnknownNameError), name=name):
            wrong()


def flying(num_envs=2, **change):
    given = {
        "com": COM, "gravity": 0.0, "controls": CONTROLS,
        "angles_E_to_BP1_izyx": (10.0, -20.0, 30.0), "velocity_E__E": (25.0, 2.0, 3.0),
        "ang_vel_b": (0.5, -0.4, 0.3), "position_E_Eo": (0.0, 0.0, -1500.0),
        "air": Air(wind=(2.0, -3.0, 1.0)),
    }  # fmt: skip
    return FreeFlight(2.5, INERTIA, num_envs, **{**given, **change})


def loads_of(flight, world=0):
    """Force at the Cg and moment about it, body axes, that explain the motion."""
    state = flight.get_state()
    data = flight.sim.scene["aircraft"].data
    rot = state.R_pas_E_to_BP1[world].numpy()
    force = 2.5 * rot @ data.body_com_lin_acc_w[world, 0].numpy()
    omega = state.ang_vel_b[world].numpy()
    turning = rot @ data.body_com_ang_acc_w[world, 0].numpy()
    return force, INERTIA @ turning + np.cross(omega, INERTIA @ omega)


DERIVATIVES = {
    "CL": {"0": 0.3, "alpha": 5.1, "q_hat": 7.0, "elevator": 0.4},
    "CD": {"0": 0.02},
    "CY": {"beta": -0.3, "r_hat": 0.2, "aileron": 0.1},
    "Cl": {"beta": -0.1, "p_hat": -0.5, "r_hat": 0.12, "aileron": 0.3},
    "Cm": {"0": 0.05, "alpha": -0.8, "q_hat": -12.0, "elevator": -1.1},
    "Cn": {"beta": 0.09, "p_hat": -0.03, "r_hat": -0.1, "aileron": -0.02},
}
AREA, SPAN, CHORD = 0.32, 1.7, 0.21


@pytest.mark.parametrize("axes", ["wind", "stability"])
@pytest.mark.parametrize("point", ["com", (0.2, -0.1, 0.05)], ids=str)
def test_stability_derivatives_are_the_textbooks_sum(axes, point):
    flight = flying()
    flight.add_load(
        Aerodynamics(AREA, SPAN, CHORD, DERIVATIVES, axes=axes, point=point,
                     induced_drag=0.05)
    )  # fmt: skip
    flight.set_controls({"elevator": [0.1, -0.2], "aileron": [0.3, 0.2]}, settled=True)
    rot = Rotation.from_euler("ZYX", [30, -20, 10], degrees=True).as_matrix().T
    u, v, w = rot @ (np.array([25.0, 2.0, 3.0]) - [2.0, -3.0, 1.0])
    speed = np.sqrt(u * u + v * v + w * w)
    alpha, beta = np.arctan2(w, u), np.arcsin(v / speed)
    p, q, r = 0.5, -0.4, 0.3
    hats = {
        "p_hat": p * SPAN / 2 / speed, "q_hat": q * CHORD / 2 / speed,
        "r_hat": r * SPAN / 2 / speed,
    }  # fmt: skip
    # ρ at 1500 m: T = 288.15 − 0.0065 h, h the geopotential altitude.
    h = 6356766 * 1500 / (6356766 + 1500)
    rho = 1.225 * (1 - 0.0065 * h / 288.15) ** 4.2558797
    pressure = 0.5 * rho * speed**2 * AREA
    for world, (elevator, aileron) in enumerate(((0.1, 0.3), (-0.2, 0.2))):
        values = {
            "0": 1.0, "alpha": alpha, "beta": beta, "elevator": elevator,
            "aileron": aileron, **hats,
        }  # fmt: skip
        c = {
            n: sum(values[k] * x for k, x in d.items()) for n, d in DERIVATIVES.items()
        }
        c["CD"] += 0.05 * c["CL"] ** 2
        ahead = np.array([u, v, w]) / speed
        right = np.array([0.0, 1.0, 0.0])
        if axes == "stability":
            ahead = np.array([u, 0, w]) / np.hypot(u, w)
        down = np.cross(ahead, right)
        down /= np.linalg.norm(down)
        right = np.cross(down, ahead)
        force = pressure * (-c["CD"] * ahead + c["CY"] * right - c["CL"] * down)
        moment = pressure * np.array([c["Cl"] * SPAN, c["Cm"] * CHORD, c["Cn"] * SPAN])
        if point != "com":
            moment = moment + np.cross(np.array(point) - COM, force)
        got_force, got_moment = loads_of(flight, world)
        np.testing.assert_allclose(got_force, force, rtol=2e-6)
        np.testing.assert_allclose(got_moment, moment, rtol=1e-5, atol=1e-6)


def test_tables_functions_and_numbers_of_each_world_add_up():
    area = torch.tensor([0.3, 0.6], dtype=F64)
    table = Table({"alpha": [-1.0, 1.0], "elevator": [-0.5, 0.5]}, [[0, 1], [2, 3]])
    damping = Table({"mach": [0.0, 0.2]}, [-1.0, -3.0], times="q_hat")
    aero = Aerodynamics(
        area, SPAN, CHORD,
        {
            "CZ": [table, {"0": [0.1, 0.2]}, lambda v: 0.2 * v["alpha"] ** 2],
            "CX": -0.4,
            "Cm": damping,
        },
        axes="body",
    )  # fmt: skip
    flight = flying()
    flight.add_load(aero)
    flight.set_controls({"elevator": 0.2})
    state = flight.get_state()
    found = aero.coefficients(state)
    for world in range(2):
        alpha, mach = float(state.alpha[world]), float(state.mach[world])
        cz = (alpha + 1) + (0.2 + 0.5) + (0.1, 0.2)[world] + 0.2 * alpha**2
        assert float(found["CZ"][world]) == pytest.approx(cz, rel=1e-12)
        rate = -0.4 * CHORD / 2 / float(state.airspeed[world])
        cm = (-1 - 10 * mach) * rate
        assert float(found["Cm"][world]) == pytest.approx(cm, rel=1e-9)
        force, moment = loads_of(flight, world)
        scale = float(state.dynamic_pressure[world]) * float(area[world])
        want = [-0.4 * scale, 0, scale * cz]
        np.testing.assert_allclose(force, want, atol=1e-9)
        np.testing.assert_allclose(moment, [0, scale * CHORD * cm, 0], atol=1e-9)
    assert set(aero.parameters) >= {"area", "span", "CZ_0"}


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: {"coefficients": {"CX": 1.0}}, "CX"),
        (lambda: {"coefficients": {"CL": [{"0": 1.0}, 2.0]}}, "0"),
        (lambda: {"coefficients": {"CL": {"alpha": [1.0] * 3}}}, "CL_alpha"),
        (lambda: {"coefficients": {"CL": {"alfa": 1.0}}}, "alfa"),
        (lambda: {"coefficients": {"CL": ["0.3", 0.1]}}, "CL_0"),
        (lambda: {"coefficients": {"Cm": None}}, "Cm_0"),
        (
            lambda: {"coefficients": {"CL": lambda v: v["alpha"][:, None]}},
            "CL",
        ),
        (lambda: {"coefficients": {}, "axes": "wing"}, "wing"),
        (lambda: {"coefficients": {}, "area": 0.0}, "area"),
        (
            lambda: {"coefficients": {}, "axes": "body", "induced_drag": 0.1},
            "induced_drag",
        ),
    ],
)
def test_wrong_coefficients_say_which(make, name):
    given = {"area": AREA, "span": SPAN, "chord": CHORD, **make()}

    def fly():
        flight = flying()
        flight.add_load(Aerodynamics(**given))
        flight.step()

    with raises((InvalidInputError, ShapeError, UnknownNameError), name=name):
        fly()


def test_controls_lag_saturate_and_are_part_of_the_state():
    flight = flying(num_envs=3, timestep=0.01)
    flight.set_controls({"aileron": [0.4, 0.9, -0.2], "elevator": 2.0})
    flight.set_controls({"elevator": [0.1, -9.0]}, env_ids=[2, 0])
    saved = flight.save_state()
    flight.step(30)
    state = flight.get_state()
    want = np.array([0.4, 0.5, -0.2]) * (1 - np.exp(-0.3 / 0.2))
    np.testing.assert_allclose(state.controls["aileron"], want, atol=1e-7)
    np.testing.assert_allclose(state.controls["elevator"], [-0.3, 0.4, 0.1])
    rates = (np.array([0.4, 0.5, -0.2]) - want) / 0.2
    np.testing.assert_allclose(state.control_rates["aileron"], rates, atol=1e-6)
    flight.restore_state(saved)
    assert flight.get_state().controls["aileron"].tolist() == [0, 0, 0]
    flight.set_controls({"aileron": 0.9}, env_ids=[1], settled=True)
    assert flight.get_state().controls["aileron"].tolist() == [0, 0.5, 0]
    for wrong, name in (
        ({"rudder": 0.1}, "rudder"),
        ({"elevator": [0.1, 0.2]}, "elevator"),
    ):
        with raises((ShapeError, UnknownNameError), name=name):
            flight.set_controls(wrong)
    for cfg, name in (
        (ControlCfg(range=(1.0, 0.0)), "flap"),
        (ControlCfg(time_constant=-1.0), "time_constant"),
    ):
        with raises(InvalidInputError, name=name):
            flying(controls={"flap": cfg})


def test_controls_lag_after_an_actuator_with_several_controls():
    """Such as a gimbal of the user's own."""
    flight = flying(
        timestep=0.01, gravity=9.8,
        parts="""<body name="gimbal"><joint name="ball" type="ball"/>
          <inertial pos="0 0 0" mass="0.1" diaginertia="0.01 0.01 0.01"/></body>""",
        sections={"actuator": '<orientation name="aim" joint="ball" kp="0.1"/>'},
    )  # fmt: skip
    flight.set_controls({"aileron": [0.4, -0.2], "elevator": 0.1})
    flight.step(30)
    state = flight.get_state()
    want = np.array([0.4, -0.2]) * (1 - np.exp(-0.3 / 0.2))
    np.testing.assert_allclose(state.controls["aileron"], want, atol=1e-7)
    rates = (np.array([0.4, -0.2]) - want) / 0.2
    np.testing.assert_allclose(state.control_rates["aileron"], rates, atol=1e-6)


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_the_range_of_a_control_is_not_rounded(engine):
    controls = {"flap": ControlCfg(range=(-0.35, 0.7)), "throttle": ControlCfg()}
    flight = flying(engine=engine, integrator="Euler", controls=controls)
    assert flight.control_range("flap") == (-0.35, 0.7)
    assert flight.control_range("throttle") == (-np.inf, np.inf)


def test_two_aircraft_have_controls_and_loads_of_their_own():
    cfg = {"mass": 2.0, "inertia": np.eye(3), "controls": CONTROLS}
    flight = FreeFlight(
        fleet={
            "one": AircraftCfg(**cfg, velocity_E__E=(20.0, 0, 0)),
            "two": AircraftCfg(**cfg, velocity_E__E=(10.0, 0, 0)),
        },
        gravity=0.0,
        num_envs=2,
    )
    for k, name in enumerate(("one", "two")):
        lift = {"CL": {"elevator": 1.0}}
        flight.add_load(Aerodynamics(0.5 + k, 1.0, 1.0, lift), name)
    flight.set_controls({"elevator": 0.2}, aircraft="two")
    flight.set_controls({"elevator": 0.1}, aircraft="one")
    for name, area, speed, cl in (("one", 0.5, 20, 0.1), ("two", 1.5, 10, 0.2)):
        acc = flight.sim.scene[name].data.body_com_lin_acc_w[1, 0, 2]
        want = -0.5 * 1.225 * speed**2 * area * cl / 2.0
        assert float(acc) == pytest.approx(want, rel=1e-5)


def test_a_rotor_pushes_turns_and_resists_turning():
    """Thrust at its place, drag torque, gyroscopic torque, reaction to speeding up."""
    place, axis = np.array([0.2, -0.1, -0.05]), np.array([0.1, 0.2, -1.0])
    controls = {"front": ControlCfg(range=(0.0, 900.0), time_constant=0.1)}
    flight = flying(
        controls=controls, air=Air(ExponentialAtmosphere(0.9, 1e9)), com=COM,
    )  # fmt: skip
    flight.add_load(
        Rotor(
            "front", 2e-5, 3e-7, position=place, axis=axis, direction=-1, inertia=4e-4
        )
    )
    flight.set_controls({"front": [400.0, 300.0]}, settled=True)
    flight.set_controls({"front": [500.0, 300.0]})
    along = axis / np.linalg.norm(axis)
    omega = np.array([0.5, -0.4, 0.3])
    for world, (speed, gain) in enumerate(((400.0, 1000.0), (300.0, 0.0))):
        rho = 0.9 / 1.225
        force = 2e-5 * speed**2 * rho * along
        moment = 3e-7 * speed**2 * rho * along  # against a left-handed rotation
        moment = moment + 4e-4 * gain * along + np.cross(omega, 4e-4 * speed * along)
        moment = moment + np.cross(place - COM, force)
        got_force, got_moment = loads_of(flight, world)
        np.testing.assert_allclose(got_force, force, rtol=1e-5)
        np.testing.assert_allclose(got_moment, moment, rtol=1e-4, atol=1e-7)


def test_a_spinning_rotor_precesses_as_a_gyroscope_with_two_bodies():
    """The same as a model whose rotor is a body of its own, on a bearing."""
    spin, moment = 300.0, np.diag([2e-4, 2e-4, 4e-4])
    one = FreeFlight(
        2.0, np.diag([0.02, 0.03, 0.04]) + np.diag([2e-4, 2e-4, 0]), gravity=0.0,
        controls={"rotor": ControlCfg()}, ang_vel_b=(0.6, -0.3, 0.4), timestep=0.002,
    )  # fmt: skip
    one.add_load(Rotor("rotor", 0.0, axis=(0, 0, 1), inertia=4e-4))
    one.set_controls({"rotor": spin})
    parts = """<body name="rotor"><joint name="spin" axis="0 0 1"/>
      <inertial pos="0 0 0" mass="1e-6" diaginertia="2e-4 2e-4 4e-4"/></body>"""
    two = FreeFlight(
        2.0, np.diag([0.02, 0.03, 0.04]), gravity=0.0, parts=parts, timestep=0.002,
        ang_vel_b=(0.6, -0.3, 0.4),
    )  # fmt: skip
    # With the airframe's own rate: the load model's spin is against the airframe and
    # steady, the bearing's is free, so its axial momentum is what stays.
    two.sim.data.qvel[:, 6] = spin
    assert moment[2, 2] == 4e-4
    for flight in (one, two):
        flight.step(200)
    got, want = (f.get_state().ang_vel_b[0, :2].numpy() for f in (one, two))
    np.testing.assert_allclose(got, want, atol=2e-3)
    assert np.abs(want - [0.6, -0.3]).max() > 0.3


def test_a_propeller_by_its_advance_ratio():
    ratios, thrust, power = [0.0, 0.5, 1.0], [0.1, 0.08, 0.0], [0.05, 0.048, 0.02]
    prop = Propeller(
        "prop", 0.4, Table({"advance_ratio": ratios}, thrust),
        Table({"advance_ratio": ratios}, power), position=(0.5, 0.0, 0.0),
    )  # fmt: skip
    flight = flying(controls={"prop": ControlCfg()}, air=Air(wind=(2.0, -3.0, 1.0)))
    flight.add_load(prop)
    flight.set_controls({"prop": [300.0, 600.0]})
    state = flight.get_state()
    for world, speed in enumerate((300.0, 600.0)):
        n = speed / 2 / np.pi
        j = float(state.air_vel_b[world, 0]) / (n * 0.4)
        rho = float(state.density[world])
        push = np.interp(j, ratios, thrust) * rho * n**2 * 0.4**4
        torque = np.interp(j, ratios, power) * rho * n**3 * 0.4**5 / speed
        force, moment = loads_of(flight, world)
        np.testing.assert_allclose(force, [push, 0, 0], rtol=1e-9, atol=1e-9)
        arm = np.cross(np.array([0.5, 0, 0]) - COM, force)
        np.testing.assert_allclose(moment, arm - [torque, 0, 0], rtol=1e-7, atol=1e-9)
    for wrong, name in (
        (lambda: Rotor("x", -1.0), "thrust_coefficient"),
        (lambda: Rotor("x", 1.0, direction=0), "direction"),
        (lambda: Rotor("x", 1.0, axis=(0, 0, 0)), "axis"),
        (
            lambda: Propeller("x", 1.0, Table({"j": [0]}, [1.0]),
                              Table({"j": [0]}, [1.0])),
            "thrust_table",
        ),
    ):  # fmt: skip
        with raises(InvalidInputError, name=name):
            wrong()
    late = flying(integrator=RK4())
    late.add_load(Rotor("tail", 1e-5))
    with raises(UnknownNameError, name="tail"):
        late.step()


def test_corners_of_a_table_are_its_values():
    values = np.random.default_rng(1).normal(size=(2, 3))
    table = Table({"a": [0, 1], "b": [0, 2, 5]}, values)
    for (i, a), (j, b) in itertools.product(enumerate([0, 1]), enumerate([0, 2, 5])):
        got = table({"a": torch.tensor([a]).double(), "b": torch.tensor([b]).double()})
        assert float(got) == values[i, j]
