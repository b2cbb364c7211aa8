"""Crossings within a step: bounces by event and action, reversals, dense output."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError
from simstate.integrate import BS32, DOP853, DP54, RK4, RKF45, RKF78
from simstate.step.crossings import find_crossing, first_change, turning_point
from simstate.step.dense_output import DenseOutput
from simstate.world.worlds import worlds_of

G = 9.81
BALL = """<mujoco><option timestep="{}" gravity="0 0 -9.81"/><worldbody><body>
<freejoint/><inertial pos="0 0 0" mass="2" diaginertia="1 2 2.5"/></body></worldbody>
</mujoco>"""
HEIGHT = np.array([1.0, 0.7, 1.9])
RESTITUTION = np.array([0.8, 0.7, 0.75])


def bounces(height: float, restitution: float, until: float) -> np.ndarray:
    """Return the times of all bounces in closed form [s]."""
    first = np.sqrt(2 * height / G)
    flights = 2 * first * restitution ** np.arange(1, 400)
    times = first + np.concatenate([[0.0], np.cumsum(flights)])
    return times[times <= until]


def bouncing(scheme, timestep: float, direction: str):
    model = mujoco.MjModel.from_xml_string(BALL.format(timestep))
    sim = Simulation(model, 3, integrator=scheme)
    sim.data.qpos[:, 2] = torch.as_tensor(HEIGHT)
    sim.data.qvel[:, 3:] = torch.tensor([0.4, 1.3, -0.2])
    factor = torch.as_tensor(RESTITUTION)
    times: list[list[float]] = [[], [], []]

    def bounce(sim, env_ids):
        sim.data.qvel[env_ids, 2] *= -factor[env_ids]
        for world in env_ids.tolist():
            times[world].append(float(sim.time[world]))

    sim.add_event(lambda sim: sim.data.qpos[:, 2], direction, action=bounce)
    return sim, times


@pytest.mark.parametrize("direction", ["falling", "both"])
@pytest.mark.parametrize(
    ("scheme", "timestep"),
    [
        (RK4(), 0.05),
        (RK4(), 0.31),
        (DOP853(), 1.0),
        (DP54(), 1.0),
        (BS32(), 0.2),
        (RKF45(), 0.5),
        (RKF78(), 2.0),
    ],
)
def test_every_bounce_is_found(scheme, timestep, direction):
    """19 bounces of the first ball by t = 4 s; several within one time step."""
    sim, found = bouncing(scheme, timestep, direction)
    until = torch.tensor([4.0, 2.0, 4.1])
    sim.run(until=until)
    for world in range(3):
        want = bounces(HEIGHT[world], RESTITUTION[world], float(until[world]))
        np.testing.assert_allclose(found[world], want, atol=1e-9)
    assert len(found[0]) == 19


@pytest.mark.parametrize("share", [0.8, 0.97])
@pytest.mark.parametrize("scheme", [RK4(), DOP853()])
def test_a_function_that_returns_within_a_step_crosses_twice(scheme, share):
    """A ball thrown up passes a height, and again on its way down.

    At 0.97 of its apex it is below again at the middle of the step.
    """
    model = mujoco.MjModel.from_xml_string(BALL.format(1.0))
    sim = Simulation(model, 2, integrator=scheme)
    speed = np.array([4.0, 4.02])
    sim.data.qvel[:, 2] = torch.as_tensor(speed)
    level = share * 4.0**2 / (2 * G)
    times: list[list[float]] = [[], []]

    def note(sim, env_ids):
        for world in env_ids.tolist():
            times[world].append(float(sim.time[world]))

    up = sim.add_event(lambda sim: sim.data.qpos[:, 2] - level, "rising", name="up")
    sim.add_event(lambda sim: sim.data.qpos[:, 2] - level, action=note)
    sim.step()
    root = np.sqrt(speed**2 - 2 * G * level)
    want = np.stack([(speed - root) / G, (speed + root) / G], axis=1)
    np.testing.assert_allclose(times, want, atol=1e-9)
    assert up.count.tolist() == [1, 1]
    np.testing.assert_allclose(sim.data.qpos[:, 2], speed - G / 2, atol=1e-12)


@pytest.mark.parametrize("on_host", [True, False])
def test_interpolated_states_are_of_third_order(on_host, monkeypatch):
    """Against steps that end there: a quarter of the step, at least 2⁴ less error."""
    if not on_host:  # tensors, as on a GPU
        monkeypatch.setattr("simstate.step.dense_output.memory_of", lambda x: x)
    model = mujoco.MjModel.from_xml_string(BALL.format(0.1))
    errors = []
    for h in (0.2, 0.1):
        found = []
        for interpolated in (False, True):
            model.opt.timestep = h if interpolated else 0.3 * h
            sim = Simulation(model, 2, integrator=RK4())
            sim.data.qpos[:, 3:] = torch.tensor([0.8, 0.2, -0.4, 0.4])
            sim.data.qvel[0] = torch.tensor([0.1, 0.2, 0.3, 1.0, -2.0, 0.7])
            sim.data.qvel[1] = torch.tensor([0.3, 0.1, 0.2, -0.5, 1.5, 2.0])
            dense = DenseOutput(worlds_of(sim))
            sim.step()
            if interpolated:
                dense.end()
                ids = torch.tensor([1, 0])
                dense.go_to(torch.tensor([0.3, 0.3]), torch.tensor([h, h]), ids)
            found.append((sim.data.qpos.clone(), sim.data.qvel.clone()))
        (qpos, qvel), (near_qpos, near_qvel) = found
        errors.append(
            (
                float((qpos - near_qpos).abs().max()),
                float((qvel - near_qvel).abs().max()),
            )
        )
    assert errors[0][0] / errors[1][0] > 12
    assert errors[0][1] / errors[1][1] > 6
    assert errors[1][0] < 1e-4


def test_intervals_between_samples():
    side = torch.tensor([1, 1, -1, 0, 1])
    times = torch.tensor([[1.0], [0.5], [0.2]]).expand(3, 5)
    values = torch.tensor(
        [
            [1.0, -1.0, -1.0, -1.0, 2.0],  # at 1.0
            [1.0, 1.0, 1.0, 1.0, -3.0],  # at 0.5
            [1.0, 1.0, -1.0, 1.0, 3.0],  # at 0.2
        ]
    )
    start, end, sign = first_change(side, 1, times, values)
    assert end.tolist() == pytest.approx([np.inf, 1.0, 1.0, 1.0, 0.5])
    assert start[1:].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.2])
    assert sign[1:].tolist() == [1, 1, 1, 1]
    _, end, _ = first_change(side, -1, times, values)
    assert end.tolist() == pytest.approx([np.inf, np.inf, 0.5, np.inf, 1.0])
    _, end, _ = first_change(side, 0, times, values)
    assert end.tolist() == pytest.approx([np.inf, 1.0, 0.5, 1.0, 0.5])


def test_turning_points():
    def at(function):
        return [torch.tensor([function(x)]) for x in (0.0, 0.5, 1.0)]

    turn = turning_point(*at(lambda x: -((x - 0.01) ** 2) + 1e-5))
    assert float(turn) == pytest.approx(0.01)
    assert bool(turning_point(*at(lambda x: -((x - 0.4) ** 2) - 1e-5)).isnan())
    assert bool(turning_point(*at(lambda x: 1 - 3 * x)).isnan())


def test_a_crossing_is_found_from_the_start_of_its_interval():
    start, end = torch.tensor([[0.3], [0.9]], dtype=torch.float64)

    def function(x, ids):
        return (x - 0.1) * (x - 0.5)

    both = function(start, None), function(end, None)
    h = find_crossing(
        function, start, end, *both, torch.tensor([1e-12], dtype=torch.float64)
    )
    assert float(h) == pytest.approx(0.5, abs=2e-12)


# Runs.


def test_a_run_into_the_past_is_rejected():
    model = mujoco.MjModel.from_xml_string(BALL.format(0.1))
    for scheme in (None, RK4(), DP54()):
        sim = Simulation(model, 3, integrator=scheme)
        sim.run(until=torch.tensor([0.4, 0.3, 0.7], dtype=torch.float64))
        before = sim.state.clone()
        with raises(InvalidInputError, name="until"):
            sim.run(until=0.5)
        with raises(InvalidInputError, name="until"):
            sim.run(until=0.3, env_ids=[0, 1])
        assert torch.equal(sim.state, before)
        sim.run(until=sim.time.clone())  # now is not the past
        assert torch.equal(sim.state, before)
        sim.run(until=0.5, env_ids=[1, 0])
        np.testing.assert_allclose(sim.time, [0.5, 0.5, 0.7])


# Steps in which nothing happens are taken as one.


def plain_and_watched(num_envs=3, scheme=None):
    model = mujoco.MjModel.from_xml_string(BALL.format(0.002))
    plain, watched = (Simulation(model, num_envs, integrator=scheme) for _ in range(2))
    for sim in (plain, watched):
        sim.data.qpos[:, 2] = torch.tensor([0.5, 0.4, 0.3])
        sim.data.qvel[:, 3:] = torch.tensor([0.4, 1.3, -0.2])
    return plain, watched


@pytest.mark.parametrize("scheme", [None, RK4("lie"), RK4("manifold")])
def test_steps_with_events_and_tasks_that_do_not_happen_have_the_same_bits(scheme):
    plain, watched = plain_and_watched(scheme=scheme)
    watched.add_event(lambda sim: sim.data.qpos[:, 2] + 100.0)
    watched.add_task(lambda sim, ids: None, 0.006)
    log = watched.record(quantities=["qpos"])
    states = [plain.state.clone()]
    for n in (1, 3, 40, 2):
        for _ in range(n):
            plain.step()
            states.append(plain.state.clone())
        watched.step(n)
        assert torch.equal(plain.state, watched.state)
    assert torch.equal(torch.stack(states)[..., 1:8], log["qpos"])


@pytest.mark.parametrize("scheme", [None, RK4()])
def test_steps_with_a_history_are_sampled_within_them_and_at_their_ends(scheme):
    plain, sim = plain_and_watched(scheme=scheme)
    log = sim.record(quantities=["qpos"], every=0.005)
    sim.step(5)
    plain.step(2)
    start = plain.state[:, 3].clone(), plain.data.qvel[:, 2].clone()
    fallen = start[1] * 0.001 - G * 0.001**2 / (2 if scheme else 1)
    np.testing.assert_allclose(log.time, [[0.0] * 3, [0.005] * 3, [0.01] * 3])
    np.testing.assert_allclose(log["qpos"][1, :, 2], start[0] + fallen, atol=1e-14)
    assert torch.equal(log["qpos"][2], sim.data.qpos)


def test_tasks_run_at_their_times_between_quiet_steps():
    _, sim = plain_and_watched()
    times: dict[str, list[float]] = {"a": [], "b": []}
    for name, period, offset in (("a", 0.01, 0.004), ("b", 0.007, 0.0)):
        sim.add_task(
            lambda sim, ids, name=name: times[name].append(float(sim.time[0])),
            period,
            offset=offset,
            name=name,
        )
    for n in (1, 7, 20, 1, 1, 30):
        sim.step(n)
    want_a = np.arange(0.004, 0.12 - 1e-6, 0.01)
    np.testing.assert_allclose(times["a"], want_a, atol=1e-12)
    np.testing.assert_allclose(times["b"], np.arange(0, 0.12 - 1e-6, 0.007), atol=1e-12)


def test_a_world_that_is_written_is_armed_again():
    """It is moved below the level by hand, which is no crossing, and rises."""
    _, sim = plain_and_watched()
    event = sim.add_event(lambda sim: sim.data.qpos[:, 2] - 0.2, "rising")
    sim.step(5)
    sim.data.qpos[1, 2], sim.data.qvel[1, 2] = 0.1999, 3.0
    sim.step(5)
    assert event.count.tolist() == [0, 1, 0]


def test_a_crossing_among_quiet_steps_is_found():
    _, sim = plain_and_watched()
    event = sim.add_event(lambda sim: sim.data.qpos[:, 2], "falling")
    sim.step(200)
    assert event.count.tolist() == [1, 1, 1]
    want = np.sqrt(2 * np.array([0.5, 0.4, 0.3]) / G)
    np.testing.assert_allclose(event.time, want, atol=0.003)  # semi-implicit Euler


def test_derived_values_are_those_of_the_end_after_samples_within_a_step():
    model = mujoco.MjModel.from_xml_string(BALL.format(0.1))
    sim = Simulation(model, 2, integrator=RK4())
    sim.data.qvel[:, 2] = torch.tensor([1.0, 2.0])
    sim.add_event(lambda sim: sim.data.xpos[:, 1, 2] - 50.0)
    log = sim.record(quantities=["xpos", "qpos"])
    sim.step(3)
    np.testing.assert_array_equal(log["xpos"][..., 1, 2], log["qpos"][..., 2])
    np.testing.assert_array_equal(sim.data.xpos[:, 1, 2], sim.data.qpos[:, 2])
