"""A zero quaternion is no turn, as in MuJoCo, on both engines and in every reading."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from simstate import Simulation
from simstate.math import quaternion

XML = """<mujoco><option timestep="0.002"/><worldbody>
  <body name="a" pos="0 0 1"><freejoint/>
    <geom type="box" size=".1 .2 .3" pos=".02 0 .01"/>
    <body name="b" pos=".3 0 0"><joint type="ball"/>
      <geom type="box" size=".1 .05 .03" pos=".1 0 0"/></body></body>
  <body name="m" mocap="true" pos="1 0 0" quat=".8 0 .6 0">
    <geom size=".1" contype="0" conaffinity="0" pos=".1 .2 .3"/>
    <site name="s" pos=".1 .2 .3"/></body></worldbody></mujoco>"""
FIELDS = ("xpos", "xquat", "site_xpos", "geom_xpos", "cvel", "qpos", "mocap_quat")


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(XML)


def start(model, engine, tiny=0.0):
    """Three worlds: nothing is zero, the joints are, the mocap body is."""
    sim = Simulation(model, 3, engine=engine)
    sim.data.qpos[:, 3:7] = torch.tensor([0.6, 0.0, -0.8, 0.0]).to(sim.dtype)
    sim.data.qpos[:, 7:11] = torch.tensor([0.8, 0.6, 0.0, 0.0]).to(sim.dtype)
    sim.data.qvel[:] = 0.3
    sim.data.qpos[1, 3:11] = tiny
    sim.data.mocap_quat[2] = tiny
    return sim


def plain(model, sim):
    datas = []
    for world in range(3):
        data = mujoco.MjData(model)
        data.qpos[:] = sim.data.qpos[world]
        data.qvel[:] = sim.data.qvel[world]
        data.mocap_quat[:] = sim.data.mocap_quat[world]
        datas.append(data)
    return datas


@pytest.mark.parametrize("tiny", [0.0, 1e-18])
def test_fields_are_plain_mujocos(model, engine, tiny):
    sim = start(model, engine, tiny)
    tolerance = 1e-12 if engine == "native" else 2e-6
    for steps in (0, 3):
        datas = plain(model, sim)
        if steps:
            sim.step(steps)
        for world, data in enumerate(datas):
            if steps:
                mujoco.mj_step(model, data, steps)
            mujoco.mj_forward(model, data)
            for field in FIELDS:
                got = getattr(sim.data, field)[world].double()
                want = getattr(data, field)
                np.testing.assert_allclose(
                    got, want, atol=10 * tolerance, err_msg=f"{field} {world} {steps}"
                )
    sim.forward()
    datas = plain(model, sim)
    for world, data in enumerate(datas):
        mujoco.mj_forward(model, data)
        got = sim.data.qacc[world].double()
        np.testing.assert_allclose(got, data.qacc, rtol=1e-3, atol=1e-3)


def test_quantities_are_no_turn(model, engine):
    sim = start(model, engine)
    entity = sim.scene["model"]
    none = [1.0, 0.0, 0.0, 0.0]
    assert entity.data.root_link_quat_w[1].tolist() == none
    assert entity.data.ball_joint_quat[1, 0].tolist() == none
    assert entity.data.mocap_pose_w[2, 0, 3:].tolist() == none
    assert torch.isfinite(entity.data.body_link_vel_w).all()
    entity.write_root_link_velocity_to_sim(torch.ones(1, 6), [1])
    assert sim.data.qvel[1, :6].tolist() == [1.0] * 6
    # Only some worlds are stepped: what is zero in the others stays.
    sim.step(env_ids=[2])
    assert not sim.data.qpos[1, 3:11].any()


def test_normalize_takes_a_zero_one_for_no_turn():
    quats = torch.tensor([[0.0, 0, 0, 0], [0, 0, 0, 2.0], [1e-16, 0, 0, 0]]).double()
    want = [[1.0, 0, 0, 0], [0, 0, 0, 1.0], [1.0, 0, 0, 0]]
    assert quaternion.normalize(quats).tolist() == want
