"""Reward and termination terms against numbers computed without the library."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from torch import Tensor

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    Env,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    VelocityCommandCfg,
    curricula,
    rewards,
    terminations,
)
from simstate.env.env_cfg import CurriculumTermCfg

FOOT = SceneEntityCfg("robot", sensor_names="foot")
KNEE = SceneEntityCfg("robot", joint_names="knee")
COMMAND = {
    "velocity": VelocityCommandCfg(
        resampling_time_s=(9.0, 9.0),
        lin_vel_x=(0.2, 1.0),
        lin_vel_y=(-0.5, 0.5),
        ang_vel_z=(-1.0, 1.0),
    )
}


def value(env: Env, function: object, **params: object) -> np.ndarray:
    """What a reward or termination function returns, its entities resolved."""
    resolved = {
        name: given.resolve(env.scene) if isinstance(given, SceneEntityCfg) else given
        for name, given in params.items()
    }
    if "asset_cfg" not in resolved and "asset_cfg" in function.__annotations__:
        resolved["asset_cfg"] = SceneEntityCfg("robot").resolve(env.scene)
    return function(env, **resolved).double().numpy()


class World:
    """What plain MuJoCo says of one world."""

    def __init__(self, env: Env, world: int) -> None:
        model, data = env.sim.model, mujoco.MjData(env.sim.model)
        data.qpos[:] = env.sim.data.qpos[world].double().numpy()
        data.qvel[:] = env.sim.data.qvel[world].double().numpy()
        mujoco.mj_forward(model, data)
        velocity = np.zeros(6)
        body = mujoco.mjtObj.mjOBJ_XBODY.value
        mujoco.mj_objectVelocity(model, data, body, 1, velocity, 1)
        self.ang_vel, self.lin_vel = velocity[:3], velocity[3:]
        self.up = data.xmat[1].reshape(3, 3)[2]
        self.height = data.xpos[1][2]
        self.joint_pos, self.joint_vel = data.qpos[7:], data.qvel[6:]
        self.command = env.commands["velocity"].command[world].double().numpy()


EXPECTED = {
    "track_lin_vel": lambda w: np.exp(
        -np.sum((w.command[:2] - w.lin_vel[:2]) ** 2) / 0.25
    ),
    "track_ang_vel": lambda w: np.exp(-((w.command[2] - w.ang_vel[2]) ** 2) / 0.25),
    "command_error": lambda w: np.linalg.norm(w.command[:2] - w.lin_vel[:2]),
    "command_tracked": lambda w: np.exp(
        -np.sum((w.command[:2] - w.lin_vel[:2]) ** 2) / 0.04
    ),
    "lin_vel_z_l2": lambda w: w.lin_vel[2] ** 2,
    "ang_vel_xy_l2": lambda w: w.ang_vel[0] ** 2 + w.ang_vel[1] ** 2,
    "flat_orientation_l2": lambda w: w.up[0] ** 2 + w.up[1] ** 2,
    "base_height_l2": lambda w: (w.height - 0.5) ** 2,
    "joint_pos_deviation_l2": lambda w: (
        w.joint_pos[0] ** 2 + (w.joint_pos[1] - 0.3) ** 2
    ),
    "joint_vel_l2": lambda w: np.sum(w.joint_vel**2),
    "joint_cos": lambda w: np.cos(w.joint_pos).mean(),
    "joint_pos_limits": lambda w: (
        max(abs(w.joint_pos[0]) - 1.0, 0.0)
        + max(w.joint_pos[1] - 1.5, 0.0)
        + max(-0.2 - w.joint_pos[1], 0.0)
    ),
}
PARAMS = {
    "track_lin_vel": {"command_name": "velocity", "std": 0.5},
    "track_ang_vel": {"command_name": "velocity", "std": 0.5},
    "command_error": {"command_name": "velocity"},
    "command_tracked": {"command_name": "velocity", "std": 0.2},
    "base_height_l2": {"height": 0.5},
}


def test_rewards_of_the_state_are_what_mujoco_says(make_env, given, engine):
    env = make_env(4, engine=engine, commands=COMMAND)
    for action in given(env, 15, scale=4.0):
        env.step(action)
    worlds = [World(env, k) for k in range(4)]
    for name, expected in EXPECTED.items():
        got = value(env, getattr(rewards, name), **PARAMS.get(name, {}))
        wanted = [expected(world) for world in worlds]
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5, err_msg=name)
    knee = value(env, rewards.joint_vel_l2, asset_cfg=KNEE)
    np.testing.assert_allclose(knee, [w.joint_vel[1] ** 2 for w in worlds], rtol=2e-4)


def test_rewards_of_forces_are_those_of_the_last_evaluation(make_env, given):
    env = make_env(3)
    actions = given(env, 6)
    for action in actions[:-1]:
        env.step(action)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    model, before = env.sim.model, env.sim.state.numpy().copy()
    env.step(actions[-1])
    torques, accelerations = [], []
    for row, ctrl in zip(before, env.sim.data.ctrl.numpy(), strict=True):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, row, spec)
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data, 4)  # data.qacc: at the state before the last one
        torques.append(np.sum(data.qfrc_actuator[6:] ** 2))
        accelerations.append(np.sum(data.qacc[6:] ** 2))
    np.testing.assert_allclose(value(env, rewards.joint_torques_l2), torques)
    np.testing.assert_allclose(value(env, rewards.joint_acc_l2), accelerations)


def test_rewards_of_the_action(make_env, given):
    env = make_env(3)
    first, second = given(env, 2)
    env.step(first)
    np.testing.assert_allclose(
        value(env, rewards.action_rate_l2), first.square().sum(1), rtol=1e-6
    )
    env.step(second)
    change = (second - first).square().sum(1)
    np.testing.assert_allclose(value(env, rewards.action_rate_l2), change, rtol=1e-6)
    size = second.square().sum(1)
    np.testing.assert_allclose(value(env, rewards.action_l2), size, rtol=1e-6)


def test_the_gait_is_rewarded_where_feet_stand_and_swing_in_time(make_env):
    still = VelocityCommandCfg(
        resampling_time_s=(9.0, 9.0), lin_vel_x=(0.5, 0.5), standing_share=0.5
    )
    env = make_env(40, commands={"velocity": still}, events={})
    for _ in range(30):  # falls on its foot, and lies there
        env.step(torch.zeros(40, 2))
    touching = env.sim.data.sensordata[:, 0] > 1.0
    assert bool(touching.all())
    standing = env.commands["velocity"].is_standing
    assert 5 < int(standing.sum()) < 35
    params = {
        "asset_cfg": FOOT,
        "period_s": 0.2,
        "stance": 0.6,
        "command_name": "velocity",
    }
    for step in range(10):
        env.episode_length_buf[:] = step
        for offset in (0.0, 0.5):
            got = value(env, rewards.gait, offsets=(offset,), **params)
            stands = (step / 10 + offset) % 1.0 < 0.6
            expected = np.where(standing | stands, 1.0, 0.0)
            np.testing.assert_array_equal(got, expected)


def test_the_reward_is_the_weighted_sum_times_the_time_step(make_env, given):
    terms = {
        "a": RewardTermCfg(lambda env: env.all_ids + 1.0, weight=2.0),
        "b": RewardTermCfg(
            lambda env, power: (env.all_ids + 1.0) ** power,
            params={"power": 2},
            weight=-0.5,
        ),
        "off": RewardTermCfg(lambda env: torch.ones(env.num_envs), weight=0.0),
    }
    env = make_env(3, rewards=terms, episode_length_s=0.1)
    worlds = torch.tensor([1.0, 2.0, 3.0])
    per_step = (2.0 * worlds - 0.5 * worlds**2) * 0.02
    for k, action in enumerate(given(env, 5), start=1):
        _, reward, _, _, extras = env.step(action)
        assert reward.dtype == torch.float32
        torch.testing.assert_close(reward, per_step)
        if k < 5:
            sums = env.rewards.episode_sum("a")
            torch.testing.assert_close(sums, worlds * 2.0 * 0.02 * k)
    # Five steps of 0.02 s are an episode of 0.1 s: what is logged is the mean rate.
    log = extras["log"]
    assert log["Episode_Reward/a"] == pytest.approx(4.0, rel=1e-5)
    assert log["Episode_Reward/b"] == pytest.approx(-0.5 * 14 / 3, rel=1e-5)
    assert log["Episode_Reward/off"] == 0.0
    assert not env.rewards.episode_sum("a").any()
    with raises(UnknownNameError, name="c"):
        env.rewards.set_weight("c", 1.0)


def test_alive_and_terminated_are_each_others_opposite(make_env, given):
    dies = TerminationTermCfg(lambda env: env.all_ids == env.episode_length_buf - 1)
    env = make_env(
        3,
        terminations={"dies": dies},
        rewards={
            "alive": RewardTermCfg(rewards.is_alive, weight=1.0),
            "dead": RewardTermCfg(rewards.is_terminated, weight=-10.0),
        },
    )
    _, reward, terminated, _, _ = env.step(given(env, 1)[0])
    assert terminated.tolist() == [True, False, False]
    torch.testing.assert_close(reward, torch.tensor([-10.0, 1.0, 1.0]) * 0.02)


def test_terminations_of_the_state(make_env, given):
    env = make_env(5, auto_reset=False)
    for action in given(env, 25, scale=6.0):
        env.step(action)
    robot = env.scene["robot"]
    turned = torch.tensor([0.0, 0.4, 0.6, 1.5, 3.1], dtype=torch.float64)
    pose = robot.data.root_link_pose_w.clone()
    zero = torch.zeros(5, dtype=torch.float64)
    pose[:, 3:] = torch.stack(
        [(turned / 2).cos(), (turned / 2).sin(), zero, zero], dim=1
    )
    pose[:, 2] = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
    robot.write_root_link_pose_to_sim(pose)
    tilted = value(env, terminations.bad_orientation, limit_angle=0.5)
    np.testing.assert_array_equal(tilted, [0, 0, 1, 1, 1])
    low = value(env, terminations.base_height_below, height=0.35)
    np.testing.assert_array_equal(low, [1, 1, 1, 0, 0])
    knees = torch.tensor([[0.25], [0.5], [0.9], [-0.1], [0.75]])
    robot.write_joint_position_to_sim(knees.double(), [1])
    out = value(
        env, terminations.joint_pos_out_of_range, low=0.25, high=0.75, asset_cfg=KNEE
    )
    np.testing.assert_array_equal(out, [0, 0, 1, 1, 0])


def test_a_touch_can_end_an_episode(make_env):
    ends = TerminationTermCfg(
        terminations.illegal_contact, params={"asset_cfg": FOOT, "threshold": 2.0}
    )
    env = make_env(2, terminations={"foot": ends}, auto_reset=False)
    ended: list[bool] = []
    felt: list[float] = []
    for _ in range(40):
        _, _, terminated, _, _ = env.step(torch.zeros(2, 2))
        ended.append(bool(terminated[0]))
        felt.append(float(env.sim.data.sensordata[0, 0]))
    assert ended == [force > 2.0 for force in felt]
    assert True in ended
    assert False in ended


def test_the_time_out_comes_after_the_episodes_length(make_env, given):
    env = make_env(2, episode_length_s=0.06)
    assert env.max_episode_length == 3
    out = [env.step(action)[3].tolist() for action in given(env, 6)]
    assert out == [[False] * 2, [False] * 2, [True] * 2] * 2


@pytest.mark.parametrize(
    ("limit", "after"),
    [(1.6, [1.25, 1.5, 1.6, 1.6, 1.6, 1.6]), (1.9, [1.25, 1.5, *4 * [1.75]])],
    ids=["to the limit", "until they are not tracked"],
)
def test_velocities_grow_once_those_asked_for_are_tracked(
    make_env, given, limit, after
):
    def earns(env: Env) -> Tensor:
        return torch.full((env.num_envs,), 0.9 if env.common_step_counter < 7 else 0.5)

    term = CurriculumTermCfg(
        curricula.forward_velocity,
        params={
            "command_name": "velocity",
            "reward_name": "track",
            "share": 0.8,
            "step": 0.25,
            "limit": limit,
        },
    )
    env = make_env(
        3,
        commands=COMMAND,
        rewards={"track": RewardTermCfg(earns, weight=2.0)},
        curricula={"velocity": term},
        episode_length_s=0.04,
    )
    reached = []
    for action in given(env, 12):
        log = env.step(action)[4]["log"]
        if log:
            reached.append(log["Curriculum/velocity"])
    assert reached == pytest.approx(after)
    assert env.commands["velocity"].range("lin_vel_x") == (0.2, after[-1])
    with raises(UnknownNameError, name="velocty"):
        curricula.forward_velocity(env, env.all_ids, "velocty", "track")


def test_a_weight_that_is_not_finite_is_refused(make_env):
    with raises(InvalidInputError, name="weight"):
        make_env(rewards={"a": RewardTermCfg(rewards.is_alive, weight=float("nan"))})


def test_a_reward_of_any_kind_of_number(make_env):
    """Half precision, whole numbers and truth values are taken as they are."""
    values = torch.tensor([0.5, -2.0, 3.0])
    kinds = (torch.bfloat16, torch.float16, torch.int32, torch.bool, torch.float64)
    terms = {
        str(kind): RewardTermCfg(lambda env, kind=kind: values.to(kind), weight=1.0)
        for kind in kinds
    }
    env = make_env(num_envs=3, rewards=terms)
    reward = env.step(torch.zeros(3, env.action_dim))[1]
    want = sum(values.to(kind).double() for kind in kinds) * env.step_dt
    torch.testing.assert_close(reward.double(), want, rtol=1e-6, atol=1e-7)
