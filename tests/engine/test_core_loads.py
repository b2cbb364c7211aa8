"""Force models in the core: closed forms, and those of simstate.integrate."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.engine import core_loads
from tests.engine.core_models import tolerances
from tests.inside import columns_of, mass_flow_of

from simstate import Simulation, integrate
from simstate.engine import core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 4
CRAFT = """
<mujoco><option timestep="0.5" gravity="0 0 0"/><worldbody>
  <body name="bus" pos="0.3 -0.1 0.2" quat="0.8 0.1 0.5 0.3">
    <freejoint/>
    <inertial pos="0.2 -0.1 0.05" quat="0.9 0.3 0.1 0.2" mass="12"
              diaginertia="2 3 4"/>
    <body name="panel" pos="1 0.2 0">
      <joint name="hinge" axis="0 1 0.2" damping="0.3"/>
      <inertial pos="0.4 0.1 0" mass="3" diaginertia="0.2 0.5 0.6"/>
      <geom type="box" size="0.4 0.2 0.02" pos="0.4 0 0" mass="0"/>
    </body>
  </body>
  <body name="probe" pos="-2 1 0.5">
    <freejoint/>
    <inertial pos="0.02 0.03 -0.01" mass="5" diaginertia="0.3 0.4 0.2"/>
  </body>
</worldbody></mujoco>
"""
BODY = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="body">
  <freejoint/><inertial pos="0 0 0" mass="{m}" diaginertia="{i}"/>
</body></worldbody></mujoco>
"""
MU, RADIUS = 3.986004418e14, 6.9e6
SPEED = math.sqrt(MU / RADIUS)
RK4 = integrate.RK4().tableau


def craft():
    model = mujoco.MjModel.from_xml_string(CRAFT)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET.value
    return model


def one_body(mass=2.0, inertia="1 2 2.5"):
    return mujoco.MjModel.from_xml_string(BODY.format(m=mass, i=inertia))


def states(model, seed=2):
    """Rows of the state with loads that the user has set."""
    worlds = core.CoreBatch(model, NUM, 1)
    rng = np.random.default_rng(seed)
    worlds.bind("qpos")[:] = model.qpos0
    for row, move in zip(
        worlds.bind("qpos"), 0.4 * rng.standard_normal((NUM, model.nv)), strict=True
    ):
        mujoco.mj_integratePos(model, row, move, 1.0)
    worlds.bind("qvel")[:] = 0.05 * rng.standard_normal((NUM, model.nv))
    worlds.bind("xfrc_applied")[:] = 0.02 * rng.standard_normal((NUM, model.nbody, 6))
    return worlds.state.copy()


class Pair:
    """The same loads in the core and as simstate's own models, without the core."""

    def __init__(self, monkeypatch, scheme):
        self.model = craft()
        rows = states(self.model)
        monkeypatch.setenv("SIMSTATE_CORE", "0")
        self.sim = Simulation(self.model, NUM, integrator=scheme)
        monkeypatch.delenv("SIMSTATE_CORE")
        self.sim.write_state(torch.tensor(rows))
        self.worlds = core.CoreBatch(self.model, NUM, 2)
        self.worlds.state[:] = rows
        self.scheme = scheme

    def run(self, loads, frames=None, masses=None, n=6):
        h = self.model.opt.timestep
        frames = frames or {}
        self.sim.step(n)
        if isinstance(self.scheme, integrate.Adaptive):
            atol, rtol = tolerances(self.scheme, self.model, frames)
            ours = core.AdaptiveIntegrator(
                *(self.worlds, self.scheme.tableau, self.scheme.attitude),
                atol=atol,
                rtol=rtol,
                loads=loads,
                processes=[core.CoreProcess(*pair) for pair in frames.items()],
                masses=masses,
            )
            assert ours.advance(n * h) is None
        else:
            ours = core.Integrator(
                *(self.worlds, self.scheme.tableau, self.scheme.attitude),
                loads=loads,
                processes=[core.CoreProcess(*pair) for pair in frames.items()],
                masses=masses,
            )
            ours.step(n, h)
        # Rounding moves adaptive steps a little, and with them the last evaluation.
        columns = slice(0, columns_of(self.sim)["qacc_warmstart"].start)
        np.testing.assert_allclose(
            *(self.worlds.state[:, columns], self.sim.state.numpy()[:, columns]),
            rtol=1e-11,
            atol=1e-11,
        )
        if self.scheme.name != "DOP853":  # its errors are at rounding's level here
            counts = self.sim.integration.statistics.evaluations.numpy()
            np.testing.assert_array_equal(ours.evaluations, counts)


