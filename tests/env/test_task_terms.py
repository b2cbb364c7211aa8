"""What the tasks of the arm, the humanoid and the rough ground need, and that they can
be done.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.env.conftest import ROBOT
from tests.raised import raises

from simstate import EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    CurriculumTermCfg,
    Env,
    EventTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    VelocityCommandCfg,
    curricula,
    events,
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
    with raises(InvalidInputError, name="site_names"):
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
    stages = (
        (3, (0.5, 0.6)),
        (5, {"lin_vel_x": (-1.0, 2.0), "lin_vel_y": (-0.3, 0.4)}),
        (6, {"ang_vel_z": (0.0, 0.7)}),
    )
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
        found += [log["Curriculum/stages/lin_vel_x"]] if log else []
    assert found == pytest.approx([0.2, 0.6, 2.0])  # after 2, 4 and 6 steps
    assert log["Curriculum/stages/lin_vel_y"] == pytest.approx(0.4)
    drawn = env.commands["velocity"]
    assert drawn.range("lin_vel_x") == (-1.0, 2.0)
    assert drawn.range("lin_vel_y") == (-0.3, 0.4)
    assert drawn.range("ang_vel_z") == (0.0, 0.7)


def test_unknown_velocities_of_a_stage_are_named(make_env):
    command = VelocityCommandCfg(resampling_time_s=(9.0, 9.0), lin_vel_x=(0.0, 1.0))
    env = make_env(2, commands={"velocity": command})
    with raises(UnknownNameError, name="lin_vel_z"):
        curricula.velocity_stages(
            env, torch.tensor([0]), "velocity", [(9, {"lin_vel_z": (0.0, 1.0)})]
        )


def test_impulses_last_and_pause_by_world(make_env):
    """The wrench on the shin over time: zero, a push, zero, another one."""
    shin = SceneEntityCfg("robot", body_names="shin")
    push = EventTermCfg(
        events.Impulses, mode="step",
        params={
            "duration_s": (0.04, 0.08), "pause_s": (0.02, 0.1),
            "force_range": {"x": (3.0, 9.0), "z": (-2.0, -1.0)}, "asset_cfg": shin,
        },
    )  # fmt: skip
    env = make_env(3, events={"push": push}, episode_length_s=9.0)
    body = env.sim.model.body("robot/shin").id
    seen = []
    for _ in range(40):
        env.step(torch.zeros(3, env.action_dim))
        seen.append(env.sim.data.xfrc_applied[:, body].clone())
    forces = torch.stack(seen)
    assert not forces[..., [1, 3, 4, 5]].any()
    for world in range(3):
        acts = forces[:, world, 0] > 0
        assert bool(((forces[acts, world, 0] - 6).abs() <= 3).all())
        assert bool((forces[acts, world, 2] < 0).all())
        lengths = [len(run) for run in "".join("x" if a else " " for a in acts).split()]
        dt = env.step_dt
        assert len(lengths) > 3
        assert max(lengths[:-1]) * dt <= 0.08 + dt
        assert min(lengths[:-1]) * dt >= 0.04 - dt
    assert not torch.equal(forces[:, 0], forces[:, 1])
    params = {**push.params, "pause_s": (0.0, 1.0)}
    wrong = EventTermCfg(events.Impulses, mode="step", params=params)
    with raises(InvalidInputError, name="pause_s"):
        make_env(3, events={"push": wrong})


COLOURED = """
<mujoco><asset><material name="red" rgba="0.5 0.2 0.1 1"/></asset>
<worldbody><body name="box"><freejoint/>
  <geom name="painted" size="0.1" material="red"/>
  <geom name="plain" size="0.1" pos="0.3 0.1 0"/>
</body></worldbody></mujoco>
"""


def test_materials_and_the_scenes_own_elements_are_drawn(make_env):
    scene = SceneCfg(
        entities={
            "robot": EntityCfg(model=ROBOT), "box": EntityCfg(model=COLOURED),
        },
        ground=True, timestep=0.005,
    )  # fmt: skip
    env = make_env(3, scene=scene)
    ids, model = torch.tensor([2, 0]), env.sim.model
    box = SceneEntityCfg("box")
    draw = events.randomize_parameter
    draw(env, ids, "mat_rgba", (0.5, 0.9), columns=[0, 2], asset_cfg=box)
    material = model.mat("box/red").id
    rgba = env.sim.expand("mat_rgba")[:, material]
    np.testing.assert_allclose(rgba[1], [0.5, 0.2, 0.1, 1])
    assert bool((rgba[ids, 0] <= 0.45 + 1e-6).all())
    assert bool((rgba[ids, 1] == 0.2).all() or torch.allclose(rgba[ids, 1], rgba[1, 1]))
    with raises(InvalidInputError, name="mat_rgba"):
        draw(env, ids, "geom_rgba", (0.5, 0.9), names="painted", asset_cfg=box)
    draw(env, ids, "geom_rgba", (0.5, 0.9), names="plain", asset_cfg=box)

    draw(env, ids, "geom_friction", (2.0, 3.0), names="ground", asset_cfg=None)
    ground = model.geom("ground").id
    friction = env.sim.expand("geom_friction")[:, ground, 0]
    assert float(friction[1]) == model.geom_friction[ground, 0]
    assert bool((friction[ids] >= 2 * model.geom_friction[ground, 0]).all())
    others = [k for k in range(model.ngeom) if k != ground]
    same = env.sim.expand("geom_friction")[:, others]
    np.testing.assert_allclose(same, np.tile(model.geom_friction[others], (3, 1, 1)))
    with raises(InvalidInputError, name="geom_friction"):
        draw(env, ids, "geom_friction", (1.0, 2.0), names="plain", asset_cfg=None)
