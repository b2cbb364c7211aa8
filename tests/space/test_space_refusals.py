"""Mistakes of space flight: each case has one fault, and the error names it."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import InvalidInputError, SimStateError
from simstate.flight import StandardAtmosphere
from simstate.space import (
    EARTH,
    MARS,
    EarthRotation,
    Ephemeris,
    Epoch,
    Gyro,
    HarmonicGravity,
    OrbitalElements,
    PlanetAir,
    ReactionWheelCfg,
    StarTracker,
    UniformRotation,
    earth_coefficients,
    ecef_from_eci,
    eci_from_ecef,
    elements_from_state,
    j2_rates,
    moon,
    position_from_geodetic,
    propagate_kepler,
    pulses,
    rot_ned_fixed,
    rot_rtn_eci,
    sun,
)
from simstate.step import MovingFrame, PointMassGravity

pytestmark = pytest.mark.fast

POS, VEL = [7e6, 1e5, 2e5], [100.0, 7.4e3, 300.0]
EPOCH = Epoch.utc("2024-03-20T06:30:15.25")
DUTY = torch.tensor([[0.2, 0.7], [0.4, 0.1]])
WHEEL = {"axis": (0, 0, 1), "inertia": 0.1, "max_torque": 1.0, "max_speed": 10.0}
GYRO = Gyro("g", "bus", "hub", noise_density=1e-4)
TRACKER = StarTracker("t", "bus", "hub", noise=(1e-5, 1e-5, 1e-4))
KM = EARTH.mu * 1e-9
"""Gravitational parameter of the Earth in km³/s²."""

CASES = {
    "latitude in degrees": (lambda: rot_ned_fixed(48.1, 0.2), "latitude"),
    "negative eccentricity": (lambda: OrbitalElements.of(7e6, -0.1), "eccentricity"),
    "ellipse with a < 0": (lambda: OrbitalElements.of(-7e6, 0.5), "semi_major_axis"),
    "hyperbola with a > 0": (lambda: OrbitalElements.of(7e6, 1.5), "semi_major_axis"),
    "beyond the asymptote": (
        lambda: OrbitalElements.of(-1e7, [1.5, 1.2], true_anomaly=[1.0, 2.7]),
        "true_anomaly",
    ),
    "radial motion": (lambda: elements_from_state(POS, POS), "velocity"),
    "mu in km": (lambda: OrbitalElements.of(7e6, mu=KM), "mu"),
    "mu in km of a state": (lambda: elements_from_state(POS, VEL, KM), "mu"),
    "mu in km of a time": (lambda: propagate_kepler(POS, VEL, 60.0, KM), "mu"),
    "negative mu": (lambda: propagate_kepler(POS, VEL, 60.0, -1.0), "mu"),
    "mu by name": (lambda: OrbitalElements.of(7e6, mu="Earth"), "mu"),
    "another planet's J2": (
        lambda: j2_rates(OrbitalElements.of(4e6, 0.1, 0.5, mu=MARS.mu)), "planet",
    ),
    "a year as epoch": (lambda: Epoch.utc(2024), "date"),
    "before UTC": (lambda: Epoch.utc("1959-12-31T23:00"), "date"),
    "dut1 in ms": (lambda: Epoch.utc("2024-01-01", dut1=-17.5), "dut1"),
    "sun of a date": (lambda: sun("2024-01-01"), "epoch"),
    "moon of a date": (lambda: moon("2024-01-01"), "epoch"),
    "rotation of a date": (lambda: EarthRotation("2024-01-01"), "epoch"),
    "time as text": (
        lambda: ecef_from_eci(POS, VEL, "now", UniformRotation()), "t",
    ),
    "a rate as rotation": (
        lambda: ecef_from_eci(POS, VEL, 0.0, 7.292e-5), "rotation",
    ),
    "a rate as rotation of a field": (
        lambda: HarmonicGravity(earth_coefficients(3), 7.292e-5), "rotation",
    ),
    "a rotation without rate": (
        lambda: eci_from_ecef(POS, VEL, 0.0, UniformRotation().__call__), "rotation",
    ),
    "a kind of rotation": (
        lambda: HarmonicGravity(earth_coefficients(3), UniformRotation), "rotation",
    ),
    "density as atmosphere": (lambda: PlanetAir(EARTH, 1.2e-12), "atmosphere"),
    "a kind of atmosphere": (
        lambda: PlanetAir(EARTH, StandardAtmosphere), "atmosphere",
    ),
    "sensor without attitude": (
        lambda: Gyro("g", "bus", "hub", noise_density=1e-4, rot=(0, 0, 0, 0)), "rot",
    ),
    "sensors without a simulation": (lambda: GYRO.sample(None), "g"),
    "a bias without a simulation": (lambda: GYRO.bias, "g"),
    "a tracker without a simulation": (lambda: TRACKER.sample(None), "t"),
    "a frame without a simulation": (
        lambda: MovingFrame(PointMassGravity(EARTH.mu), POS, VEL).position, "frame",
    ),
    "duty of one world": (lambda: pulses(DUTY[0], 0.5, 0.1), "duty"),
    "body that is not there": (
        lambda: ReactionWheelCfg(name="w", **WHEEL).add_to(mujoco.MjSpec(), "bus"),
        "bus",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_named(case):
    call, name = CASES[case]
    with raises(SimStateError, name=name):
        call()


def test_kilometres_are_a_unit_like_any_other():
    """With μ in km³/s² lengths are in km."""
    orbit = OrbitalElements.of(7000.0, 0.01, mu=KM)
    period = 2 * math.pi * math.sqrt(7e6**3 / EARTH.mu)
    assert float(orbit.period) == pytest.approx(period)
    pos, vel = (np.array(x) / 1e3 for x in (POS, VEL))
    found, _ = propagate_kepler(pos, vel, 60.0, KM)
    want, _ = propagate_kepler(POS, VEL, 60.0)
    np.testing.assert_allclose(found * 1e3, want)


def test_a_hyperbola_reaches_almost_to_its_asymptote():
    limit = math.acos(-1 / 1.5)
    for sign in (-1, 1):
        orbit = OrbitalElements.of(-1e7, 1.5, true_anomaly=sign * (limit - 1e-3))
        assert float(orbit.state()[0].norm()) > 5e9
        with raises(InvalidInputError, name="true_anomaly"):
            OrbitalElements.of(-1e7, 1.5, true_anomaly=sign * (limit + 1e-3))


def test_times_may_be_numbers():
    rotation = UniformRotation(7e-5, 0.3)
    pos, _ = ecef_from_eci(POS, VEL, 50.0, rotation)
    want, _ = ecef_from_eci(POS, VEL, torch.tensor([50.0]).double(), rotation)
    torch.testing.assert_close(pos, want)
    for body in (sun(EPOCH), moon(EPOCH)):
        both = body(torch.tensor([0.0, 9.0]).double())
        torch.testing.assert_close(body(9.0), both[1:], rtol=0, atol=0)
        torch.testing.assert_close(body([0.0, 9.0]), both, rtol=0, atol=0)
        assert body([]).shape == (0, 3)


class Spin:
    """A rotation without parameters by world; nothing but what conversion calls."""

    def __call__(self, t):
        return UniformRotation(7e-5, 0.3)(t)

    def rate(self, t):
        return torch.tensor([0.0, 0.0, 7e-5], dtype=torch.float64)


def test_a_rotation_has_the_methods_that_are_called():
    want = ecef_from_eci(POS, VEL, 50.0, UniformRotation(7e-5, 0.3))
    torch.testing.assert_close(ecef_from_eci(POS, VEL, 50.0, Spin()), want)
    for got, start in zip(eci_from_ecef(*want, 50.0, Spin()), (POS, VEL), strict=True):
        np.testing.assert_allclose(got[0], start, rtol=1e-12)


def test_the_number_of_segments_is_limited():
    path = Ephemeris(lambda t: np.stack([t, t, t], axis=1), segment=1.0, degree=1)
    path.fit(0.0, 99_999.5)
    assert len(path.coefficients) == 100_000
    with raises(InvalidInputError, name="segments"):
        path.fit(0.0, 100_000.5)
    assert len(path.coefficients) == 100_000


def test_nearly_parallel_motion_has_an_orbital_plane():
    """The sine of the angle, and not a length, decides."""
    for size in (1e-3, 1e13):
        across = np.array([0.0, 2e-12, 0.0]) * size
        rot = rot_rtn_eci([size, 0.0, 0.0], np.array([size, 0.0, 0.0]) + across)
        assert torch.equal(rot, torch.eye(3, dtype=rot.dtype))
        with raises(InvalidInputError, name="velocity"):
            rot_rtn_eci([size, 0.0, 0.0], [size, 0.2e-12 * size, 0.0])


def test_axes_of_each_point_of_a_grid():
    """At latitude 0 or longitude 0, too; (2, 1) and (3,) broadcast."""
    lat, lon = np.array([[0.0], [0.7]]), np.array([0.0, -0.4, 2.5])
    rot = rot_ned_fixed(lat, lon)
    assert rot.shape == (2, 3, 3, 3)
    # Down is against the gradient of the height, by finite differences.
    place = position_from_geodetic(lat, lon, 100.0)
    higher = position_from_geodetic(lat, lon, 101.0)
    torch.testing.assert_close(rot[..., 2, :], place - higher, atol=1e-8, rtol=0)
    east = position_from_geodetic(lat, lon + 1e-7, 100.0) - place
    east = east / east.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(rot[..., 1, :], east, atol=1e-6, rtol=0)
