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
    "masses": (lambda: POINT(torch.ones(3)), r"3 masses.*\(num_envs, 1\)"),
    "frame": (lambda: integrate.MovingFrame(POINT(1.0), TWO, THREE), "MovingFrame"),
    "frame's rows": (
        lambda: add(integrate.MovingFrame(POINT(1.0), TWO, TWO)), "2 rows.*3 worlds",
    ),
    "rotation": (
        lambda: add(integrate.MovingFrame(
            space.HarmonicGravity(
                space.earth_coefficients(3), space.UniformRotation([1.0, 2.0])
            ), THREE, THREE)), "rate of UniformRotation has 2 rows",
    ),
    "elements": (
        lambda: space.OrbitalElements.of(7e6, [0.1, 0.2], [0.1, 0.2, 0.3]),
        r"eccentricity \(2,\), inclination \(3,\)",
    ),
    "state": (lambda: space.elements_from_state(TWO, THREE), r"position \(2,\)"),
    "kepler": (
        lambda: space.propagate_kepler(THREE, THREE, [1.0, 2.0]), r"seconds \(2,\)",
    ),
    "times": (
        lambda: space.ecef_from_eci(
            THREE, THREE, torch.zeros(2), space.UniformRotation()
        ), r"t \(2,\)",
    ),
    "chief": (
        lambda: space.rtn_from_eci(THREE, THREE, TWO, torch.eye(3)[:2]),
        r"chief\[0\] \(2,\)",
    ),
    "mass": (lambda: flight.FreeFlight(torch.ones(3), np.eye(3), 3), "body_mass"),
    "start": (lambda: glider(position_E_Eo=torch.zeros(3, 3)), "set_state"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrong_shapes_are_named(name):
    call, message = CASES[name]
    with pytest.raises(ShapeError, match=message):
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
