"""Elements, anomalies, frames and geodesy against SPICE, pymap3d and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pymap3d
import pytest
import spiceypy as spice
import torch
from tests.raised import raises

from simstate import space
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.space import (
    EARTH,
    MARS,
    MOON,
    OrbitalElements,
    UniformRotation,
    ecef_from_eci,
    ecef_from_ned,
    eci_from_ecef,
    eci_from_lvlh,
    eci_from_rtn,
    elements_from_state,
    geodetic_from_position,
    j2_rates,
    lvlh_from_eci,
    ned_from_ecef,
    orbit_rate,
    position_from_geodetic,
    propagate_kepler,
    rot_lvlh_eci,
    rot_rtn_eci,
    rtn_from_eci,
)

F64 = torch.float64
MU = EARTH.mu


def random_states(count=200):
    rng = np.random.default_rng(5)
    pos = rng.normal(size=(count, 3)) * 8e6
    vel = rng.normal(size=(count, 3))
    escape = np.sqrt(2 * MU / np.linalg.norm(pos, axis=1))
    vel *= (rng.uniform(0.3, 1.6, count) * escape / np.linalg.norm(vel, axis=1))[
        :, None
    ]
    return pos, vel


def conic(elements, k, seconds=0.0):
    """SPICE's state of our elements."""
    e = float(elements.eccentricity[k])
    nearest = float(elements.semi_latus_rectum[k]) / (1 + e)
    mean = float(elements.mean_anomaly[k])
    given = [
        nearest, e, float(elements.inclination[k]), float(elements.node[k]),
        float(elements.periapsis[k]), mean, 0.0, MU,
    ]  # fmt: skip
    return spice.conics(given, seconds)


def test_elements_are_those_of_spice():
    pos, vel = random_states()
    found = elements_from_state(pos, vel, MU)
    assert 20 < int((found.eccentricity > 1).sum()) < 180
    for k in range(len(pos)):
        want = spice.oscelt([*pos[k], *vel[k]], 0.0, MU)
        e = float(found.eccentricity[k])
        got = [
            float(found.semi_latus_rectum[k]) / (1 + e), e,
            float(found.inclination[k]), float(found.node[k]),
            float(found.periapsis[k]),
        ]  # fmt: skip
        np.testing.assert_allclose(got, want[:5], rtol=1e-9)
        apart = float(found.mean_anomaly[k]) - want[5]
        if e < 1:
            apart = math.remainder(apart, 2 * math.pi)
        assert abs(apart) < 1e-8 * max(1, abs(want[5]))


def test_states_come_back():
    pos, vel = random_states()
    again = elements_from_state(pos, vel).state()
    size = np.linalg.norm(pos, axis=1, keepdims=True)
    speed = np.linalg.norm(vel, axis=1, keepdims=True)
    assert np.abs((again[0].numpy() - pos) / size).max() < 1e-12
    assert np.abs((again[1].numpy() - vel) / speed).max() < 1e-12


