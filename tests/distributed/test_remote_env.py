"""Worlds on workers: the bits of one Env, also when some are lost on the way."""

from __future__ import annotations

import pytest
import torch
from tests.distributed.ray_here import ClusterHere

from simstate import InvalidInputError, SimStateError
from simstate.distributed import RemoteEnv
from simstate.env import Env, tasks
from simstate.train.run import TrainingRun
from simstate.train.run_cfg import RunCfg


def cfg():
    made = tasks.make_cfg("Quadruped-Velocity")
    made.episode_length_s = 0.3
    return made


def both(workers, num_envs=7, **options):
    cluster = ClusterHere(workers)
    remote = RemoteEnv(cluster, cfg(), num_envs, seed=4, **options)
    return cluster.ray, remote, Env(cfg(), num_envs, seed=4)


def assert_same_steps(remote, env, steps, seed, before=lambda k: None):
    generator = torch.Generator().manual_seed(seed)
    for k in range(steps):
        before(k)
        action = 0.5 * torch.randn(env.num_envs, env.action_dim, generator=generator)
        seen, *ours = remote.step(action)[:4]
        wanted, *theirs = env.step(action)[:4]
        for name, values in wanted.items():
            assert torch.equal(seen[name], values), (k, name)
        for one, other in zip(ours, theirs, strict=True):
            assert torch.equal(one, other), k


@pytest.mark.parametrize("workers", [1, 3])
def test_the_same_bits_also_when_workers_are_lost(workers):
    ray, remote, env = both(workers, save_every=8)
    lengths = torch.tensor([0, 3, 7, 11, 2, 9, 5])
    remote.episode_length_buf = lengths
    env.episode_length_buf = lengths

    def lose(k):
        if k in (5, 17):  # before and after the first snapshots
            ray.lose(len(ray.started) - 1)

    assert_same_steps(remote, env, 20, 1, lose)
    assert remote.workers.replaced == 2
    assert torch.equal(remote.episode_length_buf, env.episode_length_buf)


def test_a_worker_that_is_lost_while_it_is_saved():
    ray, remote, env = both(2, save_every=3)

    def lose(k):
        if k == 2:
            save = remote.workers.save

            def losing():
                ray.lose(1)
                save()

            remote.workers.save = losing

    assert_same_steps(remote, env, 7, 2, lose)
    assert remote.workers.replaced >= 1


def test_snapshots_are_those_of_one_env():
    _, remote, env = both(3)
    assert_same_steps(remote, env, 4, 3)
    ours, theirs = remote.snapshot(), env.snapshot()
    assert ours.slots.keys() == theirs.slots.keys()
    for name, value in theirs.slots.items():
        assert torch.equal(ours.slots[name], value), name
    assert_same_steps(remote, env, 3, 4)
    remote.restore(theirs)
    env.restore(ours)
    for name, values in env.observations.items():
        assert torch.equal(remote.observations[name], values)
    assert_same_steps(remote, env, 4, 5)
    with pytest.raises(InvalidInputError, match="snapshot has 2 worlds, here are 7"):
        remote.restore(Env(cfg(), 2).snapshot())


def test_what_cannot_go_on_is_said():
    ray, remote, _ = both(2)
    start = ray._start

    def always_lost(kind, make):
        actor = start(kind, make)
        actor.is_lost = True
        return actor

    ray._start = always_lost
    ray.lose(0)
    with pytest.raises(SimStateError, match="Worker 0 was lost 4 times"):
        remote.step(torch.zeros(7, remote.action_dim))
    with pytest.raises(
        InvalidInputError, match="7 worlds cannot be shared out among 8"
    ):
        both(8)


def test_training_on_workers_gives_the_same_policy(tmp_path):
    run = RunCfg.for_task("Cartpole-Balance")
    train = {**vars(run.train), "num_envs": 6, "steps_per_env": 8, "iterations": 2}
    run = RunCfg.for_task("Cartpole-Balance", train=type(run.train)(**train), seed=3)

    def there(env_cfg, cfg):
        cluster = ClusterHere(4)
        return RemoteEnv(cluster, env_cfg, cfg.train.num_envs, seed=cfg.seed)

    here = TrainingRun(run, tmp_path / "a")
    other = TrainingRun(run, tmp_path / "b", make_worlds=there)
    for one in (here, other):
        torch.manual_seed(11)
        assert one.learn(2)
    ours, theirs = (r.algorithm.get_policy().state_dict() for r in (here, other))
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name
    resumed = TrainingRun.resume(tmp_path / "b")  # in one process
    for r in (here, resumed):
        torch.manual_seed(12)
        r.learn(3)
    ours, theirs = (r.algorithm.get_policy().state_dict() for r in (here, resumed))
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name
