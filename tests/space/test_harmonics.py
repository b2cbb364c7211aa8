"""Spherical harmonics against the potential itself, in forty digits."""

from __future__ import annotations

import math

import mpmath
import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from tests.inside import degree_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ModelError
from simstate.integrate import DOP853, CentralGravity, MovingFrame
from simstate.space import (
    EARTH,
    MARS,
    HarmonicCoefficients,
    HarmonicGravity,
    OrbitalElements,
    UniformRotation,
    earth_coefficients,
    elements_from_state,
    j2_rates,
    read_gfc,
    zonal_coefficients,
)
from simstate.space.coefficients import MAX_DEGREE

F64 = torch.float64
ZERO = torch.zeros(1, dtype=F64)
PLACES = np.array([[6.5e6, 1.7e6, 2.5e6], [-3e6, 4e6, -5.6e6], [1e3, -2e3, 7e6]])


@pytest.mark.parametrize(
    ("c", "s"), [((3, 4), (3, 4)), ((3, 3), (4, 4)), ((9,), (9,)), ((2, 2, 2),) * 2]
)
def test_coefficients_are_square_and_of_one_shape(c, s):
    with raises(InvalidInputError, name="c"):
        HarmonicCoefficients("it", 4e14, 6e6, torch.zeros(c), torch.zeros(s))


@pytest.mark.parametrize("degree", ["-1", "1e3", str(MAX_DEGREE + 1), "9" * 9, "x"])
def test_degrees_that_no_file_has_are_named(tmp_path, degree):
    path = tmp_path / "field.gfc"
    path.write_text(f"max_degree {degree}\nend_of_head\n")
    with raises(ModelError, name="max_degree"):
        degree_of(path, degree)
    assert degree_of(path, str(MAX_DEGREE)) == MAX_DEGREE
    assert degree_of(path, " 0 ") == 0


def potential(field, x, y, z):
    """By its definition: Legendre's functions of mpmath, no recursion."""
    r = mpmath.sqrt(x * x + y * y + z * z)
    sine, lon = z / r, mpmath.atan2(y, x)
    cosine = mpmath.sqrt(1 - sine**2)
    total = mpmath.mpf(0)
    for n in range(field.degree + 1):
        for m in range(n + 1):
            c, s = float(field.c[n, m]), float(field.s[n, m])
            if c == 0 and s == 0:
                continue
            norm = mpmath.sqrt(
                (1 if m == 0 else 2) * (2 * n + 1)
                * mpmath.factorial(n - m) / mpmath.factorial(n + m)
            )  # fmt: skip
            # The m-th derivative of the Legendre polynomial, without phase.
            series = mpmath.diff(lambda u, n=n: mpmath.legendre(n, u), sine, m)
            wave = c * mpmath.cos(m * lon) + s * mpmath.sin(m * lon)
            total += (field.radius / r) ** n * norm * cosine**m * series * wave
    return field.mu / r * total


def by_definition(field, place):
    """Acceleration and gradient by differences of the potential, in forty digits."""
    with mpmath.workdps(40):
        h = mpmath.mpf("1e-2")
        x = [mpmath.mpf(float(p)) for p in place]

        def at(i, si, j=None, sj=0):
            y = list(x)
            y[i] += si * h
            if j is not None:
                y[j] += sj * h
            return potential(field, *y)

        first = [(at(i, 1) - at(i, -1)) / (2 * h) for i in range(3)]
        second = np.zeros((3, 3))
        for i in range(3):
            for j in range(i, 3):
                corners = (
                    at(i, 1, j, 1)
                    - at(i, 1, j, -1)
                    - at(i, -1, j, 1)
                    + at(i, -1, j, -1)
                )
                second[i, j] = second[j, i] = float(corners / (4 * h * h))
        return np.array([float(f) for f in first]), second


@pytest.mark.parametrize("place", PLACES, ids=["low", "south", "pole"])
def test_acceleration_and_gradient_by_definition(place):
    field = earth_coefficients(5, 5)
    gravity = HarmonicGravity(field, UniformRotation(0.0))
    at = torch.as_tensor(place)[None, None]
    want, gradient = by_definition(field, place)
    got = gravity.acceleration(ZERO, at)[0, 0]
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(
        gravity.gradient(ZERO, at)[0, 0], gradient, rtol=0, atol=1e-19
    )


