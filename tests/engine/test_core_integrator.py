"""The core's Runge-Kutta schemes: MuJoCo's own, closed forms, scipy, the steppers."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest
import torch
from mujoco import batch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tests.engine import core_loads
from tests.engine.core_models import load, random_states, tolerances
from tests.inside import advance_within, columns_of, set_integrator_budget, stepper_of
from tests.mujoco_versions import IS_4, its_rk4_is_ours
from tests.raised import raises

from simstate import Simulation, integrate
from simstate.base.errors import (
    IntegrationError,
    InvalidInputError,
    ModelError,
    UnknownNameError,
)
from simstate.engine import core
from simstate.engine.field_layout import state_columns

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 5
VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
MODELS = ("small", "limb", "sensors", "quadruped", "satellite", "glider")


@pytest.fixture
def stepper_sim(monkeypatch):
    """Makes a simulation whose integrator runs without the core."""

    def make(model, scheme, rows, **options):
        monkeypatch.setenv("SIMSTATE_CORE", "0")
        sim = Simulation(model, len(rows), integrator=scheme, **options)
        monkeypatch.delenv("SIMSTATE_CORE")
        sim.write_state(torch.tensor(rows))
        return sim

    return make


def smooth(name):
    """A model without contacts, limits and equalities."""
    model = load(name)
    for flag in ("CONTACT", "LIMIT", "EQUALITY"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}").value
    return model


def adaptive(worlds, scheme, **options):
    atol, rtol = tolerances(scheme, worlds.model)
    return core.AdaptiveIntegrator(
        worlds,
        scheme.tableau,
        scheme.attitude,
        atol=atol,
        rtol=rtol,
        min_step=scheme.min_step,
        max_step=scheme.max_step,
        **options,
    )


def make_batch(model, rows, fields=(), threads=2):
    worlds = core.CoreBatch(model, len(rows), threads)
    worlds.state[:] = rows
    for name in fields:
        worlds.bind(name)
    return worlds


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attitude", integrate.ATTITUDE_MODES)
@pytest.mark.parametrize("scheme", ["euler", "heun", "midpoint", "rk4"])
def test_fixed_schemes_are_those_of_the_stepper(stepper_sim, name, scheme, attitude):
    model = load(name)
    rows = random_states(model, NUM, 3)
    method = integrate.scheme(scheme, attitude)
    sim = stepper_sim(model, method, rows)
    sim.step(4)
    sim.step(2, env_ids=[4, 1])
    worlds = make_batch(model, rows)
    ours = core.Integrator(worlds, method.tableau, attitude)
    ours.step(4, model.opt.timestep)
    ours.step(2, model.opt.timestep, [1, 4])
    np.testing.assert_allclose(worlds.state, sim.state.numpy(), rtol=1e-10, atol=1e-10)
    counts = method.tableau.num_stages * np.array([4, 6, 4, 4, 6])
    np.testing.assert_array_equal(ours.evaluations, counts)


@its_rk4_is_ours
@pytest.mark.parametrize("name", ["small", "limb", "quadruped", "cube", "humanoid"])
def test_rk4_on_the_manifold_has_the_bits_of_mj_step(name):
    """With contacts, limits, activations at their limits, warm starts."""
    model = load(name)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    rows = random_states(model, NUM, 6)
    worlds = make_batch(model, rows)
    theirs = batch.Batch(model, NUM, 1)
    theirs.state[:] = rows
    ours = core.Integrator(worlds, integrate.RK4().tableau, "manifold")
    for n in (1, 7):
        ours.step(n, model.opt.timestep)
        theirs.step(None, n)
    np.testing.assert_array_equal(worlds.state, theirs.state)


def wild_states(model):
    """Attitudes not of unit length, and activations that reach their limits."""
    rows = random_states(model, NUM, 6)
    columns = state_columns(model)
    ctrl = rows[:, columns["ctrl"]]
    ctrl[:] = np.where(np.arange(NUM)[:, None] % 2, 4.0, -3.0)
    qpos = rows[:, columns["qpos"]]
    for joint in np.flatnonzero(model.jnt_type < 2):  # free and ball
        first = model.jnt_qposadr[joint] + (3 if model.jnt_type[joint] == 0 else 0)
        qpos[:, first : first + 4] *= np.linspace(0.6, 1.7, NUM)[:, None]
    return rows


@its_rk4_is_ours
@pytest.mark.parametrize("use", ["0", "1"])
def test_plugins_read_the_time_of_the_stage(use, monkeypatch):
    """MuJoCo's PID limits the rate of its command from the first instant on."""
    monkeypatch.setenv("SIMSTATE_CORE", use)
    model = mujoco.MjModel.from_xml_string("""<mujoco><option integrator="RK4"/>
      <extension><plugin plugin="mujoco.pid"><instance name="pid">
        <config key="kp" value="40"/><config key="ki" value="40"/>
        <config key="kd" value="4"/><config key="slewmax" value="3"/>
      </instance></plugin></extension>
      <worldbody><body><joint name="j"/><geom size=".1" pos=".1 0 0"/></body>
      </worldbody>
      <actuator><plugin plugin="mujoco.pid" instance="pid" joint="j" actdim="2"/>
      </actuator></mujoco>""")
    sim = Simulation(model, 2, integrator=integrate.RK4(attitude="manifold"))
    data = mujoco.MjData(model)
    sim.data.ctrl[:] = 0.3
    data.ctrl[:] = 0.3
    for _ in range(3):
        sim.step()
        mujoco.mj_step(model, data)
    for name in ("qpos", "qvel", "act"):
        np.testing.assert_array_equal(getattr(sim.data, name)[1], getattr(data, name))


