"""A reward that is one function, and infos."""

from __future__ import annotations

import numpy as np
import torch
from tests.raised import raises

from simstate import InvalidInputError, ShapeError
from simstate.env import Env, tasks
from simstate.env.env_cfg import RewardTermCfg, TermCfg, TerminationTermCfg
from simstate.env.tasks import make_cfg

NUM = 3
STILL = torch.zeros(NUM, 1)


def cfg_with(reward, info=None, **changes):
    cfg = make_cfg("Cartpole-Balance")
    cfg.rewards, cfg.reward = {}, TermCfg(reward)
    cfg.info = None if info is None else TermCfg(info)
    for name, value in changes.items():
        setattr(cfg, name, value)
    return cfg


def parts(env):
    """The position's square less the velocity: parts in two dtypes."""
    qpos, qvel = env.sim.data.qpos, env.sim.data.qvel
    near, slow = qpos[:, 0] ** 2, -qvel[:, 0].float()
    return near + slow, {"near": near, "slow": slow.numpy()}


def test_it_is_neither_weighted_nor_multiplied_by_the_time_step():
    env = Env(cfg_with(parts, dtype="float64"), NUM, seed=3, auto_reset=False)
    env.reset(seed=8)
    total = torch.zeros(NUM, dtype=torch.float64)
    for _ in range(3):
        _, reward, _, _, extras = env.step(STILL)
        near = env.sim.data.qpos[:, 0] ** 2
        slow = -env.sim.data.qvel[:, 0].float()
        assert torch.equal(reward, near + slow)
        assert reward.dtype == torch.float64
        np.testing.assert_array_equal(extras["info"]["near"], near)
        np.testing.assert_array_equal(extras["info"]["slow"], slow)
        assert extras["info"]["slow"].dtype == np.float32
        total += reward
    assert torch.allclose(env.rewards.episode_sum("reward"), total)


def test_infos_are_copies_and_follow_a_reset():
    env = Env(
        cfg_with(lambda env: env.sim.data.qpos[:, 0],
                 lambda env: {"at": env.sim.data.qpos}),
        NUM, seed=3, auto_reset=False,
    )  # fmt: skip
    _, extras = env.reset(seed=8)
    np.testing.assert_array_equal(extras["info"]["at"], env.sim.data.qpos)
    first = env.step(STILL)[4]["info"]["at"].copy()
    _, _, _, _, extras = env.step(STILL, reset_ids=[1])
    assert not np.array_equal(first, extras["info"]["at"])
    now = env.sim.data.qpos.numpy()
    np.testing.assert_array_equal(extras["reset_info"]["at"], now)
    assert not np.array_equal(extras["info"]["at"][1], now[1])
    np.testing.assert_array_equal(extras["info"]["at"][[0, 2]], now[[0, 2]])


def test_time_may_be_up_in_the_step_that_terminates():
    cfg = make_cfg("Cartpole-Balance")
    cfg.terminations = {
        "time_out": TerminationTermCfg("time_out", time_out=True),
        "half": TerminationTermCfg(
            lambda env: (env.episode_length_buf == 2) & (torch.arange(NUM) == 1)
        ),
    }
    cfg.episode_length_s = 2 * cfg.decimation * cfg.scene.timestep
    env = Env(cfg, NUM, auto_reset=False)
    env.step(STILL)
    _, _, terminated, truncated, _ = env.step(STILL)
    assert terminated.tolist() == [False, True, False]
    assert truncated.tolist() == [True, False, True]
    assert env.ends.timed_out().tolist() == [True, True, True]


def test_a_nan_names_the_term_and_the_world_and_undoes_the_step():
    def broken(env):
        return torch.where(env.episode_length_buf == 2, torch.nan, env.sim.data.time)

    env = Env(cfg_with(broken), NUM, auto_reset=False)
    env.step(STILL, reset_ids=[0, 2])
    before = env.sim.state.clone()
    with raises(InvalidInputError, name="reward", worlds=[1]):
        env.step(STILL)
    assert torch.equal(env.sim.state, before)


def test_bad_declarations_are_named():
    both = cfg_with(parts)
    both.rewards = {"alive": RewardTermCfg("is_alive", weight=1.0)}
    with raises(InvalidInputError, name="rewards"):
        Env(both, NUM)
    with raises(ShapeError, name="reward"):
        Env(cfg_with(lambda env: env.sim.data.qpos), NUM).step(STILL)
    with raises(InvalidInputError, name="one"):
        Env(cfg_with(lambda env: (env.sim.time, {"one": 1.0})), NUM).step(STILL)
    env = Env(cfg_with(parts), NUM)
    with raises(InvalidInputError, name="reward"):
        env.rewards.set_weight("reward", 2.0)
    with raises(InvalidInputError, name="seed"):
        env.reset(seed=[1, 2, 3], env_ids=[0, 2])
    assert "Cartpole-Balance" in tasks.names()
