"""Events, tasks, runs and records, against closed forms and scipy."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.signal import cont2discrete
from tests.inside import takes_plain_steps
from tests.raised import raises

from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.integrate import (
    DOP853,
    DP54,
    RK4,
    EulerMaruyama,
    OrnsteinUhlenbeck,
    PointMassGravity,
    Thruster,
)
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import forcing_of
from simstate.world.worlds import worlds_of

G = 9.80665
BALL = f"""
<mujoco><option timestep="0.1" gravity="0 0 -{G}"/><worldbody><body name="ball">
  <freejoint/><inertial pos="0 0 0" mass="2" diaginertia="1 2 2.5"/>
</body></worldbody></mujoco>
"""
TUMBLING = """
<mujoco>
  <option gravity="0 0 0" timestep="0.01" integrator="RK4"/>
  <worldbody>
    <body name="body"><freejoint/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="1 2 3"/>
    </body>
  </worldbody>
</mujoco>
"""
F64 = torch.float64
HEIGHT = np.array([3.0, 11.0, 7.5])
SPEED = np.array([2.0, -1.5, 9.0])
FALL = (SPEED + np.sqrt(SPEED**2 + 2 * G * HEIGHT)) / G
"""When the balls are at the ground."""


def balls(integrator, which=(0, 1, 2), **options):
    model = mujoco.MjModel.from_xml_string(BALL)
    sim = Simulation(model, len(which), integrator=integrator, **options)
    sim.data.qpos[:, 2] = torch.as_tensor(HEIGHT[list(which)]).to(sim.dtype)
    sim.data.qvel[:, 2] = torch.as_tensor(SPEED[list(which)]).to(sim.dtype)
    sim.data.qvel[:, 4] = 1.3
    return sim


def height(sim):
    return sim.data.qpos[:, 2]


@pytest.mark.parametrize("scheme", [RK4(), DP54(atol=1e-10, rtol=1e-10)])
def test_touch_down_is_found_to_a_nanosecond(scheme):
    sim = balls(scheme)
    ground = sim.add_event(height, "falling", terminal=True)
    run = sim.run(until=5.0)
    assert run.ended.all()
    np.testing.assert_allclose(run.time, FALL, atol=1e-9)
    np.testing.assert_allclose(ground.time, FALL, atol=1e-9)
    assert ground.count.tolist() == [1, 1, 1]
    np.testing.assert_allclose(height(sim), 0.0, atol=1e-8)
    want = SPEED - G * FALL
    np.testing.assert_allclose(sim.data.qvel[:, 2], want, atol=1e-8)


def test_touch_down_on_warp_is_found_as_float32_has_it():
    """The state jumps at the crossing; the time has seven digits, and says no more."""
    model = mujoco.MjModel.from_xml_string(TUMBLING)
    model.opt.gravity[2], model.opt.timestep = -G, 0.25
    sim = Simulation(model, 3, engine="warp", integrator=RK4())
    sim.data.qpos[:, 2] = torch.as_tensor(HEIGHT).to(sim.dtype)
    sim.data.qvel[:, 2] = torch.as_tensor(SPEED).to(sim.dtype)
    calls = []

    def height(sim):
        calls.append(1)
        return sim.data.qpos[:, 2]

    def stop(sim, env_ids):
        sim.data.qvel[env_ids, 2] = 0.0

    hit = sim.add_event(height, "falling", terminal=True, action=stop)
    log = sim.record(quantities=["qpos"], every=0.3)
    run = sim.run(until=5.0)
    assert run.ended.all()
    np.testing.assert_allclose(hit.time, FALL, rtol=2e-6)
    np.testing.assert_allclose(sim.data.qpos[:, 2], 0.0, atol=3e-5)
    assert sim.data.qvel[:, 2].tolist() == [0.0, 0.0, 0.0]
    assert len(calls) < 120  # it does not look for digits that are not there
    fell = HEIGHT + SPEED * 0.6 - G / 2 * 0.6**2
    np.testing.assert_allclose(log["qpos"][2, :, 2], fell, rtol=1e-5)


def test_a_run_on_warp_ends_at_times_that_float32_rounds():
    model = mujoco.MjModel.from_xml_string(TUMBLING)
    model.opt.timestep = 0.1
    sim = Simulation(model, 2, engine="warp", integrator=RK4())
    calls = []

    def height(sim):
        calls.append(1)
        assert len(calls) < 200, "the run does not end"
        return 1.0 + sim.data.qpos[:, 2]

    sim.add_event(height, "falling")
    sim.run(until=0.7)  # float32 is below it, by more than float64's rounding
    assert sim.time.tolist() == [float(np.float32(0.7))] * 2


def test_a_ball_that_bounces():
    sim = balls(RK4(), (2, 0))
    share = torch.tensor([0.7, 0.8], dtype=F64)

    def bounce(sim, env_ids):
        sim.data.qvel[env_ids, 2] *= -share[env_ids]

    hit = sim.add_event(height, "falling", action=bounce)
    run = sim.run(until=5.537)  # between two time steps
    assert run.time.tolist() == [5.537] * 2
    for world, ball in enumerate((2, 0)):
        time, speed, count = FALL[ball], G * FALL[ball] - SPEED[ball], 0
        while time < 5.537:
            speed, count, last = float(share[world]) * speed, count + 1, time
            time += 2 * speed / G
        assert int(hit.count[world]) == int(run.happened["height"][world]) == count > 1
        assert float(hit.time[world]) == pytest.approx(last, abs=2e-9)
        left = 5.537 - last
        want = speed * left - G / 2 * left**2
        assert float(height(sim)[world]) == pytest.approx(want, abs=1e-7)


def test_the_apogee_of_a_kepler_orbit():
    model = mujoco.MjModel.from_xml_string(BALL.replace(f"-{G}", "0"))
    sim = Simulation(model, 2, integrator=DOP853(atol=1e-13, rtol=1e-13))
    sim.add_force(PointMassGravity([[1.0], [2.0]], gradient_torque=False))
    e = torch.tensor([0.5, 0.2], dtype=F64)
    sim.data.qpos[:, 0] = 1 - e  # perigee of orbits whose half axis is 1
    sim.data.qvel[:, 1] = ((1 + e) / (1 - e) * torch.tensor([1.0, 2.0])).sqrt()

    def radial_speed(sim):
        return (sim.data.qpos[:, :3] * sim.data.qvel[:, :3]).sum(dim=1)

    apogee = sim.add_event(radial_speed, "falling")
    perigee = sim.add_event(radial_speed, "rising", terminal=True)
    sim.step()  # away from the perigee at which it starts
    run = sim.run(until=20.0)
    want = [math.pi, math.pi / math.sqrt(2)]
    np.testing.assert_allclose(apogee.time, want, atol=1e-9)
    np.testing.assert_allclose(run.time, 2 * np.array(want), atol=1e-9)
    assert perigee.name == "radial_speed 2"
    assert perigee.count.tolist() == [1, 1]


def test_a_stage_is_dropped_when_its_propellant_is_used_up():
    """Two burns by Tsiolkovsky's equation, with a mass that goes at once between."""
    model = mujoco.MjModel.from_xml_string(BALL.replace(f"-{G}", "0"))
    sim = Simulation(model, 2, integrator=DP54(atol=1e-10, rtol=1e-12))
    flow = torch.tensor([0.5, 0.25], dtype=F64)
    motor = Thruster("model", "ball", (0.0, 0.0, 6.0), mass_flow=flow)
    sim.add_force(motor)
    mass = sim.expand("body_mass")

    def propellant(sim):
        return mass[:, 1] - 1.2

    def separate(sim, env_ids):
        mass[env_ids, 1] = 0.7  # from 1.2 kg
        motor.parameters["force"][env_ids, 2] = 2.0

    def burnt_out(sim):
        return mass[:, 1] - 0.4

    stage = sim.add_event(propellant, "falling", action=separate)
    sim.add_event(burnt_out, "falling", terminal=True)
    run = sim.run(until=10.0)
    np.testing.assert_allclose(stage.time, 0.8 / flow, atol=1e-9)
    np.testing.assert_allclose(run.time, (0.8 + 0.3) / flow, atol=1e-9)
    want = (6 / flow) * math.log(2 / 1.2) + (2 / flow) * math.log(0.7 / 0.4)
    np.testing.assert_allclose(sim.data.qvel[:, 2], want, rtol=1e-9)
    sim.reset()
    assert mass[:, 1].tolist() == [2.0, 2.0]


