"""MovingFrame: attitudes at orbital speed as if at rest, orbits as they are."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError
from simstate.integrate import (
    DOP853,
    RK4,
    MovingFrame,
    PointMassGravity,
    Thruster,
)

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


def test_masses_that_are_not_at_the_origin_pull_a_frame_and_what_is_in_it():
    """Compare with the same worlds in an inertial frame, far from its origin."""
    mu, places = [4.0, 2.5], [[3.0, -7.0, 2.0], [-6.0, 4.0, -5.0]]
    place, speed = torch.tensor([1.0, 2.0, -1.5]), torch.tensor([0.3, -0.2, 0.4])
    offset = torch.tensor([[0.5, -0.4, 0.3], [-0.2, 0.6, 0.1]]).double()
    model = mujoco.MjModel.from_xml_string(BODY.replace('"1"', '"0.01"'))
    frames, ends = [], []
    for is_moving in (True, False):
        sim = Simulation(model, 2, integrator=RK4())
        gravity = PointMassGravity(mu, places, gradient_torque=False)
        sim.data.qpos[:, :3] = offset
        if is_moving:
            frames.append(MovingFrame(gravity, place, speed))
            sim.add_process(frames[0])
        else:
            sim.add_force(gravity)
            sim.data.qpos[:, :3] += place
            sim.data.qvel[:, :3] += speed
        sim.step(100)
        found = sim.data.qpos[:, :3].clone()
        if is_moving:
            found = frames[0].root_link_pos_w(sim.scene["model"])
        ends.append(found)
    assert float((ends[1] - place - speed - offset).norm(dim=1).min()) > 1e-2
    torch.testing.assert_close(ends[0], ends[1], rtol=0, atol=1e-9)


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


PAIR = """
<mujoco><worldbody>
  <body name="bus" quat="0.8 0.1 0.5 0.3"><freejoint/>
    <inertial pos="0.2 -0.1 0.05" mass="12" diaginertia="2 3 4"/></body>
  <body name="probe" pos="-40 1e3 25"><freejoint/>
    <inertial pos="0.02 0.03 -0.01" mass="5" diaginertia="0.3 0.4 0.2"/></body>
</worldbody></mujoco>
"""


def pair(timestep=5.0):
    """Two bodies in one frame, of which one has a thruster, in three worlds."""
    scene = SceneCfg(
        entities={"craft": EntityCfg(model=PAIR), "tug": EntityCfg(model=BODY)},
        ground=False,
        gravity=(0, 0, 0),
        timestep=timestep,
    )
    sim = Simulation(scene, 3, integrator=DOP853(atol=1e-9, rtol=1e-12))
    starts = np.array([[RADIUS, 0, 0], [0, RADIUS, 3e4], [2e5, -RADIUS, 1e5]])
    speeds = np.array([[30.0, SPEED, 9.0], [-SPEED, 20.0, 0], [SPEED, 50, -70]])
    gravity = PointMassGravity(MU, entity="craft", gradient_torque=False)
    sim.add_process(frame := MovingFrame(gravity, starts, speeds))
    push = torch.tensor([[9.0, 1, 0], [0, 12.0, 2], [3.0, 0, 11]]).double()
    sim.add_force(Thruster("craft", "bus", push, position=(0.2, -0.1, 0.05)))
    sim.data.qvel[:, 3:6] = torch.tensor([1e-3, -2e-3, 3e-3]).double()
    return sim, frame


def in_the_world(sim, frame):
    return torch.cat(
        [frame.body_com_pos_w(sim.scene["craft"]).flatten(1),
         frame.body_com_lin_vel_w(sim.scene["craft"]).flatten(1)], dim=1
    )  # fmt: skip


def test_a_frame_that_is_recentred_leaves_the_world_alone():
    sim, frame = pair()
    sim.step(20)
    before, tug = in_the_world(sim, frame), sim.data.qpos[:, 14:].clone()
    kept = sim.data.qpos[1].clone()
    frame.recentre("craft", [2, 0])
    craft = sim.scene["craft"].data
    assert float(craft.root_link_pos_w[[2, 0]].abs().max()) < 1e-12
    assert float(craft.root_link_lin_vel_w[[2, 0]].abs().max()) < 1e-12
    assert torch.equal(sim.data.qpos[1], kept)
    assert torch.equal(sim.data.qpos[:, 14:], tug)  # it is in no frame
    torch.testing.assert_close(in_the_world(sim, frame), before, rtol=0, atol=2e-9)
    assert float((frame.position[0] - before[0, :3]).norm()) < 1.0


def test_a_craft_flies_on_as_without_recentring():
    ends = []
    for period in (None, 37.0):
        sim, frame = pair()
        if period is not None:
            sim.add_task(lambda sim, ids, f=frame: f.recentre("craft", ids), period)
        sim.step(60)
        ends.append((in_the_world(sim, frame), sim.scene["craft"].data))
    torch.testing.assert_close(ends[0][0], ends[1][0], rtol=0, atol=5e-3)
    away, near = (data.root_link_lin_vel_w.norm(dim=1) for _, data in ends)
    assert bool((away > 200).all())
    assert bool((near < 40).all())


def test_what_cannot_be_recentred():
    frame = MovingFrame(PointMassGravity(MU), (RADIUS, 0, 0), (0, SPEED, 0))
    with raises(InvalidInputError, name="frame"):
        frame.recentre("model")
    fixed = BODY.replace('<freejoint name="root"/>', '<joint name="hinge"/>')
    sim = Simulation(mujoco.MjModel.from_xml_string(fixed), 1, integrator=RK4())
    sim.add_process(frame)
    with raises(InvalidInputError, name="body"):
        frame.recentre("model")
