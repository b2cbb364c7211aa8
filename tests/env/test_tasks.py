"""The tasks that ship: they run, they stay finite, and they differ."""

from __future__ import annotations

import pytest
import torch

from simstate.env import Env, EnvCfg, TrainCfg, tasks
from simstate.env.groups import flat


@pytest.mark.parametrize("name", tasks.NAMES)
def test_a_task_stays_finite_under_random_actions(name, given):
    env = Env(tasks.make_cfg(name), num_envs=4, seed=5)
    groups = {key.partition("/")[0] for key in env.observation_dims}
    assert groups <= {"policy", "critic"}
    for group, names in env.observation_names.items():
        assert len(names) == len(set(names)) == env.observation_dims[group]
    specs = flat(env.observation_specs)
    assert {specs[key].dtype for key in env.observation_dims} <= {torch.float32}
    for action in given(env, 200):
        seen, reward, *_ = env.step(action)
        for key, values in flat(seen).items():
            assert values.dtype == specs[key].dtype
            assert values.shape == (4, *specs[key].shape)
            assert bool(values.isfinite().all())
        assert reward.shape == (4,)
        assert bool(reward.isfinite().all())
    assert env.divergence.count == 0
    assert bool(env.sim.state.isfinite().all())


def test_a_task_runs_on_warp(given):
    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=2, engine="warp", seed=5)
    twin = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=2, seed=5)
    # The streams are the same on both engines: so are commands and noise.
    torch.testing.assert_close(
        env.observations["policy"], twin.observations["policy"], atol=1e-4, rtol=0
    )
    for action in given(env, 20, scale=0.3):
        seen, reward, *_ = env.step(action)
        assert bool(seen["policy"].isfinite().all())
        assert bool(reward.isfinite().all())


@pytest.mark.parametrize("name", tasks.NAMES)
def test_a_task_can_be_described_trained_and_changed(name):
    cfg = tasks.make_cfg(name)
    assert isinstance(cfg, EnvCfg)
    assert "policy" in cfg.observations
    assert any(term.time_out for term in cfg.terminations.values())
    cfg.rewards.clear()
    assert tasks.make_cfg(name).rewards
    train = tasks.make_train_cfg(name)
    assert isinstance(train, TrainCfg)
    assert train.num_envs * train.steps_per_env % train.num_mini_batches == 0
    line = tasks.describe(name)
    assert line.endswith(".") or line.endswith(",")
    assert len(line) < 88


def test_each_task_says_whether_it_was_trained():
    told = {name: tasks.find(name).trained for name in tasks.NAMES}
    assert told["Cartpole-Balance"].endswith("0 of 64 fell in 10 s")
    assert "fell in 20 s" in told["Humanoid-Velocity"]
    assert all(told.values())


def test_importing_the_environments_loads_no_trainer():
    import subprocess
    import sys

    code = (
        "import sys, simstate.env, simstate.env.tasks as t; t.make_cfg(t.NAMES[0]); "
        "heavy = {'gymnasium', 'rsl_rl', 'stable_baselines3', 'warp', 'tensordict'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_standing_still_keeps_the_quadruped_up():
    """A zero action is a pose that stands: what a policy starts from."""
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.events.pop("push")
    env = Env(cfg, num_envs=8)
    for _ in range(100):
        _, _, terminated, _, _ = env.step(torch.zeros(8, 12))
        assert not terminated.any()
    height = env.scene["robot"].data.root_link_pos_w[:, 2]
    assert bool(((height > 0.22) & (height < 0.32)).all())
