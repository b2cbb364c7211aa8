"""MetaSim's environment calls: lists of states in, lists of states out."""

import pytest
import torch

from simstate import (
    EntityCfg,
    InitialStateCfg,
    SceneCfg,
    ShapeError,
    SimStateError,
    Simulation,
)
from simstate.interop.metasim import MetaSimEnv


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


def test_bad_calls_change_nothing(sim):
    env = MetaSimEnv(sim)
    env.reset()
    sim.step(3)
    before = sim.state.clone()
    with pytest.raises(ShapeError, match="one for each world"):
        env.step([{}])
    with pytest.raises(SimStateError, match=r"robots\.franka\.dof_pos_target\.joint9"):
        env.step([{"franka": {"dof_pos_target": {"joint9": 0.0}}}] * 3)
    with pytest.raises(SimStateError, match="dof_pos_target"):
        env.step([{"franka": {"dof_pos": {"joint1": 0.0}}}] * 3)
    with pytest.raises(SimStateError, match="cub"):
        env.reset([{"objects": {"cub": {}}}] * 3)
    assert torch.equal(sim.state, before)


def test_wrong_reward_shape_is_named(sim):
    env = MetaSimEnv(sim, reward=lambda sim: torch.zeros(2))
    env.reset()
    with pytest.raises(ShapeError, match="reward"):
        env.step([{}] * 3)
