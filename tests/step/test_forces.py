"""Force models act at every stage, add up, and leave the user's inputs alone."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import force_models_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.flight import FreeFlight
from simstate.integrate import (
    DOP853,
    RK4,
    Drag,
    MovingFrame,
    PointMassGravity,
    Thruster,
    UniformGravity,
)

BODY = """
<mujoco><option timestep="0.1" gravity="0 0 {g}"/><worldbody><body name="body">
  <freejoint name="root"/><inertial pos="0 0 0" mass="2" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""


def body(integrator, num_envs=1, g=0.0, **options):
    model = mujoco.MjModel.from_xml_string(BODY.format(g=g))
    return Simulation(model, num_envs, integrator=integrator, **options)


def test_models_run_at_stage_times_and_inputs_come_back():
    sim = body(RK4(), 2)
    sim.data.xfrc_applied[:, 1, 0] = 4.0
    times = []

    def push(t, sim):
        times.append(t.tolist())
        sim.data.xfrc_applied[:, 1, 0] += 2 * t

    sim.add_force(push)
    sim.add_force(push)
    sim.step()
    assert [x[0] for x in times[::2]] == pytest.approx([0, 0.05, 0.05, 0.1])
    assert sim.data.xfrc_applied[:, 1, 0].tolist() == [4.0, 4.0]
    # 2 a = 4 + 4 t
    assert sim.data.qvel[0, 0].item() == pytest.approx(0.2 + 0.01, abs=1e-15)
    assert sim.data.qacc[0, 0].item() == pytest.approx(2.2, abs=1e-14)


def test_bad_models_leave_the_state():
    def nan_wind(t, sim):
        sim.data.xfrc_applied[1, 1, 0] = math.nan if float(t[0]) > 0.04 else 0.0

    def broken(t, sim):
        sim.data.xfrc_applied[:] = 5.0
        raise ZeroDivisionError

    def reader(t, sim):
        sim.data.xfrc_applied[:, 1, 0] = sim.data.qacc[:, 0]

    cases = {
        nan_wind: raises(InvalidInputError, name="xfrc_applied", worlds=[1]),
        broken: pytest.raises(ZeroDivisionError),
        reader: raises(InvalidInputError, name="acceleration"),
    }
    for model, expected in cases.items():
        sim = body(RK4(), 2)
        sim.data.qvel[:, 0] = 1.0
        before = sim.state.clone()
        sim.add_force(model)
        with expected:
            sim.step()
        assert torch.equal(sim.state, before)


@pytest.mark.parametrize("integrator", [None, RK4()], ids=["mujoco", "rk4"])
@pytest.mark.parametrize("on_views", [False, True])
def test_a_load_that_is_returned_is_refused(integrator, on_views):
    """It would not act. What a write in place returns is an input, and does."""
    views = {"reads": ("qvel",), "writes": ("xfrc_applied",)} if on_views else {}
    models = {
        True: (lambda t, qvel, load: -qvel, lambda t, qvel, load: load.__iadd__(3)),
        False: (
            lambda t, sim: -0.1 * sim.data.qvel,
            lambda t, sim: sim.data.xfrc_applied[:, 1, :1].add_(3.0),
        ),
    }
    returns, writes = models[on_views]
    sim = body(integrator, 2)
    sim.add_force(returns, **views)
    before = sim.state.clone()
    with raises(InvalidInputError, name="model"):
        sim.step()
    assert torch.equal(sim.state, before)
    sim = body(integrator, 2)
    sim.add_force(writes, **views)
    sim.step()
    assert sim.data.qvel[:, 0].tolist() == pytest.approx([0.15] * 2, rel=1e-12)


@pytest.mark.parametrize("integrator", [None, RK4()], ids=["mujoco", "rk4"])
def test_memory_of_the_worlds_may_be_returned_from_its_first_value_on(integrator):
    sim = body(integrator, 2)
    assert sim.data.time.data_ptr() == sim.state.data_ptr()
    sim.add_force(lambda t, sim: sim.data.time)
    sim.step(2)
    assert sim.time.tolist() == [0.2, 0.2]