@pytest.mark.parametrize("attitude", integrate.ATTITUDE_MODES)
def test_unnormalised_attitudes_and_activations_at_their_limits(stepper_sim, attitude):
    model = smooth("limb")
    rows = wild_states(model)
    scheme = integrate.RK4(attitude)
    sim = stepper_sim(model, scheme, rows)
    sim.step(60)
    worlds = make_batch(model, rows)
    core.Integrator(worlds, scheme.tableau, attitude).step(60, model.opt.timestep)
    np.testing.assert_allclose(worlds.state, sim.state.numpy(), rtol=1e-9, atol=1e-9)
    low, high = model.actuator_actrange[0]
    assert set(worlds.bind("act")[:, 0]) == {low, high}
    if attitude == "manifold" and not IS_4:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        theirs = batch.Batch(model, NUM, 1)
        theirs.state[:] = rows
        theirs.step(None, 60)
        np.testing.assert_array_equal(worlds.state, theirs.state)


def test_adaptive_activations_stay_within_their_limits(stepper_sim):
    model = smooth("limb")
    rows = wild_states(model)
    method = integrate.DP54(atol=1e-8, rtol=1e-8)
    sim = stepper_sim(model, method, rows)
    worlds = make_batch(model, rows)
    ours = adaptive(worlds, method)
    for _ in range(60):  # a kink within one long step would be a matter of rounding
        sim.step()
        assert ours.advance(model.opt.timestep) is None
    counts = sim.integration.statistics
    np.testing.assert_array_equal(ours.evaluations, counts.evaluations.numpy())
    columns = state_columns(model)["qacc_warmstart"].start
    want = sim.state.numpy()[:, :columns]
    np.testing.assert_allclose(worlds.state[:, :columns], want, rtol=1e-8, atol=1e-8)
    low, high = model.actuator_actrange[0]
    assert set(worlds.bind("act")[:, 0]) == {low, high}


def test_worlds_that_are_not_chosen_stay():
    model = load("small")
    rows = random_states(model, NUM, 3)
    worlds = make_batch(model, rows, ["xpos", "qacc"])
    worlds.forward()
    fields = worlds.bind("xpos").copy(), worlds.bind("qacc").copy()
    core.Integrator(worlds, integrate.RK4().tableau).step(3, 0.002, [1, 3])
    others = [0, 2, 4]
    np.testing.assert_array_equal(worlds.state[others], rows[others])
    np.testing.assert_array_equal(worlds.bind("xpos")[others], fields[0][others])
    np.testing.assert_array_equal(worlds.bind("qacc")[others], fields[1][others])
    assert (worlds.state[[1, 3]] != rows[[1, 3]]).any(axis=1).all()


def test_bound_fields_are_those_of_the_new_state():
    model = load("sensors")
    rows = random_states(model, NUM, 3)
    fields = ("xpos", "cvel", "ten_velocity", "actuator_velocity", "site_xmat")
    worlds = make_batch(model, rows, fields)
    ours = core.Integrator(worlds, integrate.RK4().tableau)
    ours.step(3, 0.002)
    theirs = batch.Batch(model, NUM, 1)
    theirs.state[:] = worlds.state
    for name in fields:
        theirs.bind(name)
    theirs.forward(None, VELOCITY)
    for name in fields:
        np.testing.assert_array_equal(worlds.bind(name), theirs.bind(name), name)


