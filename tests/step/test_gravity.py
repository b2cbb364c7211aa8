"""Gravity of any model: one formula moves the frame and the bodies in it."""

from __future__ import annotations

import math

import mpmath
import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.integrate import (
    DOP853,
    RK4,
    CentralGravity,
    Gravity,
    MovingFrame,
    PointMassGravity,
    ThirdBody,
)

MU, RADIUS, J2 = 3.986004415e14, 6378136.3, 1.08262668e-3
MU_MOON, MOON_DISTANCE, MOON_RATE = 4.902800118e12, 3.844e8, 2.6616995e-6

TWO_CRAFT = """
<mujoco><option timestep="{dt}" gravity="0 0 0"/><worldbody>
<body name="chief"><freejoint/>
  <inertial pos="0.3 -0.2 0.1" quat="0.8 0.2 0.5 0.1" mass="100"
            diaginertia="10 20 25"/></body>
<body name="deputy"><freejoint/>
  <inertial pos="-0.1 0.4 0.2" quat="0.6 0.1 0.2 0.7" mass="12"
            diaginertia="1 1.5 2"/></body>
</worldbody></mujoco>
"""


def craft(num_envs=2, dt=1900.0, integrator=None, **options):
    model = mujoco.MjModel.from_xml_string(TWO_CRAFT.format(dt=dt))
    scheme = integrator or DOP853(atol=1e-7, rtol=1e-11)
    return Simulation(model, num_envs, integrator=scheme, **options)


class OblateGravity(PointMassGravity):
    """What a user writes: a central mass and J2, by its textbook components."""

    def acceleration(self, t, pos):
        x, y, z = pos.unbind(-1)
        r = pos.norm(dim=-1)
        k = 1.5 * J2 * MU * RADIUS**2 / r**5
        fifth = 5 * z**2 / r**2
        bulge = torch.stack(
            [k * x * (fifth - 1), k * y * (fifth - 1), k * z * (fifth - 3)], -1
        )
        return super().acceleration(t, pos) + bulge


def oblate(r):
    """The same, from the potential's gradient written out in another way."""
    n = math.sqrt(r @ r)
    u, pole = r / n, np.array([0.0, 0.0, 1.0])
    s = u @ pole
    size = 1.5 * J2 * MU * RADIUS**2 / n**4
    return -MU / n**2 * u + size * ((5 * s * s - 1) * u - 2 * s * pole)


def flown(pull, position, velocity, seconds):
    def rate(t, y):
        return [*y[3:], *pull(y[:3])]

    start = [*position, *velocity]
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-9}
    return solve_ivp(rate, (0, seconds), start, **options).y[:3, -1]


@pytest.mark.parametrize("orbits", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_a_users_field_moves_frame_and_bodies_alike(orbits):
    r0, v0 = np.array([6.9e6, 1e5, 2e5]), np.array([-400.0, 5200.0, 5500.0])
    sim = craft(num_envs=2)
    starts = np.stack([r0, 1.01 * r0])
    sim.add_process(frame := MovingFrame(OblateGravity(MU), starts, v0))
    offset = {0: (30.0, -20.0, 10.0), 7: (-500.0, 800.0, 300.0)}
    for first, place in offset.items():
        sim.data.qpos[:, first : first + 3] = torch.tensor(place, dtype=torch.float64)
        turn = torch.tensor([0.5, -0.5, 0.1, 0.7], dtype=torch.float64)
        sim.data.qpos[:, first + 3 : first + 7] = turn / turn.norm()
    com = sim.data.xipos[:, 1:].clone().numpy()
    sim.step(3 * orbits)  # periods of 5700 s
    for world in range(2):
        origin = frame.position[world].numpy()
        want = flown(oblate, starts[world], v0, 5700.0 * orbits)
        assert np.linalg.norm(origin - want) < 1e-2
        for k in range(2):
            want = flown(oblate, starts[world] + com[world, k], v0, 5700.0 * orbits)
            got = origin + sim.data.xipos[world, k + 1].numpy()
            assert np.linalg.norm(got - want) < 2e-2


def test_a_difference_is_that_of_high_precision():
    """Point masses lose no digit, a user's field no more than its own rounding."""
    place, offset = np.array([6.1e6, -3.2e6, 1.7e6]), np.array([2.0, -3.0, 1.5])

    def pull(p):
        cube = sum(x**2 for x in p) ** mpmath.mpf(1.5)
        return np.array([-MU * x / cube for x in p])

    with mpmath.workdps(40):
        exact = np.array([mpmath.mpf(x) for x in place])
        want = (pull(exact + offset) - pull(exact)).astype(float)
    t = torch.zeros(1, dtype=torch.float64)
    args = torch.tensor(place)[None, None], torch.tensor(offset)[None, None]
    got = PointMassGravity(MU).difference(t, *args)[0, 0].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-14)
    gravity = OblateGravity(MU)
    got = gravity.difference(t, *args)[0, 0].numpy()
    want = oblate(place + offset) - oblate(place)
    np.testing.assert_allclose(got, want, atol=1e-14)


