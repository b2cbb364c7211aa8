"""Gradients of rollouts, checked by torch and against optima that are known."""

from __future__ import annotations

import math

import mujoco
import pytest
import torch
from tests.raised import raises
from torch.autograd import gradcheck

from simstate import Simulation
from simstate.base.errors import SimStateError
from simstate.integrate import RK4, MovingFrame, PointMassGravity
from simstate.study import differentiable

F64 = torch.float64
ARM = """<mujoco><option timestep="0.01" gravity="0 0 -9.81" integrator="{i}"/>
<worldbody><body pos="0 0 1"><joint name="ball" type="ball" damping=".3"/>
<inertial pos=".1 .05 -.4" mass="1.3" diaginertia=".03 .04 .05"/>
<body pos="0 0 -.8"><joint name="hinge" axis="0 1 0" damping=".2"/>
<inertial pos=".1 .02 -.3" mass=".7" diaginertia=".02 .03 .01"/></body></body>
</worldbody><actuator><general name="lag" joint="hinge" gear="2" dyntype="filter"
dynprm=".1"/><motor joint="hinge" gear=".6"/></actuator></mujoco>"""


def arm(scheme=None, own="implicitfast"):
    model = mujoco.MjModel.from_xml_string(ARM.format(i=own))
    sim = Simulation(model, 2, integrator=scheme)
    sim.data.qpos[:, :4] = torch.tensor(
        [[0.7, 0.1, -0.7, 0.1], [0.5, 0.5, -0.5, 0.5]], dtype=F64
    )
    sim.data.qpos[:, 4] = torch.tensor([0.3, -0.8], dtype=F64)
    sim.data.qvel[:] = torch.tensor(
        [[0.3, -0.2, 0.5, 0.1], [-0.4, 0.6, 0.2, -0.7]], dtype=F64
    )
    sim.data.act[:, 0] = torch.tensor([0.2, -0.1], dtype=F64)
    return sim


@pytest.mark.parametrize(
    ("scheme", "own"), [(None, "Euler"), (None, "implicitfast"), (RK4(), "Euler")],
    ids=["euler", "implicitfast", "rk4"],
)  # fmt: skip
def test_gradients_pass_torchs_check(scheme, own):
    """By state (quaternions of any length), controls and masses, over two controls."""
    sim = arm(scheme, own)
    if scheme is not None:
        sim.add_force(lambda t, sim: None)
    rollout = differentiable(sim, ("body_mass",), steps=2)
    before = sim.snapshot()
    state = rollout.state
    state[:, :4] *= torch.tensor([[1.3], [0.8]])
    controls = torch.tensor(
        [[[0.4, -0.2], [0.1, 0.3]], [[-0.5, 0.2], [0.7, -0.6]]], dtype=F64
    )
    masses = rollout.parameters["body_mass"][:, 1:]

    def loss(state, controls, masses):
        world = torch.zeros(2, 1, dtype=F64)
        values = torch.cat([world, masses], dim=1)
        return rollout(state, controls, body_mass=values)

    inputs = [x.clone().requires_grad_() for x in (state, controls, masses)]
    assert gradcheck(loss, inputs, eps=1e-5, atol=1e-6, rtol=1e-4)
    assert rollout.switched.shape == (2, 2)
    assert not bool(rollout.switched.any())
    after = sim.snapshot()
    for name, value in before.slots.items():
        assert torch.equal(value, after.slots[name]), name


def test_a_rollout_is_the_run_itself():
    sim = arm()
    rollout = differentiable(sim, steps=3)
    controls = torch.randn(2, 4, 2, dtype=F64, generator=torch.manual_seed(3))
    states = rollout(rollout.state, controls)
    assert not states.requires_grad
    for t in range(4):
        sim.data.ctrl[:] = controls[:, t]
        sim.step(3)
        assert torch.equal(states[:, t], rollout.state)