@pytest.fixture(
    params=[
        integrate.RK4(),
        integrate.RK4("high_order"),
        integrate.DP54(atol=1e-9, rtol=1e-9),
        integrate.DOP853(atol=1e-10, rtol=1e-10),
    ],
    ids=["rk4", "rk4 high order", "dp54", "dop853"],
)
def pair(request, monkeypatch):
    return Pair(monkeypatch, request.param)


def test_uniform_gravity_and_drag(pair):
    gravity = np.random.default_rng(4).standard_normal((NUM, 3))
    wind = (3.0, -2.0, 1.0)
    pair.sim.add_force(integrate.UniformGravity(gravity))
    pair.sim.add_force(integrate.Drag("model", "panel", 1.3, density=0.7, wind=wind))
    bodies = range(1, pair.model.nbody)
    loads = [
        core_loads.uniform_gravity(bodies, gravity),
        core_loads.drag(2, 1.3, 0.7, wind),
    ]
    pair.run(loads)


def test_point_masses(pair):
    mu, places = [30.0, 11.0], [[4.0, 3.0, 9.0], [-7.0, 2.0, 5.0]]
    pair.sim.add_force(integrate.PointMassGravity(mu, places))
    pair.run(
        [core_loads.point_mass_gravity([1, 2, 3], mu, places, gradient_torque=True)]
    )


def test_a_moving_frame_with_drag(pair):
    start = np.array([RADIUS, 2e5, -3e5]) + 1e3 * np.arange(NUM)[:, None]
    speed = np.array([100.0, SPEED, 800.0]) - 5.0 * np.arange(NUM)[:, None]
    frame = integrate.MovingFrame(integrate.PointMassGravity(MU), start, speed)
    pair.sim.add_process(frame)
    pair.sim.add_force(
        integrate.Drag("model", "bus", 2.0, density=1e-11, wind=(50, 0, 0))
    )
    value = np.concatenate([start, speed], axis=1)
    loads = [
        core_loads.point_mass_gravity(
            *([1, 2, 3], MU, (0, 0, 0)), frame=0, gradient_torque=True
        ),
        core_loads.drag(1, 2.0, 1e-11, (50, 0, 0), frame=0),
    ]
    pair.run(loads, {"frame": value})
    np.testing.assert_allclose(value, frame.value.numpy(), rtol=1e-13)


def mass_arrays(worlds, rate):
    """The masses as part of the state, with what follows from them."""
    worlds.expand("body_mass")
    worlds.expand("body_inertia")
    worlds.set_const()
    return core.MassArrays(
        rate,
        np.zeros_like(rate),
        1e-6 * worlds.expand("body_mass"),
        np.zeros(rate.shape, bool),
        ("body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0"),
    )


def test_thrusters_that_use_mass(pair):
    throttle = np.array([0.2, 0.9, 0.5, 0.7])
    force, point = (1.5, 0.3, -0.4), (-0.2, 0.1, 0.05)
    pair.sim.add_force(
        integrate.Thruster(
            *("model", "bus", force, point),
            mass_flow=0.3,
            throttle=lambda t: torch.tensor(throttle),
        )
    )
    rate = np.zeros((NUM, pair.model.nbody))
    rate[:, 3] = [-0.1, 0.05, -0.02, 0.0]
    pair.sim.mass_rate[:] = torch.tensor(rate)
    masses = mass_arrays(pair.worlds, rate)
    loads = [core_loads.thruster(1, force, point, mass_flow=0.3, throttle=throttle)]
    pair.run(loads, masses=masses)
    names = ("body_mass", "body_inertia", "body_subtreemass", "dof_invweight0")
    for name in names:
        want = pair.sim.expand(name).numpy()
        np.testing.assert_allclose(pair.worlds.expand(name), want, rtol=1e-12)
    assert not masses.empty.any()
    want = mass_flow_of(pair.sim).total_rate.numpy()
    np.testing.assert_allclose(masses.total_rate, want, atol=1e-15)


