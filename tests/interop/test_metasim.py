"""MetaSim's environment calls: lists of states in, lists of states out."""

import pytest
import torch
from tests.raised import raises
from tests.simulators.looped import INFO, NAME

from simstate import (
    EntityCfg,
    InitialStateCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    SimStateError,
    Simulation,
)
from simstate.env import Env, tasks
from simstate.interop.metasim import MetaSimEnv, MetaSimTaskEnv
from simstate.simulators import make, register

register(INFO)


@pytest.fixture
def sim():
    arm = EntityCfg(model="arm", init_state=InitialStateCfg(keyframe="home"))
    cube = EntityCfg(model="cube", init_state=InitialStateCfg(pos=(0.5, 0.0, 0.025)))
    scene = SceneCfg(entities={"franka": arm, "cube": cube}, timestep=None)
    return Simulation(scene, num_envs=3)


def test_reset_takes_initial_states(sim):
    env = MetaSimEnv(sim)
    wanted = [
        {"objects": {"cube": {"pos": torch.tensor([0.1 * k, 0.2, 0.3])}}}
        for k in range(3)
    ]
    states, extra = env.reset(wanted)
    assert len(states) == 3
    for k, state in enumerate(states):
        assert torch.allclose(
            state["objects"]["cube"]["pos"],
            wanted[k]["objects"]["cube"]["pos"].double(),
        )
        assert set(state["robots"]) == {"franka"}
    assert extra["time"].tolist() == [0.0, 0.0, 0.0]


def test_step_moves_each_world_to_its_own_targets(sim):
    env = MetaSimEnv(sim, decimation=5)
    start, _ = env.reset()
    aims = [-0.3, 0.0, 0.3]
    actions = [{"franka": {"dof_pos_target": {"joint1": aim}}} for aim in aims]
    for _ in range(200):
        states, rewards, success, time_out, extra = env.step(actions)
    found = [state["robots"]["franka"]["dof_pos"]["joint1"] for state in states]
    assert found == pytest.approx(aims, abs=0.02)
    others = [state["robots"]["franka"]["dof_pos_target"]["joint2"] for state in states]
    assert others == [start[0]["robots"]["franka"]["dof_pos_target"]["joint2"]] * 3
    assert rewards == [0.0] * 3
    assert success == time_out == [False] * 3
    assert extra["time"][0] == pytest.approx(200 * 5 * sim.timestep)


def test_reward_success_and_time_out(sim):
    def height(sim):
        return sim.scene["cube"].data.root_link_pos_w[:, 2]

    env = MetaSimEnv(
        sim, reward=height, success=lambda sim: height(sim) > 0.5, max_episode_steps=2
    )
    env.reset([{"objects": {"cube": {"pos": [0.0, 0.0, z]}}} for z in (0.1, 1.0, 2.0)])
    idle = [{}] * 3
    _, rewards, success, time_out, _ = env.step(idle)
    assert rewards == pytest.approx([0.1, 1.0, 2.0], abs=0.01)
    assert success == [False, True, True]
    assert time_out == [False] * 3
    assert env.step(idle)[3] == [True] * 3
    env.reset()
    assert env.step(idle)[3] == [False] * 3


@pytest.mark.parametrize("name", ["decimation", "max_episode_steps"])
def test_counts_are_positive_integers(sim, name):
    for wrong in (0, -3, 1.5):
        with raises(InvalidInputError, name=name):
            MetaSimEnv(sim, **{name: wrong})
    env = MetaSimEnv(sim, **{name: 1})
    assert env.step([{}] * 3)[3] == [name == "max_episode_steps"] * 3


def test_steps_count_without_a_reset_too(sim):
    env = MetaSimEnv(sim, max_episode_steps=2)
    assert env.step([{}] * 3)[3] == [False] * 3
    assert env.step([{}] * 3)[3] == [True] * 3


def test_bad_calls_change_nothing(sim):
    env = MetaSimEnv(sim)
    env.reset()
    sim.step(3)
    before = sim.state.clone()
    with raises(ShapeError, name="actions"):
        env.step([{}])
    with raises(SimStateError, name="joint9"):
        env.step([{"franka": {"dof_pos_target": {"joint9": 0.0}}}] * 3)
    with raises(SimStateError, name="dof_pos"):
        env.step([{"franka": {"dof_pos": {"joint1": 0.0}}}] * 3)
    with raises(SimStateError, name="cub"):
        env.reset([{"objects": {"cub": {}}}] * 3)
    assert torch.equal(sim.state, before)


def test_returned_times_are_those_of_their_step(sim):
    env = MetaSimEnv(sim, decimation=3)
    first = env.reset()[1]["time"]
    second = env.step([{}] * 3)[4]["time"]
    env.step([{}] * 3)
    assert first.tolist() == [0.0] * 3
    assert second.tolist() == pytest.approx([3 * sim.timestep] * 3)


def test_a_reset_that_fails_leaves_another_simulators_time():
    cube = EntityCfg(model="cube", init_state=InitialStateCfg(pos=(0.5, 0.0, 0.7)))
    other = make(NAME, SceneCfg(entities={"cube": cube}, timestep=None), num_envs=2)
    env = MetaSimEnv(other, decimation=3)
    states = env.step([{}] * 2)[0]
    with raises(SimStateError, name="cub"):
        env.reset([{"objects": {"cub": {}}}] * 2)
    assert other.time.tolist() == pytest.approx([3 * other.timestep] * 2)
    pos = other.get_states()[1]["objects"]["cube"]["pos"]
    assert torch.equal(pos, states[1]["objects"]["cube"]["pos"])
    assert float(pos[2]) < 0.7


