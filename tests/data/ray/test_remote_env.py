"""Worlds on workers: the bits of one Env, also when some are lost on the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from tests.data.ray.ray_here import ClusterHere, same_threads
from tests.inside import worker_env
from tests.raised import raises
from tests.tracer import traced

import simstate
from simstate import InvalidInputError, NativeCfg, SimStateError, SnapshotError
from simstate.data.ray import RemoteEnv
from simstate.data.ray.remote_env import alone
from simstate.env import CurriculumTermCfg, Env, tasks
from simstate.train.run_cfg import RunCfg
from simstate.train.training_run import TrainingRun


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


@pytest.mark.parametrize("workers", [1, 3])
def test_snapshots_are_those_of_one_env(workers):
    _, remote, env = both(workers)
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
    with raises(InvalidInputError, name="num_envs"):
        remote.restore(Env(cfg(), 2).snapshot())


def test_restores_are_not_kept_for_workers_that_may_be_lost():
    """A hundred restores without a step take no more memory than one."""
    ray, remote, env = both(2, 4)
    assert_same_steps(remote, env, 3, 3)
    saved = env.snapshot()
    for _ in range(5):
        remote.restore(saved)
        assert remote.workers.num_unsaved == 0
    assert remote.workers.number == 3 + 5
    ray.lose(1)
    assert_same_steps(remote, env, 3, 6)
    assert remote.workers.replaced == 1


def slots_are(snapshot, other):
    return all(torch.equal(x, other.slots[name]) for name, x in snapshot.slots.items())


@pytest.mark.parametrize("save_every", [2, 7])
def test_an_interruption_leaves_all_worlds_at_one_step(save_every):
    """At any line, also between two sends: no worker is ahead of another."""
    made = tasks.make_cfg("Cartpole-Balance")
    cluster, env = ClusterHere(3), Env(made, 7, seed=4)
    ray = cluster.ray
    remote = RemoteEnv(cluster, made, 7, seed=4, save_every=save_every)
    called = ray.call_actor

    def elsewhere(*args):
        with ThreadPoolExecutor(1) as process:  # which is not interrupted
            return process.submit(called, *args).result()

    ray.call_actor = elsewhere
    assert_same_steps(remote, env, 3, 12)
    action = torch.full((7, remote.action_dim), 0.3)
    lengths = torch.tensor([4, 1, 6, 2, 8, 0, 3])
    other = Env(made, 7, seed=9).snapshot()
    calls = (
        lambda it: it.step(action),
        lambda it: it.restore(other),
        lambda it: setattr(it, "episode_length_buf", lengths),
    )
    there, undone = f"{Path(simstate.__file__).parent}/data/ray/", []
    for call in calls:
        before = env.snapshot()
        call(env)
        after, seen = env.snapshot(), env.observations
        env.restore(before)
        lines = traced(lambda c=call: c(remote), folder=there).count
        for line in range(save_every, lines, lines // 12):
            remote.restore(before)
            found = traced(lambda c=call: c(remote), line, folder=there)
            assert found.error is not None
            now = remote.snapshot()
            is_undone = slots_are(now, before)
            undone.append(is_undone)
            assert is_undone or slots_are(now, after), found.places
            wanted = env.observations if is_undone else seen
            for name, values in remote.observations.items():
                assert torch.equal(values, wanted[name]), found.places
    assert undone.count(True) > 20
    remote.restore(env.snapshot())
    assert_same_steps(remote, env, 3, 13)


def test_a_step_that_one_worker_refuses_moves_none():
    """Its error comes when the other workers have taken the step."""
    ray, remote, env = both(3)
    assert_same_steps(remote, env, 2, 14)
    called, bad = ray.call_actor, [1]

    def failing(actor, method, args):
        if method == "step" and bad and actor is ray.started[2]:
            raise MemoryError
        return called(actor, method, args)

    ray.call_actor = failing
    with pytest.raises(MemoryError):
        remote.step(torch.ones(7, remote.action_dim))
    bad.clear()
    assert_same_steps(remote, env, 3, 15)


def test_what_cannot_go_on_is_said():
    ray, remote, _ = both(2)
    start = ray.start_actor

    def always_lost(kind, make):
        actor = start(kind, make)
        actor.is_lost = True
        return actor

    ray.start_actor = always_lost
    ray.lose(0)
    with raises(SimStateError, name="workers") as told:
        remote.step(torch.zeros(7, remote.action_dim))
    assert "the worker has died" in str(told.value.__cause__)


def test_a_worker_may_be_lost_three_times_in_one_call():
    ray, remote, env = both(2)
    start, left = ray.start_actor, [2]

    def lost_at_first(kind, make):
        actor = start(kind, make)
        actor.is_lost = bool(left[0])
        left[0] = max(left[0] - 1, 0)
        return actor

    ray.start_actor = lost_at_first
    ray.lose(0)
    assert_same_steps(remote, env, 3, 16)
    assert remote.workers.replaced == 3


def test_worlds_may_be_saved_before_each_step():
    _, remote, env = both(2, save_every=1)
    assert_same_steps(remote, env, 3, 17)
    assert remote.workers.num_unsaved == 1
    with raises(InvalidInputError, name="save_every"):
        both(2, save_every=0)


def test_a_worker_has_one_thread_unless_the_engine_states_another():
    assert alone("native") == NativeCfg(num_threads=1)
    for engine in ("warp", NativeCfg(num_threads=3)):
        assert alone(engine) is engine


def test_a_lost_answer_of_a_worker_that_lives():
    ray, remote, env = both(3)
    assert_same_steps(remote, env, 2, 6)
    ray.lose_answers(1)
    assert_same_steps(remote, env, 3, 7)
    assert remote.workers.replaced == 1
    assert [actor.is_killed for actor in ray.started] == [False, True, False, False]


def test_fewer_worlds_than_workers():
    ray, remote, env = both(8, num_envs=3)
    assert len(ray.started) == len(remote.workers) == 3
    assert_same_steps(remote, env, 3, 8)


def test_what_one_worker_would_refuse_moves_none():
    _, remote, env = both(3)
    action = torch.zeros(7, remote.action_dim)
    for value in (float("nan"), 1e300):
        wrong = action.double()
        wrong[5, 2] = value
        with raises(InvalidInputError, name="action", worlds=[5]):
            remote.step(wrong)
    for wrong in (action.long(), action[1:], action.tolist()):
        with raises(InvalidInputError, name="action"):
            remote.step(wrong)
    with raises(InvalidInputError, name="episode_length_buf"):
        remote.episode_length_buf = torch.zeros(7)
    assert_same_steps(remote, env, 3, 9)
    snapshot = env.snapshot()
    assert_same_steps(remote, env, 2, 10)
    snapshot.slots["qvel"][6, 3] = float("nan")
    with raises(SnapshotError, name="qvel"):
        remote.restore(snapshot)
    with raises(InvalidInputError, name="snapshot"):
        remote.restore(snapshot.slots)
    assert_same_steps(remote, env, 3, 11)


def test_the_number_of_worlds_is_one():
    for wrong in ("7", 0, 2.5, True):
        with raises(InvalidInputError, name="num_envs"):
            RemoteEnv(ClusterHere(2), cfg(), wrong)


def test_what_is_closed_says_so():
    ray, remote, _ = both(2)
    remote.close()
    assert all(actor.is_killed for actor in ray.started)
    for use in (
        lambda: remote.step(torch.zeros(7, remote.action_dim)),
        remote.snapshot,
        remote.workers.save,
    ):
        with raises(SimStateError, name="workers"):
            use()


def test_workers_end_if_the_first_call_of_them_fails():
    cluster = ClusterHere(3)

    def fails(actor, method, args):
        raise MemoryError

    cluster.ray.call_actor = fails
    with pytest.raises(MemoryError):
        RemoteEnv(cluster, cfg(), 7)
    assert [actor.is_killed for actor in cluster.ray.started] == [True] * 3


def test_workers_end_if_one_of_them_does_not_start():
    cluster = ClusterHere(3)
    start = cluster.ray.start_actor

    def fails(kind, make):
        if len(cluster.ray.started) == 2:
            raise MemoryError
        return start(kind, make)

    cluster.ray.start_actor = fails
    with pytest.raises(MemoryError):
        RemoteEnv(cluster, cfg(), 7)
    assert [actor.is_killed for actor in cluster.ray.started] == [True] * 2


def test_workers_of_this_process_leave_its_threads():
    torch.set_num_threads(3)
    with same_threads():
        both(2)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def lived(env, env_ids):
    """The mean over all worlds of the steps of their episodes that have ended."""
    steps = env.memory("steps", dtype=torch.int64, reset=None)
    steps[env_ids] += env.episode_length_buf[env_ids]
    return float(steps.double().mean())


def test_the_log_is_that_of_one_env():
    made = cfg()
    made.curricula["lived"] = CurriculumTermCfg(lived)
    cluster = ClusterHere(3)
    remote, env = RemoteEnv(cluster, made, 7, seed=4), Env(made, 7, seed=4)
    lengths = torch.tensor([14, 3, 12, 11, 13, 9, 5])
    remote.episode_length_buf = env.episode_length_buf = lengths
    generator, seen = torch.Generator().manual_seed(1), []

    def explode(world, worker, place):
        env.sim.data.qvel[world, 6] = 1e9
        there = worker_env(cluster.ray.started[worker].held)
        there.sim.data.qvel[place, 6] = 1e9

    for k in range(24):
        if k in (3, 8):
            explode(1, 0, 1)
        if k in (5, 13):
            explode(6, 2, 2)
        if k == 7:
            explode(3, 1, 1)
        if k == 17:
            saved = remote.snapshot()
            assert torch.equal(
                saved.slots["env/divergences"], env.snapshot().slots["env/divergences"]
            )
            remote.restore(saved)
        action = 0.5 * torch.randn(7, env.action_dim, generator=generator)
        ours, theirs = remote.step(action)[4]["log"], env.step(action)[4]["log"]
        assert ours.keys() == theirs.keys()
        # A worker says what its curriculum is when an episode ends there.
        skip = {"Curriculum/lived"} if k < 5 or k >= 17 else set()
        for name in theirs.keys() - skip:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-5), (k, name)
        seen.append(theirs.get("Divergence/count"))
    assert [n for n in seen if n is not None][-1] == 5
    assert seen.count(None) > 5  # steps in which no episode ends


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