def moon(t):
    """The Moon from the Earth on a tilted circle; (num_envs, 3)."""
    angle = MOON_RATE * t + 0.3
    turned = torch.stack([angle.cos(), 0.9 * angle.sin(), 0.43588989 * angle.sin()], -1)
    return MOON_DISTANCE * turned


def seen_from_earth(t, r):
    """Direct and indirect pull, written out."""
    s = moon(torch.tensor([t], dtype=torch.float64))[0].numpy()
    d = s - r
    direct = MU_MOON * d / np.linalg.norm(d) ** 3
    indirect = MU_MOON * s / np.linalg.norm(s) ** 3
    return -MU * r / np.linalg.norm(r) ** 3 + direct - indirect


def test_the_moon_at_geostationary_height_for_a_day():
    r0, v0 = np.array([4.2164e7, 1e6, -2e6]), np.array([100.0, 3070.0, 150.0])
    sim = craft(num_envs=2, dt=1200.0)
    starts = np.stack([r0, 1.02 * r0])
    earth = CentralGravity(PointMassGravity(MU), [ThirdBody(MU_MOON, moon)])
    sim.add_process(frame := MovingFrame(earth, starts, v0))
    sim.data.qpos[:, 7:10] = torch.tensor([40.0, -70.0, 90.0], dtype=torch.float64)
    com = sim.data.xipos[:, 2].clone().numpy()
    sim.step(72)
    for world in range(2):
        start = starts[world] + com[world]
        truth = solve_ivp(
            lambda t, y: [*y[3:], *seen_from_earth(t, y[:3])],
            (0, 86400.0), [*start, *v0], method="DOP853", rtol=1e-13, atol=1e-9,
        )  # fmt: skip
        got = frame.position[world].numpy() + sim.data.xipos[world, 2].numpy()
        assert np.linalg.norm(got - truth.y[:3, -1]) < 0.05


def test_a_central_body_is_the_inertial_sum_seen_from_it():
    """Earth and Moon about their common centre: the same relative motion."""
    share = MU_MOON / (MU + MU_MOON)

    def both(t):
        s = moon(t)
        return torch.stack([-share * s, (1 - share) * s], dim=1)

    t = torch.tensor([0.0, 4e4, 9e5], dtype=torch.float64)
    place = torch.tensor([[4.2e7, 1e6, -2e6]], dtype=torch.float64).expand(3, 1, 3)
    central = CentralGravity(PointMassGravity(MU), [ThirdBody(MU_MOON, moon)])
    inertial = PointMassGravity([MU, MU_MOON], both)
    earth = both(t)[:, :1]
    pulled = MU_MOON * moon(t) / moon(t).norm(dim=-1, keepdim=True) ** 3
    got = central.acceleration(t, place) + pulled[:, None]
    want = inertial.acceleration(t, place + earth)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


def test_wrong_combinations_raise():
    def held(t):
        return torch.stack([torch.zeros(len(t), 3).double(), moon(t)], dim=1)

    with raises(InvalidInputError, name="positions"):
        craft().add_force(PointMassGravity([MU, MU_MOON], held))
    sim = craft()
    sim.add_force(PointMassGravity(MU))
    with raises(InvalidInputError, name="chief"):
        sim.add_force(PointMassGravity(MU_MOON, lambda t: moon(t)[:, None]))
    with raises(InvalidInputError, name="central"):
        CentralGravity(PointMassGravity([MU, MU_MOON], held), [])
    with raises(InvalidInputError, name="central"):
        CentralGravity(PointMassGravity(MU, (1e6, 0, 0)), [])
    with raises(InvalidInputError, name="third_bodies"):
        CentralGravity(PointMassGravity(MU), [PointMassGravity(MU_MOON)])
    with raises(InvalidInputError, name="gravity"):
        MovingFrame(lambda t, p: p, (7e6, 0, 0), (0, 7e3, 0))
    with raises(InvalidInputError, name="position(t)"):
        craft().add_force(PointMassGravity(MU, lambda t: t))