def test_a_task_of_controls_has_no_targets_of_joints():
    env = MetaSimTaskEnv(Env(tasks.make_cfg("Hopper-v5"), 2, auto_reset=False))
    env.reset()
    states, rewards, *_ = env.step([{}] * 2)
    assert len(states) == len(rewards) == 2


def test_wrong_reward_shape_is_named(sim):
    env = MetaSimEnv(sim, reward=lambda sim: torch.zeros(2))
    env.reset()
    with raises(ShapeError, name="reward"):
        env.step([{}] * 3)


@pytest.fixture
def reach():
    cfg = tasks.make_cfg("Arm-Reach")
    cfg.episode_length_s = 0.4
    return Env(cfg, num_envs=3, auto_reset=False)


def test_a_task_moves_to_the_targets_that_are_named(reach):
    env = MetaSimTaskEnv(reach)
    env.reset()
    aims = [-0.3, 0.0, 0.3]
    env.step([{"robot": {"dof_pos_target": {"joint1": aim}}} for aim in aims])
    states, *_ = env.step([{"robot": {"dof_pos_target": {"joint4": -1.1}}}] * 3)
    for state, aim in zip(states, aims, strict=True):
        targets = state["robots"]["robot"]["dof_pos_target"]
        assert targets["joint1"] == pytest.approx(aim, abs=1e-6)
        assert targets["joint4"] == pytest.approx(-1.1, abs=1e-6)


def test_a_task_keeps_targets_of_what_it_does_not_drive(reach):
    env = MetaSimTaskEnv(reach)
    env.reset()
    aims = [-0.3, 0.1, 0.2]
    actions = [
        {"robot": {"dof_pos_target": {"right_finger": aim, "joint1": 2 * aim},
                   "dof_vel_target": {"joint2": -aim},
                   "dof_effort_target": {"joint3": 3 * aim}}}
        for aim in aims
    ]  # fmt: skip
    states, *_ = env.step(actions)
    for state, aim in zip(states, aims, strict=True):
        robot = state["robots"]["robot"]
        assert robot["dof_pos_target"]["right_finger"] == aim
        assert robot["dof_pos_target"]["joint1"] == pytest.approx(2 * aim)
        assert robot["dof_vel_target"]["joint2"] == -aim
        assert robot["dof_effort_target"]["joint3"] == 3 * aim
    env.step([{}] * 3)
    targets = reach.scene["robot"].data.joint_vel_target
    assert targets[:, 1].tolist() == [-aim for aim in aims]
    env.reset()
    assert not reach.scene["robot"].data.joint_vel_target.any()


def test_a_task_has_its_own_rewards_and_time_limit(reach):
    plain = Env(reach.cfg, num_envs=3, auto_reset=False)
    env = MetaSimTaskEnv(reach, success=lambda sim: sim.time > 0.39)
    _, extra = env.reset()
    seen, _ = plain.reset()
    assert torch.equal(extra["observations"]["policy"], seen["policy"])
    for _ in range(reach.max_episode_length):
        states, rewards, success, time_out, extra = env.step([{}] * 3)
        seen, reward, *_ = plain.step(torch.zeros(3, plain.action_dim))
        assert rewards == reward.tolist()
        assert torch.equal(extra["observations"]["policy"], seen["policy"])
    assert success == time_out == [True] * 3
    start = [{"robots": {"robot": {"dof_pos": {"joint1": 0.7}}}}]
    states, extra = env.reset(start, env_ids=[1])
    assert states[1]["robots"]["robot"]["dof_pos"]["joint1"] == pytest.approx(0.7)
    assert reach.episode_length_buf.tolist() == [10, 0, 10]
    assert extra["log"]["Episode_Termination/time_out"] == 1


def test_a_task_weighs_the_change_of_the_action(reach):
    """Its rewards are those of the same actions in the task itself."""
    plain = Env(reach.cfg, num_envs=3, auto_reset=False)
    env = MetaSimTaskEnv(reach)
    env.reset()
    plain.reset()
    times = []
    for k in range(4):
        aims = [0.1 * k, -0.2 * k, 0.05]
        actions = [{"robot": {"dof_pos_target": {"joint1": aim}}} for aim in aims]
        _, rewards, _, _, extra = env.step(actions)
        times.append(extra["time"])
        _, reward, *_ = plain.step(reach.action.clone())
        assert rewards == reward.tolist()
    assert [time[0].item() for time in times] == pytest.approx(
        [reach.step_dt * (k + 1) for k in range(4)]
    )


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ({"robot": {"dof_pos_target": {"joint9": 0.0}}}, "joint9"),
        (
            {"robot": {"dof_vel_target": {"joint1": float("inf")}}},
            "robots.robot.dof_vel_target.joint1",
        ),
        ({"robot": {"dof_velo_target": {}}}, "dof_velo_target"),
        ({"rob": {"dof_pos_target": {"joint1": 0.0}}}, "rob"),
        ({"robot": {"dof_pos_target": {"joint1": float("nan")}}}, "joint1"),
    ],
)
def test_bad_targets_of_a_task_change_nothing(reach, action, name):
    env = MetaSimTaskEnv(reach)
    before = reach.sim.state.clone()
    with raises(SimStateError, name=name):
        env.step([{}, action, {}])
    with raises(ShapeError, name="actions"):
        env.step([action])
    assert torch.equal(reach.sim.state, before)


def test_a_task_that_resets_itself_is_refused(reach):
    with raises(SimStateError, name="auto_reset"):
        MetaSimTaskEnv(Env(reach.cfg, num_envs=1))
