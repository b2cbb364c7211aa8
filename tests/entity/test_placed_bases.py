"""A robot on a fixed base stands elsewhere in each world; everything goes with it.

The oracle is plain MuJoCo with the base compiled at that place.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import ledger_of
from tests.raised import raises

from simstate import (
    CameraCfg,
    EntityCfg,
    InitialStateCfg,
    InvalidInputError,
    SceneCfg,
    Simulation,
)
from simstate.entity.writer_base import can_place

pytestmark = pytest.mark.fast

ARM = """<mujoco><compiler angle="radian"/><option timestep="0.004"/><worldbody>
  <body name="table" {pose}>
    <geom name="top" type="box" size=".3 .4 .02" pos=".05 0 .1" mass="3"/>
    <camera name="eye" pos="0 -1.2 .6" xyaxes="1 .1 0 0 .4 1"/>
    <site name="range" pos="-.1 .1 .5" quat="0 1 .1 .05"/>
    <body name="post" pos=".2 0 .1"><geom type="capsule" size=".02 .1" mass=".4"/>
      <body name="link" pos="0 0 .12">
        <joint name="hinge" axis="0 .6 .8" damping=".1"/>
        <geom name="link" type="capsule" fromto="0 0 0 .1 0 .2" size=".02" mass=".5"/>
        <site name="tip" pos=".1 0 .2"/>
      </body>
    </body>
  </body></worldbody>
  <actuator><position joint="hinge" kp="3"/></actuator>
  <sensor><rangefinder name="range" site="range"/>
    <framepos objtype="site" objname="tip"/></sensor></mujoco>"""
BALL = """<mujoco><worldbody><body name="ball" pos="{pos}"><freejoint/>
  <geom name="ball" size=".05" mass=".3"/></body></worldbody></mujoco>"""

POSES = torch.tensor(
    [
        [0.5, -0.3, 0.2, 0.98, 0.1, -0.05, 0.15],
        [-4.0, 7.0, 1.0, 0.3, 0.02, 0.04, -0.95],
        [30.0, 2.0, -0.4, 0.7, -0.05, 0.1, 0.7],
    ],
    dtype=torch.float64,
)
POSES[:, 3:] /= POSES[:, 3:].norm(dim=1, keepdim=True)


def scene(pose="", ball="0 0 5", **arm):
    return SceneCfg(
        entities={
            "ball": EntityCfg(model=BALL.format(pos=ball)),
            "arm": EntityCfg(model=ARM.format(pose=pose), **arm),
        },
        cameras={"eye": CameraCfg(camera="arm/eye", width=32, height=24)},
        ground=False,
        timestep=None,
    )


def above(pose):
    """A place a little above the table top."""
    turn = np.zeros(3)
    mujoco.mju_rotVecQuat(turn, np.array([-0.1, 0.1, 0.168]), pose[3:].numpy())
    return pose[:3].numpy() + turn


def plain(pose):
    """The scene compiled with the table at a place, and a ball on it."""
    text = 'pos="{} {} {}" quat="{} {} {} {}"'.format(*pose.tolist())
    ball = "{} {} {}".format(*above(pose))
    model = Simulation(scene(text, ball)).model
    return model, mujoco.MjData(model)


def placed(engine, freshness="auto"):
    sim = Simulation(scene(), 3, engine=engine, freshness=freshness)
    sim.scene["arm"].write_root_link_pose_to_sim(POSES[[2, 0]], [2, 0])
    state = torch.cat([POSES[[1]], torch.zeros(1, 6).double()], dim=1)
    sim.scene["arm"].write_root_state_to_sim(state, [1])
    balls = torch.tensor(np.array([above(pose) for pose in POSES]))
    identity = torch.tensor([[1.0, 0, 0, 0]]).double().expand(3, 4)
    sim.scene["ball"].write_root_link_pose_to_sim(torch.cat([balls, identity], 1))
    return sim


def close(engine, got, want, scale=1.0):
    tolerance = scale * (1e-12 if engine == "native" else 3e-4)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


def test_motion_contacts_and_rays_are_those_of_a_base_compiled_there(engine):
    sim = placed(engine)
    for world, pose in enumerate(POSES):
        model, data = plain(pose)
        mujoco.mj_forward(model, data)
        for field in ("xpos", "xquat", "geom_xpos", "site_xpos", "sensordata"):
            close(engine, getattr(sim.data, field)[world], getattr(data, field))
    before = sim.data.qpos.clone()
    sim.step(60)
    for world, pose in enumerate(POSES):
        model, data = plain(pose)
        mujoco.mj_step(model, data, 60)
        assert data.ncon, "the ball lies on the table"
        scale = 1e4 if engine == "native" else 30.0  # contacts amplify rounding
        close(engine, sim.data.qpos[world], data.qpos, scale)
        fallen = float(before[world, 2]) - 0.5 * 9.81 * (60 * 0.004) ** 2
        assert float(sim.data.qpos[world, 2]) > fallen + 0.1, "the table holds it"


def test_cameras_go_with_it(engine):
    sim = placed(engine)
    eye = sim.cameras["eye"]
    for world, pose in enumerate(POSES):
        fixed = Simulation(
            scene('pos="{} {} {}" quat="{} {} {} {}"'.format(*pose.tolist()),
                  "{} {} {}".format(*above(pose)))
        )  # fmt: skip
        other = fixed.cameras["eye"]
        close(engine, eye.pos[world], other.pos[0], 10)
        same = eye.segmentation[world] == other.segmentation[0]
        assert same.double().mean() > 0.97
        assert len(set(eye.segmentation[world].flatten().tolist())) >= 4


def test_a_reset_brings_it_back_and_the_others_stay(engine):
    sim = placed(engine)
    start = Simulation(scene(), 1, engine=engine).scene["arm"].data.root_link_pose_w
    sim.reset([1])
    pose = sim.scene["arm"].data.root_link_pose_w
    assert torch.equal(pose[1], start[0])
    close(engine, pose[[0, 2]], POSES[[0, 2]])
    sim.scene["arm"].data.default_root_state[2, :3] += 0.5
    sim.reset([2])
    want = start[0].clone()
    want[:3] += 0.5
    close(engine, sim.scene["arm"].data.root_link_pose_w[2], want)


def test_the_com_can_be_placed_and_links_by_name(engine):
    sim = Simulation(scene(), 2, engine=engine)
    arm = sim.scene["arm"]
    arm.write_root_com_pose_to_sim(POSES[:2])
    close(engine, arm.data.root_com_pose_w.abs(), POSES[:2].abs())
    arm.write_body_link_pose_to_sim(POSES[1:, None], [0])
    close(engine, arm.data.root_link_pose_w, POSES[1:])
    assert can_place(arm, 0)
    assert not can_place(arm, 1)
    with raises(InvalidInputError, name="write_body_link_pose_to_sim"):
        arm.write_body_link_pose_to_sim(POSES[1:, None], [1])


def test_states_place_it_and_carry_it_over(engine):
    sim = placed(engine)
    other = Simulation(scene(), 3, engine=engine)
    for mode in ("dict", "tensor"):
        other.reset()
        other.set_states(sim.get_states(mode=mode, cameras=False))
        close(engine, other.scene["arm"].data.root_link_pose_w, POSES)
    other.set_states({"robots": {"arm": {"pos": [1.0, 2.0, 3.0]}}}, [1])
    close(engine, other.scene["arm"].data.root_link_pos_w[1], [1.0, 2.0, 3.0])
    close(engine, other.scene["arm"].data.root_link_quat_w, POSES[:, 3:])
    close(engine, other.scene["arm"].data.root_link_pos_w[[0, 2]], POSES[[0, 2], :3])


def test_a_position_alone_keeps_the_orientation(engine):
    start = InitialStateCfg(pos=(0.1, 0.2, 0.3), rot=(0.8, 0.2, 0.4, 0.4))
    sim = Simulation(scene(init_state=start), 3, engine=engine)
    arm = sim.scene["arm"]
    before = arm.data.root_link_pose_w.clone()
    sim.set_states({"robots": {"arm": {"pos": [1.0, 2.0, 3.0]}}}, [2, 0])
    want = before.clone()
    want[[0, 2], :3] = torch.tensor([1.0, 2.0, 3.0]).to(want)
    close(engine, arm.data.root_link_pose_w, want)
    sim.reset([2])
    want[2] = before[2]
    close(engine, arm.data.root_link_pose_w, want)


def test_one_world_alone():
    sim = Simulation(scene())
    sim.scene["arm"].write_root_link_pose_to_sim(POSES[1:2])
    sim.reset()
    assert sim.scene["arm"].data.root_link_pos_w.tolist() == [[0.0, 0.0, 0.0]]


def test_snapshots_have_it(engine):
    sim = placed(engine)
    kept = sim.snapshot()
    other = Simulation(scene(), 3, engine=engine)
    other.restore(kept)
    sim.step(20)
    other.step(20)
    assert torch.equal(sim.state, other.state)
    assert torch.equal(sim.data.xpos, other.data.xpos)


def test_where_it_is_already_nothing_is_expanded(engine):
    start = InitialStateCfg(pos=(0.1, 0.2, 0.3), rot=(0.8, 0.2, 0.4, 0.4))
    sim = Simulation(scene(init_state=start), 2, engine=engine)
    arm = sim.scene["arm"]
    arm.write_root_link_pose_to_sim(arm.data.root_link_pose_w.clone())
    sim.set_states(sim.get_states(cameras=False))
    sim.reset()
    assert not any(name.startswith("model/") for name in ledger_of(sim).slots)


def test_strict_reads_say_what_was_written():
    sim = placed("native", "strict")
    sim.forward()
    close("native", sim.scene["arm"].data.root_link_pose_w, POSES)
