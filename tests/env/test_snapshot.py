"""What an environment remembers, put into another one, makes it go on bit for bit."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises

from simstate.base.errors import SimStateError
from simstate.env import Env, tasks
from simstate.env.env_cfg import CurriculumTermCfg
from simstate.env.groups import flat
from simstate.state import Snapshot


def run(env: Env, steps: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(steps):
        action = torch.randn(env.num_envs, env.action_dim, generator=generator)
        seen, reward, terminated, truncated, extras = env.step(action)
        out.append([*flat(seen).values(), reward, terminated, truncated])
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
def test_another_environment_goes_on_bit_for_bit(name, tmp_path):
    first, second = (Env(task(name), num_envs=4, seed=k) for k in (1, 2))
    run(first, 35, seed=0)
    first.snapshot().save(tmp_path / "it.npz")
    expected = run(first, 30, seed=1)
    second.restore(Snapshot.load(tmp_path / "it.npz"))
    for one, other in zip(expected, run(second, 30, seed=1), strict=True):
        for a, b in zip(one, other, strict=True):
            assert torch.equal(a, b)
    assert torch.equal(first.sim.state, second.sim.state)


def test_a_snapshot_does_not_change_afterwards():
    env = Env(task("Cartpole-Balance"), num_envs=4)
    snapshot = env.snapshot()
    kept = {name: value.clone() for name, value in snapshot.slots.items()}
    run(env, 5, seed=0)
    for name, value in kept.items():
        assert torch.equal(snapshot.slots[name], value), name


def test_another_task_or_size_is_refused():
    env = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=4)
    snapshot = env.snapshot()
    with raises(SimStateError, name="snapshot"):
        Env(tasks.make_cfg("Cartpole-Balance"), num_envs=3).restore(snapshot)
    with raises(SimStateError, name="model"):
        Env(tasks.make_cfg("Arm-Reach"), num_envs=4).restore(snapshot)
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.rewards["more"] = cfg.rewards["alive"]
    other = Env(cfg, num_envs=4, seed=3)
    run(other, 3, seed=2)
    before = other.snapshot()
    with raises(SimStateError, name="env/reward/weights"):
        other.restore(snapshot)
    for name, value in other.snapshot().slots.items():
        assert torch.equal(value, before.slots[name]), name
    with raises(SimStateError, name="env/episode_length"):
        env.restore(env.sim.snapshot())
    env.sim.restore(snapshot)  # the simulation's part of it