V7 = math.sqrt(MU / 7e6)
SPECIAL = {
    "circular": ([7e6, 0, 0], [0, V7 * 0.6, V7 * 0.8]),
    "circular at the node": ([0, 7e6, 0], [-V7, 0, 0]),
    "equatorial": ([7e6, 1e6, 0], [-1e3, 8e3, 0]),
    "retrograde equatorial": ([7e6, 1e6, 0], [1e3, -8e3, 0]),
    "circular and equatorial": ([0, -7e6, 0], [V7, 0, 0]),
    "polar": ([7e6, 0, 1e5], [0, 0, 8e3]),
    "parabola": ([7e6, 0, 0], [0, V7 * math.sqrt(2) * 0.6, V7 * math.sqrt(2) * 0.8]),
    "hyperbola": ([7e6, 0, 2e6], [3e3, 9e3, 8e3]),
    "almost circular": ([7e6, 0, 0], [1e-6, V7 * 0.6, V7 * 0.8]),
    "almost equatorial": ([7e6, 1e6, 1e-3], [-1e3, 8e3, 0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_every_special_case_comes_back(name):
    pos, vel = (np.array(x, dtype=float)[None] for x in SPECIAL[name])
    found = elements_from_state(pos, vel)
    for part in vars(found).values():
        assert np.isfinite(np.asarray(part)).all()
    again = found.state()
    np.testing.assert_allclose(again[0], pos, rtol=0, atol=1e-6)
    np.testing.assert_allclose(again[1], vel, rtol=0, atol=1e-8)
    if "circular" in name and "almost" not in name:
        assert float(found.periapsis) == 0
    if "equatorial" in name and "almost" not in name:
        assert float(found.node) == 0


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("seconds", [-4000.0, 100.0, 9e4])
def test_keplers_problem_is_that_of_spice(name, seconds):
    pos, vel = (np.array(x, dtype=float)[None] for x in SPECIAL[name])
    got = propagate_kepler(pos, vel, seconds)
    want = spice.prop2b(MU, [*pos[0], *vel[0]], seconds)
    size, speed = np.linalg.norm(want[:3]), np.linalg.norm(want[3:])
    assert np.linalg.norm(got[0][0].numpy() - want[:3]) < 1e-10 * size
    assert np.linalg.norm(got[1][0].numpy() - want[3:]) < 1e-10 * speed
    if name == "parabola":  # here anomalies have no digits to give
        return
    later = elements_from_state(pos, vel).after(seconds).state()
    assert np.linalg.norm(later[0][0].numpy() - want[:3]) < 1e-9 * size


def test_a_whole_batch_goes_on_as_spice_has_it():
    pos, vel = random_states()
    later = propagate_kepler(pos, vel, 5000.0)
    for k in range(0, len(pos), 7):
        want = spice.prop2b(MU, [*pos[k], *vel[k]], 5000.0)
        off = np.linalg.norm(later[0][k].numpy() - want[:3])
        assert off < 1e-11 * np.linalg.norm(want[:3])


def test_a_parabola_is_that_of_spice():
    """By the time since periapsis: its mean anomaly is √(μ/p³) times that."""
    p, one = 8e6, torch.ones(9, dtype=F64)
    mean = torch.linspace(-3.0, 3.0, 9, dtype=F64)
    orbit = OrbitalElements(p * one, one, 0.3 * one, one, 2 * one, 0 * one, MU)
    at = orbit.with_mean_anomaly(mean)
    torch.testing.assert_close(at.mean_anomaly, mean, rtol=1e-12, atol=1e-12)
    for k in range(9):
        seconds = float(mean[k]) * math.sqrt(p**3 / MU)
        want = spice.conics([p / 2, 1.0, 0.3, 1.0, 2.0, 0.0, 0.0, MU], seconds)
        np.testing.assert_allclose(at.state()[0][k], want[:3], rtol=1e-9, atol=1e-2)


def test_anomalies_are_those_of_spice():
    for e in (0.0, 0.01, 0.5, 0.99, 1.2, 4.0):
        p = 8e6
        orbit = OrbitalElements(
            *(torch.full((9,), x, dtype=F64) for x in (p, e, 0.3, 1.0, 2.0, 0.0)), MU
        )
        mean = torch.linspace(-3.0, 3.0, 9, dtype=F64)
        at = orbit.with_mean_anomaly(mean)
        torch.testing.assert_close(at.mean_anomaly, mean, rtol=1e-12, atol=1e-12)
        for k in range(9):
            want = conic(at, k)
            np.testing.assert_allclose(at.state()[0][k], want[:3], rtol=1e-8, atol=1e-2)


@pytest.mark.parametrize("e", [0.7, 0.97, 0.999, 1.001, 1.03, 1.4])
def test_anomalies_near_the_periapsis_solve_keplers_equation(e):
    """Where it is steep: E − e sin E = M, e sinh H − H = M."""
    mean = torch.tensor([-2.9, -0.3, -1e-3, 0.0, 1e-5, 0.02, 0.5, 3.1], dtype=F64)
    parts = (torch.full((8,), x, dtype=F64) for x in (8e6, e, 0.3, 1.0, 2.0, 0.0))
    true = OrbitalElements(*parts, MU).with_mean_anomaly(mean).true_anomaly
    half = np.sqrt(abs(e - 1) / (e + 1)) * np.tan(true.numpy() / 2)
    eccentric, hyperbolic = 2 * np.arctan(half), 2 * np.arctanh(half * (e > 1))
    kepler = eccentric - e * np.sin(eccentric)
    got = kepler if e < 1 else e * np.sinh(hyperbolic) - hyperbolic
    np.testing.assert_allclose(got, mean, rtol=1e-11, atol=1e-13)


def test_the_mean_anomaly_keeps_full_turns():
    turns = 2 * math.pi * torch.arange(-3.0, 4.0, dtype=F64)
    for true in (-2.9, 0.4, 3.0):
        orbit = OrbitalElements.of(8e6, 0.2, true_anomaly=true + turns)
        once = OrbitalElements.of(8e6, 0.2, true_anomaly=true).mean_anomaly
        torch.testing.assert_close(orbit.mean_anomaly, once + turns)


def test_a_parabola_goes_on_by_barkers_equation():
    parts = (9e6, 1.0, 0.3, 1.0, 2.0, -0.7)
    orbit = OrbitalElements(*(torch.full((3,), x, dtype=F64) for x in parts), MU)
    times = torch.tensor([-9e3, 0.0, 2e4], dtype=F64)
    want = propagate_kepler(*orbit.state(), times)
    for got, part in zip(orbit.after(times).state(), want, strict=True):
        torch.testing.assert_close(got, part, rtol=1e-10, atol=1e-6)


def test_constructed_elements():
    orbit = OrbitalElements.of([7e6, 8e6], 0.1, 0.5, mu=MU)
    np.testing.assert_allclose(orbit.semi_major_axis, [7e6, 8e6])
    period = 2 * math.pi * math.sqrt(7e6**3 / MU)
    assert float(orbit.period[0]) == pytest.approx(period)
    hyperbola = OrbitalElements.of(-7e6, 1.5)
    assert math.isinf(float(hyperbola.period))
    for wrong in (
        lambda: OrbitalElements.of(7e6, 1.5),
        lambda: OrbitalElements.of(-7e6, 0.5),
        lambda: OrbitalElements.of(7e6, -0.1),
        lambda: elements_from_state([7e6, 0, 0], [1e3, 0, 0]),
    ):
        with pytest.raises(InvalidInputError):
            wrong()
    with pytest.raises(ShapeError):
        elements_from_state([7e6, 0], [0, 1e3])


@pytest.mark.parametrize("wrong", [98.6, -0.1, [0.3, 3.2]])
def test_an_inclination_in_degrees_is_refused(wrong):
    with raises(InvalidInputError, name="inclination"):
        OrbitalElements.of(7.2e6, inclination=wrong)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: OrbitalElements.of(6778, 0.001), "semi_major_axis"),
        (
            lambda: OrbitalElements.of([7e6, 1837.0], 0.1, mu=4.9028e12),  # the Moon's
            "semi_major_axis",
        ),
        (lambda: OrbitalElements.of(-6778, 1.5), "semi_major_axis"),
        (
            lambda: elements_from_state([[7e6, 0, 0], [6778, 20, 0]], [0, 7.5e3, 0]),
            "position",
        ),
        (
            lambda: propagate_kepler([0, 0, 6778], [7.5, 0, 0], 60.0, 3.98600436e14),
            "position",
        ),
    ],
)
def test_kilometres_are_refused(wrong, name):
    with raises(InvalidInputError, name=name):
        wrong()