def test_what_an_action_did_is_undone_with_its_step():
    sim = balls(RK4())
    kept = sim.memory("hits", dtype=torch.int64)
    gravity = sim.expand("opt.gravity")

    def break_off(sim, env_ids):
        kept[env_ids] += 1
        gravity[env_ids] = 0.0
        sim.data.ctrl[env_ids] = 3.0
        raise RuntimeError("it broke")

    log = sim.record(quantities={"height": (height, "m")})
    hit = sim.add_event(height, "falling", action=break_off)
    with pytest.raises(RuntimeError, match="it broke"):
        sim.run(until=3.0)
    last = 0.1 * math.floor(FALL.min() / 0.1)  # the last whole step of all
    np.testing.assert_allclose(sim.time, last)
    assert kept.tolist() == hit.count.tolist() == [0, 0, 0]
    assert hit.time.isnan().all()
    assert gravity[:, 2].tolist() == [-G] * 3
    assert float(log.time.nan_to_num().max()) == pytest.approx(last)
    want = HEIGHT + SPEED * last - G / 2 * last**2
    np.testing.assert_allclose(height(sim), want, atol=1e-12)


def test_what_an_action_may_not_do():
    def others(sim, env_ids):
        sim.data.qvel[:, 0] = 1.0

    def slots(sim, env_ids):
        sim.memory("new")

    def time(sim, env_ids):
        sim.reset(env_ids)

    def steps(sim, env_ids):
        sim.step()

    for action, name in (
        (others, "height"), (slots, "slot 'memory/new'"),
        (time, "time"), (steps, "sim.step"),
    ):  # fmt: skip
        sim = balls(RK4())
        sim.add_event(height, "falling", action=action)
        with raises(InvalidInputError, name=name):
            sim.run(until=3.0)
        assert float(sim.data.qvel[:, 0].abs().max()) < 1e-12