BODY = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="body">
  <freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""
INERTIA = np.array([1.0, 2.0, 3.0])
SPIN = np.array([0.1, 3.0, 0.1])


def euler_equations(_, y):
    q, w = y[:4], y[4:]
    w_dot = np.cross(INERTIA * w, w) / INERTIA
    quat = np.array(
        [
            -q[1] * w[0] - q[2] * w[1] - q[3] * w[2],
            q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
            q[0] * w[1] - q[1] * w[2] + q[3] * w[0],
            q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
        ]
    )
    return [*(0.5 * quat), *w_dot]


@pytest.fixture(scope="module")
def tumbling():
    """The attitudes of a torque-free body at 0, 0.1, … 10 s, by scipy."""
    times = np.linspace(0, 10, 101)
    found = solve_ivp(
        euler_equations,
        (0, 10),
        [1, 0, 0, 0, *SPIN],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
        t_eval=times,
    )
    return Rotation.from_quat(found.y[:4].T, scalar_first=True)


def attitude_error(scheme, attitude, h, tumbling):
    """The greatest error on the grid of 0.1 s [rad]."""
    model = mujoco.MjModel.from_xml_string(BODY)
    worlds = core.CoreBatch(model, 1, 1)
    worlds.bind("qpos")[0, 3:] = [1, 0, 0, 0]
    worlds.bind("qvel")[0, 3:] = SPIN
    ours = core.Integrator(worlds, scheme.tableau, attitude)
    worst = 0.0
    for want in tumbling[1:]:
        ours.step(round(0.1 / h), h)
        got = Rotation.from_quat(worlds.bind("qpos")[0, 3:], scalar_first=True)
        worst = max(worst, (want.inv() * got).magnitude())
    return worst


@pytest.mark.parametrize(
    ("scheme", "attitude", "published"),
    [  # of another implementation, for this body
        (integrate.RK4(), "manifold", (1.749e-2, 4.345e-3, 1.085e-3)),
        (integrate.RK4(), "high_order", (2.514e-4, 1.433e-5, 8.54e-7)),
        (integrate.RK4(), "lie", (2.22e-4, 1.26e-5, 7.5e-7)),
        (
            integrate.Explicit(integrate.RKF45().tableau),
            "high_order",
            (None, None, None),
        ),
    ],
)
def test_attitude_errors_are_the_published_ones(scheme, attitude, published, tumbling):
    errors = [attitude_error(scheme, attitude, h, tumbling) for h in (0.1, 0.05, 0.025)]
    for got, want in zip(errors, published, strict=True):
        if want is not None:
            assert got == pytest.approx(want, rel=0.01)
    order = 2 if attitude == "manifold" else scheme.tableau.order
    assert np.log2(errors[1] / errors[2]) > order - 0.1


@pytest.mark.parametrize("name", ["satellite", "glider", "small", "limb"])
@pytest.mark.parametrize("attitude", ["lie", "high_order"])
@pytest.mark.parametrize("scheme", ["bs32", "rkf45", "dp54", "rkf78", "dop853"])
def test_adaptive_schemes_are_those_of_the_stepper(stepper_sim, name, scheme, attitude):
    model = smooth(name)
    rows = random_states(model, NUM, 3)
    method = integrate.scheme(
        scheme,
        attitude,
        atol={"qpos": 1e-8, "qvel": 3e-8, "act": 1e-7},
        rtol={"qpos": 2e-7, "qvel": 1e-7},
        max_step=4 * model.opt.timestep,
    )
    sim = stepper_sim(model, method, rows)
    sim.step(5)
    sim.step(5, env_ids=[3, 1])
    worlds = make_batch(model, rows)
    ours = adaptive(worlds, method)
    assert ours.advance(5 * model.opt.timestep) is None
    assert ours.advance(5 * model.opt.timestep, [1, 3]) is None
    counts = sim.integration.statistics
    np.testing.assert_array_equal(ours.evaluations, counts.evaluations.numpy())
    np.testing.assert_array_equal(ours.accepted, counts.accepted.numpy())
    np.testing.assert_array_equal(ours.rejected, counts.rejected.numpy())
    # Rounding in an error estimate that nearly cancels moves the steps a little.
    columns = columns_of(sim)["qacc_warmstart"].start
    want = sim.state.numpy()[:, :columns]
    np.testing.assert_allclose(worlds.state[:, :columns], want, rtol=1e-9, atol=1e-10)
    want = stepper_of(sim).step_size.numpy()
    np.testing.assert_allclose(ours.step_size, want, rtol=1e-4)