def test_trajectories_from_the_ground_are_orbits():
    """A semi-major axis below the radius is that of a rocket that falls back."""
    orbit = OrbitalElements.of(4.2e6, 0.55)
    highest = orbit.with_mean_anomaly(math.pi).state()[0]
    assert float(highest.norm()) == pytest.approx(4.2e6 * 1.55)
    assert OrbitalElements.of(100.0, mu=5.0).mu == 5.0  # a small body


def test_geodetic_coordinates_are_pymap3ds():
    rng = np.random.default_rng(1)
    lat = np.append(rng.uniform(-90, 90, 200), [90.0, -90.0, 0.0])
    lon = np.append(rng.uniform(-180, 180, 200), [10.0, 20.0, 180.0])
    height = np.append(rng.uniform(-2e4, 4e7, 200), [0.0, 5e3, -1e3])
    want = np.stack(pymap3d.geodetic2ecef(lat, lon, height), axis=-1)
    got = position_from_geodetic(np.radians(lat), np.radians(lon), height)
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=2e-8)
    back = geodetic_from_position(want)
    np.testing.assert_allclose(np.degrees(back[0].numpy()), lat, atol=1e-12)
    np.testing.assert_allclose(back[2], height, atol=3e-8)
    away = np.remainder(np.degrees(back[1].numpy()) - lon + 180, 360) - 180
    inside = np.abs(lat) < 90
    assert np.abs(away[inside]).max() < 1e-12


