"""Drag in orbit: panels by hand, and the whole of a low orbit against scipy."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tests.inside import force_models_of, with_loads_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.flight import AirState, ExponentialAtmosphere, StandardAtmosphere
from simstate.integrate import DOP853, RK4, Drag, MovingFrame, PointMassGravity
from simstate.space import (
    EARTH,
    HarmonicGravity,
    PanelDrag,
    PlanetAir,
    box_panels,
    zonal_coefficients,
)

F64 = torch.float64
BODY = """<mujoco><option timestep="{dt}" gravity="0 0 0"/><worldbody>
<body name="craft"><freejoint/><inertial pos="0.05 -0.02 0.1" quat="0.8 0.3 -0.4 0.2"
 mass="120" diaginertia="9 14 18"/></body></worldbody></mujoco>"""
COM = np.array([0.05, -0.02, 0.1])


def craft(dt, integrator, num_envs=2):
    model = mujoco.MjModel.from_xml_string(BODY.format(dt=dt))
    return Simulation(model, num_envs, integrator=integrator)


def test_panels_by_hand():
    sim = craft(1.0, RK4())
    place, speed = np.array([6.7e6, 1e6, 5e5]), np.array([-900.0, 7000.0, 3000.0])
    gravity = PointMassGravity(EARTH.mu, gradient_torque=False)
    sim.add_process(MovingFrame(gravity, place, speed))
    normals, areas, centres = box_panels((1.0, 2.0, 3.0))
    centres = centres + torch.tensor([0.1, 0.2, -0.3], dtype=F64)
    drag = torch.tensor([[2.0] * 6, [2.4] * 6], dtype=F64)
    air = PlanetAir(atmosphere=ExponentialAtmosphere(3e-12, 6e4, 4e5))
    sim.add_force(PanelDrag("model", "craft", 2.5 * normals, areas, centres, air, drag))
    quats = Rotation.random(2, rng=3).as_quat(scalar_first=True)
    sim.data.qpos[:, 3:7] = torch.as_tensor(quats)
    sim.data.qvel[:, 3:6] = torch.tensor([0.02, -0.01, 0.03], dtype=F64)
    for world in range(2):
        rot = Rotation.from_quat(quats[world], scalar_first=True).as_matrix()
        com = place + rot @ COM
        height = np.linalg.norm(com) - EARTH.radius
        height = height_above(com)
        rho = 3e-12 * np.exp(-(height - 4e5) / 6e4)
        omega = rot @ [0.02, -0.01, 0.03]
        # The COM moves against the frame, whose origin is the body's.
        vel = speed + np.cross(omega, rot @ COM)
        vel = vel - np.cross([0, 0, EARTH.rotation_rate], com)
        force, moment = np.zeros(3), np.zeros(3)
        for n, a, c in zip(normals, areas, centres, strict=True):
            arm = rot @ (c.numpy() - COM)
            stream = vel + np.cross(omega, arm)
            size = np.linalg.norm(stream)
            facing = max(0.0, (rot @ n.numpy()) @ stream / size)
            push = (
                -0.5 * rho * float(drag[world, 0]) * float(a) * facing * size * stream
            )
            force += push
            moment += np.cross(arm, push)
        seen = loads(sim, world)
        np.testing.assert_allclose(seen[:3], force, rtol=1e-9)
        np.testing.assert_allclose(seen[3:], moment, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("turns", [False, True])
def test_panels_at_rest_in_the_air_feel_none(turns):
    """A craft on its pad, with air that stands still about it or turns with it."""
    sim = craft(1e-6, RK4())
    pad = np.array([EARTH.radius + 20.0, 0.0, 0.0])
    speed = np.array([0.0, EARTH.rotation_rate * pad[0] * turns, 0.0])
    sim.data.qpos[:, :3] = torch.as_tensor(pad - COM)
    sim.data.qvel[:, :3] = torch.as_tensor(speed)
    air = PlanetAir(turns=turns)
    sim.add_force(PanelDrag("model", "craft", *box_panels((1.0, 2.0, 3.0)), air))
    before = sim.data.qvel.clone()
    sim.step()
    assert float((sim.data.qvel - before).abs().max()) < 1e-12


def loads(sim, world):
    """What the drag model alone adds; the gravity of the frame is left out."""
    seen, models = [], force_models_of(sim)[1:]
    with_loads_of(
        sim, models, lambda: seen.append(sim.data.xfrc_applied[world, 1].clone())
    )
    return seen[0].numpy()


def height_above(place):
    """Above the spheroid, by Newton's method on the distance to it."""
    a, b = EARTH.radius, EARTH.polar_radius
    p, z = math.hypot(place[0], place[1]), place[2]
    angle = math.atan2(z * a, p * b)
    for _ in range(6):
        x, y = a * math.cos(angle), b * math.sin(angle)
        dx, dy = -a * math.sin(angle), b * math.cos(angle)
        first = (x - p) * dx + (y - z) * dy
        second = dx * dx + dy * dy + (x - p) * -x + (y - z) * -y
        angle -= first / second
    return math.hypot(p - a * math.cos(angle), z - b * math.sin(angle))