def test_a_central_coefficient_other_than_one_scales_the_central_term():
    """And without one (zero), the central term is that of μ."""
    whole = earth_coefficients(3, 0)
    c = whole.c.clone()
    c[0, 0] = 1.02
    field = HarmonicCoefficients("it", whole.mu, whole.radius, c, whole.s)
    gravity = HarmonicGravity(field)
    at = torch.as_tensor(PLACES[0])[None, None]
    want, gradient = by_definition(field, PLACES[0])
    np.testing.assert_allclose(gravity.acceleration(ZERO, at)[0, 0], want, rtol=1e-14)
    np.testing.assert_allclose(
        gravity.gradient(ZERO, at)[0, 0], gradient, rtol=0, atol=1e-19
    )
    c = c.clone()
    c[0, 0] = 0.0
    gravity = HarmonicGravity(
        HarmonicCoefficients("it", whole.mu, whole.radius, c, whole.s)
    )
    assert torch.equal(
        gravity.acceleration(ZERO, at), HarmonicGravity(whole).acceleration(ZERO, at)
    )


def test_the_whole_shipped_field_at_a_place_that_another_program_computed():
    """Degree and order 20 of EGM2008; numbers by brahe 1.8, rounded to its digits."""
    gravity = HarmonicGravity(earth_coefficients(20), UniformRotation(0.0))
    at = torch.tensor([[[6525.919e3, 1710.416e3, 2508.886e3]]], dtype=F64)
    want = [-6.979262555192185, -1.8292834367109612, -2.6899896939796046]
    np.testing.assert_allclose(gravity.acceleration(ZERO, at)[0, 0], want, rtol=2e-15)
    gravity = HarmonicGravity(earth_coefficients(20, 3), UniformRotation(0.0))
    want = [-6.979292865119302, -1.8293025918871808, -2.690005359945623]
    np.testing.assert_allclose(gravity.acceleration(ZERO, at)[0, 0], want, rtol=2e-15)


def test_j2_is_the_textbooks():
    """J2 of the shipped field, and its acceleration in components."""
    field = earth_coefficients(2, 0)
    assert -math.sqrt(5) * float(field.c[2, 0]) == pytest.approx(
        1.0826261739e-3, rel=1e-9
    )
    gravity = HarmonicGravity(zonal_coefficients(EARTH))
    z = PLACES[:, 2]
    r = np.linalg.norm(PLACES, axis=1)
    k = 1.5 * EARTH.j2 * EARTH.mu * EARTH.radius**2 / r**5
    want = -EARTH.mu * PLACES / r[:, None] ** 3
    want += k[:, None] * PLACES * (5 * (z / r) ** 2 - 1)[:, None]
    want[:, 2] -= 2 * k * z
    got = gravity.acceleration(ZERO, torch.as_tensor(PLACES)[None])[0]
    np.testing.assert_allclose(got, want, rtol=1e-14)


def test_the_field_turns_with_the_planet():
    field = earth_coefficients(4)
    angle = torch.tensor([0.3, -1.1], dtype=F64)
    gravity = HarmonicGravity(field, UniformRotation(7e-5, angle))
    t = torch.tensor([1e4, 3e4], dtype=F64)
    still = HarmonicGravity(field, UniformRotation(0.0))
    pos = torch.as_tensor(PLACES)[None].expand(2, 3, 3)
    got = gravity.acceleration(t, pos)
    for world in range(2):
        turn = float(angle[world]) + 7e-5 * float(t[world])
        c, s = math.cos(turn), math.sin(turn)
        rot = torch.tensor([[c, s, 0], [-s, c, 0], [0, 0, 1]], dtype=F64)
        own = still.acceleration(ZERO, (pos[world] @ rot.T)[None])[0]
        torch.testing.assert_close(got[world], own @ rot, rtol=1e-13, atol=1e-14)
        tensor = still.gradient(ZERO, (pos[world] @ rot.T)[None])[0]
        got_tensor = gravity.gradient(t, pos)[world]
        torch.testing.assert_close(got_tensor, rot.T @ tensor @ rot, rtol=0, atol=1e-20)


def test_the_rotation_may_be_a_function():
    field = earth_coefficients(4)
    angles = torch.tensor([0.3, -1.1], dtype=F64)
    turn = UniformRotation(7e-5, angles)
    sim, got = orbiting(HarmonicGravity(field, lambda t: turn(t)), *STATE)
    other, want = orbiting(
        HarmonicGravity(field, UniformRotation(7e-5, angles)), *STATE
    )
    for one in (sim, other):
        one.step()
    torch.testing.assert_close(got.value, want.value, rtol=1e-11, atol=1e-6)
    assert float((want.value[0] - want.value[1]).norm()) > 1.0


