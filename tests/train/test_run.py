"""Training runs: a run that was killed goes on as if it had not been."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.raised import raises

from simstate.base.errors import SimStateError, SnapshotError
from simstate.env import RewardTermCfg, tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.run_cfg import OutputCfg, RunCfg
from simstate.train.run_memory import check_memory
from simstate.train.training_run import TrainingRun

TASK = "Cartpole-Balance"


def settings(**changes: object) -> RunCfg:
    few = {"num_envs": 16, "iterations": 6, **changes}
    train = dataclasses.replace(tasks.make_train_cfg(TASK), **few)
    return RunCfg(task=TASK, train=train, seed=3, output=OutputCfg(save_every=2))


def quiet(progress):
    del progress


def weights(run_dir: Path) -> dict[str, torch.Tensor]:
    algorithm = read_checkpoint(find_checkpoint(run_dir))["algorithm"]
    moments = algorithm["optimizer_state_dict"]["state"]
    return {
        **algorithm["actor_state_dict"],
        **{f"critic {k}": v for k, v in algorithm["critic_state_dict"].items()},
        **{f"moment {k}": v["exp_avg"] for k, v in moments.items()},
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a run that went through without a break."""
    folder = tmp_path_factory.mktemp("whole")
    TrainingRun(settings(), folder).learn(6, quiet)
    return folder


KILLED = """
import os, signal, sys
from pathlib import Path
from test_run import TrainingRun, settings

def die(progress):
    if progress.iteration == 5:
        os.kill(os.getpid(), signal.SIGKILL)

TrainingRun(settings(), Path(sys.argv[1])).learn(6, die)
"""


def test_a_killed_run_resumes_to_the_same_policy_bit_for_bit(whole, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *_here()])}
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, check=False
    )
    assert child.returncode == -signal.SIGKILL
    assert find_checkpoint(tmp_path).name == "model_4.npz"
    run = TrainingRun.resume(tmp_path)
    assert run.iteration == 4
    seen: list[int] = []
    run.learn(6, lambda progress: seen.append(progress.iteration))
    assert seen == [5, 6]
    expected, found = weights(whole), weights(tmp_path)
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.equal(expected[name], found[name]), name


def _here() -> list[str]:
    return [str(Path(__file__).parent), *sys.path]


def test_the_log_has_every_update_once_after_a_resume(tmp_path):
    TrainingRun(settings(), tmp_path).learn(5, quiet)
    (tmp_path / "model_5.npz").unlink()  # as if it had died while the fifth was new
    time.sleep(1.1)  # names of event files differ by the second
    TrainingRun.resume(tmp_path).learn(6, quiet)
    log = EventAccumulator(str(tmp_path))
    log.Reload()
    assert [event.step for event in log.Scalars("Loss/surrogate")] == list(range(1, 7))
    assert {"Perf/total_fps", "Policy/mean_std"} <= set(log.Tags()["scalars"])


def test_progress_tells_reward_length_and_speed(tmp_path):
    told = []
    TrainingRun(settings(num_envs=64), tmp_path).learn(3, told.append)
    assert [progress.iteration for progress in told] == [1, 2, 3]
    assert 0.0 < told[-1].episode_length_s < 10.0
    assert told[-1].reward is not None
    assert told[-1].steps_per_second > 0.0


class Counts:
    """A reward term that keeps a number itself, which no checkpoint would have."""

    def __init__(self, cfg, env):
        self.steps = 0

    def reset(self, env_ids):
        pass

    def __call__(self, env):
        self.steps += 1
        return torch.full((env.num_envs,), 1.0 / self.steps)


def counting():
    """The task with a reward that counts."""
    cfg = tasks.make_cfg(TASK)
    cfg.rewards["counts"] = RewardTermCfg(Counts, weight=1.0)
    return cfg


def test_a_task_that_cannot_be_saved_is_rejected_before_its_first_update(tmp_path):
    cfg = dataclasses.replace(settings(), task=f"{__file__}:counting")
    run = TrainingRun(cfg, tmp_path)
    with raises(SnapshotError, name="steps"):
        run.learn(6, quiet)
    assert run.iteration == 0


def test_more_updates_can_be_asked_for_later(whole, tmp_path):
    TrainingRun(settings(), tmp_path).learn(3, quiet)
    TrainingRun.resume(tmp_path).learn(3, quiet)  # is there already
    assert find_checkpoint(tmp_path).name == "model_3.npz"
    TrainingRun.resume(tmp_path).learn(6, quiet)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(tmp_path)[name]), name


