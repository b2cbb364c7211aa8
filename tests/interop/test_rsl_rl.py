"""rsl-rl's runner, as it comes, on our environments."""

from __future__ import annotations

import pytest
import torch
from rsl_rl.runners import OnPolicyRunner
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env import Env, tasks
from simstate.interop.rsl_rl import RslRlVecEnv, runner_cfg


@pytest.mark.parametrize("task", ["Cartpole-Balance", "Quadruped-Velocity"])
def test_the_runner_learns_unmodified(task, tmp_path):
    env = Env(tasks.make_cfg(task), num_envs=8)
    train = tasks.make_train_cfg(task)
    runner = OnPolicyRunner(
        RslRlVecEnv(env), runner_cfg(train, env), log_dir=str(tmp_path), device="cpu"
    )
    before = [p.detach().clone() for p in runner.alg.get_policy().parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    after = list(runner.alg.get_policy().parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(bool(torch.isfinite(p).all()) for p in after)
    assert env.common_step_counter == 2 * train.steps_per_env
    assert list(tmp_path.glob("events.out.tfevents*"))
    assert list(tmp_path.glob("model_*.pt"))


def test_the_critic_sees_its_own_group_where_there_is_one():
    def groups(task):
        env = Env(tasks.make_cfg(task), num_envs=1)
        return runner_cfg(tasks.make_train_cfg(task), env)["obs_groups"]

    assert groups("Quadruped-Velocity")["critic"] == ["critic"]
    assert groups("Cartpole-Balance")["critic"] == ["policy"]


@pytest.mark.parametrize("finite", [False, True])
def test_time_outs_are_distinguished_from_falls(finite):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    cfg.is_finite_horizon = finite
    envs = RslRlVecEnv(Env(cfg, num_envs=2))
    push = torch.tensor([[200.0], [0.0]])
    for _ in range(5):
        seen, reward, done, extras = envs.step(push)
        if bool(done.any()):
            break
    assert seen["policy"].shape == (2, 4)
    assert reward.dtype == torch.float32
    if finite:
        assert "time_outs" not in extras
    else:
        ended = done.bool() & ~envs.env.terminated
        assert torch.equal(extras["time_outs"], ended)
    assert envs.episode_length_buf[done.bool()].tolist() == [0] * int(done.sum())


def test_the_environment_must_reset_itself():
    env = Env(tasks.make_cfg("Cartpole-Balance"), auto_reset=False)
    with raises(SimStateError, name="auto_reset"):
        RslRlVecEnv(env)
