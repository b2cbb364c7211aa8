"""Parts of a training run without a run: statistics, logs, grids, checkpoints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rsl_rl.models import MLPModel
from tensordict import TensorDict

from simstate.base.errors import InvalidInputError, SimStateError, SnapshotError
from simstate.env import TrainCfg
from simstate.env.commands import VelocityCommand
from simstate.env.tasks import cartpole_balance
from simstate.train import run_records
from simstate.train.algorithm import check_kind, initialise_orthogonally
from simstate.train.checkpoint import (
    checkpoint_path,
    find_checkpoint,
    find_policy,
    prune_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from simstate.train.early_stopping import EarlyStopping
from simstate.train.episodes import EpisodeStatistics, SeenRanges
from simstate.train.evaluate import evaluate
from simstate.train.explicit_ppo import fits
from simstate.train.interrupt import StopRequest
from simstate.train.run_cfg import OutputCfg, RunCfg, check_no_code
from simstate.train.run_file import described_run, read_run_file, write_run_file
from simstate.train.run_records import RunRecord, differences, draw_curves, find_runs
from simstate.train.sweep_cells import grid_cells
from simstate.train.training_logs import open_logs, read_progress

TASK = "Cartpole-Balance"


# Statistics.


def test_returns_and_lengths_of_episodes():
    rng = np.random.default_rng(0)
    found = EpisodeStatistics(3, torch.device("cpu"))
    assert found.mean_return is None
    assert found.mean_steps is None
    sums, steps = np.zeros(3), np.zeros(3)
    returns, lengths = [], []
    for _ in range(400):
        reward, done = rng.normal(size=3), rng.random(3) < 0.3
        found.add(torch.tensor(reward), torch.tensor(done), {})
        sums, steps = sums + reward, steps + 1
        returns += sums[done].tolist()
        lengths += steps[done].tolist()
        sums[done], steps[done] = 0.0, 0.0
    assert len(returns) > 200
    assert found.mean_return == pytest.approx(np.mean(returns[-100:]), abs=1e-5)
    assert found.mean_steps == pytest.approx(np.mean(lengths[-100:]))
    saved = found.save()
    other = EpisodeStatistics(3, torch.device("cpu"))
    other.load(saved)
    ends = torch.tensor([True, False, True])
    for one in (found, other):
        one.add(torch.tensor([1.0, 2.0, 3.0]), ends, {})
    assert other.mean_return == found.mean_return
    assert other.mean_steps == found.mean_steps
    np.testing.assert_allclose(saved["sum"].numpy(), sums, atol=1e-5)
    found.clear()
    assert found.mean_return is None
    assert found.mean_steps is None
    with pytest.raises(SimStateError):
        EpisodeStatistics(2, torch.device("cpu")).load(saved)


def test_logs_are_means_since_the_last_call():
    found = EpisodeStatistics(2, torch.device("cpu"))
    zero = torch.zeros(2)
    for log in ({"a": 1.0, "b": torch.tensor(4.0)}, {}, {"a": 2.0}):
        found.add(zero, zero, log)
    assert found.logged() == {"a": 1.5, "b": 4.0}
    assert found.logged() == {}


def test_ranges_are_those_of_all_values():
    rng, seen = np.random.default_rng(1), SeenRanges()
    parts = [rng.normal(size=(4, 3)) for _ in range(3)]
    for one in parts:
        values = torch.tensor(one)
        seen.add({"policy": values, "eye": torch.zeros(4, 2, 2, 3)})
        values.zero_()  # what was given is not kept
    wanted = [np.concatenate(parts).min(0), np.concatenate(parts).max(0)]
    assert seen.ranges.keys() == {"policy"}
    np.testing.assert_array_equal(seen.ranges["policy"].numpy(), wanted)


def test_a_run_ends_when_it_has_not_improved_for_a_while():
    best = EarlyStopping(patience=3)
    assert not best.is_over(100)
    assert not best.improve(1, None)
    assert best.improve(2, -5.0)
    assert not best.improve(3, -5.0)
    assert best.improve(4, -4.0)
    assert not best.improve(5, -4.5)
    assert (best.best, best.iteration) == (-4.0, 4)
    assert [best.is_over(k) for k in (5, 6, 7, 8)] == [False, False, True, True]
    other = EarlyStopping(patience=3)
    other.load(best.save())
    assert other == best
    never = EarlyStopping(patience=None)
    assert not never.improve(1, 2.0)
    assert not never.is_over(1000)


# Evaluation, in worlds that are written down here.


class Worlds:
    """Three worlds of six steps: world 0 falls, 1 succeeds, 2 is timed out."""

    num_envs, step_dt, auto_reset = 3, 0.5, False
    device = torch.device("cpu")
    falls = torch.tensor([2, 99, 99])
    wins = torch.tensor([99, 4, 99])
    late = torch.tensor([99, 99, 3])

    def __init__(self) -> None:
        self.count = 0
        self.terminated = torch.zeros(3, dtype=torch.bool)
        self.episode_length_buf = torch.zeros(3, dtype=torch.int64)
        self.sums = torch.zeros(2, 3)
        command = object.__new__(VelocityCommand)
        vel = SimpleNamespace(root_link_lin_vel_b=torch.zeros(3, 3))
        object.__setattr__(command, "entity", SimpleNamespace(data=vel))
        self.velocity, self.errors = vel, torch.zeros(3)
        self.wanted = torch.tensor([[0.5, 9.0], [1.0, 9.0], [-0.5, 9.0]])
        worlds = self

        class Command(VelocityCommand):
            entity = SimpleNamespace(data=vel)
            command = worlds.wanted
            error_sum = worlds.errors

            def __init__(self) -> None:
                pass

        self.commands = {"go": Command()}
        self.rewards = SimpleNamespace(
            episode_sums=lambda ids: {
                "a": self.sums[0, ids].clone(), "b": self.sums[1, ids].clone()
            }
        )  # fmt: skip
        self.metrics = SimpleNamespace(names=("power",), of=self._metrics)
        self.ends = SimpleNamespace(
            names=("fell", "won", "time"), kinds=("failure", "success", "time_out"),
            ended_by=lambda kind: self.reasons[:, ("failure", "success").index(kind)],
        )  # fmt: skip
        self.asked_metrics: list[list[int]] = []

    def _metrics(self, ids):
        self.asked_metrics.append(ids.tolist())
        return {"power": 10.0 * ids + self.count}

    def reset(self, env_ids=None):
        ids = torch.ones(3, dtype=torch.bool) if env_ids is None else env_ids
        self.episode_length_buf[ids] = 0
        self.sums[:, ids] = 0.0
        self.errors[ids] = 0.0
        return {"policy": torch.zeros(3)}, {}

    def step(self, action):
        self.count += 1
        self.episode_length_buf += 1
        part = torch.tensor([[1.0, 2.0, 3.0], [0.1, 0.2, 0.4]]) * self.count
        self.sums += part
        self.errors += torch.tensor([0.1, 0.3, 0.7]) * self.count
        self.velocity.root_link_lin_vel_b[:, 0] = 0.1 * self.count
        fell, won = self.count == self.falls, self.count == self.wins
        late = self.count == self.late
        self.reasons = torch.stack([fell, won, late], 1)
        self.ends.reasons = self.reasons
        return None, part.sum(0) + action, fell | won, late, {}


def test_figures_of_an_evaluation_by_hand():
    env = Worlds()
    found = evaluate(env, lambda seen: torch.full((3,), 0.25), 3.1)
    # World 0 counts for two steps, world 1 for four, world 2 for all six.
    counted = {0: range(1, 3), 1: range(1, 5), 2: range(1, 7)}
    total = sum(map(len, counted.values()))

    def over(values):
        return sum(values[w] * k for w, steps in counted.items() for k in steps)

    rewards = over([1.1, 2.2, 3.4]) + 0.25 * total
    assert found.num_envs == 3
    assert found.seconds == 3.0
    assert found.reward == pytest.approx(rewards / total / 0.5)
    assert found.returns["a"] == pytest.approx(over([1.0, 2.0, 3.0]) / 3)
    assert found.returns["b"] == pytest.approx(over([0.1, 0.2, 0.4]) / 3)
    assert found.errors["go"] == pytest.approx(over([0.1, 0.3, 0.7]) / total)
    forward = sum(
        abs(asked - 0.1 * k)
        for asked, w in ((0.5, 0), (1.0, 1), (-0.5, 2))
        for k in counted[w]
    )
    assert found.errors["go/forward"] == pytest.approx(forward / total)
    assert (found.failures, found.successes) == (1, 1)
    assert found.ends == {"fell": 1, "won": 1, "time": 1}
    assert found.can_succeed
    # Of worlds 0, 2, 1 when they ended, and of world 2, which runs at the end.
    assert env.asked_metrics == [[0], [2], [1], [2]]
    assert found.metrics["power"] == pytest.approx((2 + 23 + 14 + 26) / 4)
    assert found.failure_rate == pytest.approx(1 / 3)
    assert found.success_rate == pytest.approx(1 / 3)


def test_an_evaluation_has_a_step_and_worlds_that_stay():
    env = Worlds()
    with pytest.raises(InvalidInputError):
        evaluate(env, lambda seen: torch.zeros(3), 0.2)
    evaluate(env, lambda seen: torch.zeros(3), 0.3)
    env.auto_reset = True
    with pytest.raises(InvalidInputError):
        evaluate(env, lambda seen: torch.zeros(3), 3.0)


# Logs and records.


def test_a_resumed_log_has_each_update_once(tmp_path):
    (first,) = open_logs("none", tmp_path, 0, {})
    for k in range(1, 6):
        first.write(k, {"reward": 10.0 * k})
    (again,) = open_logs("none", tmp_path, 3, {})
    again.write(4, {"reward": 7.0})
    wanted = [(1, 10.0), (2, 20.0), (3, 30.0), (4, 7.0)]
    lines = read_progress(tmp_path)
    assert [(line["iteration"], line["reward"]) for line in lines] == wanted
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"iteration": 5, "rew')  # torn
    assert read_progress(tmp_path) == lines
    assert read_progress(tmp_path / "nothing") == []


@pytest.mark.parametrize("begin", [0, 3])
def test_curves_of_tensorboard(tmp_path, begin):
    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = open_logs("tensorboard", tmp_path, begin, {})
    assert len(logs) == 2
    for log in logs:
        log.write(begin + 1, {"a": 0.5, "b": 2.5})
        log.write(begin + 2, {"a": 1.5})
    film = tmp_path / "film.gif"
    Image.new("RGB", (6, 4)).save(film)
    for log in logs:
        log.write_video(begin + 2, film)
        log.write_video(begin + 2, tmp_path / "film.mp4")  # which it cannot show
        log.close()
    found = EventAccumulator(str(tmp_path)).Reload()
    points = [(x.step, x.value) for x in found.Scalars("a")]
    assert points == [(begin + 1, 0.5), (begin + 2, 1.5)]
    assert [x.value for x in found.Scalars("b")] == [2.5]
    (image,) = found.Images("policy")
    assert (image.step, image.width, image.height) == (begin + 2, 6, 4)
    assert image.encoded_image_string == film.read_bytes()


@pytest.mark.parametrize(
    ("given", "mode"),
    [({}, "offline"), ({"WANDB_API_KEY": "k"}, "online"),
     ({"WANDB_API_KEY": "k", "WANDB_MODE": "shared"}, "shared")],
)  # fmt: skip
def test_values_and_films_for_weights_and_biases(tmp_path, monkeypatch, given, mode):
    """With a stand-in for its library, whose calls are kept."""
    calls = []
    run = SimpleNamespace(
        log=lambda values, step: calls.append((values, step)),
        finish=lambda: calls.append("the end"),
    )
    library = SimpleNamespace(
        init=lambda **options: calls.append(options) or run,
        Settings=lambda **options: options, Video=lambda path: ("film", path),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "wandb", library)
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "run").mkdir()
    _, log = open_logs("wandb", tmp_path / "run", 0, {"seed": 3})
    log.write(4, {"a": 0.5})
    log.write_video(4, tmp_path / "x.gif")
    log.close()
    options, *rest = calls
    assert (options["mode"], options["project"]) == (mode, "simstate")
    assert (options["name"], options["config"]) == ("run", {"seed": 3})
    assert rest == [
        ({"a": 0.5}, 4), ({"policy": ("film", str(tmp_path / "x.gif"))}, 4), "the end",
    ]  # fmt: skip


def test_a_stop_is_requested_once_and_interrupts_twice():
    before = signal.getsignal(signal.SIGINT)
    requests = []
    with StopRequest(lambda: requests.append(1)) as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        os.kill(os.getpid(), signal.SIGTERM)  # which is no interrupt
        assert len(requests) == 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with StopRequest() as first:
        os.kill(os.getpid(), signal.SIGINT)
        assert first()
    seen = []
    thread = threading.Thread(target=lambda: seen.append(StopRequest().__enter__()()))
    thread.start()
    thread.join()
    assert seen == [False]


def test_the_state_of_the_tasks_repository_is_described(tmp_path):
    def git(*words):
        done = subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c",
             *words],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    task = tmp_path / "task.py"
    source = Path(cartpole_balance.__file__).read_text()
    task.write_text(source)
    git("init", "-q")
    git("add", "task.py")
    git("commit", "-q", "-m", "One")
    task.write_text(source + "\n")
    (tmp_path / "other file").write_text("")
    found = described_run(RunCfg.for_task(str(task), seed=8))
    assert found["git"]["commit"] == git("rev-parse", "HEAD")
    assert found["git"]["changed_files"][0] == "task.py"
    assert len(found["git"]["changed_files"]) == 2
    assert found["seed"] == 8
    digest = hashlib.sha256(task.read_bytes()).hexdigest()
    assert found["task_file_sha256"] == digest
    (tmp_path / "run").mkdir()
    write_run_file(tmp_path / "run", RunCfg.for_task(str(task), seed=8))
    assert read_run_file(tmp_path / "run").seed == 8
    task.write_text(source + "\n\n")
    with pytest.warns(RuntimeWarning, match="has changed"):
        read_run_file(tmp_path / "run" / "run.json")
    for text in ("{", "[]", '{"format": "other"}', '{"format": "simstate run 1"}'):
        (tmp_path / "run" / "run.json").write_text(text)
        with pytest.raises(InvalidInputError):
            read_run_file(tmp_path / "run")
    with pytest.raises(InvalidInputError):
        read_run_file(tmp_path / "none")


def record(folder, rewards, settings=None, task="a", **facts) -> RunRecord:
    progress = [
        {"iteration": k, "Train/mean_reward": x, "Perf/learning_time": 0.5}
        for k, x in enumerate(rewards, 1)
    ]
    return RunRecord(
        Path(folder), progress, {"task": task, "settings": settings or {}, **facts}
    )


def test_records_of_runs():
    one = record("r", [1.0, 2.0, 4.0], {"train.iterations": 9}, seed=3)
    assert (one.iteration, one.wanted, one.seconds) == (3, 9, 1.5)
    assert one.final("Train/mean_reward") == pytest.approx(7 / 3)
    assert one.final("other") is None
    assert one.curve("Train/mean_reward") == ([1, 2, 3], [1.0, 2.0, 4.0])
    assert one.settings() == {
        "task": "a", "seed": 3, "engine": None, "device": None, "train.iterations": 9
    }  # fmt: skip
    empty = RunRecord(Path("r"), [])
    assert (empty.iteration, empty.wanted, empty.seconds) == (0, None, 0)


def test_settings_in_which_runs_differ():
    runs = [record("r", [1.0], {"x": 1, "y": 2}), record("s", [1.0], {"x": 1, "y": 3})]
    assert differences(runs) == ["y"]
    other = record("t", [1.0], {"x": 7}, task="b")
    assert differences([*runs, other]) == ["task", "y"]
    assert differences([runs[0], other]) == ["task"]
    assert differences([runs[0], runs[0]]) == []


def test_curves_have_the_mean_of_a_group(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(run_records, "save_figure", lambda f, path: figures.append(f))
    groups = {
        "one": [record("r", [1.0, 2.0])],
        "two": [record("s", [1.0, 3.0, 9.0]), record("t", [2.0, 5.0])],
    }
    draw_curves(tmp_path / "x.png", groups)
    (axes,) = figures[0].get_axes()
    lines = [(x.get_label(), x.get_xdata(), x.get_ydata()) for x in axes.get_lines()]
    assert [np.asarray(y).tolist() for _, _, y in lines] == [
        [1.0, 2.0], [1.0, 3.0, 9.0], [2.0, 5.0], [1.5, 4.0]
    ]  # fmt: skip
    assert np.asarray(lines[3][1]).tolist() == [1, 2]
    shown = [label for label, _, _ in lines if not label.startswith("_")]
    assert shown == ["one", "two, mean"]
    colours = [x.get_color() for x in axes.get_lines()]
    assert colours[0] != colours[1] == colours[2] == colours[3]
    assert axes.get_ylabel() == "Train/mean_reward"


def test_runs_are_found_at_any_depth(tmp_path):
    for name in ("b/deep/er", "a"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "progress.jsonl").write_text('{"iteration": 1}\n')
    (tmp_path / "a" / "run.json").write_text(json.dumps({"seed": 8}))
    found = find_runs([tmp_path, tmp_path / "a"])
    assert [run.folder.name for run in found] == ["a", "er"]
    assert found[0].facts == {"seed": 8}
    assert found[1].facts == {}
    with pytest.raises(InvalidInputError):
        find_runs([tmp_path / "none"])


# Settings.


@pytest.fixture(scope="module")
def base() -> RunCfg:
    return RunCfg.for_task(TASK, seed=5)


def test_a_grid_has_all_combinations(base):
    grid = ["train.gamma=0.9,0.95", "env.episode-length-s=3"]
    cells = grid_cells(base, [1, 2, 1], grid)
    assert [cell.name for cell in cells] == [
        f"gamma={g}_episode_length_s=3_seed_{seed}"
        for g in (0.9, 0.95)
        for seed in (1, 2)
    ]
    assert [cell.cfg.train.gamma for cell in cells] == [0.9, 0.9, 0.95, 0.95]
    assert [cell.cfg.seed for cell in cells] == [1, 2, 1, 2]
    assert {cell.cfg.env_cfg().episode_length_s for cell in cells} == {3.0}
    assert cells[2].group == "gamma=0.95, episode_length_s=3"
    (alone,) = grid_cells(base, [], [])
    assert (alone.name, alone.group, alone.cfg.seed) == ("seed_5", "all", 5)
    sizes = grid_cells(base, [], ["train.hidden_sizes=(8,4),[3]"])
    assert [c.cfg.train.hidden_sizes for c in sizes] == [(8, 4), (3,)]
    words = grid_cells(base, [], ["train.activation=elu, tanh"])
    assert [c.cfg.train.activation for c in words] == ["elu", "tanh"]


@pytest.mark.parametrize(
    "text", ["train.gamma", "train.gamma=", "gamma=0.9", "reward.x=1", "env.none=1"]
)
def test_grids_that_are_rejected(base, text):
    with pytest.raises(SimStateError):
        grid_cells(base, [], [text])


def test_settings_of_a_run_survive_a_checkpoint(base):
    changed = dataclasses.replace(
        base.changed({"env.episode_length_s": 4.0, "train.gamma": 0.9}),
        without=("env.events.push",), teacher="t", start_from="s",
        output=OutputCfg(save_every=3, keep=2, video_every=4),
    )  # fmt: skip
    assert changed.train.gamma == 0.9
    assert changed.settings == {"env.episode_length_s": 4.0}
    assert RunCfg.of({"run": changed.as_dict()}) == changed
    old = changed.as_dict()
    old["train"]["save_interval"] = 7
    assert RunCfg.of({"run": old}).output.save_every == 7
    with pytest.raises(SnapshotError):
        RunCfg.of({"run": {"task": TASK}})


def test_settings_for_training_only(base):
    only = {"env.episode_length_s": 2.0, "env.rewards.alive.weight": 7.0}
    train = dataclasses.replace(
        base.train, training_settings=only, physics_options={"iterations": 3}
    )
    cfg = dataclasses.replace(base, train=train)
    training, plain = cfg.training_env_cfg(), cfg.env_cfg()
    assert training.episode_length_s == 2.0
    assert plain.episode_length_s != 2.0
    assert training.scene.options["iterations"] == 3
    assert "iterations" not in plain.scene.options
    other = cfg.changed({"env.episode_length_s": 5.0})
    assert other.training_env_cfg().episode_length_s == 5.0
    assert other.training_env_cfg().rewards["alive"].weight == 7.0
    gone = dataclasses.replace(cfg, without=("env.rewards.alive",))
    assert "alive" not in gone.training_env_cfg().rewards


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_seeds_that_torch_does_not_take(base, seed):
    dataclasses.replace(base, seed=2**64 - 1)
    with pytest.raises((SimStateError, TypeError)):
        dataclasses.replace(base, seed=seed)


def test_limits_of_outputs():
    for name in ("save_every", "keep", "video_every", "video_envs"):
        OutputCfg(**{name: 1})
        with pytest.raises(SimStateError):
            OutputCfg(**{name: 0})
    for wrong in ({"video_seconds": 0.0}, {"logger": "paper"}):
        with pytest.raises(SimStateError):
            OutputCfg(**wrong)


def test_a_file_names_no_code_of_its_own(tmp_path):
    check_no_code(TASK)
    check_no_code(str(tmp_path / "task.py"))
    check_no_code(f"{tmp_path / 'task.py'}:longer")
    for task in ("task.py", "task.py:longer", "os:system", "a/b.py", 3, None):
        with pytest.raises(SimStateError):
            check_no_code(task)


# Checkpoints.


def test_a_checkpoint_holds_what_it_was_given(tmp_path):
    content = {
        "a": torch.arange(6.0).reshape(2, 3), "b": [1, (2.5, None), {"c": True}],
        "d": (torch.tensor([1, 2]), "text"), "e": {3: "three"},
    }  # fmt: skip
    path = checkpoint_path(tmp_path, 12)
    assert path.name == "model_12.npz"
    write_checkpoint(path, content)
    found = read_checkpoint(path)
    assert torch.equal(found["a"], content["a"])
    assert found["b"] == content["b"]
    assert torch.equal(found["d"][0], content["d"][0])
    assert found["d"][1] == "text"
    assert found["e"] == {3: "three"}
    with pytest.raises(TypeError):
        write_checkpoint(path, {"a": object()})
    with pytest.raises(SnapshotError):
        read_checkpoint(tmp_path / "none.npz")


def test_the_latest_checkpoints_are_found_and_kept(tmp_path):
    for k in (2, 10, 9, 1):
        checkpoint_path(tmp_path, k).write_text("")
    (tmp_path / "model_99.txt").write_text("")
    assert find_checkpoint(tmp_path).name == "model_10.npz"
    assert find_policy(tmp_path).name == "model_10.npz"
    (tmp_path / "best.npz").write_text("")
    assert find_policy(tmp_path).name == "best.npz"
    assert find_checkpoint(tmp_path / "model_2.npz").name == "model_2.npz"
    prune_checkpoints(tmp_path, 2)
    left = sorted(x.name for x in tmp_path.iterdir())
    assert left == ["best.npz", "model_10.npz", "model_9.npz", "model_99.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    for wrong in (empty, tmp_path / "none"):
        with pytest.raises(SnapshotError):
            find_checkpoint(wrong)
    for run in ("slow", "fast"):
        (empty / run).mkdir()
        checkpoint_path(empty / run, 3).write_text("")
    with pytest.raises(SnapshotError) as error:
        find_checkpoint(empty)
    assert "fast, slow" in str(error.value)


# Learners.

EXPLICIT = {
    "actor": {"class_name": "MLPModel", "activation": "elu",
              "distribution_cfg": {"class_name": "GaussianDistribution"}},
    "critic": {"class_name": "MLPModel", "activation": "tanh"},
    "algorithm": {"class_name": "PPO", "gamma": 0.9},
}  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        ("algorithm", "class_name"), ("actor", "class_name"), ("critic", "class_name"),
        ("actor", "activation"), ("critic", "activation"),
        ("actor", "distribution_cfg", "class_name"), ("algorithm", "optimizer"),
    ],
)  # fmt: skip
def test_settings_that_the_explicit_update_does_not_know(path):
    settings = json.loads(json.dumps(EXPLICIT))
    assert fits(settings)
    settings["actor"]["distribution_cfg"]["learn_std"] = True
    assert fits(settings)
    inner = settings
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = "other"
    assert not fits(settings)


def test_a_fixed_deviation_is_not_explicit():
    settings = json.loads(json.dumps(EXPLICIT))
    settings["actor"]["distribution_cfg"]["learn_std"] = False
    assert not fits(settings)


def test_orthogonal_weights_have_their_gains():
    seen = TensorDict({"policy": torch.zeros(2, 6)}, batch_size=[2])
    network = MLPModel(
        seen, {"actor": ["policy"]}, "actor", 3, hidden_dims=[8, 5], activation="elu"
    )
    initialise_orthogonally(network, 0.01)
    layers = [x for x in network.mlp if isinstance(x, torch.nn.Linear)]
    for layer, gain in zip(layers, (math.sqrt(2), math.sqrt(2), 0.01), strict=True):
        weight = layer.weight.detach().double()
        rows, columns = weight.shape
        square = weight @ weight.T if rows <= columns else weight.T @ weight
        wanted = gain**2 * torch.eye(min(rows, columns), dtype=torch.float64)
        torch.testing.assert_close(square, wanted, atol=1e-6, rtol=1e-5)
        assert not layer.bias.any()


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "sac"}, {"symmetric": True}, {"noise_std_type": "log"},
        {"activation": "relu"}, {"network": "gru"}, {"hidden_sizes": (3,)},
        {"critic_hidden_sizes": (3,)}, {"actor_group": "eye"}, {"rsl_rl": {"a": 1}},
    ],
)  # fmt: skip
def test_a_run_resumes_with_the_same_kind_of_learner(change):
    check_kind(TrainCfg(gamma=0.9), TrainCfg(gamma=0.8))
    with pytest.raises(SnapshotError):
        check_kind(TrainCfg(), TrainCfg(**change))
    with pytest.raises(SnapshotError):
        check_kind(TrainCfg(**change), TrainCfg())
