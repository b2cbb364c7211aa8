"""Residuals of windows against plain MuJoCo: predictions, weights, noise, limits."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.record import Log, LogColumn
from simstate.scene.build import build_scene
from simstate.study.identification.free_parameters import parse_free
from simstate.study.identification.gauss_newton import found_doubt, found_noise
from simstate.study.identification.prediction import Predictor
from simstate.study.identification.residuals import Residuals
from simstate.study.identification.signals import match_signals
from simstate.study.identification.window_states import States, state_noise
from simstate.study.identification.windows import cut_windows

STEP, COUNT = 0.004, 206
MODEL = """<mujoco><option timestep="0.004" integrator="implicitfast"/><worldbody>
<body name="cart"><joint name="rail" type="slide" axis="1 0.2 0" damping="0.4"/>
  <geom size="0.1" mass="0.8"/>
  <body name="rod" pos="0.02 0 0.1"><joint name="hinge" axis="0.1 1 0.2"
    damping="0.05"/><geom type="capsule" fromto="0.01 0 0 0.05 0.02 -0.4" size="0.02"
    mass="0.3"/></body></body>
<body name="ball" pos="0 2 1"><joint name="ball" type="ball" damping="0.03"/>
  <geom type="box" size="0.3 0.02 0.4" pos="0.3 0 0" mass="2"/></body></worldbody>