def test_a_function_of_other_arguments_is_refused_when_it_is_added():
    sim = body(RK4())
    flight = FreeFlight(mass=1.0, inertia=np.eye(3))
    cases = [
        (lambda: sim.add_force(lambda sim: None), "model"),
        (lambda: sim.add_force(lambda t: None, writes=("ctrl",)), "model"),
        (lambda: sim.add_coupled_force(lambda sim: None), "model"),
        (lambda: sim.add_task(lambda sim: None, period=1.0), "function"),
        (lambda: sim.add_event(lambda t, sim: sim.time), "function"),
        (lambda: sim.add_event(lambda s: s.time, action=lambda s: None), "action"),
        (lambda: flight.add_load(lambda state: None), "model"),
        (lambda: FreeFlight(mass=1.0, inertia=np.eye(3), gravity=(0, 0, 0)), "gravity"),
    ]
    for call, name in cases:
        with raises(InvalidInputError, name=name):
            call()
    sim.step()


def test_held_loads_without_an_integrator():
    sim = body(None)
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, 0].add_(2 * t))
    sim.step(3)  # accelerations 0, 0.1, 0.2, each over 0.1 s
    assert sim.data.qvel[0, 0].item() == pytest.approx(0.03, abs=1e-15)


def test_uniform_gravity_is_mujocos():
    ours, theirs = body(RK4()), body(RK4(), g=-9.81)
    ours.add_force(UniformGravity((0, 0, -9.81)))
    ours.step(5)
    theirs.step(5)
    torch.testing.assert_close(ours.data.qpos, theirs.data.qpos, rtol=0, atol=1e-13)


def test_kepler_orbit_over_ten_revolutions():
    sim = body(DOP853(atol=1e-12, rtol=1e-12))
    sim.add_force(PointMassGravity(1.0))
    sim.data.qpos[0, 0] = 0.7  # perihelion of a = 1, e = 0.3
    speed = math.sqrt(1.3 / 0.7)
    sim.data.qvel[0, 1] = speed
    steps = 628
    sim.step(steps)
    mean = steps * 0.1
    e = mean
    for _ in range(50):
        e -= (e - 0.3 * math.sin(e) - mean) / (1 - 0.3 * math.cos(e))
    want = [math.cos(e) - 0.3, math.sqrt(0.91) * math.sin(e), 0.0]
    np.testing.assert_allclose(sim.data.qpos[0, :3].numpy(), want, atol=1e-9)


OFF_CENTRE = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody>
  <body name="other" pos="3 0 0"><freejoint name="first"/>
    <inertial pos="0.1 0 0.2" mass="0.7" diaginertia="1 1 1.5"/></body>
  <body name="body"><freejoint name="root"/>
    <inertial pos="0.3 -0.2 0.5" mass="2" diaginertia="1 2 2.5"
      quat="0.9 0.1 -0.2 0.3"/></body>
</worldbody></mujoco>
"""


def off_centre(integrator, num_envs=2, **options):
    """Two bodies with their COMs off their origins; worlds with unlike states."""
    model = mujoco.MjModel.from_xml_string(OFF_CENTRE)
    sim = Simulation(model, num_envs, integrator=integrator, **options)
    rng = np.random.default_rng(3)
    for world in range(num_envs):
        qpos = sim.data.qpos[world].numpy().copy()
        mujoco.mj_integratePos(model, qpos, rng.normal(size=12), 1.0)
        sim.data.qpos[world] = torch.tensor(qpos)
        sim.data.qvel[world] = torch.tensor(rng.normal(size=12))
    return sim


def accelerations_by_mujoco(sim, push):
    """qacc of each world by plain MuJoCo, with forces from push(data, world)."""
    result = []
    for world in range(sim.num_envs):
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        for force, point, body_id in push(data, world):
            mujoco.mj_applyFT(
                *(sim.model, data, force, np.zeros(3), point, body_id),
                data.qfrc_applied,
            )
        mujoco.mj_forward(sim.model, data)
        result.append(data.qacc.copy())
    return np.array(result)


def test_thrust_acts_at_its_point():
    """Its moment is about the COM, which is neither the origin nor the same body's."""
    sim = off_centre(RK4())
    force, position = np.array([0.4, 1.0, -0.3]), np.array([2.0, 0.5, -1.0])
    throttle = torch.tensor([0.5, 0.8], dtype=torch.float64)
    sim.add_force(
        Thruster("model", "body", force, position=position, throttle=lambda t: throttle)
    )

    def push(data, world):
        body_id = 2
        rot_wb = data.xmat[body_id].reshape(3, 3)
        point = data.xpos[body_id] + rot_wb @ position
        yield float(throttle[world]) * rot_wb @ force, point, body_id

    want = accelerations_by_mujoco(sim, push)
    np.testing.assert_allclose(sim.data.qacc, want, atol=1e-12)
    sim.step()
    assert (sim.data.qvel[:, :6] != 0).all()


