"""The environment as a whole: shapes, determinism, resets of some worlds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from simstate import NativeCfg
from simstate.env import Env, tasks


def actions(env: Env, steps: int, seed: int = 1) -> Tensor:
    """The same random actions for whoever asks, world by world."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(steps, env.num_envs, env.action_dim, generator=generator)


def run(env: Env, given: Tensor) -> list[Tensor]:
    """All that comes out of a run, and the state after every step."""
    out: list[Tensor] = []
    for action in given:
        seen, reward, terminated, truncated, _ = env.step(action)
        out += [*seen.values(), reward, terminated, truncated, env.sim.state.clone()]
    return out


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_one_seed_gives_one_trajectory_at_any_thread_count(threads: int):
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.episode_length_s = 0.6
    first = Env(cfg, num_envs=6, seed=3)
    second = Env(cfg, num_envs=6, seed=3, engine=NativeCfg(num_threads=threads))
    given = actions(first, 40)
    for a, b in zip(run(first, given), run(second, given), strict=True):
        assert torch.equal(a, b)
    other = Env(cfg, num_envs=6, seed=4)
    assert not torch.equal(run(other, given)[0], run(first, given)[0])