@pytest.mark.parametrize("attitude", ["lie", "high_order"])
def test_adaptive_attitude_meets_its_tolerance(attitude, tumbling):
    model = mujoco.MjModel.from_xml_string(BODY)
    worlds = core.CoreBatch(model, 1, 1)
    worlds.bind("qvel")[0, 3:] = SPIN
    ours = adaptive(worlds, integrate.DOP853(attitude, atol=1e-10, rtol=1e-10))
    for _ in range(100):
        ours.advance(0.1)
    got = Rotation.from_quat(worlds.bind("qpos")[0, 3:], scalar_first=True)
    assert (tumbling[-1].inv() * got).magnitude() < 1e-8
    assert worlds.bind("time")[0] == pytest.approx(10, abs=1e-12)


def test_breaks_for_signals_change_nothing(monkeypatch):
    model = smooth("limb")
    rows = random_states(model, NUM, 3)
    method = integrate.DOP853(atol=1e-9, rtol=1e-9)
    results = []
    for budget in (20_000, 15):
        set_integrator_budget(monkeypatch, budget)
        worlds = make_batch(model, rows, ["xpos"])
        ours = adaptive(worlds, method)
        ours.step_size[:] = 0.1  # far too long: the first steps are thrown away
        assert ours.advance(0.1) is None
        assert ours.rejected.all()
        results.append(
            [
                *(worlds.state.copy(), worlds.bind("xpos").copy(), ours.step_size),
                *(ours.evaluations, ours.accepted, ours.rejected),
            ]
        )
    for got, want in zip(*results, strict=True):
        np.testing.assert_array_equal(got, want)