def test_a_box_has_six_panels():
    normals, areas, centres = box_panels((1.0, 2.0, 3.0))
    half = [[0.5, 0, 0], [0, 1, 0], [0, 0, 1.5]]
    np.testing.assert_allclose(centres, [*half, *(-np.array(half))])
    np.testing.assert_allclose(normals, centres.sign())
    np.testing.assert_allclose(areas, [6, 3, 2, 6, 3, 2])


def test_wrong_panels_are_refused():
    one = ([[0, 0, 1.0]], [1.0], [[0, 0, 0.0]])
    for wrong, name in (
        (
            lambda: PanelDrag("model", "craft", [0, 0, 1.0], [1.0], [[0, 0, 0]]),
            "normals",
        ),
        (lambda: PanelDrag("model", "craft", [[0, 0, 0.0]], *one[1:]), "normals"),
        (
            lambda: PanelDrag("model", "craft", one[0], [-1.0], one[2]),
            "areas",
        ),
        (
            lambda: PanelDrag("model", "craft", one[0], [1.0, 2.0], one[2]),
            "areas",
        ),
        (lambda: box_panels((1.0, 0.0, 2.0)), "size"),
    ):
        with raises((InvalidInputError, ShapeError), name=name):
            wrong()


MU, RADIUS, J2 = EARTH.mu, EARTH.radius, EARTH.j2
AREA, RATE = 6.0, EARTH.rotation_rate
TURN = Rotation.from_quat([0.8, 0.3, -0.4, 0.2], scalar_first=True).as_matrix()
PRINCIPAL = np.array([9.0, 14.0, 18.0])


def low_orbit(t, y):
    """J2, drag in air that turns, gravity gradient with J2's share, Euler's equations.

    y is position, velocity of the COM, quaternion body to world, body rates (in the
    principal axes).
    """
    r, v, q, w = y[:3], y[3:6], y[6:10], y[10:]
    n = math.sqrt(r @ r)
    s = r[2] / n
    k = 1.5 * J2 * MU * RADIUS**2 / n**5
    acc = -MU * r / n**3 + k * r * (5 * s * s - 1)
    acc[2] -= 2 * k * r[2]
    rho = 6e-12 * math.exp(-(height_above(r) - 3.5e5) / 5.5e4)
    seen = v - np.cross([0, 0, RATE], r)
    acc = acc - 0.5 * rho * AREA / 120 * np.linalg.norm(seen) * seen
    rot = Rotation.from_quat(q, scalar_first=True).as_matrix()
    u, pole = r / n, np.array([0.0, 0.0, 1.0])
    size = 3 * MU / n**3
    tensor = size * np.outer(u, u)
    c = 1.5 * J2 * MU * RADIUS**2 / n**5
    # ∂/∂r of c₀ r⁻⁵ (5 s² − 1) r − 2 c₀ r⁻⁵ z ẑ; multiples of 1 make no torque.
    tensor += c * (
        (5 - 35 * s * s) * np.outer(u, u)
        + 10 * s * (np.outer(u, pole) + np.outer(pole, u)) - 2 * np.outer(pole, pole)
    )  # fmt: skip
    own = rot.T @ tensor @ rot
    inertia = PRINCIPAL
    torque = np.array([
        (inertia[2] - inertia[1]) * own[1, 2],
        (inertia[0] - inertia[2]) * own[2, 0],
        (inertia[1] - inertia[0]) * own[0, 1],
    ])  # fmt: skip
    spin = (torque - np.cross(w, inertia * w)) / inertia
    q0, qv = q[0], q[1:]
    rate = 0.5 * np.array([-qv @ w, *(q0 * w + np.cross(qv, w))])
    return [*v, *acc, *rate, *spin]


