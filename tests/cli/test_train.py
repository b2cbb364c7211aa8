"""`simstate tasks`, `train` and `play`, run as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
from PIL import Image, ImageSequence
from tests.films import read_film

from simstate.cli import main
from simstate.env import tasks
from simstate.train.checkpoint import find_checkpoint, read_checkpoint

pytestmark = pytest.mark.long

TASK = "Cartpole-Balance"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """The folder of a short run, made by the command."""
    folder = tmp_path_factory.mktemp("runs") / "short"
    options = ["--envs", "16", "--iterations", "2", "--seed", "5"]
    assert main(["train", TASK, "--run-dir", str(folder), *options]) == 0
    return folder


def test_tasks_lists_all_of_them(capsys):
    assert main(["tasks"]) == 0
    table = capsys.readouterr().out
    assert main(["tasks", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [fact["name"] for fact in facts] == list(tasks.names())
    assert set(tasks.NAMES) <= set(tasks.names())
    for fact in facts[: len(tasks.NAMES)]:  # other tests may have registered more
        assert fact["name"] in table
        assert fact["description"]
        assert fact["train"]["num_envs"] >= 1
        assert fact["command"] == f"simstate train {fact['name']}"
        assert fact["core_seconds"] is None or fact["core_seconds"] > 1.0
    assert "core-seconds" in table


def test_train_leaves_checkpoints_logs_and_a_policy(run_dir):
    content = read_checkpoint(find_checkpoint(run_dir))
    assert content["iteration"] == 2
    assert content["run"]["seed"] == 5
    assert content["run"]["train"]["num_envs"] == 16
    assert list(run_dir.glob("events.out.tfevents*"))
    onnx.checker.check_model(onnx.load(run_dir / "policy.onnx"))
    assert not (run_dir / "git").exists()


def test_profile_prints_where_the_core_seconds_went(tmp_path, capsys):
    options = ["--envs", "8", "--iterations", "1", "--no-export", "--logger", "none"]
    folder = str(tmp_path / "run")
    assert main(["train", TASK, "--run-dir", folder, "--profile", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    (rule,) = [k for k, line in enumerate(lines) if line and set(line) == {"─"}]
    cells = [line.rsplit(maxsplit=2) for line in lines[rule + 1 :]]
    cells = cells[: next(k for k, row in enumerate(cells) if row[0] == "all") + 1]
    spent = {row[0].strip(): float(row[1]) for row in cells}
    assert {"physics", "update", "policy", "terms and resets"} <= set(spent)
    parts = sum(seconds for part, seconds in spent.items() if part != "all")
    assert parts == pytest.approx(spent["all"], abs=0.1 * len(spent))
    assert any("core-seconds." in line for line in lines)


def test_resume_goes_on_with_the_settings_of_the_run(run_dir, capsys):
    assert main(["train", TASK, "--run-dir", str(run_dir), "--iterations", "3"]) == 1
    assert "holds a run already" in " ".join(capsys.readouterr().err.split())
    resume = ["train", TASK, "--run-dir", str(run_dir), "--resume"]
    assert main([*resume, "--envs", "8"]) == 1
    assert "envs 16" in " ".join(capsys.readouterr().err.split())
    assert main([*resume, "--iterations", "3"]) == 0
    out = capsys.readouterr().out
    assert "after 2 updates" in " ".join(out.split())
    assert "reward" in out
    assert "steps/s" in out
    assert read_checkpoint(find_checkpoint(run_dir))["iteration"] == 3


def test_play_reports_and_writes_a_gif_that_moves(run_dir, tmp_path, capsys):
    path = tmp_path / "play.gif"
    options = ["--seconds", "0.4", "--envs", "3", "--size", "64", "48"]
    code = main(["play", TASK, str(run_dir), "--film", str(path), *options])
    assert code == 0
    out = capsys.readouterr().out
    assert "worlds that failed" in out
    assert "reward per second" in out
    with Image.open(path) as gif:
        frames = [np.asarray(f.convert("RGB")) for f in ImageSequence.Iterator(gif)]
    assert len(frames) == 10
    assert frames[0].shape == (48, 64, 3)
    assert min(frame.std() for frame in frames) > 1.0
    assert any(not np.array_equal(frames[0], frame) for frame in frames[1:])


def test_play_writes_an_mp4_and_prints_json(run_dir, tmp_path, capsys):
    path = tmp_path / "play.mp4"
    options = ["--seconds", "0.4", "--envs", "3", "--size", "64", "48", "--json"]
    assert main(["play", TASK, str(run_dir), "--film", str(path), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_envs"] == 3
    assert found["seconds"] == pytest.approx(0.4)
    frames = read_film(path).frames
    assert frames.shape[1:] == (48, 64, 3)
    assert frames[0].std() > 1.0


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["train", "Cartpole-Balanc"], "Did you mean 'Cartpole-Balance'"),
        (["train", TASK, "--envs", "0"], "num_envs must be an integer ≥ 1"),
        (["train", TASK, "--iterations", "0"], "iterations must be an integer ≥ 1"),
        (["train", TASK, "--seed", "-1"], "seed must be"),
        (["train", TASK, "--resume", "--run-dir", "RUN/none"], "There is no folder"),
        (["train", TASK, "--resume"], "no run to resume"),
        (["train", TASK, "--device", "cuda"], "native engine runs on the CPU"),
        (["play", TASK, "RUN/model_77.npz"], "There is no checkpoint"),
        (["play", "Arm-Reach", "RUN"], "trained for 'Cartpole-Balance'"),
        (["play", TASK, "RUN", "--film", "film.avi"], ".gif or .mp4"),
        (["play", TASK, "RUN", "--film", "RUN/no/film.gif"], "does not exist"),
        (["play", TASK, "RUN", "--seconds", "0"], "at least one step"),
        (["play", TASK, "RUN", "--command", "1", "0", "0"], "velocity command"),
        (["play"], "Name one policy"),
        (["train"], "Name a task"),
        (["train", "--config", "RUN/none.json"], "There is no file"),
        (["train", TASK, "--envs", "100000000"], "100,000,000 worlds"),
        (["train", TASK, "--seed", "1", "--seeds", "1", "2"], "--seed is for one"),
        (["train", TASK, "--grid", "nothing"], "--grid takes"),
        (["train", TASK, "--grid", "env.nothing=1,2"], "Unknown setting"),
        (["train", TASK, "--without", "env.events.nothing"], "Unknown term"),
        (
            [
                "train",
                TASK,
                "--resume",
                "--run-dir",
                "RUN",
                "--without",
                "env.events.a",
            ],
            "takes no settings",
        ),
    ],
)
def test_errors_are_one_message(args, expected, run_dir, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [arg.replace("RUN", str(run_dir)) for arg in args]
    assert main(given) == 1
    captured = capsys.readouterr()
    assert expected in " ".join(captured.err.split())
    assert "Traceback" not in captured.err
    assert not list(tmp_path.rglob("model_*"))


def test_a_missing_library_names_the_extra(capsys, monkeypatch):
    for name in ("train.training_run", "train.algorithm", "interop.rsl_rl"):
        monkeypatch.delitem(sys.modules, f"simstate.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "rsl_rl", None)
    monkeypatch.setitem(sys.modules, "rsl_rl.runners", None)
    assert main(["train", TASK]) == 1
    assert "pip install 'simstate[train]'" in " ".join(capsys.readouterr().err.split())


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "simstate", "train", TASK, "--envs", "16"]
    process = subprocess.Popen(
        [*command, "--iterations", "100000", "--run-dir", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        # A shell's background job ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        assert "16 worlds" in process.stdout.readline()
        assert "steps/s" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"--resume --run-dir {tmp_path / 'run'}" in out
    assert "all of them saved" in out
    assert "Traceback" not in err
    content = read_checkpoint(find_checkpoint(tmp_path / "run"))
    assert f"Interrupted after {content['iteration']} updates" in out


@pytest.mark.parametrize("command", ["tasks", "train", "play"])
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"simstate {command}" in capsys.readouterr().out