def test_events_without_end_and_wrong_ones_are_refused():
    sim = balls(RK4())

    def again(sim, env_ids):
        sim.data.qpos[env_ids, 2] = 1e-9

    sim.add_event(height, "falling", action=again)
    with raises(SimStateError, name="events"):
        sim.run(until=3.0)
    for wrong, error, name in (
        (lambda: sim.add_event(height, "down"), SimStateError, "down"),
        (lambda: sim.add_event(3.0), InvalidInputError, "function"),
        (lambda: sim.add_event(height, tolerance=0), InvalidInputError, "tolerance"),
        (lambda: sim.add_task(again, 0.0), InvalidInputError, "period"),
        (lambda: sim.run(until=math.inf), InvalidInputError, "until"),
        (lambda: sim.run(until=[1.0, 2.0]), InvalidInputError, "until"),
        (lambda: sim.record(quantities=[]), InvalidInputError, "quantities"),
        (lambda: sim.record(quantities="qpos"), InvalidInputError, "quantities"),
        (lambda: sim.record(quantities=["height"]), SimStateError, "height"),
        (lambda: sim.record(quantities=["qpos"], every=-1), InvalidInputError, "every"),
    ):
        with raises(error, name=name):
            wrong()
    sim = balls(RK4())
    sim.add_event(lambda sim: torch.zeros(2), name="short")
    with raises(ShapeError, name="function"):
        sim.step()


def test_a_function_may_give_an_array():
    sim = balls(RK4())
    event = sim.add_event(lambda sim: height(sim).numpy(), "falling", terminal=True)
    sim.run(until=5.0)
    np.testing.assert_allclose(event.time, FALL, atol=1e-9)