FALLING = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0.1 0.2 1"><freejoint/><geom size="0.1" mass="1.3"/></body>
</worldbody></mujoco>"""


def test_a_break_while_a_contact_is_located_is_at_the_start_of_the_step():
    model = mujoco.MjModel.from_xml_string(FALLING)
    rows = random_states(model, 2, 3)
    columns = state_columns(model)
    rows[:, columns["qvel"]] = 0.0
    rows[:, columns["qpos"]][:, :3] = [[0.0, 0.1, 0.7], [0.2, 0.0, 0.9]]
    method, times = integrate.RKF45(atol=1e-6, rtol=1e-6), []
    for budget in range(1, 90):
        worlds = make_batch(model, rows)
        ours = adaptive(
            worlds, method, touching=np.array([[0, 1]], np.int32), can_touch=True
        )
        advance_within(ours, 0.6, budget)
        times.append(worlds.bind("time").copy())
    ends = np.array(times)
    assert ends.max() > 0.3
    assert (np.diff(ends, axis=0) >= 0).all()  # no break is ahead of a later one


def test_a_world_that_cannot_meet_its_tolerance_says_why(stepper_sim):
    model = smooth("limb")
    rows = random_states(model, NUM, 3)
    qvel = slice(1 + model.nq, 1 + model.nq + model.nv)
    rows[:, qvel] *= 0.01
    rows[2, qvel] *= 20000.0
    method = integrate.DP54(atol=1e-9, rtol=1e-9, min_step=2e-4)
    worlds = make_batch(model, rows)
    ours = adaptive(worlds, method)
    stuck = ours.advance(5 * model.opt.timestep)
    np.testing.assert_array_equal(np.flatnonzero(stuck), [2])
    failure = ours.failure(2)
    sim = stepper_sim(model, method, rows)
    with raises(IntegrationError, worlds=[2]) as error:
        sim.step(5)
    text = str(error.value)
    time, h, block, size = re.search(
        r"at t = (\S+) s.* with (\S+) s the error of (\w+) .* was (\S+) times", text
    ).groups()
    assert failure.time == pytest.approx(float(time), rel=1e-6)
    assert failure.step == pytest.approx(float(h), rel=1e-2)
    assert failure.error == pytest.approx(float(size), rel=1e-2)
    assert failure.error > 1
    assert failure.block == block
    assert ours.advance(1e-9, [0]) is None


def test_an_error_of_mujoco_leaves_a_world_as_it_was():
    model = load("small")
    rows = random_states(model, NUM, 3)
    frame = np.random.default_rng(1).standard_normal((NUM, 6))
    kept = frame.copy()
    worlds = make_batch(model, rows, ["xpos"])
    worlds.expand("eq_type")[[1, 3]] = 99
    load_ = core_loads.point_mass_gravity([1, 2], [3.0], [[1.0, 2.0, 5.0]], frame=0)
    options = {"loads": [load_], "processes": [core.CoreProcess("frame", frame)]}
    blocks = dict.fromkeys(("qpos", "qvel", "act", "frame"), 1e-6)
    ours = core.AdaptiveIntegrator(
        worlds, integrate.DP54().tableau, atol=blocks, rtol=blocks, **options
    )
    with raises(ModelError, worlds=[1, 3]):
        ours.advance(0.01)
    np.testing.assert_array_equal(worlds.state[[1, 3]], rows[[1, 3]])
    np.testing.assert_array_equal(frame[[1, 3]], kept[[1, 3]])
    np.testing.assert_array_equal(ours.evaluations[[1, 3]], 0)
    np.testing.assert_array_equal(ours.step_size[[1, 3]], 0)
    others = [0, 2, 4]
    assert (frame[others] != kept[others]).any(axis=1).all()
    assert (ours.step_size[others] > 0).all()


def test_tableaus_of_ones_own():
    """The 3/8 rule, which is not among ours, against scipy with tight tolerances."""
    kutta = integrate.Tableau(
        "3/8",
        a=((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
        b=(1 / 8, 3 / 8, 3 / 8, 1 / 8),
        order=4,
    )
    pendulum = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep=".01"/><worldbody><body><joint axis="0 1 0"/>'
        '<geom type="sphere" size=".02" pos="0 0 -.7" mass="1.3"/></body></worldbody>'
        "</mujoco>"
    )
    inertia = 1.3 * (0.49 + 0.4 * 0.02**2)

    def swing(_, y):
        return [y[1], -1.3 * 9.81 * 0.7 * np.sin(y[0]) / inertia]

    exact = solve_ivp(
        swing, (0, 1), [1.1, 0.4], method="DOP853", rtol=1e-13, atol=1e-13
    )
    errors = []
    for steps in (50, 100):
        worlds = core.CoreBatch(pendulum, 1, 1)
        worlds.bind("qpos")[0], worlds.bind("qvel")[0] = 1.1, 0.4
        core.Integrator(worlds, kutta).step(steps, 1 / steps)
        errors.append(np.hypot(*(worlds.state[0, 1:3] - exact.y[:, -1])))
    assert errors[1] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.3)


def test_masses_of_flexes_do_not_flow_here():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><flexcomp name="f" type="grid" count="3 3 1" dim="2" '
        'spacing=".1 .1 .1" radius=".01" mass="1"><edge equality="true"/></flexcomp>'
        "</worldbody></mujoco>"
    )
    worlds = core.CoreBatch(model, NUM, 1)
    rate = np.zeros((NUM, model.nbody))
    masses = core.MassArrays(rate, rate, rate, np.zeros(rate.shape, bool), ())
    with raises(InvalidInputError, name="masses"):
        core.Integrator(worlds, integrate.RK4().tableau, masses=masses)


def test_wrong_arguments_are_refused():
    model = load("small")
    worlds = core.CoreBatch(model, NUM, 1)
    with raises(UnknownNameError, name="euler"):
        core.Integrator(worlds, integrate.RK4().tableau, "euler")
    pair = integrate.DP54().tableau
    good = dict.fromkeys(("qpos", "qvel", "act"), 1e-6)
    with raises(UnknownNameError, name="qacc"):
        core.AdaptiveIntegrator(worlds, pair, atol={**good, "qacc": 1.0}, rtol=good)
    with raises(InvalidInputError, name="qvel"):
        core.AdaptiveIntegrator(worlds, pair, atol={**good, "qvel": 0.0}, rtol=good)
    with raises(InvalidInputError, name="b_error"):
        core.AdaptiveIntegrator(worlds, integrate.RK4().tableau, atol=good, rtol=good)
    with raises(InvalidInputError, name="integrator"):
        core.Integrator(
            worlds, pair, processes=[core.CoreProcess("frame", np.zeros((NUM, 5)))]
        )
    for wrong in (
        core_loads.uniform_gravity([99], (0, 0, 1)),
        core_loads.uniform_gravity([1], (0, 1)),
    ):
        with raises(InvalidInputError, name="integrator"):
            core.Integrator(worlds, pair, loads=[wrong])
    ours = core.Integrator(worlds, pair)
    for ids in ([3, 1], [0, NUM], [-1, 2]):
        with pytest.raises(ValueError, match="ids must rise"):
            ours.step(1, 0.01, ids)