def test_a_difference_keeps_its_digits():
    field = earth_coefficients(8)
    gravity = HarmonicGravity(field, UniformRotation(0.0))
    place, offset = PLACES[0], np.array([1.0, -2.0, 0.5])
    _, gradient = by_definition(earth_coefficients(3), place)
    small = HarmonicGravity(earth_coefficients(3), UniformRotation(0.0))
    args = torch.as_tensor(place)[None, None], torch.as_tensor(offset)[None, None]
    got = small.difference(ZERO, *args)[0, 0].numpy()
    # The second derivative adds 1e-6 of it over two metres.
    np.testing.assert_allclose(got, gradient @ offset, rtol=3e-6)
    ahead = gravity.difference(ZERO, *args)
    back = gravity.difference(ZERO, args[0] + args[1], -args[1])
    torch.testing.assert_close(ahead, -back, rtol=0, atol=1e-17)


STATE = (6.8e6, 1e5, 2e5), (-300.0, 5300.0, 5500.0)
"""Position [m] and velocity [m/s] of a low orbit."""
BODY = """
<mujoco><option timestep="{dt}" gravity="0 0 0"/><worldbody><body name="craft">
  <freejoint/><inertial pos="0.2 -0.1 0.3" quat="0.8 0.3 -0.4 0.2" mass="50"
                        diaginertia="5 8 9"/></body></worldbody></mujoco>
"""


def orbiting(gravity, r0, v0, num_envs=2, dt=1900.0, tolerance=1e-11):
    model = mujoco.MjModel.from_xml_string(BODY.format(dt=dt))
    scheme = DOP853(atol=1e-7, rtol=tolerance)
    sim = Simulation(model, num_envs, integrator=scheme)
    sim.add_process(frame := MovingFrame(gravity, r0, v0))
    return sim, frame


def test_an_orbit_with_harmonics_over_two_revolutions():
    """EGM2008 to degree 4 on a turning Earth, against independent equations."""
    field = earth_coefficients(4)
    r0, v0 = np.array([6.8e6, 1e5, 2e5]), np.array([-300.0, 5300.0, 5500.0])
    rotation = UniformRotation(7.292115e-5, 0.4)
    starts = np.stack([r0, 1.01 * r0])
    sim, frame = orbiting(HarmonicGravity(field, rotation), starts, v0)
    com = sim.data.xipos[:, 1].clone().numpy()
    sim.step(6)
    c, s = field.c.numpy(), field.s.numpy()

    basis = np.polynomial.legendre.Legendre.basis
    polynomials = {
        (n, m): basis(n).deriv(m) if m else basis(n)
        for n in range(5)
        for m in range(n + 1)
    }

    def legendre(n, m, u):
        """Unnormalised, by Rodrigues, as polynomials."""
        return (1 - u * u) ** (m / 2) * polynomials[n, m](u)

    def spherical(t, pos):
        """Gradient in r, φ, λ; then along inertial axes."""
        turn = 0.4 + 7.292115e-5 * t
        r = math.sqrt(pos @ pos)
        u = pos[2] / r
        lam = math.atan2(pos[1], pos[0]) - turn
        dr = dphi = dlam = 0.0
        for n in range(5):
            for m in range(n + 1):
                norm = math.sqrt(
                    (1 if m == 0 else 2) * (2 * n + 1)
                    * math.factorial(n - m) / math.factorial(n + m)
                )  # fmt: skip
                p = legendre(n, m, u) * norm
                above = legendre(n, m + 1, u) * norm if m < n else 0.0
                cos, sin = math.cos(m * lam), math.sin(m * lam)
                wave = c[n, m] * cos + s[n, m] * sin
                scale = (field.radius / r) ** n
                dr -= (n + 1) * scale * p * wave
                dphi += scale * (above - m * u / math.sqrt(1 - u * u) * p) * wave
                dlam += scale * m * p * (s[n, m] * cos - c[n, m] * sin)
        scale = field.mu / r
        rho = math.hypot(pos[0], pos[1])
        e_r = pos / r
        e_phi = np.array([-u * pos[0] / rho, -u * pos[1] / rho, rho / r])
        e_lam = np.array([-pos[1], pos[0], 0.0]) / rho
        return scale * (dr / r * e_r + dphi / r * e_phi + dlam / rho * e_lam)

    for world in range(2):
        start = [*(starts[world] + com[world]), *v0]
        truth = solve_ivp(
            lambda t, y: [*y[3:], *spherical(t, y[:3])], (0, 11400.0), start,
            method="DOP853", rtol=1e-12, atol=1e-8,
        )  # fmt: skip
        got = frame.position[world].numpy() + sim.data.xipos[world, 1].numpy()
        assert np.linalg.norm(got - truth.y[:3, -1]) < 0.05