def test_what_the_user_applied_stays():
    model = craft()
    worlds = core.CoreBatch(model, NUM, 1)
    worlds.state[:] = states(model)
    before = worlds.bind("xfrc_applied").copy()
    loads = [core_loads.uniform_gravity([1, 2], (1, 2, 3))]
    core.Integrator(worlds, RK4, loads=loads).step(2, 0.1)
    np.testing.assert_array_equal(worlds.bind("xfrc_applied"), before)


def test_a_throw_is_a_parabola():
    worlds = core.CoreBatch(one_body(), NUM, 1)
    gravity = np.array([[0, 0, -9.81], [1, 2, -3], [0, 4, 0], [-2, 0, 5]], float)
    velocity = np.arange(12.0).reshape(NUM, 3)
    worlds.bind("qvel")[:, :3] = velocity
    load = core_loads.uniform_gravity([1], gravity)
    core.Integrator(worlds, RK4, loads=[load]).step(20, 0.05)
    want = velocity + gravity / 2
    np.testing.assert_allclose(worlds.bind("qpos")[:, :3], want, atol=1e-12)


def test_drag_slows_down_by_the_closed_form():
    """m v' = −½ ρ A v²: v = v0 / (1 + k v0 t)."""
    worlds = core.CoreBatch(one_body(2.0), NUM, 1)
    speed = np.array([3.0, 10.0, 22.0, 41.0])
    worlds.bind("qvel")[:, 1] = speed
    core.Integrator(worlds, RK4, loads=[core_loads.drag(1, 0.8, 1.1)]).step(400, 0.005)
    k = 0.5 * 1.1 * 0.8 / 2.0
    want = speed / (1 + k * speed * 2.0)
    np.testing.assert_allclose(worlds.bind("qvel")[:, 1], want, rtol=1e-6)


def test_a_circular_orbit_in_a_moving_frame():
    worlds = core.CoreBatch(one_body(100.0), 1, 1)
    frame = np.array([[RADIUS, 0, 0, 0, SPEED, 0]])
    load = core_loads.point_mass_gravity([1], MU, (0, 0, 0), frame=0)
    blocks = {"qpos": 1e-11, "qvel": 1e-11, "act": 1.0, "frame": 1e-6}
    ours = core.AdaptiveIntegrator(
        *(worlds, integrate.DOP853().tableau),
        atol=blocks,
        rtol=dict.fromkeys(blocks, 1e-12),
        loads=[load],
        processes=[core.CoreProcess("frame", frame)],
    )
    ours.advance(3000.0)
    turn = SPEED / RADIUS * 3000
    want = RADIUS * np.array([math.cos(turn), math.sin(turn), 0])
    np.testing.assert_allclose(frame[0, :3], want, atol=1e-2)
    np.testing.assert_allclose(worlds.bind("qpos")[0, :3], 0, atol=1e-9)


def test_tides_are_those_of_high_precision():
    worlds = core.CoreBatch(one_body(), 1, 1)
    worlds.bind("qacc")
    offset = np.array([3.0, -2.0, 1.0])
    worlds.bind("qpos")[0, :3] = offset
    frame = np.array([[RADIUS, 0, 0, 0, SPEED, 0]])
    load = core_loads.point_mass_gravity([1], MU, (0, 0, 0), frame=0)
    euler = integrate.Euler().tableau
    process = core.CoreProcess("frame", frame)
    core.Integrator(worlds, euler, loads=[load], processes=[process]).step(1, 1e-9)
    d = offset.astype(np.longdouble)
    r = np.array([RADIUS, 0, 0], np.longdouble)

    def pull(p):
        return -np.longdouble(MU) * p / np.sqrt(p @ p) ** 3

    want = (pull(r + d) - pull(r)).astype(float)
    np.testing.assert_allclose(worlds.bind("qacc")[0, :3], want, rtol=1e-8, atol=1e-14)


