"""Linear models against closed forms, MuJoCo's derivatives, and the run itself."""

from __future__ import annotations

import math

import control
import mujoco
import numpy as np
import pytest
import torch
from scipy.linalg import expm
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.integrate import (
    RK4,
    SRA1,
    MovingFrame,
    OrnsteinUhlenbeck,
    PointMassGravity,
)
from simstate.scene import models
from simstate.study.linear import Unknown, linearise, trim

F64 = torch.float64
PENDULUM = """<mujoco><option timestep="0.01" gravity="0 0 -9.81" integrator="{i}"/>
<worldbody><body pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="0.3"/>
<inertial pos="0 0 -0.7" mass="1.4" diaginertia="0.02 0.05 0.03"/></body></worldbody>
<actuator><general name="lag" joint="hinge" gear="2" dyntype="filter" dynprm="0.2"/>
<motor name="torque" joint="hinge" gear="0.5"/></actuator></mujoco>"""
INERTIA = 0.05 + 1.4 * 0.49


def pendulum(integrator="Euler", scheme=None, angles=(0.0, 0.4)):
    model = mujoco.MjModel.from_xml_string(PENDULUM.format(i=integrator))
    sim = Simulation(model, len(angles), integrator=scheme)
    sim.data.qpos[:, 0] = torch.tensor(angles, dtype=F64)
    return sim


def theory(angle):
    """x = angle, rate, activation; u = the lag's command, the motor's."""
    weight = 1.4 * 9.81 * 0.7 * math.cos(angle)
    a = [
        [0, 1, 0], [-weight / INERTIA, -0.3 / INERTIA, 2 / INERTIA], [0, 0, -5.0],
    ]  # fmt: skip
    b = [[0, 0], [0, 0.5 / INERTIA], [5.0, 0]]
    return np.array(a), np.array(b)


@pytest.mark.parametrize("scheme", [None, RK4()], ids=["mujoco", "ours"])
def test_continuous_is_the_closed_form(scheme):
    sim = pendulum(scheme=scheme)
    before = sim.state.clone()
    found = linearise(sim)
    assert torch.equal(sim.state, before)
    assert found.states == ("hinge", "hinge.rate", "lag.act")
    assert found.units == ("rad", "rad/s", "")
    assert found.inputs == ("lag", "torque")
    for world, angle in enumerate((0.0, 0.4)):
        a, b = theory(angle)
        np.testing.assert_allclose(found.a[world], a, atol=1e-8)
        np.testing.assert_allclose(found.b[world], b, atol=1e-8)


def test_discrete_is_mujocos_own_and_the_schemes():
    """Semi-implicit Euler by hand for MuJoCo's stepper; the exponential for RK4."""
    h = 0.01
    found = linearise(pendulum(), time="discrete")
    a, b = theory(0.4)
    # MuJoCo takes damping implicitly, and the old activation: rate first, then angle.
    scale = 1 / (1 + h * 0.3 / INERTIA)
    row = scale * np.array([h * a[1, 0], 1.0, h * a[1, 2]])
    want = np.array([[1, 0, 0] + h * row, row, [0, 0, 1 - 5 * h]])
    np.testing.assert_allclose(found.a[1], want, atol=1e-7)
    assert found.timestep == h
    found = linearise(pendulum(scheme=RK4()), time="discrete")
    a, b = theory(0.0)  # where it rests: elsewhere a step is of a moving pendulum
    both = expm(h * np.block([[a, b], [np.zeros((2, 5))]]))
    np.testing.assert_allclose(found.a[0], both[:3, :3], atol=2e-8)
    np.testing.assert_allclose(found.b[0], both[:3, 3:], atol=2e-8)