@pytest.mark.parametrize("damage", ["cut", "other", "format"])
def test_a_bad_checkpoint_is_refused(whole, tmp_path, damage):
    path = tmp_path / "model_1.npz"
    good = find_checkpoint(whole).read_bytes()
    if damage == "cut":
        path.write_bytes(good[: len(good) // 2])
    elif damage == "other":
        torch.save({"weights": torch.zeros(3)}, path)
    else:
        torch.save({"format": "simstate training 0"}, path)
    with raises(SimStateError, file="model_1.npz"):
        TrainingRun.resume(tmp_path)


def test_a_checkpoint_cannot_run_code(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    content = {"format": "simstate training 2", "bomb": Bomb()}
    torch.save(content, tmp_path / "model_2.npz")
    with raises(SimStateError, file="model_2.npz"):
        TrainingRun.resume(tmp_path)
    assert not (tmp_path / "exploded").exists()


def test_the_latest_checkpoint_is_the_one_of_most_updates(tmp_path):
    for number in (2, 10, 9):
        (tmp_path / f"model_{number}.npz").touch()
    (tmp_path / "model_99.npz.tmp").touch()
    assert find_checkpoint(tmp_path).name == "model_10.npz"
    empty = tmp_path / "empty"
    empty.mkdir()
    with raises(SimStateError, file="empty"):
        find_checkpoint(empty)
    with raises(SimStateError, file="nowhere"):
        find_checkpoint(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"iterations": 0}, "iterations"),
        ({"num_envs": 1, "steps_per_env": 2}, "num_mini_batches"),
    ],
)
def test_bad_settings_are_refused(changes, name):
    with raises(SimStateError, name=name):
        settings(**changes)


def test_a_run_begins_with_the_networks_of_another(whole, tmp_path):
    def networks(folder):
        named = weights(folder).items()
        return {k: v for k, v in named if not k.startswith("moment")}

    begun = str(find_checkpoint(whole))
    other = dataclasses.replace(settings(num_envs=8), seed=9, start_from=begun)
    run = TrainingRun(other, tmp_path / "other")
    assert run.iteration == 0
    run.save()
    first = networks(whole)
    found = networks(tmp_path / "other")
    assert found.keys() == first.keys()
    assert all(torch.equal(found[k], first[k]) for k in first)
    run.learn(2, quiet)
    again = TrainingRun.resume(tmp_path / "other")
    assert (again.cfg.start_from, again.iteration) == (begun, 2)
    assert not torch.equal(
        networks(tmp_path / "other")["mlp.0.weight"], first["mlp.0.weight"]
    )
    small = dataclasses.replace(settings(hidden_sizes=(7,)), start_from=begun)
    with raises(SnapshotError, file="model_6.npz"):
        TrainingRun(small, tmp_path / "small")


def test_only_the_latest_checkpoints_are_kept(tmp_path):
    cfg = dataclasses.replace(settings(), output=OutputCfg(save_every=1, keep=2))
    TrainingRun(cfg, tmp_path).learn(5)
    assert sorted(p.name for p in tmp_path.glob("model_*")) == [
        "model_4.npz",
        "model_5.npz",
    ]


def test_a_run_that_is_asked_to_stop_has_saved_all_and_goes_on_exactly(whole, tmp_path):
    asked = iter([False, False, True])
    run = TrainingRun(settings(), tmp_path)
    assert not run.learn(6, stop=lambda: next(asked))
    assert (run.iteration, run.saved) == (3, 3)
    assert TrainingRun.resume(tmp_path).learn(6)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(tmp_path)[name]), name


def test_too_many_worlds_are_refused_with_the_figure():
    cfg = settings(num_envs=100_000_000)
    with raises(SimStateError, name="num_envs"):
        check_memory(cfg)
    check_memory(settings(num_envs=5000))


@pytest.mark.soak
def test_the_memory_of_a_world_is_what_more_worlds_take():
    code = """
import dataclasses, resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import tempfile
from test_run import settings
from simstate.env import Env
from simstate.train.run_memory import bytes_per_world
from simstate.train.run_memory import check_memory
from simstate.train.training_run import TrainingRun
cfg = settings(num_envs=int(sys.argv[2]))
run = TrainingRun(cfg, Path(tempfile.mkdtemp()))
run.learn(2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
      bytes_per_world(Env(cfg.env_cfg(), 3), cfg))
"""
    here = str(Path(__file__).parent)
    used = {}
    for count in (2000, 22000):
        done = subprocess.run(
            [sys.executable, "-c", code, here, str(count)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        used[count], each = map(int, done.stdout.split()[-2:])
    measured = (used[22000] - used[2000]) / 20000
    assert 0.5 < each / measured < 2.0, (each, measured)