<actuator><motor name="push" joint="rail" gear="3"/></actuator>
<sensor><gyro name="gyro" site="s"/></sensor></mujoco>""".replace(
    'mass="2"/>', 'mass="2"/><site name="s" pos="0.2 0 0.1" quat="0.9 0.1 0.3 0.2"/>'
)
FREE = "joint rail: damping; joint hinge: bias; body rod: mass; delay"
NOMINAL = np.array([0.4, 0.0, 0.3, 0.0])


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL)


def command(t):
    return 0.6 * np.sin(9.0 * t) + 0.3 * np.cos(23.0 * t)


def logged(model, noise=0.0) -> Log:
    """Positions at irregular times, the gyro at time steps, commands of 8 ms."""
    rng = np.random.default_rng(0)
    data = mujoco.MjData(model)
    data.qpos[:2], data.qpos[2:] = [0.05, 0.6], [0.8, 0.1, -0.5, 0.3]
    data.qvel[:] = [0.1, -0.4, 0.9, -0.6, 0.5]
    mujoco.mj_normalizeQuat(model, data.qpos)
    rows, gyro = [], []
    for k in range(COUNT + 1):
        data.ctrl[:] = command(STEP * (k // 2 * 2))
        mujoco.mj_forward(model, data)
        rows.append(data.qpos.copy())
        gyro.append(data.sensordata.copy())
        mujoco.mj_step(model, data)
    times = STEP * np.arange(COUNT + 1)
    late = np.linspace(0.0, COUNT * STEP, 121)
    late[1:-1] += rng.uniform(-0.002, 0.002, 119)
    rows = np.array(rows)
    qpos = np.stack([np.interp(late, times, one) for one in rows.T], 1)
    qpos += noise * rng.normal(size=qpos.shape)
    gyro = np.array(gyro)[::3] + 10 * noise * rng.normal(size=(69, 3))
    ticks = times[:-1:2]
    return Log([
        LogColumn("qpos", late, qpos), LogColumn("gyro", times[::3], gyro),
        LogColumn("ctrl", ticks, command(ticks)[:, None], ("push",)),
    ])  # fmt: skip


def windows_of(model, log, sim=None):
    sim = sim or Simulation(model)
    return cut_windows((match_signals(sim, log),), STEP, 0.1)


def simulated(model, theta, qpos, qvel, start, count):
    """Return positions and gyro after 0 … count steps, by `mj_step`."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    model.dof_damping[0], model.body_mass[2] = theta[0], theta[2]
    mujoco.mj_setConst(model, data := mujoco.MjData(model))
    data.qpos[:], data.qvel[:] = qpos, qvel
    rows, gyro = [], []
    for k in range(count + 1):
        edges = start + STEP * (k + (np.arange(4000) + 0.5) / 4000) - theta[3]
        ticks = np.clip(edges // (2 * STEP + 1e-15), 0, COUNT // 2 - 1)
        data.ctrl[:] = command(2 * STEP * ticks).mean()
        mujoco.mj_forward(model, data)
        rows.append(data.qpos.copy())
        gyro.append(data.sensordata.copy())
        if k < count:
            mujoco.mj_step(model, data)
    return np.array(rows), np.array(gyro), data.qvel.copy()


@pytest.fixture(scope="module")
def predicted(model):
    """Predictions of two sets of parameters, and what they were made of."""
    log, sim = logged(model), Simulation(model)
    windows = windows_of(model, log, sim)
    parameters = parse_free(sim, FREE)
    predictor = Predictor(build_scene(model), windows, parameters, 2, 1)
    rng = np.random.default_rng(1)
    count = len(windows)
    qpos = rng.normal(size=(2, count, 6)) * 0.3
    qpos[..., 2:] = rng.normal(size=(2, count, 4))
    qpos[..., 2:] /= np.linalg.norm(qpos[..., 2:], axis=-1, keepdims=True)
    states = States(qpos, rng.normal(size=(2, count, 5)), np.zeros((2, count, 0)))
    thetas = np.array([[0.7, 0.02, 0.5, 0.0], [0.2, -0.07, 0.2, 0.0061]])
    found = predictor.predict(thetas, states)
    return windows, states, thetas, found


def test_predictions_are_those_of_mujoco_between_time_steps(model, predicted):
    """Linear between time steps; the bias of an encoder is added; q and −q agree."""
    windows, states, thetas, found = predicted
    assert len(windows) == 8
    positions, rates = windows.samples
    assert positions.part.any()
    assert not rates.part.any()
    for c, theta in enumerate(thetas):
        for w, start in enumerate(windows.start):
            qpos, gyro, qvel = simulated(
                model, theta, states.qpos[c, w], states.qvel[c, w], start, windows.steps
            )
            mine = positions.window == w
            at = positions.step[mine] + positions.part[mine]
            wanted = np.stack(
                [np.interp(at, np.arange(len(qpos)), one) for one in qpos.T], 1
            )
            wanted[:, 1] += theta[1]
            np.testing.assert_allclose(found.outputs[0][c, mine], wanted, atol=2e-6)
            mine = rates.window == w
            np.testing.assert_allclose(
                found.outputs[1][c, mine], gyro[rates.step[mine]], atol=2e-6
            )
            np.testing.assert_allclose(found.ends.qpos[c, w], qpos[-1], atol=2e-6)
            np.testing.assert_allclose(found.ends.qvel[c, w], qvel, atol=2e-5)


def problem_of(model, noise=1e-3, free=FREE, ties=True, fixed=False, states=True):
    sim = Simulation(model)
    windows = windows_of(model, logged(model, noise), sim)
    parameters = parse_free(sim, free)
    return Residuals(build_scene(model), windows, parameters, states, ties, 1, fixed)


def test_residuals_are_differences_in_units_of_the_noise(model):
    problem = problem_of(model)
    rng = np.random.default_rng(2)
    noise = [np.array([1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3]), np.array([0.1, 0.2, 0.3])]
    rows = sum(one.values.size for one in problem.windows.samples) + 7 * 10
    doubt = rng.uniform(1.0, 3.0, rows)
    problem.weigh(noise, doubt)
    problem.tolerance = 0.5
    x = np.append(NOMINAL / problem.scales, 1e-3 * rng.normal(size=problem.size - 4))
    found = problem.residual(x)
    assert len(found) == rows
    assert problem.is_tied
    predicted = problem.predicted(x)
    parts = [
        ((values[0] - samples.values) / size).ravel()
        for values, samples, size in zip(
            predicted.outputs, problem.windows.samples, noise, strict=True
        )
    ]
    sizes = state_noise(problem.windows, model, noise)
    _, tangents = problem.split(x)
    for w in range(7):
        start = problem.base.qpos[w + 1].copy()
        mujoco.mj_integratePos(model, start, tangents[w + 1, :5].copy(), 1.0)
        gap = np.zeros(5)
        mujoco.mj_differentiatePos(model, gap, 1.0, start, predicted.ends.qpos[0, w])
        speed = problem.base.qvel[w + 1] + tangents[w + 1, 5:]
        gaps = np.append(gap, predicted.ends.qvel[0, w] - speed)
        parts.append(gaps / (0.5 * sizes))
    np.testing.assert_allclose(found, np.concatenate(parts) / doubt, atol=1e-9)
    many = problem.residuals(np.tile(x, (problem.num_columns, 1)))
    np.testing.assert_allclose(many, np.tile(found, (len(many), 1)), atol=1e-9)


def test_unknowns_are_parameters_in_their_scales_and_states(model):
    problem = problem_of(model)
    assert problem.size == 4 + 8 * 10
    assert problem.num_columns == 4 + 10
    x = np.append([99.0, -99.0, 1.0, -99.0], np.arange(80.0))
    theta, tangents = problem.split(x)
    high, low = ([getattr(one, end) for one in problem.parameters]
                 for end in ("high", "low"))  # fmt: skip
    assert theta.tolist() == [high[0], low[1], problem.scales[2], low[3]]
    np.testing.assert_array_equal(tangents, np.arange(80.0).reshape(8, 10))
    lowest, highest = problem.limits(x)
    np.testing.assert_allclose(lowest[:4] * problem.scales, low)
    np.testing.assert_allclose(highest[:4] * problem.scales, high)
    assert (lowest[4:] < x[4:] - 1e3).all()
    assert (highest[4:] > x[4:] + 1e3).all()
    fixed = problem_of(model, fixed=True)
    assert (fixed.size, fixed.num_columns) == (80, 10)
    fixed.start_at(np.array([0.1, 0.2, 0.3, 0.01]))
    assert fixed.split(np.zeros(80))[0].tolist() == [0.1, 0.2, 0.3, 0.01]
    given = problem_of(model, states=False)
    assert (given.size, given.num_columns, given.is_tied) == (4, 4, False)
    assert not given.split(np.ones(4))[1].any()
    assert not problem_of(model, ties=False).is_tied


def test_a_start_at_other_parameters_is_predicted_again(model):
    problem = problem_of(model, fixed=True)
    x = np.zeros(problem.size)
    before = problem.residual(x)
    problem.start_at(np.array([3.0, 0.1, 0.9, 0.01]))
    after = problem.residual(x)
    assert np.abs(after - before).max() > 1.0
    calls = problem.costs.calls
    np.testing.assert_array_equal(problem.residual(x), after)
    assert problem.costs.calls == calls, "predictions at a point are kept"


def test_derivatives_at_a_bound_are_those_inside_of_it(model):
    problem = problem_of(model, free="joint rail: damping 0 .. 0.5; delay 0 .. 0.008")
    x = np.zeros(problem.size)
    x[:2] = np.array([0.5, 0.008]) / problem.scales
    found = problem.jacobian(x, problem.residual(x))
    for k in range(2):
        inner = x.copy()
        inner[k] -= 1e-4
        slope = (problem.residual(x) - problem.residual(inner)) / 1e-4
        assert np.abs(slope).max() > 1e-2
        np.testing.assert_allclose(
            found[:, k], slope, atol=5e-3 * np.abs(slope).max(), rtol=0
        )


def test_noise_is_that_of_weighted_residuals(model):
    problem = problem_of(model, noise=5e-3)
    x = np.append(NOMINAL / problem.scales, np.zeros(80))
    rng = np.random.default_rng(3)
    doubt = rng.uniform(1.0, 4.0, len(problem.doubt))
    problem.weigh(problem.noise, doubt)
    found, at = found_noise(problem, x), 0
    for k, samples in enumerate(problem.windows.samples):
        misfit = problem.predicted(x).outputs[k][0] - samples.values
        weight = doubt[at : at + misfit.size].reshape(misfit.shape) ** -2
        at += misfit.size
        wanted = np.sqrt(np.average(misfit**2, axis=0, weights=weight))
        np.testing.assert_allclose(found[k], wanted)


def test_samples_far_from_a_smooth_prediction_are_outliers(model):
    """Nothing jumps here: a factor on the noise is the residual's share of 3.5."""
    problem = problem_of(model, free="joint rail: damping")
    (gyro,) = (one.values for one in problem.windows.samples[1:])
    gyro[5, 1] += 30.0
    x = np.zeros(problem.size)
    x[0] = 0.4 / problem.scales[0]
    residual = problem.residual(x)
    factors = found_doubt(problem, x)
    at = problem.windows.samples[0].values.size + 5 * 3 + 1
    assert abs(residual[at]) > 100
    assert factors[at] == pytest.approx(abs(residual[at]) / 3.5, rel=0.05)
    inside = np.abs(residual) < 3.0
    assert inside.mean() > 0.5
    assert (factors[inside] >= 1.0).all()


def test_attitudes_and_velocities_are_predicted_up_to_the_sign_of_quaternions():
    """Of a thrown body; columns that are no field of MuJoCo, at irregular times."""
    text = """<mujoco><option timestep="0.004" gravity="0 0 -9.81"/><worldbody>
      <body name="box" pos="0 0 5"><freejoint/><geom type="box" size="0.1 0.2 0.3"
      mass="2"/></body></worldbody></mujoco>"""
    entities = {"robot": EntityCfg(model=text)}
    scene = SceneCfg(entities=entities, ground=False, timestep=None)
    sim, model = Simulation(scene), mujoco.MjModel.from_xml_string(text)
    data, rows = mujoco.MjData(model), []
    data.qvel[:] = [0.3, -0.2, 4.0, 2.0, -3.0, 1.0]
    for _ in range(101):
        rows.append((data.qpos[3:].copy(), data.qvel[:3].copy()))
        mujoco.mj_step(model, data)
    quat, vel = (np.array(one) for one in zip(*rows, strict=True))
    quat[40:] *= -1.0
    times = STEP * np.arange(101)
    late = times[:-1] + 0.4 * STEP * (times[:-1] > 0.0)
    log = Log([
        LogColumn("robot.root_link_quat_w", times, quat, tuple("wxyz")),
        LogColumn("robot.root_link_lin_vel_w", late, vel[:-1], tuple("xyz")),
    ])  # fmt: skip
    windows = cut_windows((match_signals(sim, log),), STEP, 0.1)
    parameters = parse_free(sim, "body box: mass")
    predictor = Predictor(build_scene(scene), windows, parameters, 1, 1)
    starts = np.rint(windows.start / STEP).astype(int)
    qpos = np.zeros((1, len(windows), 7))
    qpos[0, :, 3:] = quat[starts] * np.array([1.0, -1.0, 1.0])[: len(starts), None]
    qvel = np.zeros((1, len(windows), 6))
    qvel[0, :, :3] = vel[starts]
    qvel[0, 0, 3:] = [2.0, -3.0, 1.0]
    states = States(qpos, qvel, np.zeros((1, len(windows), 0)))
    found = predictor.predict(np.array([[2.0]]), states)
    attitudes, velocities = windows.samples
    first = attitudes.window == 0
    np.testing.assert_allclose(
        found.outputs[0][0, first], attitudes.values[first], atol=1e-6
    )
    signs = np.einsum("sk,sk->s", found.outputs[0][0], attitudes.values)
    assert (signs > 0.0).all()
    at = velocities.window * 25 + velocities.step
    assert velocities.part.any()
    wanted = vel[at] + velocities.part[:, None] * (vel[at + 1] - vel[at])
    fell = found.outputs[1][0]
    np.testing.assert_allclose(fell, wanted, atol=1e-6)