def test_the_node_of_a_sun_synchronous_orbit():
    """800 km and 98.6°: the node moves by 0.9853° a day, as the closed form says."""
    orbit = OrbitalElements.of(EARTH.radius + 800e3, 1e-3, math.radians(98.6), 1.0, 0.5)
    rates = j2_rates(orbit)
    per_day = math.degrees(float(rates.node)) * 86400
    assert per_day == pytest.approx(0.9853, abs=2e-4)
    position, velocity = orbit.state()
    gravity = HarmonicGravity(zonal_coefficients(EARTH))
    period = float(orbit.period)
    sim, frame = orbiting(gravity, position, velocity, 1, period, 1e-9)
    nodes = []
    for _ in range(7):
        sim.step()
        found = elements_from_state(frame.position, frame.velocity)
        nodes.append(float(found.node))
    slope = np.polyfit(period * np.arange(1, 8), np.unwrap(nodes), 1)[0]
    assert math.degrees(slope) * 86400 == pytest.approx(per_day, rel=3e-3)


def test_files_of_icgem(tmp_path):
    text = """some model, as they come
begin_of_head
modelname  TEST
earth_gravity_constant  0.3986004415D+15
radius     6378136.3
max_degree 3
norm {norm}
end_of_head
gfc 0 0 1.0 0.0 0 0
gfc 2 0 -4.84D-04 0.0 1e-10 0
gfc 3 1 2.0e-06 2.5e-07
"""
    path = tmp_path / "test.gfc"
    path.write_text(text.format(norm="fully_normalized"))
    field = read_gfc(path)
    assert (field.name, field.mu, field.degree) == ("TEST", 3.986004415e14, 3)
    assert float(field.c[2, 0]) == -4.84e-4
    assert float(field.s[3, 1]) == 2.5e-7
    path.write_text(text.format(norm="unnormalized"))
    raw = read_gfc(path)
    assert float(raw.c[2, 0]) == pytest.approx(-4.84e-4 / math.sqrt(5), rel=1e-12)
    norm = math.sqrt(2 * 7 * 2 / 24)
    assert float(raw.c[3, 1]) == pytest.approx(2e-6 / norm, rel=1e-12)
    for wrong, name in (
        ("nothing", "end_of_head"),
        ("radius 1\nend_of_head", "earth_gravity_constant"),
        (text.format(norm="odd"), "norm"),
        (text.format(norm="unnormalized") + "trnd 2 0 1 1", "trnd"),
        (text.format(norm="unnormalized") + "gfc 2 x 1 1", str(path)),
        (text.format(norm="unnormalized") + "gfc 4 0 1 1", str(path)),
    ):
        path.write_text(wrong)
        with raises(ModelError, name=name):
            read_gfc(path)
    with raises(ModelError, file="none.gfc"):
        read_gfc(tmp_path / "none.gfc")


def test_a_file_of_more_than_a_gigabyte_is_not_read(tmp_path):
    path = tmp_path / "large.gfc"
    with path.open("wb") as file:
        file.truncate(2**30 + 1)  # it takes no room on a disk
    with raises(ModelError, name=str(path)):
        read_gfc(path)


def test_wrong_fields_are_refused():
    for wrong, name in (
        (lambda: earth_coefficients(21), "degree"),
        (lambda: earth_coefficients(3, 4), "degree"),
        (lambda: HarmonicGravity(earth_coefficients(2)), "rotation"),
        (lambda: HarmonicGravity(earth_coefficients(1)), "degree"),
        (lambda: zonal_coefficients(MARS, {1: 1e-3}), "J2"),
    ):
        with raises(InvalidInputError, name=name):
            wrong()


def test_harmonics_as_a_central_body_of_others():
    field = HarmonicGravity(earth_coefficients(3), UniformRotation(7e-5))
    sim, frame = orbiting(
        CentralGravity(field, []), (7e6, 1e5, 2e5), (0.0, 5e3, 5.5e3), dt=100.0
    )
    other, alone = orbiting(
        HarmonicGravity(earth_coefficients(3), UniformRotation(7e-5)),
        (7e6, 1e5, 2e5), (0.0, 5e3, 5.5e3), dt=100.0,
    )  # fmt: skip
    for one in (sim, other):
        one.step(5)
    torch.testing.assert_close(frame.value, alone.value, rtol=1e-12, atol=1e-6)
