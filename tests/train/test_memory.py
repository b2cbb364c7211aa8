"""What an environment remembers, put into another one, makes it go on bit for bit."""

from __future__ import annotations

import io

import pytest
import torch

from simstate.env import Env, tasks
from simstate.env.cfg import CurriculumTermCfg
from simstate.errors import SimStateError
from simstate.train.memory import recall, remember


def run(env: Env, steps: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(steps):
        action = torch.randn(env.num_envs, env.action_dim, generator=generator)
        seen, reward, terminated, truncated, extras = env.step(action)
        out.append([*seen.values(), reward, terminated, truncated])
        out.append([torch.tensor(list(map(float, extras["log"].values())))])
    return out


def task(name: str):
    """The task, with short episodes, late observations and a curriculum."""
    cfg = tasks.make_cfg(name)
    cfg.episode_length_s = 40 * cfg.decimation * 0.005
    term = next(iter(cfg.observations["policy"].terms.values()))
    term.delay, term.history = (0, 2), 2
    first = next(iter(cfg.rewards))
    cfg.curricula["weight"] = CurriculumTermCfg(
        "reward_weight", params={"term_name": first, "stages": ((30, 0.5),)}
    )
    return cfg


@pytest.mark.parametrize("name", tasks.NAMES)
def test_another_environment_goes_on_bit_for_bit(name):
    first, second = (Env(task(name), num_envs=4, seed=k) for k in (1, 2))
    run(first, 35, seed=0)
    buffer = io.BytesIO()
    torch.save(remember(first), buffer)
    buffer.seek(0)
    expected = run(first, 30, seed=1)
    recall(second, torch.load(buffer, weights_only=True))
    for one, other in zip(expected, run(second, 30, seed=1), strict=True):
        for a, b in zip(one, other, strict=True):
            assert torch.equal(a, b)
    assert torch.equal(first.sim.state, second.sim.state)


def test_what_is_remembered_does_not_change_afterwards():
    env = Env(task("Cartpole-Balance"), num_envs=4)
    memory = remember(env)
    kept = {
        k: v.clone() for k, v in memory["environment"].items() if torch.is_tensor(v)
    }
    run(env, 5, seed=0)
    for name, value in kept.items():
        assert torch.equal(memory["environment"][name], value), name


def test_another_task_or_size_is_refused():
    env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=4)
    memory = remember(env)
    with pytest.raises(SimStateError, match="4 worlds, the environment has 3"):
        recall(Env(tasks.make_cfg("Cartpole-Balance"), num_envs=3), memory)
    with pytest.raises(SimStateError, match="another task"):
        recall(Env(tasks.make_cfg("Arm-Reach"), num_envs=4), memory)
