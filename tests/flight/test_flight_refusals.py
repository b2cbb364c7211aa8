"""What a flight cannot do: each case has one fault."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import InvalidInputError, ShapeError, Simulation, UnknownNameError
from simstate.flight import (
    Aerodynamics,
    Air,
    AircraftCfg,
    ControlCfg,
    FreeFlight,
    Load,
    StandardAtmosphere,
    Table,
    WindField,
    linearise_flight,
)

pytestmark = pytest.mark.fast

INERTIA = np.diag([0.2, 0.3, 0.4])
PART = """<body name="fin" pos="0.1 0 0.2"><joint name="turn" axis="0 0 1"/>
  <inertial pos="0 0 0" mass="0.1" diaginertia="0.01 0.01 0.01"/></body>"""


def make(**given) -> FreeFlight:
    return FreeFlight(1.5, INERTIA, **given)


def test_air_is_of_one_simulation():
    air = Air()
    make(air=air)
    with pytest.raises(InvalidInputError):
        make(air=air)


def test_a_density_is_not_an_atmosphere():
    with raises(InvalidInputError, name="atmosphere"):
        Air(1.225)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"air": StandardAtmosphere()}, "air"),
        ({"controls": ["flap"]}, "controls"),
        ({"controls": {"flap": (-0.4, 0.4)}}, "controls['flap']"),
    ],
)
def test_air_and_controls_are_objects_of_their_classes(given, name):
    with raises(InvalidInputError, name=name):
        make(**given)


@pytest.mark.parametrize("settled", [False, True])
def test_commands_of_controls_are_finite(settled):
    lag = ControlCfg(range=(-0.5, 0.5), time_constant=0.1)
    flight = make(num_envs=2, controls={"flap": ControlCfg(), "tab": lag})
    flight.set_controls({"flap": [0.3, 0.2], "tab": 0.1}, settled=True)
    before = flight.sim.state.clone()
    with raises(InvalidInputError, name="tab"):
        flight.set_controls({"flap": 0.1, "tab": [0.2, np.nan]}, settled=settled)
    assert torch.equal(flight.sim.state, before)


class Wrong:
    """An atmosphere with a mistake: what it returns, or an attribute that is none."""

    def __init__(self, found):
        self.found = found

    def at(self, altitude):
        return altitude.exponential if self.found is None else self.found


@pytest.mark.parametrize("axes", [{"north": [0.0, 9.0]}, None])
def test_a_mistake_in_an_atmosphere_is_not_one_of_the_state(axes):
    wind = (1.0, 2.0, 0.5) if axes is None else WindField(axes, np.ones((2, 3)))
    with raises(InvalidInputError, name="atmosphere.at(altitude)"):
        _ = make(air=Air(Wrong(0.02), wind)).get_state().dynamic_pressure
    with raises(AttributeError, name="exponential"):
        _ = make(air=Air(Wrong(None), wind)).get_state().dynamic_pressure
    with raises(AttributeError, name="dynamic"):
        _ = make(air=Air(wind=wind)).get_state().dynamic


def test_a_state_without_air_has_no_airspeed():
    state = dataclasses.replace(make().get_state(), air=None)
    with pytest.raises(InvalidInputError):
        _ = state.dynamic_pressure


def test_one_of_several_aircraft_is_named():
    both = FreeFlight(
        fleet={name: AircraftCfg(mass=1.0, inertia=INERTIA) for name in ("a", "b")}
    )
    for call in (both.get_state, both.mean_acceleration):
        with raises(InvalidInputError, name="aircraft"):
            call()
    with raises(UnknownNameError, name="c"):
        both.get_state("c")
    with pytest.raises(InvalidInputError):
        linearise_flight(both, aircraft="a")
    with pytest.raises(InvalidInputError):
        both.mean_acceleration("a")  # without a coupled load


def test_a_flight_with_moving_parts_has_no_modes_of_a_rigid_one():
    flight = make(parts=PART)
    with pytest.raises(InvalidInputError):
        linearise_flight(flight)
    with raises(UnknownNameError, name="rudder"):
        linearise_flight(make(), ["rudder"])


def test_a_load_on_a_part_has_no_wind_axes():
    flight = make(parts=PART, velocity_E__E=(20.0, 1.0, 2.0))
    force = torch.ones(1, 3, dtype=torch.float64)
    axes = "wind"
    flight.add_load(lambda t, state: Load(force=force, axes=axes, body="fin"))
    with pytest.raises(InvalidInputError):
        flight.step()
    axes = "body"
    flight.step()


def test_a_table_has_a_row_for_each_world():
    sim = Simulation(make(num_envs=3).sim.model, 3)
    table = Table({"x": [0.0, 1.0]}, np.ones((3, 2)), per_world=True)
    table.attach(sim)
    fewer = Table({"x": [0.0, 1.0]}, np.ones((2, 2)), per_world=True)
    with raises(ShapeError, name="values"):
        fewer.attach(sim)
    Table({"x": [0.0, 1.0]}, np.ones(2)).attach(sim)


@pytest.mark.parametrize(("n", "every"), [(0, 1), (4, 0), (4, 3), (-4, 2)])
def test_samples_of_a_flight_divide_its_steps(n, every):
    with pytest.raises(InvalidInputError):
        make().fly(n, every)


def test_an_aircraft_without_controls_has_none():
    flight = make(num_envs=2, velocity_E__E=(20.0, 1.0, 2.0))
    flight.add_load(Aerodynamics(0.4, 1.2, 0.3, {"CL": {"0": 0.3, "alpha": 4.0}}))
    flight.step(2)
    state = flight.get_state()
    assert state.controls == state.control_rates == {}
    with raises(UnknownNameError, name="elevator"):
        flight.control_range("elevator")