def test_a_step_by_differences_is_mjd_transitionfds():
    """By the compiled core, and by differences through the steps of a simulation."""
    model = models.spec("cartpole").compile()
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER.value
    sim = Simulation(model, 2)
    sim.data.qpos[:] = torch.tensor([[0.1, 0.3], [-0.2, 2.0]], dtype=F64)
    sim.data.qvel[:] = torch.tensor([[0.5, -0.3], [0.2, 0.7]], dtype=F64)
    one = linearise(sim, time="discrete")
    sim.add_force(lambda t, sim: None)
    other = linearise(sim, time="discrete")
    for world in range(2):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        a, b = np.zeros((4, 4)), np.zeros((4, 1))
        mujoco.mjd_transitionFD(model, data, 1e-5, True, a, b, None, None)
        for found in (one, other):
            np.testing.assert_allclose(found.a[world], a, atol=1e-9)
            np.testing.assert_allclose(found.b[world], b, atol=1e-9)


def test_a_spinning_top_by_its_nutation():
    """A symmetric free body: modes at the spin and at the nutation against the body."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint name="root"/>
        <inertial pos="0 0 0" mass="2" diaginertia="1 1 1.7"/></body></worldbody>
        </mujoco>"""
    )
    sim = Simulation(model, 1, integrator=RK4())
    sim.data.qpos[:, 3:7] = torch.tensor([[0.5, 0.5, -0.5, 0.5]], dtype=F64)
    sim.data.qvel[:, 5] = 3.0
    found = linearise(sim)
    assert found.states[3:6] == ("root.rx", "root.ry", "root.rz")
    rates = sorted({round(m.frequency, 5) for m in found.modes() if m.is_oscillation})
    assert rates == pytest.approx([0.7 * 3.0, 3.0], abs=1e-5)


def test_an_orbit_by_clohessy_and_wiltshire():
    """Processes are states, too: about a circular orbit all modes are at n."""
    mu, radius = 3.986e14, 7e6
    n = math.sqrt(mu / radius**3)
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0" timestep="1"/><worldbody><body>
        <freejoint name="root"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
        </body></worldbody></mujoco>"""
    )
    sim = Simulation(model, 1, integrator=RK4())
    gravity = PointMassGravity(mu)
    sim.add_process(MovingFrame(gravity, (radius, 0, 0), (0, n * radius, 0)))
    found = linearise(sim, inputs={})
    assert found.states[-1] == "frame[5]"
    part = found.part([f"root.{x}" for x in ("x", "y", "z", "vx", "vy", "vz")])
    want = np.diag([2.0, -1.0, -1.0]) * n**2  # the tide at this instant
    np.testing.assert_allclose(part.a[0, 3:, :3], want, atol=1e-11)


def test_outputs_inputs_and_the_hand_over():
    sim = pendulum(scheme=RK4())
    bob = {
        "bob": lambda sim: sim.data.xipos[:, 1, [0, 2]],
        "speed": lambda sim: sim.data.qvel[:, 0] ** 2 + sim.data.ctrl[:, 1],
    }
    found = linearise(sim, inputs=["torque"], outputs=bob)
    assert found.outputs == ("bob[0]", "bob[1]", "speed")
    for world, angle in enumerate((0.0, 0.4)):
        c = [[-0.7 * math.cos(angle), 0, 0], [0.7 * math.sin(angle), 0, 0], [0, 0, 0]]
        np.testing.assert_allclose(found.c[world], c, atol=1e-8)
        np.testing.assert_allclose(found.d[world], [[0], [0], [1]], atol=1e-8)
    system = found.to_control(1)
    assert isinstance(system, control.StateSpace)
    assert system.input_labels == ["torque"]
    assert system.state_labels == ["hinge", "hinge_rate", "lag_act"]
    poles = np.sort_complex(np.linalg.eigvals(found.to_scipy(1).A))
    np.testing.assert_allclose(poles, np.sort_complex(system.poles()), atol=1e-12)
    discrete = linearise(sim, inputs=["torque"], time="discrete")
    assert discrete.to_control(0).dt == 0.01
    assert discrete.to_scipy(0).dt == 0.01
    gravity = linearise(sim, inputs={"g": sim.expand("opt.gravity")[:, 2]})
    want = 1.4 * 0.7 * np.sin(0.4) / INERTIA
    np.testing.assert_allclose(gravity.b[1, :, 0], [0, want, 0], atol=1e-8)
    assert float(sim.expand("opt.gravity")[1, 2]) == -9.81
    push = torch.tensor([0.2, 0.3], dtype=F64)

    def pushed(t, sim):
        sim.data.qfrc_applied[:, 0] += 4 * push

    sim.add_force(pushed)
    found = linearise(sim, inputs={"push": push})
    np.testing.assert_allclose(found.b[0, :, 0], [0, 4 / INERTIA, 0], atol=1e-7)
    assert push.tolist() == [0.2, 0.3]


def test_every_component_of_an_output_has_its_own_unit():
    """A rail, a pole on it and a body that floats: no two units are the same."""
    rail = """<mujoco><worldbody>
    <body name="free"><freejoint/><geom size=".1"/></body>
    <body name="cart"><joint name="rail" type="slide" axis="1 0 0"/><geom size=".1"/>
    <body pos="0 0 .5"><joint name="pole" axis="0 1 0"/><geom size=".1"/></body></body>
    </worldbody><actuator><motor joint="pole"/></actuator></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(rail), 2)
    of = {
        "model.joint_vel": ("m/s", "rad/s"),
        "model.root_link_vel_w": ("m/s",) * 3 + ("rad/s",) * 3,
        "model.root_link_pose_w": ("m",) * 3 + ("1",) * 4,
        "qpos": ("m",) * 3 + ("1",) * 4 + ("m", "rad"),
        "qvel": ("m/s",) * 3 + ("rad/s",) * 3 + ("m/s", "rad/s"),
        "qacc": ("m/s²",) * 3 + ("rad/s²",) * 3 + ("m/s²", "rad/s²"),
        "qfrc_actuator": ("N",) * 3 + ("N·m",) * 3 + ("N", "N·m"),
        "time": ("s",),
    }
    found = linearise(sim, outputs=list(of))
    assert found.output_units == tuple(unit for units in of.values() for unit in units)