def test_two_fixed_centres_and_several_craft_of_their_own_fields():
    """Legitimate sums: masses that do not move; a field for each entity."""
    craft().add_force(PointMassGravity([MU, MU], [[0, 0, 0], [2e7, 0, 0]]))
    with raises(ShapeError, name="position"):
        PointMassGravity([MU, MU], [[0, 0, 0]])


def torque_of_points(inertia, rot, pull, centre):
    """∫ ρ × a dm over six points whose inertia is this diagonal one."""
    squares = 0.5 * inertia.sum() - inertia  # ∫ x² dm, ∫ y² dm, ∫ z² dm
    total = np.zeros(3)
    arm = 1.0
    for axis, square in enumerate(squares):
        for sign in (-1, 1):
            rho = rot[:, axis] * sign * arm
            total += np.cross(rho, square / 2 / arm**2 * pull(centre + rho))
    return total


@pytest.mark.parametrize("field", [PointMassGravity, OblateGravity])
def test_gradient_torque_on_every_body_is_that_of_its_points(field):
    place = np.array([5e6, -3e6, 4.5e6])
    sim = craft(num_envs=3, integrator=RK4(), dt=1.0)
    sim.add_process(MovingFrame(field(MU), place, (0.0, 5e3, 5e3)))
    rng = np.random.default_rng(2)
    quats = Rotation.random(6, rng=rng).as_quat(scalar_first=True).reshape(3, 2, 4)
    for k, first in enumerate((3, 10)):
        sim.data.qpos[:, first : first + 4] = torch.as_tensor(quats[:, k])
    sim.forward()

    def far(r):
        """High precision, as the torque is what is left of a great pull."""
        r = r.astype(np.longdouble)
        n = np.sqrt(r @ r)
        u = r / n
        out = -MU / n**2 * u
        if field is OblateGravity:
            pole = np.array([0, 0, 1], dtype=np.longdouble)
            size = 1.5 * np.longdouble(J2) * MU * np.longdouble(RADIUS) ** 2 / n**4
            s = u @ pole
            out = out + size * ((5 * s * s - 1) * u - 2 * s * pole)
        return out

    for world in range(3):
        for body in (1, 2):
            rot = sim.data.ximat[world, body].numpy().astype(np.longdouble)
            inertia = sim.model.body_inertia[body].astype(np.longdouble)
            centre = place + sim.data.xipos[world, body].numpy().astype(np.longdouble)
            want = torque_of_points(inertia, rot, far, centre).astype(float)
            link = (0, 6)[body - 1]
            rot_body = sim.data.xmat[world, body].numpy()
            # The angular acceleration of a body at rest is I⁻¹ torque.
            acc = rot_body @ sim.data.qacc[world, link + 3 : link + 6].numpy()
            full = rot.astype(float) @ np.diag(inertia.astype(float)) @ rot.T
            np.testing.assert_allclose(full @ acc, want, rtol=2e-6, atol=1e-15)


def test_no_gradient_torque_where_it_is_not_wanted():
    sim = craft(integrator=RK4(), dt=1.0)
    gravity = PointMassGravity(MU, gradient_torque=False)
    sim.add_process(MovingFrame(gravity, (5e6, -3e6, 4.5e6), (0.0, 5e3, 5e3)))
    sim.forward()
    assert sim.data.qacc[:, 3:6].abs().max() < 1e-16


def test_mu_of_each_world():
    mu = torch.tensor([[MU], [2 * MU]], dtype=torch.float64)
    sim = craft(integrator=RK4(), dt=1.0)
    sim.add_force(PointMassGravity(mu, gradient_torque=False))
    sim.data.qpos[:, 0] = 7e6
    sim.data.qpos[:, 8] = 8e6
    sim.forward()
    pull = sim.data.xipos[:, 1:].norm(dim=-1) ** -2 * MU
    acc = sim.scene["model"].data.body_com_lin_acc_w.norm(dim=-1)
    torch.testing.assert_close(acc[0], pull[0], rtol=1e-9, atol=0)
    torch.testing.assert_close(acc[1], 2 * pull[1], rtol=1e-9, atol=0)
    with raises(ShapeError, name="mu"):
        craft(num_envs=3).add_force(PointMassGravity(mu))


