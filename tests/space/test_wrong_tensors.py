"""Tensors of a wrong shape: what was given, what is allowed, what to do."""

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import Simulation, flight, integrate, space
from simstate.base.errors import InvalidInputError, ShapeError

BODY = """<mujoco><option gravity="0 0 0"/><worldbody><body name="bus"><freejoint/>
<inertial pos="0.1 0 0" mass="12" diaginertia="1 2 2.5"/></body></worldbody></mujoco>"""
TWO, THREE = torch.ones(2, 3) * 7e6, torch.eye(3) * 7e6
POINT = integrate.PointMassGravity


def add(force):
    sim = Simulation(
        mujoco.MjModel.from_xml_string(BODY), 3, integrator=integrate.RK4()
    )
    if isinstance(force, integrate.Process):
        sim.add_process(force)
    else:
        sim.add_force(force)


def glider(**options):
    return flight.FreeFlight(1.0, np.eye(3), 3, **options)


def fleet():
    one = flight.AircraftCfg(mass=1.0, inertia=np.eye(3))
    return flight.FreeFlight(fleet={"lead": one, "wing": one})


CASES = {
    "masses": (lambda: POINT(torch.ones(3)), "position"),
    "frame": (lambda: integrate.MovingFrame(POINT(1.0), TWO, THREE), "position"),
    "frame's rows": (
        lambda: add(integrate.MovingFrame(POINT(1.0), TWO, TWO)), "initial",
    ),
    "rotation": (
        lambda: add(integrate.MovingFrame(
            space.HarmonicGravity(
                space.earth_coefficients(3), space.UniformRotation([1.0, 2.0])
            ), THREE, THREE)), "rate",
    ),
    "elements": (
        lambda: space.OrbitalElements.of(7e6, [0.1, 0.2], [0.1, 0.2, 0.3]),
        "semi_major_axis, eccentricity, inclination, node, periapsis, true_anomaly",
    ),
    "state": (lambda: space.elements_from_state(TWO, THREE), "position, velocity"),
    "kepler": (
        lambda: space.propagate_kepler(THREE, THREE, [1.0, 2.0]),
        "position, velocity, seconds",
    ),
    "times": (
        lambda: space.ecef_from_eci(
            THREE, THREE, torch.zeros(2), space.UniformRotation()
        ), "position, velocity, t",
    ),
    "chief": (
        lambda: space.rtn_from_eci(THREE, THREE, TWO, torch.eye(3)[:2]),
        "position, velocity, chief[0], chief[1]",
    ),
    "mass": (lambda: flight.FreeFlight(torch.ones(3), np.eye(3), 3), "mass"),
    "start": (lambda: glider(position_E_Eo=torch.zeros(3, 3)), "position_E_Eo"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrong_shapes_are_named(name):
    call, wanted = CASES[name]
    with raises(ShapeError, name=wanted):
        call()


def test_one_of_several_aircraft_must_be_named():
    with raises(InvalidInputError, name="aircraft"):
        fleet().get_state()


def test_a_free_flight_takes_what_a_study_gives_it():
    """Seed and global id: world k is the same in any batch."""
    whole, part = (
        flight.FreeFlight(
            1.2, np.diag([0.1, 0.2, 0.25]), n, velocity_E__E=(12.0, 0, 0.5), seed=4,
            first_world=first, timestep=0.05, integrator=integrate.SRIW1(),
        ) for n, first in ((5, 0), (2, 3))
    )  # fmt: skip
    for made in (whole, part):
        made.add_turbulence(flight.DrydenTurbulence("moderate", span=1.6))
        made.step(4)
    own, want = part.get_state().wind_e, whole.get_state().wind_e
    assert torch.equal(own, want[3:])
    assert float(own.abs().min()) > 0
    assert not torch.equal(want[0], want[3])