def test_outputs_by_the_names_of_quantities():
    sim = pendulum(scheme=RK4())
    named = linearise(sim, inputs=["torque"], outputs=["model.joint_vel"])
    assert named.outputs == ("model.joint_vel[0]",)
    assert named.output_units == ("rad/s",)
    np.testing.assert_allclose(named.c[:, 0], [[0, 1, 0]] * 2, atol=1e-9)
    bob = {
        "rate": "model.joint_vel",
        "height": (lambda sim: sim.data.xipos[:, 1, 2].numpy(), "m"),
    }
    found = linearise(sim, outputs=bob)
    assert found.outputs == ("rate[0]", "height")
    assert found.output_units == ("rad/s", "m")
    for world, angle in enumerate((0.0, 0.4)):
        want = [0.7 * math.sin(angle), 0, 0]
        np.testing.assert_allclose(found.c[world, 1], want, atol=1e-8)
    alike = {"rate[0]": bob["height"], "rate": "model.joint_vel"}
    assert linearise(sim, outputs=alike).output_units == ("m", "rad/s")
    plain = linearise(sim)
    assert plain.output_units == plain.units == plain.in_outputs().units
    for wrong in (["model.joint_vell"], "model.joint_vel", {"x": 3.0}):
        with pytest.raises(SimStateError):
            linearise(sim, outputs=wrong)


def test_a_small_step_of_the_run_is_the_models():
    sim = pendulum(scheme=RK4(), angles=(0.0, 0.0))
    system = linearise(sim, inputs=["torque"]).to_control(0)
    sim.data.ctrl[:, 1] = 1e-4
    path = [0.0]
    for _ in range(100):
        sim.step()
        path.append(float(sim.data.qpos[0, 0]))
    times = np.linspace(0, 1, 101)
    answer = control.forced_response(system, times, np.full(101, 1e-4))
    np.testing.assert_allclose(path, answer.outputs[0], atol=1e-9)