@pytest.mark.parametrize(
    ("planet", "mu", "radius", "polar", "hours", "j2"),
    [
        (EARTH, 0.39860e15, 6378.137e3, 6356.752e3, 23.9345, 1082.63e-6),
        (MOON, 0.00490e15, 1737.4e3, 1737.4e3, 655.720, 203.4e-6),
        (MARS, 0.042828e15, 3396.2e3, 3376.2e3, 24.6229, 1956.4e-6),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_planets_are_those_of_nasas_fact_sheets(planet, mu, radius, polar, hours, j2):
    """G·M in 10⁶ km³/s², radii in km, sidereal rotation in hours; J2 of the fields."""
    assert planet.mu == pytest.approx(mu, rel=2e-3)
    assert planet.radius == pytest.approx(radius, rel=1e-5)
    assert planet.polar_radius == pytest.approx(polar, rel=1e-5)
    assert 2 * math.pi / planet.rotation_rate == pytest.approx(3600 * hours, rel=1e-4)
    assert planet.j2 == pytest.approx(j2, rel=1e-3)


def test_a_flat_mars():
    """The height over the pole and the equator is by the two radii."""
    _, _, height = geodetic_from_position([[0, 0, 3.5e6], [3.5e6, 0, 0]], MARS)
    np.testing.assert_allclose(height, [3.5e6 - MARS.polar_radius, 3.5e6 - MARS.radius])
    for wrong in (
        lambda: geodetic_from_position([[0.0, 0.0, 10.0]]),
        lambda: position_from_geodetic(45.0, 10.0, 0.0),
    ):
        with pytest.raises(InvalidInputError):
            wrong()


def test_the_earth_turns_under_a_satellite():
    """ECEF and back, and a velocity that is the derivative of the position."""
    rotation = UniformRotation(7.3e-5, 0.8)
    orbit = OrbitalElements.of(7.1e6, 0.05, 1.0, 0.3, 0.7, 0.2)
    times = torch.tensor([999.5, 1000.0, 1000.5], dtype=F64)
    pos, vel = orbit.after(times).state()
    fixed, seen = ecef_from_eci(pos, vel, times, rotation)
    derivative = fixed[2] - fixed[0]
    np.testing.assert_allclose(seen[1], derivative, rtol=1e-6)
    back = eci_from_ecef(fixed, seen, times, rotation)
    np.testing.assert_allclose(back[0], pos, atol=1e-8)
    np.testing.assert_allclose(back[1], vel, atol=1e-11)
    still = [[0.0, 0.0, 0.0]] * 3
    carried = eci_from_ecef([[6.4e6, 0, 0]] * 3, still, times, rotation)[1]
    np.testing.assert_allclose(carried.norm(dim=-1), 7.3e-5 * 6.4e6, rtol=1e-12)


def test_north_east_down_is_pymap3ds():
    lat, lon, high = math.radians(48.0), math.radians(11.5), 500.0
    n, e, d = 1000.0, -2500.0, -800.0
    want = pymap3d.ned2ecef(n, e, d, 48.0, 11.5, high)
    got, speed = ecef_from_ned([n, e, d], [3.0, 1.0, -2.0], lat, lon, high)
    np.testing.assert_allclose(got, want, atol=1e-8)
    back, motion = ned_from_ecef(got, speed, lat, lon, high)
    np.testing.assert_allclose(back, [n, e, d], atol=1e-8)
    np.testing.assert_allclose(motion, [3.0, 1.0, -2.0], atol=1e-12)


def test_axes_of_an_orbit():
    pos, vel = OrbitalElements.of(7e6, 0.1, 0.9, 0.4, 1.0, 2.0).state()
    r = pos / pos.norm()
    n = torch.linalg.cross(pos, vel)
    n = n / n.norm()
    rtn, lvlh = rot_rtn_eci(pos, vel), rot_lvlh_eci(pos, vel)
    np.testing.assert_allclose(rtn[0], r, atol=1e-15)
    np.testing.assert_allclose(rtn[2], n, atol=1e-15)
    assert float(rtn[1] @ vel) > 0
    np.testing.assert_allclose(lvlh[2], -r, atol=1e-15)  # nadir
    np.testing.assert_allclose(lvlh[1], -n, atol=1e-15)
    np.testing.assert_allclose(lvlh[0], rtn[1], atol=1e-15)
    for rot in (rtn, lvlh):
        np.testing.assert_allclose(rot @ rot.T, np.eye(3), atol=1e-14)
        assert float(torch.linalg.det(rot)) == pytest.approx(1)
    with raises(InvalidInputError, name="velocity"):
        rot_rtn_eci([7e6, 0, 0], [1e3, 0, 0])


@pytest.mark.parametrize(
    ("there", "back"), [(rtn_from_eci, eci_from_rtn), (lvlh_from_eci, eci_from_lvlh)]
)
def test_relative_motion_has_the_derivative_of_its_position(there, back):
    chief = OrbitalElements.of(7e6, 0.1, 0.9, 0.4, 1.0, 2.0)
    deputy = OrbitalElements.of(7.002e6, 0.1003, 0.9001, 0.4002, 1.0, 2.0)
    times = torch.tensor([-0.05, 0.0, 0.05], dtype=F64)
    chief_motion, deputy_motion = (
        chief.after(times).state(),
        deputy.after(times).state(),
    )
    pos, vel = there(*deputy_motion, *chief_motion)
    np.testing.assert_allclose(vel[1], (pos[2] - pos[0]) / 0.1, atol=1e-5)
    again = back(pos, vel, *chief_motion)
    np.testing.assert_allclose(again[0], deputy_motion[0], atol=1e-8)
    np.testing.assert_allclose(again[1], deputy_motion[1], atol=1e-10)


def test_the_rate_of_orbit_axes():
    orbit = OrbitalElements.of(7e6, 0.1, 0.9, 0.4, 1.0, 2.0)
    times = torch.tensor([-0.5, 0.0, 0.5], dtype=F64)
    pos, vel = orbit.after(times).state()
    rot = rot_rtn_eci(pos, vel)
    spin = (rot[2] - rot[0]).T @ rot[1]  # dRᵀ/dt R is the cross product's matrix
    got = orbit_rate(pos[1], vel[1])
    want = [float(spin[2, 1]), float(spin[0, 2]), float(spin[1, 0])]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12)


def test_secular_rates_are_those_of_the_averaged_potential():
    """Lagrange's equations, with the potential of J2 averaged over an orbit."""
    radius, j2 = EARTH.radius, EARTH.j2

    def potential(a: float, e: float, i: float, w: float) -> float:
        mean = 2 * np.pi * (np.arange(4000) + 0.5) / 4000
        ecc = mean.copy()
        for _ in range(50):
            ecc = ecc - (ecc - e * np.sin(ecc) - mean) / (1 - e * np.cos(ecc))
        away = a * (1 - e * np.cos(ecc))
        true = 2 * np.arctan2(
            np.sqrt(1 + e) * np.sin(ecc / 2), np.sqrt(1 - e) * np.cos(ecc / 2)
        )
        height = np.sin(i) * np.sin(true + w)  # sine of the latitude
        return float(np.mean(-MU * j2 * radius**2 / away**3 * (1.5 * height**2 - 0.5)))

    a, e, i, w = 9.1e6, 0.17, 0.9, 0.6
    at = np.array([a, e, i, w])
    steps = np.array([100.0, 1e-4, 1e-4])
    by_a, by_e, by_i = (
        (potential(*(at + d)) - potential(*(at - d))) / (2 * steps[k])
        for k, d in enumerate(np.eye(4)[:3] * np.array([*steps, 0.0]))
    )
    n, root = np.sqrt(MU / a**3), np.sqrt(1 - e**2)
    node = by_i / (n * a**2 * root * np.sin(i))
    parts = [torch.tensor([x], dtype=F64) for x in (a * (1 - e**2), e, i, 1.0, w, 0.3)]
    found = j2_rates(OrbitalElements(*parts, MU))
    assert float(found.node) == pytest.approx(node, rel=1e-5)
    turn = root / (n * a**2 * e) * by_e - np.cos(i) * node
    assert float(found.periapsis) == pytest.approx(turn, rel=1e-4)
    along = -(root**2) / (n * a**2 * e) * by_e - 2 / (n * a) * by_a
    assert float(found.mean_anomaly) == pytest.approx(along, rel=1e-4)
    open_ = OrbitalElements(*parts[:1], torch.ones(1, dtype=F64), *parts[2:], MU)
    with raises(InvalidInputError, name="eccentricity"):
        j2_rates(open_)


@pytest.mark.parametrize(
    "name", ["rtn_from_eci", "eci_from_rtn", "lvlh_from_eci", "eci_from_lvlh"]
)
def test_batches_of_craft_and_chiefs_must_broadcast(name):
    function = getattr(space, name)
    rng = np.random.default_rng(3)
    craft = [torch.as_tensor(rng.normal(size=(4, 2, 3))) for _ in range(2)]
    chief = [torch.as_tensor(rng.normal(size=(2, 3)) + 5.0) for _ in range(2)]
    found = function(*craft, *chief)
    one = function(*(x[3, 1] for x in craft), *(x[1] for x in chief))
    for whole, single in zip(found, one, strict=True):
        torch.testing.assert_close(whole[3, 1], single)
    with raises(ShapeError, name="position, velocity, chief[0], chief[1]"):
        function(craft[0][:, :1].expand(4, 3, 3), craft[1], *chief)
    with raises(ShapeError, name="position, velocity, chief[0], chief[1]"):
        function(*craft, *(torch.cat([x, x[:1]]) for x in chief))
