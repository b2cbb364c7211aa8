"""MovingFrame: attitudes at orbital speed as if at rest, orbits as they are."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

from simstate import Simulation
from simstate.integrate import DOP853, MovingFrame, PointMassGravity

BODY = """
<mujoco><option timestep="1" gravity="0 0 0"/><worldbody><body name="body">
  <freejoint name="root"/><inertial pos="0 0 0" mass="100" diaginertia="10 20 30"/>
</body></worldbody></mujoco>
"""
MU, RADIUS = 3.986004418e14, 6.9e6
SPEED = math.sqrt(MU / RADIUS)


def orbiting(offset=(0.0, 0.0, 0.0)):
    model = mujoco.MjModel.from_xml_string(BODY)
    sim = Simulation(model, 1, integrator=DOP853(atol=1e-11, rtol=1e-11))
    gravity = PointMassGravity(MU, gradient_torque=False)
    frame = MovingFrame(gravity, (RADIUS, 0, 0), (0, SPEED, 0))
    sim.add_process(frame)
    sim.data.qpos[0, :3] = torch.tensor(offset, dtype=torch.float64)
    sim.data.qvel[0, 3:] = torch.tensor([0.1, 0.3, 0.1], dtype=torch.float64)
    return sim, frame


def test_attitude_and_orbit():
    sim, frame = orbiting()
    sim.step(200)
    model = mujoco.MjModel.from_xml_string(BODY)
    rest = Simulation(model, 1, integrator=DOP853(atol=1e-12, rtol=1e-12))
    rest.data.qvel[0, 3:] = torch.tensor([0.1, 0.3, 0.1], dtype=torch.float64)
    rest.step(200)
    assert (sim.data.qpos[0, 3:] - rest.data.qpos[0, 3:]).abs().max() < 5e-10
    turn = SPEED / RADIUS * 200
    want = RADIUS * np.array([math.cos(turn), math.sin(turn), 0.0])
    got = frame.root_link_pos_w(sim.scene["model"])[0].numpy()
    np.testing.assert_allclose(got, want, atol=1e-2)


def test_tides_are_those_of_high_precision():
    offset = (3.0, -2.0, 1.0)
    sim, _ = orbiting(offset)
    d = np.array(offset, dtype=np.longdouble)
    r = np.array([RADIUS, 0, 0], dtype=np.longdouble)

    def pull(p):
        return -np.longdouble(MU) * p / np.sqrt(p @ p) ** 3

    want = (pull(r + d) - pull(r)).astype(float)
    got = sim.data.qacc[0, :3].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-14)


def test_relative_motion_is_clohessy_wiltshires():
    sim, _ = orbiting((10.0, 0.0, 5.0))
    n = SPEED / RADIUS
    sim.data.qvel[0, :3] = torch.tensor([0.0, n * 10.0, 0.0], dtype=torch.float64)
    sim.step(200)
    nt = n * 200
    # At rest in the turning axes: x = (4 − 3 cos nt) x0, y = 6 (sin nt − nt) x0.
    x, y = 10 * (4 - 3 * math.cos(nt)), 60 * (math.sin(nt) - nt)
    c, s = math.cos(nt), math.sin(nt)
    want = [c * x - s * y, s * x + c * y, 5 * math.cos(nt)]
    np.testing.assert_allclose(sim.data.qpos[0, :3].numpy(), want, atol=2e-3)


def test_a_snapshot_keeps_the_frame():
    sim, frame = orbiting((1.0, 2.0, 3.0))
    sim.step(10)
    snapshot = sim.snapshot()
    sim.step(10)
    end = frame.value.clone(), sim.data.qpos.clone()
    sim.restore(snapshot)
    sim.step(10)
    assert torch.equal(frame.value, end[0])
    assert torch.equal(sim.data.qpos, end[1])
    sim.reset()
    assert frame.position[0].tolist() == pytest.approx([RADIUS, 0, 0])