def test_drag_is_by_the_velocity_of_the_com_against_the_air():
    """The COM moves as the body turns; density falls with height, and wind blows."""
    sim = off_centre(RK4())
    wind = np.array([0.7, -1.2, 0.4])
    sim.add_force(
        Drag("model", "body", area=0.4, density=lambda p: 2 - 0.1 * p[:, 2], wind=wind)
    )

    def push(data, world):
        body_id, velocity = 2, np.zeros(6)
        kind = mujoco.mjtObj.mjOBJ_BODY  # the COM, in the body's inertial frame
        mujoco.mj_objectVelocity(sim.model, data, kind, body_id, velocity, 0)
        air = velocity[3:] - wind
        density = 2 - 0.1 * data.xipos[body_id][2]
        yield -0.2 * density * np.linalg.norm(air) * air, data.xipos[body_id], body_id

    want = accelerations_by_mujoco(sim, push)
    np.testing.assert_allclose(sim.data.qacc, want, atol=1e-12)


def test_drag_slows_a_body_as_the_closed_form_says():
    sim = body(RK4(), 2)
    sim.add_force(Drag("model", "body", area=0.4, density=1.0))
    sim.data.qvel[:, 0] = torch.tensor([3.0, -1.7], dtype=torch.float64)
    sim.step(20)  # v' = −k v |v|, k = 0.4 / 2 / 2
    want = [3 / (1 + 0.1 * 3 * 2), -1.7 / (1 + 0.1 * 1.7 * 2)]
    assert sim.data.qvel[:, 0].tolist() == pytest.approx(want, abs=1e-7)


def test_drag_in_a_moving_frame_is_that_of_its_motion():
    """A body at rest in a frame of 4 m/s is slowed as one that flies at 4 m/s."""
    sim = body(RK4(), 2)
    start, speed = torch.tensor([[1e9, 0, 50.0], [1e9, 0, 90.0]]), [0.0, 4.0, 0.0]
    frame = MovingFrame(PointMassGravity(1e-6), start, speed)  # hardly any pull
    sim.add_process(frame)
    sim.add_force(Drag("model", "body", area=0.4, density=lambda p: p[:, 2] / 50))
    sim.step()
    # Each against the air: 4/(1 + k 4 t), k = ½ ρ C_d A / m; the frame keeps its 4.
    want = [4 / (1 + 0.1 * rho * 4 * 0.1) - 4 for rho in (1.0, 1.8)]
    assert sim.data.qvel[:, 1].tolist() == pytest.approx(want, abs=1e-6)


def test_unknown_names_and_bad_values():
    sim = body(RK4(), g=-9.81)
    with raises(UnknownNameError, name="bode"):
        sim.add_force(Drag("model", "bode", 1.0))
    with raises(UnknownNameError, name="modl"):
        sim.add_force(Drag("modl", "body", 1.0))
    with raises(InvalidInputError, name="gravity"):
        sim.add_force(PointMassGravity(1.0))
    with raises(InvalidInputError, name="mu"):
        PointMassGravity(-1.0)
    with raises(InvalidInputError, name="model"):
        sim.add_force(3)
    assert force_models_of(sim) == []


def test_a_model_is_not_blamed_for_a_world_that_diverged():
    sim = body(RK4(), 2, on_divergence="mask")
    sim.add_force(Drag("model", "body", area=1.0))
    sim.data.qvel[:, 0] = 1.0
    sim.data.xfrc_applied[0, 1, 0] = 1e300
    sim.step(3)
    assert sim.diverged.tolist() == [True, False]