def test_modes_have_frequency_and_damping():
    found = linearise(pendulum(scheme=RK4()))
    swing = next(m for m in found.modes(0) if m.is_oscillation)
    natural = math.sqrt(1.4 * 9.81 * 0.7 / INERTIA)
    assert swing.frequency == pytest.approx(natural, rel=1e-7)
    assert swing.damping == pytest.approx(0.3 / INERTIA / 2 / natural, rel=1e-7)
    damped = natural * math.sqrt(1 - swing.damping**2)
    assert swing.period == pytest.approx(2 * math.pi / damped, rel=1e-7)
    assert swing.time_to_half == pytest.approx(math.log(2) / (0.15 / INERTIA), rel=1e-7)
    assert set(swing.main(2)) == {"hinge", "hinge.rate"}
    lag = next(m for m in found.modes(0) if not m.is_oscillation)
    assert lag.eigenvalue.real == pytest.approx(-5, rel=1e-7)
    assert lag.main(1) == ["lag.act"]
    discrete = linearise(pendulum(scheme=RK4()), time="discrete")
    again = next(m for m in discrete.modes(0) if m.is_oscillation)
    assert again.eigenvalue == pytest.approx(swing.eigenvalue, rel=1e-6)


def test_a_discrete_state_without_memory_decays_at_once():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><joint name="a" damping="3"/>
        <geom size=".1" pos=".1 0 0"/></body></worldbody>
        <actuator><general name="m" joint="a" dyntype="filterexact" dynprm="0"/>
        </actuator></mujoco>"""
    )
    mode = linearise(Simulation(model, 2), time="discrete").modes(1)[0]
    assert mode.main(1) == ["m.act"]
    assert (mode.frequency, mode.damping) == (math.inf, 1.0)
    assert (mode.time_to_half, mode.is_oscillation) == (0.0, False)


def test_processes_without_noise_are_states():
    model = mujoco.MjModel.from_xml_string(PENDULUM.format(i="Euler"))
    sim = Simulation(model, 2, integrator=SRA1())
    gust = OrnsteinUhlenbeck("gust", [0.0], [[2.0], [0.5]], 1.0)
    sim.add_process(gust)

    def push(t, sim):
        sim.data.qfrc_applied[:, 0] += 3.0 * gust.value[:, 0]

    sim.add_force(push)
    found = linearise(sim, inputs={})
    assert found.states[-1] == "gust[0]"
    for world, tau in enumerate((2.0, 0.5)):
        assert float(found.a[world, 3, 3]) == pytest.approx(-1 / tau, abs=1e-9)
        assert float(found.a[world, 1, 3]) == pytest.approx(3 / INERTIA, rel=1e-8)


def test_trim_holds_a_pendulum_out():
    """The torque that holds each at its own angle, and a bound that forbids it."""
    sim = pendulum(scheme=RK4(), angles=(0.0, 0.0))
    goal = torch.tensor([0.3, -0.5], dtype=F64)

    def write(values):
        sim.data.qpos[:, 0] = values["angle"]
        sim.data.ctrl[:, 1] = values["torque"]

    def rest():
        return torch.stack([sim.data.qacc[:, 0], sim.data.qpos[:, 0] - goal], dim=1)

    unknowns = {"angle": Unknown(0.1), "torque": Unknown([1.0, 0.0], -40, 40, scale=10)}
    found = trim(sim, unknowns, write, rest)
    want = 1.4 * 9.81 * 0.7 * np.sin(goal.numpy()) / 0.5
    np.testing.assert_allclose(found.values["torque"], want, rtol=1e-9)
    np.testing.assert_allclose(sim.data.ctrl[:, 1], want, rtol=1e-9)
    assert found.converged.tolist() == [True, True]
    sim.step(50)
    np.testing.assert_allclose(sim.data.qpos[:, 0], goal, atol=1e-8)
    tight = {"angle": Unknown(0.1), "torque": Unknown(0.0, -7.0, 7.0)}
    held = trim(sim, tight, write, rest, require=False)
    assert held.converged.tolist() == [True, False]
    assert held.at_bound["torque"].tolist() == [False, True]
    assert float(held.values["torque"][1]) == -7.0
    sim.data.qpos[:, 0] -= 0.2
    before = sim.state.clone()
    with raises(SimStateError, worlds=[1]):
        trim(sim, tight, write, rest)
    assert torch.equal(sim.state, before)


@pytest.mark.parametrize(
    ("start", "low", "high", "b", "a"),
    [(0.0, -5.0, 1.0, 1.0, 1.5), (4.0, 2.5, 5.0, 2.5, 0.75)],
)
def test_trim_at_a_bound_is_the_best_that_there_is(start, low, high, b, a):
    """(a + 2b − 4)² + (a − b)² with b at a bound is least at a = 2 − b/2."""
    sim = pendulum()
    values = {}

    def rest():
        a, b = values["a"], values["b"]
        return torch.stack([a + 2 * b - 4, a - b], dim=1)

    unknowns = {"a": Unknown([0.0, 3.0]), "b": Unknown(start, low, high)}
    found = trim(sim, unknowns, values.update, rest, require=False)
    np.testing.assert_allclose(found.values["a"], [a, a], atol=1e-6)
    np.testing.assert_allclose(found.values["b"], [b, b])
    assert found.at_bound["b"].all()


def test_trim_leaves_an_unknown_of_almost_no_effect_near_its_start():
    """Next to one of a million times the effect: no step along what is rounding."""
    sim = pendulum()
    values = {}

    def rest():
        a, b = values["a"], values["b"]
        return torch.stack([3e4 * (a - 2.0) + 1e-11 * b, 1e4 * (a - 2.0)], dim=1)

    found = trim(
        sim, {"a": Unknown([0.0, 5.0]), "b": Unknown(1.0)}, values.update, rest
    )
    np.testing.assert_allclose(found.values["a"], [2.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(found.values["b"], [1.0, 1.0], atol=10.0)


def test_wrong_questions_raise():
    sim = pendulum(scheme=RK4())
    for wrong, name in (
        (lambda: linearise(sim, inputs=["tork"]), "tork"),
        (lambda: linearise(sim, inputs="torque"), "inputs"),
        (lambda: linearise(sim, time="soon"), "soon"),
        (lambda: linearise(sim, inputs={"x": sim.data.ctrl}), "inputs['x']"),
        (lambda: linearise(sim, outputs={"x": lambda s: s.data.xipos[:1]}), "x"),
        (lambda: linearise(sim).part(["hing"]), "hing"),
        (lambda: linearise(sim).part([]), "states"),
        (lambda: linearise(sim).part("hinge"), "states"),
        (lambda: linearise(sim).in_outputs(["m"]), "units"),
        (lambda: linearise(sim).modes(2), "env_id"),
        (lambda: linearise(sim).matrices(0.5), "env_id"),
        (
            lambda: linearise(sim, outputs={"x": lambda s: s.time}).in_outputs(),
            "outputs",
        ),
        (lambda: trim(sim, {}, print, print), "unknowns"),
        (lambda: trim(sim, {"x": 0.5}, print, print), "unknowns['x']"),
        (lambda: trim(sim, {"x": Unknown()}, None, print), "write"),
        (lambda: trim(sim, {"x": Unknown()}, print, None), "residual"),
        (lambda: trim(sim, {"x": Unknown()}, print, print, tolerance=-1), "tolerance"),
        (
            lambda: trim(sim, {"x": Unknown()}, print, print, iterations=2.5),
            "iterations",
        ),
        (lambda: trim(sim, {"x": Unknown(math.nan)}, print, print), "x"),
        (lambda: trim(sim, {"x": Unknown(scale=0.0)}, print, print), "scale"),
        (lambda: trim(sim, {"x": Unknown(0, 1, -1)}, print, print), "x"),
        (
            lambda: trim(sim, {"x": Unknown()}, print, lambda: sim.data.qpos[:, :0]),
            "residual",
        ),
        (
            lambda: trim(sim, {"x": Unknown([1, 2, 3])}, print, print),
            "start",
        ),
        (
            lambda: trim(sim, {"x": Unknown()}, lambda v: None, lambda: sim.time),
            "residual",
        ),
        (
            lambda: linearise(Simulation(sim.model, 1, engine="warp")),
            "engine",
        ),
    ):
        with raises((InvalidInputError, ShapeError, SimStateError), name=name):
            wrong()