def test_places_of_masses_in_each_world():
    mu, own = [MU, 0.3 * MU], np.array([[[0, 0, 1e5], [2e7, 0, 0]]] * 2)
    own[1] *= -1.5
    sim = craft()
    sim.add_force(PointMassGravity(mu, own, gradient_torque=False))
    sim.data.qpos[:, 0] = torch.tensor([7e6, 9e6], dtype=torch.float64)
    sim.data.qpos[:, 8] = 8e6
    sim.forward()
    got = sim.scene["model"].data.body_com_lin_acc_w.numpy()
    away = sim.data.xipos[:, 1:, None].numpy() - own[:, None]
    pull = -np.array(mu)[:, None] * away / np.linalg.norm(away, axis=-1)[..., None] ** 3
    np.testing.assert_allclose(got, pull.sum(axis=2), rtol=1e-9, atol=1e-12)


def test_each_craft_has_a_frame_of_its_own():
    """One in a low orbit, one far out, in one world: each relative to its frame."""
    from simstate import EntityCfg, SceneCfg

    body = """<mujoco><worldbody><body name="bus"><freejoint/><inertial
    pos="0.1 0.2 0.3" mass="{m}" diaginertia="1 2 2.5"/>{geom}</body></worldbody>
    </mujoco>"""

    def scene(geom=""):
        return SceneCfg(
            entities={
                "low": EntityCfg(model=body.format(m=3, geom=geom)),
                "high": EntityCfg(model=body.format(m=5, geom=geom)),
            },
            ground=False, gravity=(0, 0, 0), timestep=500.0,
        )  # fmt: skip

    starts = {
        "low": (np.array([7e6, 1e5, 2e5]), np.array([0.0, 5300.0, 5400.0])),
        "high": (np.array([-4e7, 9e6, 1e6]), np.array([-600.0, -2900.0, 40.0])),
    }
    sim = Simulation(scene(), 2, integrator=DOP853(atol=1e-9, rtol=1e-12))
    frames = {}
    for name, (r, v) in starts.items():
        frames[name] = MovingFrame(PointMassGravity(MU, entity=name), r, v)
        sim.add_process(frames[name])
    sim.step(20)

    def kepler(r):
        return -MU * r / np.linalg.norm(r) ** 3

    for name, (r, v) in starts.items():
        com = np.array([0.1, 0.2, 0.3])
        got = frames[name].body_com_pos_w(sim.scene[name])[1, 0].numpy()
        assert np.linalg.norm(got - flown(kepler, r + com, v, 1e4)) < 1e-2
    ball = '<geom type="sphere" size="0.1" mass="0"/>'
    sim = Simulation(scene(ball), 2, integrator=RK4())
    sim.add_process(MovingFrame(PointMassGravity(MU, entity="low"), *starts["low"]))
    high = PointMassGravity(MU, entity="high")
    with raises(InvalidInputError, name="frame of high"):
        sim.add_process(MovingFrame(high, *starts["high"]))
    again = PointMassGravity(MU, entity="low")
    with raises(InvalidInputError, name="low/bus"):
        sim.add_process(MovingFrame(again, *starts["low"], name="again"))


def test_float32_is_refused_where_it_cannot_hold_an_orbit():
    sim = craft(integrator=RK4(), dt=1.0, engine="warp")
    sim.add_force(PointMassGravity(MU))
    sim.data.qpos[:, 0] = 7e6
    with raises(InvalidInputError, name="dtype"):
        sim.step()


def test_orbital_speed_in_an_inertial_frame_points_to_the_moving_one():
    sim = craft(dt=1.0)
    sim.add_force(PointMassGravity(MU))
    for first in (0, 7):
        sim.data.qpos[:, first] = 7e6 + first
    for first in (1, 7):
        sim.data.qvel[:, first] = 7546.0
    with pytest.warns(RuntimeWarning, match="MovingFrame"):
        sim.forward()


def test_a_gravity_of_ones_own_needs_one_formula():
    class Spring(Gravity):
        def acceleration(self, t, pos):
            return -1e-6 * pos

    sim = craft(integrator=RK4(), dt=1.0)
    sim.add_process(MovingFrame(Spring(), (1e3, 2e3, 0), (0, 0, 0)))
    sim.data.qpos[:, 0] = 5.0
    sim.forward()
    com = sim.data.xipos[:, 1]
    acc = sim.scene["model"].data.body_com_lin_acc_w[:, 0]
    torch.testing.assert_close(acc, -1e-6 * com, rtol=1e-7, atol=1e-18)
