"""Runs with options, files, seeds and logs, as a user has them."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from PIL import Image, ImageSequence
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.cli.own_task import OWN_TASK

from simstate.cli import main
from simstate.train.checkpoint import find_checkpoint, read_checkpoint


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "swing.py").write_text(OWN_TASK)
    return tmp_path


def train(*args):
    """Train without the export, which takes longer than so short a run."""
    return main(["train", *args, "--no-export"])


def actor(folder):
    return read_checkpoint(find_checkpoint(folder))["algorithm"]["actor_state_dict"]


def same(one, other):
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_run_that_starts_from_another_says_so_and_is_repeated(folder, capsys):
    assert train("swing.py", "--run-dir", "first", "--iterations", "1") == 0
    given = ["swing.py", "--start-from", "first", "--env.rewards.upright.weight", "3"]
    assert train(*given, "--iterations", "1", "--run-dir", "later") == 0
    facts = json.loads((folder / "later" / "run.json").read_text())
    assert facts["start_from"] == str(folder / "first" / "model_1.npz")
    assert train("--config", "later", "--run-dir", "again") == 0
    assert same(actor(folder / "later"), actor(folder / "again"))
    assert not same(actor(folder / "later"), actor(folder / "first"))
    capsys.readouterr()
    assert train("swing.py", "--start-from", "none", "--run-dir", "lost") == 1
    assert "There is no folder 'none'" in capsys.readouterr().err
    other = ["Cartpole-SwingUp", "--start-from", "first", "--run-dir", "lost"]
    assert train(*other, "--envs", "2") == 1
    assert "do not fit this run" in " ".join(capsys.readouterr().err.split())
    goes_on = ["--resume", "--run-dir", "later", "--start-from", "first"]
    assert train(*goes_on) == 1
    assert "resumed run keeps its settings" in " ".join(capsys.readouterr().err.split())


def test_a_run_is_repeated_from_its_file_bit_for_bit(folder, capsys):
    options = ["--env.rewards.upright.weight", "2.5", "--train.gamma", "0.9"]
    options += ["--without", "env.events.start", "--seed", "4", "--iterations", "2"]
    first = ["swing.py", "--run-dir", "first", "--save-every", "1", "--keep", "1"]
    assert train(*first, *options) == 0
    facts = json.loads((folder / "first" / "run.json").read_text())
    assert facts["settings"]["env.rewards.upright.weight"] == 2.5
    assert facts["settings"]["train.gamma"] == 0.9
    assert facts["settings"]["env.rewards.steady.params.share"] == 0.2
    assert facts["versions"].keys() >= {"python", "simstate", "mujoco", "torch"}
    assert facts["git"] is None  # no repository here
    assert [p.name for p in (folder / "first").glob("model_*")] == ["model_2.npz"]
    assert train("--config", "first", "--run-dir", "again") == 0
    assert same(actor(folder / "first"), actor(folder / "again"))
    other = ["--config", "first/run.json", "--run-dir", "other"]
    assert train(*other, "--env.rewards.upright.weight", "-1") == 0
    assert not same(actor(folder / "first"), actor(folder / "other"))
    capsys.readouterr()
    assert main(["runs", ".", "--json", "--plot", "curves.png"]) == 0
    told = {run["folder"]: run for run in json.loads(capsys.readouterr().out)}
    assert set(told) == {"again", "first", "other"}
    assert told["other"]["settings"] == {"env.rewards.upright.weight": -1.0}
    assert told["first"]["updates"] == 2
    short = ["--iterations", "1", "--envs", "2", "--logger", "none"]
    assert train("Cartpole-Balance", "--run-dir", "another", *short) == 0
    capsys.readouterr()
    assert main(["runs", "."]) == 0
    table = capsys.readouterr().out
    assert "Cartpole-Balance" in table
    assert "more settings differ" not in table  # of another task: they say nothing
    with Image.open(folder / "curves.png") as picture:
        assert picture.size[0] > 300
    (folder / "swing.py").write_text(OWN_TASK + "\n# changed\n")
    assert train("--config", "first", "--run-dir", "first") == 1
    assert "has changed" in " ".join(capsys.readouterr().err.split())


def test_seeds_and_values_are_runs_of_their_own_with_a_summary(folder, capsys):
    sweep = ["swing.py", "--seeds", "1", "2", "--run-dir", "sweep"]
    sweep += ["--grid", "env.rewards.upright.weight=1,3", "--logger", "none"]
    # An episode takes 100 steps, begun at random times.
    assert train(*sweep, "--iterations", "2", "--train.steps-per-env", "60") == 0
    out = " ".join(capsys.readouterr().out.split())
    names = {path.parent.name for path in (folder / "sweep").glob("*/model_2.npz")}
    assert names == {
        f"rewards.upright.weight={weight}_seed_{seed}"
        for weight in (1, 3)
        for seed in (1, 2)
    }
    assert "rewards.upright.weight=3" in out
    assert "±" in out
    assert (folder / "sweep" / "summary.png").is_file()
    found = [actor(folder / "sweep" / name) for name in sorted(names)]
    assert not any(same(found[0], other) for other in found[1:])
    assert train(*sweep, "--iterations", "2", "--train.steps-per-env", "60") == 1
    assert "holds a run already" in " ".join(capsys.readouterr().err.split())


def test_a_video_of_learning_is_a_file_and_in_the_log_and_changes_nothing(folder):
    short = ["swing.py", "--iterations", "2", "--run-dir"]
    assert train(*short, "plain", "--logger", "none") == 0
    assert train(*short, "filmed", "--video-every", "2") == 0
    assert same(actor(folder / "plain"), actor(folder / "filmed"))
    (path,) = (folder / "filmed" / "videos").iterdir()
    assert path.name == "update_2.gif"
    with Image.open(path) as gif:
        assert gif.size == (320, 240)  # four worlds
        frames = [frame.convert("L").tobytes() for frame in ImageSequence.Iterator(gif)]
    assert len(set(frames)) > 10
    log = EventAccumulator(str(folder / "filmed"))
    log.Reload()
    (event,) = log.Images("policy")
    assert (event.step, event.width, event.height) == (2, 320, 240)
    assert event.encoded_image_string == path.read_bytes()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train", "swing.py", "--env.reward.upright.weight", "2"], "upright.weight"),
    ],
)
def test_what_is_mistyped_is_suggested(folder, args, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_of_a_task_has_its_settings(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        main(["train", "swing.py", "--help"])
    out = capsys.readouterr().out
    assert "--env.rewards.steady.params.share VALUE" in out
    assert "--train.learning-rate VALUE" in out
    assert "--env.observations.policy.terms.pos.delay" in out
    assert "--train.num-envs" not in out  # it is --envs
    assert "usage: simstate train swing.py" in out


@pytest.mark.parametrize("named", ["swing.py", "Cartpole-Balance"])
def test_to_play_a_task_says_what_is_missing(folder, named, capsys):
    assert main(["play", named]) == 1
    assert "name the policy to play" in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("simstate 0.")


def test_runs_without_a_run_says_so(folder, capsys):
    assert main(["runs", "."]) == 1
    assert "No run with a progress.jsonl" in capsys.readouterr().err


def test_weights_and_biases_works_offline(folder, monkeypatch):
    pytest.importorskip("wandb", reason="Weights & Biases is an extra of its own")
    monkeypatch.setenv("WANDB_MODE", "offline")
    options = ["--iterations", "2", "--run-dir", "run", "--logger", "wandb"]
    assert train("swing.py", *options) == 0
    (file,) = (folder / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert file.stat().st_size > 1000
