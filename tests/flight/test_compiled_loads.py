"""Loads of aircraft in the compiled core, against those of Python and of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inside import (
    compiled_models_of,
    has_called_from_core,
    tables_of,
    take_blocks,
)
from tests.raised import raises

from simstate import InvalidInputError
from simstate.base.errors import UnknownNameError
from simstate.engine import core
from simstate.flight import (
    Aerodynamics,
    Air,
    ControlCfg,
    ExponentialAtmosphere,
    FreeFlight,
    Propeller,
    Rotor,
    StandardAtmosphere,
    Table,
    WindField,
)
from simstate.flight.aerodynamics import VARIABLES
from simstate.flight.free_flight import STANDARD_GRAVITY
from simstate.integrate import DP54, RK4

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
NUM = 3
INERTIA = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.0], [-0.02, 0.0, 0.4]])
CONTROLS = {
    "elevator": ControlCfg(range=(-0.3, 0.4)),
    "aileron": ControlCfg(range=(-0.5, 0.5), time_constant=0.2),
    "spin": ControlCfg(range=(0.0, 900.0), time_constant=0.3),
    "fan": ControlCfg(),
}
POINT = (-0.1, 0.04, 0.02)


def aerodynamics(axes="wind", point=POINT):
    rng = np.random.default_rng(7)
    by_world = rng.normal(0.1, 0.02, (NUM, 4, 3))
    grid = Table(
        {"alpha": [-0.3, 0.0, 0.2, 0.5], "mach": [0.05, 0.1, 0.3]},
        by_world,
        per_world=True,
    )
    damping = Table(
        {"beta": [-0.2, 0.1]}, [-4.0, -6.0], times="q_hat", outside="extrapolate"
    )
    forces = ("CX", "CY", "CZ") if axes == "body" else ("CD", "CY", "CL")
    slope = -4.5 if axes == "body" else 4.5  # CZ is down
    coefficients = {
        forces[0]: [0.03, grid],
        forces[1]: {"beta": -0.4, "aileron": 0.1},
        forces[2]: {
            "0": [0.2, 0.3, 0.25],
            "alpha": slope,
            "elevator": 0.4,
            "mach": 0.7,
        },
        "Cl": {"beta": -0.05, "p_hat": -0.5, "aileron": 0.2, "r_hat": 0.1},
        "Cm": [{"alpha": -0.6, "elevator": -1.1}, damping],
        "Cn": {"beta": 0.07, "r_hat": -0.2, "airspeed": 1e-4, "altitude": 1e-6},
    }
    drag = {} if axes == "body" else {"induced_drag": [0.05, 0.06, 0.04]}
    return Aerodynamics(
        [0.5, 0.6, 0.55], 2.2, 0.27, coefficients, axes=axes, point=point, **drag
    )


def rotor():
    return Rotor(
        "spin", [2e-5, 3e-5, 2.5e-5], 4e-7, position=(0.3, -0.2, 0.1),
        axis=(0.1, 0.2, -1.0), direction=-1, inertia=2e-4,
    )  # fmt: skip


def propeller():
    ratio = {"advance_ratio": [0.0, 0.4, 0.9, 1.3]}
    return Propeller(
        "fan", 0.4, Table(ratio, [0.1, 0.08, 0.03, -0.02]),
        Table(ratio, [0.05, 0.06, 0.04, 0.01]), position=(0.4, 0.05, -0.03),
        axis=(1.0, 0.1, 0.05), inertia=1e-4,
    )  # fmt: skip


def sounding(outside="clamp"):
    axes = {"time": [0.0, 2.0], "height": [0.0, 600.0, 1500.0], "north": [-1e3, 1e3]}
    velocity = np.random.default_rng(5).normal(0, 4, (2, 3, 2, 3))
    return WindField(axes, velocity, outside)


AIRS = {
    "standard": lambda: Air(wind=[[3.0, -2.0, 0.5], [1, 2, 3], [0, 4, -1]]),
    "hot": lambda: Air(
        StandardAtmosphere(temperature_offset=[0.0, 18.0, -12.0], density_factor=0.95),
        elevation=[100.0, 83e3, 84e3],
    ),
    "high": lambda: Air(
        StandardAtmosphere("geopotential", temperature_offset=5.0),
        elevation=[89e3, 105e3, 140e3],
    ),
    "exponential": lambda: Air(ExponentialAtmosphere([1.2, 1.1, 1.3], 8000.0, 30.0)),
    "field": lambda: Air(wind=sounding()),
}


def flying(*loads, air=None, scheme=None, **options):
    flight = FreeFlight(
        1.4, INERTIA, NUM, com=(-0.3, 0.05, 0.1), controls=CONTROLS, air=air,
        integrator=scheme or RK4(), timestep=0.01, **options,
    )  # fmt: skip
    rng = np.random.default_rng(11)
    turns = np.linalg.qr(rng.normal(size=(NUM, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    flight.set_state(
        position_E_Eo=rng.normal((0.0, 0.0, -500.0), 50.0, (NUM, 3)),
        R_pas_E_to_BP1=turns,
        velocity_E__E=np.einsum(
            "nij,ni->nj", turns, rng.normal([25, 1, 3], 2, (NUM, 3))
        ),
        ang_vel_b=rng.normal(0, 0.3, (NUM, 3)),
    )
    flight.set_controls({"aileron": [0.1, -0.7, 0.2], "elevator": [0.05, 0.6, -0.1]})
    flight.set_controls({"spin": [400.0, 500.0, 600.0]}, settled=True)
    flight.set_controls({"spin": [600.0, 1200.0, 300.0], "fan": [300.0, 120.0, 500.0]})
    for load in loads:
        flight.add_load(load)
    return flight


MODELS = {
    "wind": lambda: [aerodynamics()],
    "stability": lambda: [aerodynamics("stability", "origin")],
    "body": lambda: [aerodynamics("body", "com")],
    "rotor": lambda: [rotor()],
    "propeller": lambda: [propeller()],
    "all": lambda: [aerodynamics(), rotor(), propeller()],
}


def agree(make, monkeypatch, tolerance=1e-11, **options):
    """Fly in the core and by blocks; return both ends."""
    flights = []
    for by_blocks in (False, True):
        flight = flying(*make(), **{k: v() for k, v in options.items()})
        if by_blocks:
            take_blocks(flight.sim, monkeypatch)
        else:
            assert compiled_models_of(flight.sim) is not None
        flight.step(12)
        flights.append(flight)
    ours, theirs = (flight.sim.state for flight in flights)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    return flights


@pytest.mark.parametrize("model", MODELS)
def test_a_model_in_the_core_is_that_of_python(model, monkeypatch):
    flight, _ = agree(MODELS[model], monkeypatch, air=AIRS["standard"])
    still = flying(air=AIRS["standard"]())
    still.step(12)
    change = (flight.sim.data.qvel - still.sim.data.qvel).abs().amax(dim=1)
    assert bool((change > 1e-3).all())


def test_derivatives_by_every_variable_are_in_the_core(monkeypatch):
    names = ["0", *VARIABLES, *CONTROLS]
    sizes = dict.fromkeys(names, 0.1) | {
        "airspeed": 2e-3, "altitude": 1e-4, "spin": 2e-4, "fan": 3e-4,
    }  # fmt: skip
    both = {"CL": sizes, "Cn": {name: -0.1 * x for name, x in sizes.items()}}
    agree(lambda: [Aerodynamics(0.5, 2.2, 0.27, both)], monkeypatch)


@pytest.mark.parametrize("air", AIRS)
def test_air_in_the_core_is_that_of_python(air, monkeypatch):
    agree(MODELS["all"], monkeypatch, air=AIRS[air])


def test_adaptive_schemes_fly_in_the_core(monkeypatch):
    agree(MODELS["all"], monkeypatch, 1e-9, air=AIRS["field"], scheme=DP54)


def test_parameters_and_tables_are_live(monkeypatch):
    flights = []
    for by_blocks in (False, True):
        models = MODELS["all"]()
        air = AIRS["standard"]()
        flight = flying(*models, air=air)
        if by_blocks:
            take_blocks(flight.sim, monkeypatch)
        flight.step(2)
        plain = flight.sim.state.clone()
        models[0].parameters["CL_alpha"] = [4.0, 5.0, 3.0]
        models[1].parameters["thrust_coefficient"][1] = 4e-5
        air.parameters["wind"][2] = torch.tensor([9.0, 1.0, 2.0]).double()
        for table in tables_of(models[2]):
            table.values[1] += 0.02
        flight.step(4)
        flights.append(flight.sim.state.clone())
        assert not torch.equal(plain, flights[-1])
    torch.testing.assert_close(*flights, rtol=1e-11, atol=1e-11)


def test_a_function_among_coefficients_is_called():
    def stall(variables):
        return -0.3 * torch.sin(4 * variables["alpha"])

    flight = flying(Aerodynamics(0.5, 2.2, 0.27, {"CL": [{"alpha": 5.0}, stall]}))
    flight.add_load(rotor())
    assert compiled_models_of(flight.sim) is None
    flight.step()
    assert has_called_from_core(flight.sim)


def test_a_subclass_is_called():
    class Weak(Rotor):
        def thrust_and_torque(self, state, speed, axis):
            thrust, torque = super().thrust_and_torque(state, speed, axis)
            return 0.5 * thrust, torque

    class Calm(Air):
        def wind(self, t, position_e):
            return 0 * super().wind(t, position_e)

    class Thin(ExponentialAtmosphere):
        def at(self, altitude):
            return super().at(altitude + 3000.0)

    weak = Weak("spin", 2e-5, 4e-7)
    assert compiled_models_of(flying(weak).sim) is None
    for air in (Calm(wind=(5.0, 0.0, 0.0)), Air(Thin())):
        assert compiled_models_of(flying(rotor(), air=air).sim) is None
    assert compiled_models_of(flying(rotor()).sim) is not None


def test_errors_are_those_of_python():
    with raises(UnknownNameError, name="rudder"):
        flying(Aerodynamics(0.5, 2.2, 0.27, {"CY": {"rudder": 1.0}})).step()
    with raises(UnknownNameError, name="engine"):
        flying(Rotor("engine", 2e-5)).step()
    table = Table({"alpha": [-1e-3, 1e-3]}, [0.1, 0.2], outside="raise")
    with raises(InvalidInputError, name="alpha"):
        flying(Aerodynamics(0.5, 2.2, 0.27, {"CL": table})).step()


def test_forces_are_those_of_numpy():
    """The acceleration at the start, by an independent sum in world axes."""
    flight = flying(aerodynamics("wind", "com"), air=AIRS["exponential"](), gravity=0.0)
    state, model = flight.get_state(), aerodynamics("wind", "com")
    density = np.array([1.2, 1.1, 1.3]) * np.exp(
        -(-state.position_E_Eo[:, 2].numpy() - 30.0) / 8000.0
    )
    rot = state.R_pas_E_to_BP1.numpy()
    vel = np.einsum("nij,nj->ni", rot, state.velocity_E__E.numpy())
    speed = np.linalg.norm(vel, axis=1)
    alpha, beta = np.arctan2(vel[:, 2], vel[:, 0]), np.arcsin(vel[:, 1] / speed)
    mach = speed / np.sqrt(1.4 * 8314.32 / 28.9644 * 288.15)
    lift = np.array([0.2, 0.3, 0.25]) + 4.5 * alpha + 0.7 * mach
    lift += 0.4 * np.clip([0.05, 0.6, -0.1], -0.3, 0.4)
    values = np.random.default_rng(7).normal(0.1, 0.02, (NUM, 4, 3))
    axes = ([-0.3, 0.0, 0.2, 0.5], [0.05, 0.1, 0.3])
    drag = 0.03 + np.array([0.05, 0.06, 0.04]) * lift**2
    for k in range(NUM):
        by_mach = [np.interp(alpha[k], axes[0], column) for column in values[k].T]
        drag[k] += np.interp(mach[k], axes[1], by_mach)
    side = -0.4 * beta  # the aileron has not moved yet
    pressure = 0.5 * density * speed**2 * model.parameters["area"].numpy()
    ahead = vel / speed[:, None]
    down = np.stack([-np.sin(alpha), 0 * alpha, np.cos(alpha)], axis=1)
    right = np.cross(down, ahead)
    force = pressure[:, None] * (
        -drag[:, None] * ahead + side[:, None] * right - lift[:, None] * down
    )
    want = np.einsum("nij,ni->nj", rot, force) / 1.4
    before = state.velocity_E__E.clone()
    flight.sim.integration.timestep = 1e-6
    flight.step()
    got = (flight.get_state().velocity_E__E - before) / 1e-6
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_subclass_of_a_table_is_called():
    class Doubled(Table):
        def __call__(self, variables):
            return 2.0 * super().__call__(variables)

    axes, values = {"alpha": [-0.4, 0.1, 0.6]}, np.array([-0.7, 0.3, 0.9])
    ends = []
    for table in (Doubled(axes, values), Table(axes, 2.0 * values)):
        flight = flying(Aerodynamics(0.5, 2.2, 0.27, {"CL": table}))
        flight.step(5)
        ends.append(flight.sim.data.qvel.clone())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)


def test_tables_that_are_made_in_inference_mode():
    with torch.inference_mode():
        values = torch.tensor([-0.7, 0.3, 0.9], dtype=torch.float64)
        table = Table({"alpha": [-0.4, 0.1, 0.6]}, values)
        flight = flying(Aerodynamics(0.5, 2.2, 0.27, {"CL": table}))
        flight.step(2)
        table.values[:] = 0.0
        before = flight.get_state().velocity_E__E.clone()
        flight.step()
    change = flight.get_state().velocity_E__E - before
    want = torch.tensor([[0.0, 0.0, 0.01 * STANDARD_GRAVITY]]).double().expand(NUM, 3)
    torch.testing.assert_close(change, want, rtol=0, atol=1e-7)


def test_an_aircraft_without_controls_flies_in_the_core():
    """It slows down by its drag alone: 1/v rises evenly, in closed form."""
    area, drag, speed, mass = 0.5, 0.08, 30.0, 1.4
    flight = FreeFlight(
        mass, INERTIA, gravity=0.0, velocity_E__E=(speed, 0.0, 0.0),
        air=Air(), integrator=RK4(), timestep=0.01,
    )  # fmt: skip
    flight.add_load(Aerodynamics(area, 2.0, 0.3, {"CD": {"0": drag}}))
    density = float(flight.get_state().density[0])
    flight.step(100)
    assert compiled_models_of(flight.sim) is not None
    wanted = 1 / (1 / speed + 0.5 * density * area * drag / mass)
    assert float(flight.get_state().velocity_E__E[0, 0]) == pytest.approx(wanted)