@pytest.mark.parametrize("calls", [1, 40])
def test_many_steps_in_one_call_miss_no_event(calls):
    """A parabola is exact at any step size, so the scheme's steps have no end."""
    sim = balls(DP54())
    sim.data.qpos[:, 2] = 1.0
    sim.data.qvel[:, 2] = torch.tensor([24.0, 26.0, 29.0], dtype=F64)
    sim.run(until=0.5)  # the scheme has found its step
    window = sim.add_event(lambda sim: height(sim) - 28.5, "rising")
    for _ in range(calls):
        sim.step(40 // calls)
    speed = np.array([24.0, 26.0, 29.0])
    rising = (speed - np.sqrt(speed**2 - 2 * G * 27.5)) / G
    np.testing.assert_allclose(window.time, rising, atol=1e-9)


SPHERES = f"""
<mujoco><option timestep="0.05" gravity="0 0 -{G}"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="one" pos="0 0 1"><freejoint/>
    <geom name="one" size="0.2" mass="1.5"/></body>
  <body name="two" pos="3 0 1"><freejoint/>
    <geom name="two" size="0.3" mass="0.4"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("runs", [True, False], ids=["run", "step"])
@pytest.mark.parametrize("scheme", [RK4(), None], ids=["rk4", "mujoco"])
def test_the_instant_of_a_contact(scheme, runs):
    """What a contact sensor finds jumps from 0 to 1: the jump is found as a root is."""
    scene = SceneCfg(
        entities={"spheres": EntityCfg(model=SPHERES)},
        contacts={"two": ContactCfg(of="spheres/two")},
    )
    sim = Simulation(scene, 3, integrator=scheme)
    high = np.array([1.2, 2.9, 0.9])
    sim.data.qpos[:, 9] = torch.as_tensor(high)
    sim.data.qpos[:, 2] = torch.as_tensor(high[::-1].copy())  # another touches, too

    def touching(sim):
        return sim.contacts["two"].found[:, 0] > 0

    touch = sim.add_event(touching, "rising", terminal=True, tolerance=1e-11)
    if runs:
        assert sim.run(until=2.0).ended.all()
    else:
        sim.step(40)
    fall = np.sqrt(2 * (high - 0.3) / G)
    if scheme is None:  # Euler's steps: n (n + 1) / 2 · G · h² fall in n of them
        n = np.floor(np.sqrt(0.25 + 2 * (high - 0.3) / G / 0.05**2) - 0.5)
        speed, left = G * 0.05 * n, high - 0.3 - n * (n + 1) / 2 * G * 0.05**2
        fall = 0.05 * n + (np.sqrt(speed**2 + 4 * G * left) - speed) / (2 * G)
    np.testing.assert_allclose(touch.time, fall, atol=1e-9)
    np.testing.assert_allclose(sim.data.qpos[:, 9], 0.3, atol=1e-8)
    assert bool((sim.contacts["two"].found[:, 0] > 0).all())


def test_a_sampled_controller_is_its_discrete_system():
    """A double integrator under a gain that is held, at a rate off the time step."""
    xml = """
    <mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="cart">
      <joint name="x" type="slide"/><geom size="0.1" mass="2"/></body></worldbody>
    <actuator><motor joint="x" gear="1.6"/></actuator></mujoco>
    """
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 3, integrator=RK4())
    start = torch.tensor([1.0, -0.5, 2.0], dtype=F64)
    sim.data.qpos[:, 0] = start
    called = []

    def control(sim, env_ids):
        called.append(float(sim.time[env_ids][0]))
        place, speed = sim.data.qpos[env_ids, 0], sim.data.qvel[env_ids, 0]
        sim.data.ctrl[env_ids, 0] = -3.0 * place - 2.0 * speed

    sim.add_task(control, period=0.07)
    sim.step(7)
    saved = sim.snapshot()
    sim.step(7)  # 1.4 s, twenty samples
    system = (np.array([[0.0, 1], [0, 0]]), np.array([[0.0], [0.8]]), np.eye(2),
              np.zeros((2, 1)))  # fmt: skip
    a, b, *_ = cont2discrete(system, 0.07)
    x = np.stack([start.numpy(), np.zeros(3)])
    for _ in range(20):
        x = a @ x + b @ (np.array([[-3.0, -2.0]]) @ x)
    np.testing.assert_allclose(sim.data.qpos[:, 0], x[0], atol=1e-12)
    np.testing.assert_allclose(called, 0.07 * np.arange(20), atol=1e-12)
    end = sim.state.clone()
    sim.restore(saved)
    sim.step(7)
    assert torch.equal(sim.state, end)


def test_records_are_exact_between_steps_and_change_nothing():
    plain, sim = balls(DP54(), (1, 2)), balls(DP54(), (1, 2))
    log = sim.record(
        quantities={"ball": "model.root_link_pos_w", "speed": "qvel",
                    "double": (lambda sim: 2 * height(sim), "m")},
        every=0.03,
    )  # fmt: skip
    for each in (plain, sim):
        each.step(5)
        each.step(5)
    assert torch.equal(plain.state, sim.state)
    assert len(log) == 34
    time = 0.03 * np.arange(34)
    np.testing.assert_allclose(log.time, np.stack([time, time], 1), atol=1e-12)
    for world, ball in enumerate((1, 2)):
        want = HEIGHT[ball] + SPEED[ball] * time - G / 2 * time**2
        np.testing.assert_allclose(log["ball"][:, world, 2], want, atol=1e-9)
        np.testing.assert_allclose(log["double"][:, world], 2 * want, atol=1e-9)
        np.testing.assert_allclose(
            log["speed"][:, world, 2], SPEED[ball] - G * time, atol=1e-9
        )
    assert log.units == {"time": "s", "ball": "m", "speed": log.units["speed"],
                         "double": "m"}  # fmt: skip
    sim.stop_recording(log)
    sim.step()
    assert len(log) == 34


def test_a_record_as_a_table_and_as_a_plot(tmp_path):
    sim = balls(RK4(), (0, 2))
    sim.add_event(height, "falling", terminal=True)
    log = sim.record(quantities={"place": "model.root_link_pos_w"}, every=0.25)
    sim.run(until=2.0)
    table = log.to_pandas(0)
    assert list(table.columns) == ["place[0]", "place[1]", "place[2]"]
    assert table.attrs["units"]["place"] == "m"
    np.testing.assert_allclose(table.index, [0.0, 0.25, 0.5, 0.75, 1.0])  # it fell
    whole = log.to_pandas()
    assert whole.loc[1].index[-1] == pytest.approx(2.0)
    assert whole.index.names == ["world", "time"]
    log.plot(tmp_path / "log.png")
    assert (tmp_path / "log.png").stat().st_size > 1000


@pytest.mark.parametrize("scheme", [RK4(), DP54(), None])
def test_the_same_worlds_in_any_batch(scheme):
    ends = []
    for which in ((0, 1, 2), (2,)):
        sim = balls(scheme, which)
        hit = sim.add_event(
            height, "falling",
            action=lambda sim, ids: sim.data.qvel[:, 2].index_copy_(
                0, ids, -0.6 * sim.data.qvel[ids, 2]
            ),
        )  # fmt: skip
        sim.run(until=3.02)
        ends.append((sim.state[-1].clone(), float(hit.time[-1])))
        assert int(hit.count[-1]) == 1
    assert torch.equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


def test_mujocos_own_stepper_stops_at_a_crossing():
    """Its Euler steps are of first order: the crossing is that of its own parabola."""
    sim = balls(None, (1, 0))
    hit = sim.add_event(height, "falling", terminal=True)
    run = sim.run(until=9.0)
    assert run.ended.all()
    for world, ball in enumerate((1, 0)):
        place, speed, time = HEIGHT[ball], SPEED[ball], 0.0
        while place + 0.1 * (speed - 0.1 * G) > 0:
            speed -= 0.1 * G
            place, time = place + 0.1 * speed, time + 0.1
        part = (speed + math.sqrt(speed**2 + 4 * G * place)) / (2 * G)
        assert float(hit.time[world]) == pytest.approx(time + part, abs=1e-9)
    assert sim.timestep == 0.1
    sim.step()
    assert float(sim.time[0] - hit.time[0]) == pytest.approx(0.1)


def test_a_stochastic_scheme_ends_its_step_first():
    sim = balls(EulerMaruyama())
    sim.add_process(OrnsteinUhlenbeck("gust", [0.0], 1.0, 1.0))
    hit = sim.add_event(height, "falling", terminal=True)
    run = sim.run(until=5.0)
    np.testing.assert_allclose(run.time / 0.1, (run.time / 0.1).round(), atol=1e-9)
    assert bool((height(sim) < 0).all())
    assert torch.equal(hit.time, run.time)
    with raises(InvalidInputError, name="period"):
        sim.add_task(lambda sim, ids: None, 0.15)
    with raises(InvalidInputError, name="every"):
        sim.record(quantities=["qpos"], every=0.01)


def test_signs_that_a_user_changes_are_no_crossings():
    sim = balls(RK4())
    hit = sim.add_event(height)
    sim.step()
    sim.data.qpos[1, 2] = -4.0  # put below the ground by hand
    sim.step()
    assert hit.count.tolist() == [0, 0, 0]
    sim.reset([2])
    assert hit.count.tolist() == [0, 0, 0]
    assert int(hit.side[2]) == 0


def test_run_without_events_ends_on_time():
    sim = balls(RK4())
    run = sim.run(until=torch.tensor([0.5, 1.234, 0.0], dtype=F64), env_ids=[1, 0])
    assert sim.time.tolist() == pytest.approx([0.5, 1.234, 0.0], abs=1e-12)
    assert not run.ended.any()
    plain = balls(None)
    plain.run(until=0.3)
    assert takes_plain_steps(plain)  # whole steps need nothing more
    assert plain.time.tolist() == pytest.approx([0.3] * 3)


@pytest.mark.parametrize("scheme", [None, RK4(), DP54()], ids=["mujoco", "rk4", "dp54"])
def test_a_run_is_steps_that_end_at_its_goal(scheme):
    """Bit for bit, with tasks, events of some worlds, and goals between steps."""
    goal = torch.tensor([2.137, 1.26, 2.2], dtype=F64)
    ends, calls = [], []
    for runs in (True, False):
        sim, called = balls(scheme), []
        sim.data.qvel[:, 3] = 0.7  # which tumbles

        def push(sim, env_ids, called=called):
            now = sim.data.qacc[:, 4]  # of the present state, however it was reached
            called.append((env_ids.tolist(), sim.time.tolist(), now.tolist()))
            sim.data.xfrc_applied[env_ids, 1, 0] += 0.3

        sim.add_task(push, period=0.45)
        hit = sim.add_event(lambda sim: sim.data.qpos[:, 2], "falling", terminal=True)
        if runs:
            run = sim.run(until=goal)
            assert torch.equal(run.ended, hit.count == 1)
            assert run.ended.tolist() == [True, False, False]
        else:
            while len(going := (~(hit.count > 0) & (sim.time < goal)).nonzero()):
                sim.step(1, going.flatten(), until=goal)
        ends.append((sim.state.clone(), sim.time.clone(), hit.time.nan_to_num()))
        calls.append(called)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
    assert calls[0] == calls[1]


@pytest.mark.parametrize("scheme", [None, RK4()], ids=["mujoco", "rk4"])
def test_constants_follow_parameters_that_an_action_writes(scheme):
    """Within the step already: dof_invweight0 is that of mj_setConst."""
    xml = """
    <mujoco><worldbody><body pos="0 0 3"><freejoint/>
      <geom type="box" size="0.1 0.2 0.3" mass="2" pos="0.02 0.01 0"/>
    </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    sim = Simulation(model, 3, integrator=scheme)
    mass = sim.expand("body_mass")
    sim.expand("dof_invweight0")

    def load(sim, env_ids):
        mass[env_ids, 1] = 20.0 + env_ids.double()

    sim.add_event(lambda sim: sim.time - 2.5 * model.opt.timestep, action=load)
    sim.step(5)
    for world in range(3):
        model.body_mass[1] = 20.0 + world
        mujoco.mj_setConst(model, mujoco.MjData(model))
        found = sim.expand("dof_invweight0")[world]
        assert found.tolist() == pytest.approx(model.dof_invweight0.tolist())


def test_the_end_of_a_step_must_be_a_finite_time():
    sim = Simulation(mujoco.MjModel.from_xml_string(BALL), 2)
    for until in (math.nan, [0.1, math.inf], torch.ones(3), "soon"):
        with raises(InvalidInputError, name="until"):
            sim.step(1, until=until)


def test_a_step_until_a_past_time_moves_no_world_back():
    sim = Simulation(mujoco.MjModel.from_xml_string(BALL), 2, integrator=RK4())
    sim.step(4)
    start = sim.time.clone()
    sim.step(1, until=start - torch.tensor([0.01, -0.002], dtype=start.dtype))
    assert (sim.time - start).tolist() == pytest.approx([0.0, 0.002])


def test_a_stepper_of_a_context_leaves_no_timeline_behind():
    class Whole(MujocoStepper):
        can_cut = False

        def attempt(self, limit, going):
            raise InvalidInputError("whole steps only", name="attempt")

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody>"
        "</mujoco>"
    )
    sim = Simulation(model, 2)
    other = Whole(worlds_of(sim), forcing_of(sim), sim.divergence)
    with sim.stepping(other), raises(InvalidInputError, name="attempt"):
        sim.run(until=0.5 * model.opt.timestep)
    sim.run(until=0.5 * model.opt.timestep)
    assert sim.time.tolist() == pytest.approx([0.5 * model.opt.timestep] * 2)