@pytest.mark.parametrize("orbits", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_a_low_orbit_with_j2_drag_and_gravity_gradient(orbits):
    """A metre after ten orbits, 1e-5 rad after two; the air turns with the Earth."""
    period, dt = 5500.0, 1100.0
    sim = craft(dt, DOP853(atol=1e-9, rtol=1e-11), num_envs=2)
    place, speed = np.array([6.75e6, 2e5, 3e5]), np.array([-350.0, 5400.0, 5450.0])
    starts = np.stack([place, 1.004 * place])
    sim.add_process(
        frame := MovingFrame(HarmonicGravity(zonal_coefficients(EARTH)), starts, speed)
    )
    air = PlanetAir(atmosphere=ExponentialAtmosphere(6e-12, 5.5e4, 3.5e5))
    sim.add_force(Drag("model", "craft", AREA, air.density, air.wind))
    quat = np.array([0.5, -0.3, 0.4, 0.7])
    quat /= np.linalg.norm(quat)
    spin = np.array([1e-3, -8e-4, 6e-4])
    sim.data.qpos[:, 3:7] = torch.as_tensor(quat)
    sim.data.qvel[:, 3:6] = torch.as_tensor(spin)
    body = Rotation.from_quat(quat, scalar_first=True)
    own = (body * Rotation.from_matrix(TURN)).as_quat(scalar_first=True)
    runs = []
    for world in range(2):
        com = starts[world] + body.apply(COM)
        vel = speed + np.cross(body.apply(spin), body.apply(COM))
        start = [*com, *vel, *own, *(TURN.T @ spin)]
        runs.append(
            solve_ivp(
                low_orbit, (0, orbits * period), start, method="DOP853", rtol=1e-12,
                atol=1e-12, dense_output=True,
            )
        )  # fmt: skip
    sim.step(10)
    for world, truth in enumerate(runs):
        want = Rotation.from_quat(truth.sol(2 * period)[6:10], scalar_first=True)
        got = Rotation.from_quat(sim.data.qpos[world, 3:7].numpy(), scalar_first=True)
        apart = (got * Rotation.from_matrix(TURN)).inv() * want
        assert apart.magnitude() < 1e-6
    if orbits > 2:
        sim.step(5 * (orbits - 2))
    for world, truth in enumerate(runs):
        got = frame.body_com_pos_w(sim.scene["model"])[world, 0].numpy()
        assert np.linalg.norm(got - truth.y[:3, -1]) < 0.1
    fell = [np.linalg.norm(run.y[:3, -1] - run.y[:3, 0]) for run in runs]
    assert min(fell) > 1e4  # there is something to get wrong


class Linear:
    """An atmosphere without parameters by world."""

    def at(self, altitude):
        density = 1e-11 - 1e-17 * altitude
        return AirState(200 + 0 * altitude, 0 * altitude, density)


def test_an_atmosphere_of_ones_own_only_has_the_air_at_altitudes():
    air, radius = PlanetAir(atmosphere=Linear()), EARTH.radius
    sim = craft(1.0, RK4())
    sim.add_force(Drag("model", "craft", 2.0, air.density, air.wind))
    place = torch.tensor([[radius + 3e5, 0, 0], [0, radius + 4e5, 0]], dtype=F64)
    sim.data.qpos[:, :3] = place - torch.as_tensor(COM)
    sim.data.qvel[:, 0] = 100.0
    against = RATE * (radius + np.array([3e5, 4e5]))
    stream = np.array([[100.0, -against[0], 0.0], [100.0 + against[1], 0.0, 0.0]])
    rho = np.array([[7e-12], [6e-12]])
    size = np.linalg.norm(stream, axis=1, keepdims=True)
    seen = sim.scene["model"].data.body_com_lin_acc_w[:, 0]
    np.testing.assert_allclose(
        seen, -0.5 * rho * 2.0 * size * stream / 120, 1e-9, 1e-20
    )


def test_the_standard_atmosphere_about_the_earth():
    air = PlanetAir()
    place = torch.tensor([[6378137.0 + 4e5, 0, 0], [0, 0, EARTH.polar_radius + 4e5]])
    got = air.density(place.double())
    np.testing.assert_allclose(got, [2.803e-12] * 2, rtol=1e-3)
    still = PlanetAir(turns=False, atmosphere=StandardAtmosphere())
    assert float(still.wind(place[:, 0], place.double()).abs().max()) == 0
    wind = air.wind(place[:, 0], place.double())
    np.testing.assert_allclose(wind[0], [0, 7.292115e-5 * 6778137.0, 0])