def test_the_rocket_equation_and_the_constants():
    worlds = core.CoreBatch(one_body(1.0), 2, 1)
    rate = np.array([[0, -0.5], [0, -0.25]])
    masses = mass_arrays(worlds, rate)
    worlds.bind("xfrc_applied")[:, 1, 0] = 1.0
    core.Integrator(worlds, RK4, masses=masses).step(10, 0.1)
    for world, flow in enumerate((0.5, 0.25)):
        mass = 1 - flow
        got = worlds.bind("qvel")[world, 0]
        assert got == pytest.approx(-math.log(mass) / flow, abs=1e-6)
        fresh = one_body(mass, f"{mass} {2 * mass} {2.5 * mass}")
        for name in ("body_mass", "body_inertia", "body_subtreemass", "dof_invweight0"):
            want = getattr(fresh, name)
            np.testing.assert_allclose(worlds.expand(name)[world], want, rtol=1e-12)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_mass_that_runs_out_is_noted(adaptive):
    worlds = core.CoreBatch(one_body(1.0), 3, 1)
    rate = np.array([[0, -0.1], [0, -2.0], [0, 0.3]])
    masses = mass_arrays(worlds, rate)
    if adaptive:
        blocks = dict.fromkeys(("qpos", "qvel", "act", "mass"), 1e-6)
        ours = core.AdaptiveIntegrator(
            *(worlds, integrate.DP54().tableau), atol=blocks, rtol=blocks, masses=masses
        )
        np.testing.assert_array_equal(ours.advance(1.0), [False, True, False])
        assert ours.failure(1).time == pytest.approx(0.5, abs=1e-6)
    else:
        core.Integrator(worlds, RK4, masses=masses).step(4, 0.25)
    np.testing.assert_array_equal(masses.empty, [[0, 0], [0, 1], [0, 0]])
    assert (worlds.expand("body_mass")[:, 1] > 0).all()
    np.testing.assert_allclose(worlds.expand("body_mass")[[0, 2], 1], [0.9, 1.3])


def test_what_is_not_kept_by_world_stays_the_models():
    """A camera that follows a tree's COM, in a world whose masses do not flow."""
    track = '<camera name="eye" mode="trackcom" pos="0 -3 1"/><body name="panel"'
    model = mujoco.MjModel.from_xml_string(CRAFT.replace('<body name="panel"', track))
    rate = np.zeros((3, model.nbody))
    rate[[0, 2], 1] = -2.0
    cameras = []
    for flow in (rate, np.zeros_like(rate)):
        worlds = core.CoreBatch(model, 3, 1)
        masses = mass_arrays(worlds, flow)
        core.Integrator(worlds, RK4, masses=masses).step(5, 0.1)
        worlds.bind("cam_xpos")
        worlds.forward()
        cameras.append(worlds.bind("cam_xpos")[1].copy())
    np.testing.assert_array_equal(*cameras)


def test_worlds_with_other_masses_do_not_mix():
    """Threads serve many worlds: what one changes in the model is not another's."""
    num = 9
    model = craft()
    rate = np.zeros((num, model.nbody))
    rate[:, 1] = -0.5 * np.arange(num)
    results = []
    for threads in (1, 3):
        worlds = core.CoreBatch(model, num, threads)
        worlds.bind("xfrc_applied")[:, 1, 0] = 1.0
        masses = mass_arrays(worlds, rate)
        core.Integrator(worlds, RK4, masses=masses).step(5, 0.1)
        results.append((worlds.state.copy(), worlds.expand("body_mass").copy()))
    want = 12 - 0.25 * np.arange(num)
    np.testing.assert_allclose(results[0][1][:, 1], want, rtol=1e-14)
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