def test_processes_are_part_of_the_state():
    """A frame in orbit: where it goes by where it starts, at rest otherwise."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="0 0 0" timestep="1"/><worldbody><body>
        <freejoint name="root"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
        </body></worldbody></mujoco>"""
    )
    mu, radius = 3.986e14, 7e6
    sim = Simulation(model, 1, integrator=RK4())
    speed = math.sqrt(mu / radius)
    sim.add_process(MovingFrame(PointMassGravity(mu), (radius, 0, 0), (0, speed, 0)))
    rollout = differentiable(sim, steps=10)
    state = rollout.state.requires_grad_()
    assert rollout.size == 13 + 6
    end = rollout(state, torch.zeros(1, 1, 0, dtype=F64))
    (gradient,) = torch.autograd.grad(end[0, 0, 13], state)
    rate = math.sqrt(mu / radius**3)  # the radial column of the state transition
    want = 4 - 3 * math.cos(10 * rate)  # Clohessy and Wiltshire
    assert float(gradient[0, 13]) == pytest.approx(want, abs=2e-4)


def test_the_mass_of_a_pendulum_is_found_again():
    """From one swing with a known torque; the other world has another mass."""
    xml = """<mujoco><option timestep="0.01"/><worldbody><body pos="0 0 1">
    <joint name="hinge" axis="0 1 0" damping=".05"/>
    <inertial pos="0 0 -.6" mass="{m}" diaginertia=".02 .02 .01"/></body></worldbody>
    <actuator><motor joint="hinge" gear="1.5"/></actuator></mujoco>"""
    controls = torch.full((2, 20, 1), 0.8, dtype=F64)
    true = []
    for mass in (1.7, 0.9):
        model = mujoco.MjModel.from_xml_string(xml.format(m=mass))
        data = mujoco.MjData(model)
        path = []
        for _ in range(20):
            data.ctrl[:] = 0.8
            mujoco.mj_step(model, data, 5)
            path.append(float(data.qpos[0]))
        true.append(path)
    want = torch.tensor(true, dtype=F64)
    sim = Simulation(mujoco.MjModel.from_xml_string(xml.format(m=1.2)), 2)
    rollout = differentiable(sim, ("body_mass",), steps=5)
    mass = torch.full((2,), 1.2, dtype=F64, requires_grad=True)
    optimiser = torch.optim.LBFGS([mass], line_search_fn="strong_wolfe", max_iter=30)

    def closure():
        optimiser.zero_grad()
        values = torch.stack([torch.zeros_like(mass), mass], dim=1)
        angles = rollout(rollout.state, controls, body_mass=values)[:, :, 0]
        loss = 1e3 * (angles - want).square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    torch.testing.assert_close(
        mass.detach(), torch.tensor([1.7, 0.9], dtype=F64), rtol=0, atol=1e-5
    )


def test_a_switch_in_a_rollout_is_reported():
    xml = """<mujoco><worldbody><geom type="plane" size="9 9 1"/>
    <body pos="0 0 .1"><joint type="slide" axis="0 0 1"/>
    <geom type="sphere" size=".1" mass=".8"/></body></worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2)
    sim.data.qpos[1] = 0.4
    rollout = differentiable(sim)
    state = rollout.state.requires_grad_()
    rollout(state, torch.zeros(2, 1, 0, dtype=F64))
    assert rollout.switched.tolist() == [[True], [False]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda f, x, u: f(x.numpy(), u), "state"),
        (lambda f, x, u: f(x, u.numpy()), "controls"),
        (lambda f, x, u: f(x, u, body_mass=2.0), "body_mass"),
        (lambda f, x, u: f(x[:1], u), "state"),
        (lambda f, x, u: f(x, u[0]), "controls"),
        (lambda f, x, u: f(x, u * math.nan), "controls"),
        (lambda f, x, u: f(x, u[:, :0]), "controls"),
        (lambda f, x, u: f(x, u, body_mas=x), "body_mas"),
        (lambda f, x, u: f(x, u, body_mass=x), "body_mass"),
        (lambda f, x, u: differentiable(f.sim, "geom_rgba"), "geom_rgba"),
        (lambda f, x, u: differentiable(f.sim, "ctrl"), "parameters"),
        (lambda f, x, u: differentiable(f.sim, steps=0), "steps"),
        (lambda f, x, u: differentiable(3), "sim"),
    ],
)
def test_wrong_calls_raise(call, name):
    sim = arm()
    rollout = differentiable(sim, ("body_mass",))
    before = sim.state.clone()
    with raises(SimStateError, name=name):
        call(rollout, rollout.state, torch.zeros(2, 1, 2, dtype=F64))
    assert torch.equal(sim.state, before)
