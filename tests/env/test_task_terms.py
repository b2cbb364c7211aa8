"""What the tasks of the arm, the humanoid and the rough ground need, and that they can
be done.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from simstate.base.errors import InvalidInputError
from simstate.env import (
    CurriculumTermCfg,
    Env,
    RewardTermCfg,
    SceneEntityCfg,
    VelocityCommandCfg,
    curricula,
    observations,
    rewards,
    tasks,
)
from simstate.env.tasks import cube_lift


@pytest.fixture(scope="module")
def lift():
    return Env(tasks.make_cfg("Cube-Lift"), num_envs=3, seed=3)


def plain(env, world):
    """What plain MuJoCo computes of one world."""
    model, data = env.sim.model, mujoco.MjData(env.sim.model)
    data.qpos[:] = env.sim.data.qpos[world].double().numpy()
    mujoco.mj_kinematics(model, data)
    return data


def test_terms_of_two_sites_are_what_mujoco_says(lift, given):
    lift.reset(seed=5)
    for action in given(lift, 30):
        lift.step(action)
    chosen = {"asset_cfg": cube_lift.HAND, "target_cfg": cube_lift.CUBE}
    offset = observations.site_offset(lift, **chosen)
    close = rewards.sites_close(lift, std=0.3, **chosen)
    cube = SceneEntityCfg("cube")
    share = rewards.base_height_share(lift, 0.02, 0.05, cube)
    for world in range(3):
        data = plain(lift, world)
        way = data.site("cube/center").xpos - data.site("robot/tcp").xpos
        assert np.linalg.norm(way) > 0.05
        np.testing.assert_allclose(offset[world], way, atol=1e-12)
        expected = np.exp(-np.dot(way, way) / 0.09)
        assert float(close[world]) == pytest.approx(expected)
        height = data.body("cube/cube").xpos[2]
        expected = min(max((height - 0.02) / 0.03, 0.0), 1.0)
        assert 0.0 < expected < 1.0
        assert float(share[world]) == pytest.approx(expected)
    with pytest.raises(InvalidInputError, match="give site_names one name"):
        observations.site_offset(lift, SceneEntityCfg("robot", site_names=[]), cube)


def test_the_cube_can_be_brought_to_its_place(lift):
    """By hand: over the cube, down, close, up; with what the policy has."""
    lift.reset(seed=7)
    goal = lift.commands["goal"]
    assert float(goal.error().min()) > 0.1
    for step in range(200):
        action = torch.zeros(3, lift.action_dim)
        to_cube = observations.site_offset(lift, cube_lift.HAND, cube_lift.CUBE)
        above = torch.tensor([0.0, 0.0, 0.08])
        way = to_cube + above if step < 40 else to_cube if step < 80 else 0 * to_cube
        way = goal.offset if step >= 100 else way
        action[:, :3] = 10.0 * way
        action[:, 6] = 1.0 if step < 80 else -1.0
        _, reward, terminated, truncated, _ = lift.step(action.clamp(-1.0, 1.0))
    assert not bool((terminated | truncated).any())
    assert float(goal.error().max()) < 0.03
    per_second = reward / lift.step_dt
    assert float(per_second.min()) > 14.0  # of 16, which everything in its place gives


def test_a_humanoid_that_does_nothing_stands():
    cfg = tasks.make_cfg("Humanoid-Velocity")
    cfg.events.pop("push")
    env = Env(cfg, num_envs=4, seed=2)
    for _ in range(100):
        _, _, terminated, _, _ = env.step(torch.zeros(4, env.action_dim))
        assert not bool(terminated.any())
    height = env.scene["robot"].data.root_link_pos_w[:, 2]
    assert float((height - 0.87).abs().max()) < 0.03


def test_a_gait_counts_the_feet_of_a_contact_sensor():
    cfg = tasks.make_cfg("Humanoid-Velocity")
    cfg.events.pop("push")
    cfg.commands["velocity"].standing_share = 0.5
    env = Env(cfg, num_envs=6, seed=4)
    zero = torch.zeros(6, env.action_dim)
    for _ in range(5):
        env.step(zero)
    found = env.sim.contacts["feet"].found
    assert bool(found.all())  # they stand
    at_rest = (env.commands["velocity"].command == 0.0).all(-1)
    assert 0 < int(at_rest.sum()) < 6
    share = rewards.contact_gait(
        env, "feet", offsets=(0.0, 0.5), period_s=0.8, stance=0.55,
        command_name="velocity",
    )  # fmt: skip
    clock = (
        5 * 0.02 / 0.8
    )  # 0.125: the first is to stand, the second, at 0.625, to swing
    assert clock == 0.125
    assert share.tolist() == [1.0 if rest else 0.5 for rest in at_rest]


def test_on_rough_ground_heights_are_seen_and_levels_follow():
    cfg = tasks.make_cfg("Quadruped-Velocity-Rough")
    flat = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=1)
    env = Env(cfg, num_envs=8, seed=1)
    scan = [name for name in env.observation_names["policy"] if "scan" in name]
    assert len(scan) == 7 * 5
    assert env.observation_dims["policy"] == flat.observation_dims["policy"] + 35
    env.step(torch.zeros(8, env.action_dim))
    robot = env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    pose[1:3, 2] -= 0.235  # the trunk on the ground
    robot.write_root_link_pose_to_sim(pose)
    _, _, terminated, _, extras = env.step(torch.zeros(8, env.action_dim))
    assert terminated.nonzero().flatten().tolist() == [1, 2]
    assert extras["log"]["Curriculum/levels"] == 0.25  # 6 and 7 are on level 1
    assert extras["log"]["Episode_Termination/low"] == 2


def test_feet_that_land_are_measured_by_how_high_they_were(given):
    cfg = tasks.make_cfg("Quadruped-Velocity")
    feet = SceneEntityCfg("robot", site_names=".*_foot")
    params = {"sensor_name": "feet", "asset_cfg": feet, "height": 0.04}
    cfg.rewards = {
        "swing": RewardTermCfg(rewards.feet_swing_height, weight=1.0, params=params),
        "land": RewardTermCfg(
            rewards.landing_force, weight=1.0, params={"sensor_name": "feet"}
        ),
    }
    cfg.terminations = {"time_out": cfg.terminations["time_out"]}
    env = Env(cfg, num_envs=4, seed=2)
    sites, sensor = (
        env.scene["robot"].find_sites(".*_foot")[0],
        env.sim.contacts["feet"],
    )
    highest, landings = np.zeros((4, 4)), 0
    for action in given(env, 60):
        before = [env.rewards.episode_sum(name).clone() for name in ("swing", "land")]
        env.step(action)
        swing, land = (
            (env.rewards.episode_sum(name) - was) / env.step_dt
            for name, was in zip(("swing", "land"), before, strict=True)
        )
        off = ~sensor.found.numpy()
        height = env.scene["robot"].data.site_pos_w[:, sites, 2].numpy()
        highest = np.where(off, np.maximum(highest, height), highest)
        stood = sensor.contact_time.numpy()
        new = (stood > 0) & (stood < env.step_dt + 0.5 * env.sim.timestep)
        expected = ((highest / 0.04 - 1.0) ** 2 * new).sum(1)
        np.testing.assert_allclose(swing, expected, rtol=1e-3, atol=1e-4)
        force = np.linalg.norm(sensor.force_w.numpy(), axis=-1)
        np.testing.assert_allclose(land, (force * new).sum(1), rtol=1e-3, atol=1e-2)
        highest[new] = 0.0
        landings += int(new.sum())
    assert landings > 20


def test_upright_is_one_when_nothing_leans():
    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=3)
    pose = env.scene["robot"].data.root_link_pose_w.clone()
    angles = torch.tensor([0.0, 0.4, 1.2])
    pose[:, 3:] = 0.0
    pose[:, 3], pose[:, 4] = (0.5 * angles).cos(), (0.5 * angles).sin()
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    expected = torch.exp(-angles.sin().square() / 0.25)
    torch.testing.assert_close(rewards.upright(env, 0.5).float(), expected)


def test_some_worlds_go_straight_ahead(make_env):
    command = VelocityCommandCfg(
        resampling_time_s=(9.0, 9.0), lin_vel_x=(-1.0, -0.2), lin_vel_y=(0.3, 0.5),
        ang_vel_z=(-0.7, 0.7), heading=(-3.0, 3.0), forward_share=0.4,
    )  # fmt: skip
    env = make_env(200, seed=3, commands={"velocity": command})
    asked = env.commands["velocity"].command
    ahead = asked[:, 0] > 0
    assert 60 <= int(ahead.sum()) <= 100
    assert bool((asked[ahead, 0] >= 0.2).all())
    assert not bool(asked[ahead, 1:].any())
    assert bool((asked[~ahead, 1] >= 0.3).all())
    env.step(torch.zeros(200, env.action_dim))  # nor do they follow a heading later
    assert not bool(env.commands["velocity"].command[ahead, 1:].any())


def test_velocities_come_in_stages(make_env):
    command = VelocityCommandCfg(resampling_time_s=(9.0, 9.0), lin_vel_x=(0.1, 0.2))
    stages = ((3, (0.5, 0.6)), (5, (-1.0, 2.0)))
    term = CurriculumTermCfg(
        curricula.velocity_stages,
        params={"command_name": "velocity", "stages": stages},
    )
    env = make_env(
        2, commands={"velocity": command}, curricula={"stages": term},
        episode_length_s=0.04,
    )  # fmt: skip
    found = []
    for _ in range(6):
        log = env.step(torch.zeros(2, env.action_dim))[4]["log"]
        found += [log["Curriculum/stages"]] if log else []
    assert found == pytest.approx([0.2, 0.6, 2.0])  # after 2, 4 and 6 steps
    assert env.commands["velocity"].lin_vel_x == (-1.0, 2.0)
