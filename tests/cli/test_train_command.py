"""`simstate train` with a run that learns nothing: options, outputs and exit codes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from simstate.base.errors import InvalidInputError
from simstate.cli import main, ray_option
from simstate.train.early_stopping import EarlyStopping
from simstate.train.run_cfg import RunCfg
from simstate.train.training_logs import Progress

TASK = "Cartpole-Balance"


class FakeRun:
    """Stands for a TrainingRun."""

    made: list[FakeRun] = []  # noqa: RUF012
    done, is_interrupted = None, False

    def __init__(self, cfg: RunCfg, run_dir: Path, make_worlds=None, start=0) -> None:
        self.cfg, self.run_dir, self.make_worlds = cfg, run_dir, make_worlds
        self.iteration, self.saved = start, 0
        self.example = SimpleNamespace(sim=SimpleNamespace(engine_name="native"))
        self.stopping = EarlyStopping(5, 12.5, 3)
        self.core_seconds = SimpleNamespace(table=lambda: {"physics": 3.0, "rest": 1.0})
        FakeRun.made.append(self)

    @staticmethod
    def resume(run_dir: Path, task, make_worlds=None) -> FakeRun:
        cfg = RunCfg.for_task(TASK, seed=6)
        run = FakeRun(cfg, run_dir, make_worlds, 4)
        run.resumed_as = task
        return run

    def learn(self, total: int, report, stop) -> bool:
        self.total = total
        self.iteration = total if FakeRun.done is None else FakeRun.done
        report(Progress(self.iteration, 1.5, 2.0, 1000.0, {}))
        if FakeRun.is_interrupted:
            self.saved = self.iteration - 1
            raise KeyboardInterrupt
        return True


@pytest.fixture
def exported(monkeypatch, tmp_path) -> list[tuple]:
    """The policies that are exported."""
    found: list[tuple] = []
    monkeypatch.chdir(tmp_path)
    FakeRun.made.clear()
    FakeRun.done, FakeRun.is_interrupted = None, False
    monkeypatch.setattr("simstate.train.training_run.TrainingRun", FakeRun)
    monkeypatch.setattr("simstate.train.checkpoint.find_policy", lambda folder: folder)
    monkeypatch.setattr("simstate.train.checkpoint.read_checkpoint", lambda path: path)
    monkeypatch.setattr(
        "simstate.train.checkpoint_policy.Policy", lambda env, content: content
    )
    monkeypatch.setattr(
        "simstate.train.onnx_export.export_onnx", lambda *args: found.append(args)
    )
    return found


def test_a_new_run_has_the_options_of_the_command(exported, capsys):
    assert main([
        "train", TASK, "--run-dir", "out", "--envs", "7", "--iterations", "9",
        "--seed", "3", "--engine", "native", "--device", "cpu", "--save-every", "4",
        "--keep", "2", "--logger", "none", "--video-every", "5",
        "--without", "env.rewards.alive", "--train.gamma", "0.9",
        "--env.episode-length-s", "4", "--json",
    ]) == 0  # fmt: skip
    (run,) = FakeRun.made
    cfg = run.cfg
    assert (cfg.train.num_envs, cfg.train.iterations, cfg.train.gamma) == (7, 9, 0.9)
    assert (cfg.seed, cfg.engine, cfg.device) == (3, "native", "cpu")
    assert cfg.without == ("env.rewards.alive",)
    assert cfg.settings == {"env.episode_length_s": 4.0}
    assert dataclasses.asdict(cfg.output) == {
        "save_every": 4, "keep": 2, "logger": "none", "video_every": 5,
        "video_envs": 4, "video_seconds": 4.0,
    }  # fmt: skip
    assert run.make_worlds is None
    assert run.total == 9
    assert json.loads(capsys.readouterr().out) == {
        "run_dir": "out", "updates": 9, "finished": True, "policy": "out/policy.onnx"
    }  # fmt: skip
    assert exported == [(Path("out"), run.example, Path("out/policy.onnx"))]


def test_a_run_without_options_is_that_of_the_task(exported, capsys):
    assert main(["train", TASK, "--no-export", "--json"]) == 0
    (run,) = FakeRun.made
    assert run.cfg == RunCfg.for_task(TASK)
    assert run.run_dir.parent == Path("runs") / TASK
    assert run.total == run.cfg.train.iterations
    assert exported == []
    assert json.loads(capsys.readouterr().out)["policy"] is None


def test_the_text_says_what_is_trained_and_what_comes_next(exported, capsys):
    args = ["train", TASK, "--run-dir", "out", "--envs", "7", "--iterations", "9"]
    assert main([*args, "--profile"]) == 0
    text = capsys.readouterr().out
    steps = RunCfg.for_task(TASK).train.steps_per_env
    assert f"7 worlds on native, 9 updates of {steps} steps, into out" in text
    assert "Finished 9 updates; this call took 0 s" in text
    assert "Stopped early" not in text
    assert "Core-seconds" in text
    assert "Next: simstate play out" in text
    assert "Checkpoint out, policy out/policy.onnx" in text
    FakeRun.done = 8
    assert main(args) == 0
    text = capsys.readouterr().out
    assert "has not exceeded 12.5, reached after 3 updates, for 5" in text
    assert "Core-seconds" not in text


@pytest.mark.parametrize(("saved", "word"), [(8, "8 of"), (0, "none of"), (9, "all")])
def test_an_interrupted_run_says_how_to_go_on(exported, capsys, saved, word):
    FakeRun.is_interrupted = True
    learn = FakeRun.learn

    def interrupted(self, *args):
        try:
            learn(self, *args)
        finally:
            self.saved = saved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeRun, "learn", interrupted)
        args = ["train", TASK, "--run-dir", "out", "--iterations", "9"]
        assert main(args) == 130
    text = capsys.readouterr().out
    assert "Interrupted after 9 updates" in text
    assert word in text.partition("updates, ")[2]
    assert "simstate train --resume --run-dir out continues" in text
    assert "are done" not in text
    assert exported == []


def test_a_run_is_resumed_unchanged(exported, capsys):
    args = ["train", "--resume", "--run-dir", "out", "--keep", "3"]
    assert main([*args, "--iterations", "11", "--json"]) == 0
    (run,) = FakeRun.made
    assert run.resumed_as is None
    assert run.total == 11
    assert run.cfg.output.keep == 3
    assert run.cfg.output.save_every == RunCfg.for_task(TASK).output.save_every
    assert "Resumed out after 4 updates" in capsys.readouterr().err
    same = ["--seed", "6", "--engine", "native", "--device", "cpu",
            "--envs", str(run.cfg.train.num_envs)]  # fmt: skip
    assert main([*args, *same]) == 0
    for other in (["--seed", "7"], ["--envs", "3"], ["--engine", "warp"],
                  ["--device", "cuda"], ["--without", "env.rewards.alive"],
                  ["--start-from", "x"], ["--teacher", "x"],
                  ["--parameters", "x"]):  # fmt: skip
        assert main([*args, *other]) == 1
    named = ["train", TASK, "--resume", "--run-dir", "out"]
    assert main(named) == 0
    assert FakeRun.made[-1].resumed_as == TASK
    assert main([*named, "--train.gamma", "0.5"]) == 1
    assert main(["train", "Arm-Reach", "--resume", "--run-dir", "out"]) == 1


def test_the_newest_run_of_a_task_is_resumed(exported):
    folder = Path("runs") / TASK / "one"
    folder.mkdir(parents=True)
    (folder / "model_4.npz").touch()
    assert main(["train", TASK, "--resume"]) == 0
    assert FakeRun.made[0].run_dir == folder
    assert main(["train", "Arm-Reach", "--resume"]) == 1


def test_a_run_starts_from_checkpoints_by_their_full_paths(exported, tmp_path):
    args = ["train", TASK, "--start-from", "first"]
    assert main(args) == 0
    assert FakeRun.made[0].cfg.start_from == str(tmp_path / "first")
    assert FakeRun.made[0].cfg.teacher is None
    (tmp_path / "wrong.json").write_text("{}")
    assert main(["train", TASK, "--parameters", "wrong.json"]) == 1


def test_a_cluster_has_worlds_on_the_cpu():
    cfg = dataclasses.replace(RunCfg.for_task(TASK), device="cuda")
    with pytest.raises(InvalidInputError):
        ray_option.remote_worlds(None, None, cfg)


def test_the_settings_of_a_file_are_repeated(exported, tmp_path):
    from simstate.train.run_file import write_run_file

    cfg = RunCfg.for_task(TASK, seed=8).changed({"train.gamma": 0.8})
    write_run_file(tmp_path, cfg)
    for args in (["--config", str(tmp_path)], [f"--config={tmp_path / 'run.json'}"]):
        assert main(["train", *args, "--run-dir", "out"]) == 0
        run = FakeRun.made[-1]
        assert (run.cfg.seed, run.cfg.train.gamma) == (8, 0.8)
    assert main(["train"]) == 1


def test_a_view_is_shown_during_training(exported, monkeypatch, capsys):
    shown: list[tuple] = []

    class Viewer:
        """Stands for a viewer."""

        url = "http://page"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            shown.append("closed")

        def sync(self) -> None:
            """Show the worlds."""

    def start(course, host, port, *rest, **options):
        shown.append((host, port, rest, options))
        return Viewer()

    monkeypatch.setattr("simstate.view.start_viewer", start)
    monkeypatch.setattr("simstate.env.task_course.TaskCourse", lambda env, act: env)
    args = ["train", TASK, "--run-dir", "out", "--no-export"]
    assert main([*args, "--view", "--port", "9"]) == 0
    assert shown == [
        ("127.0.0.1", 9, (None, None, True), {"controls": False}), "closed"
    ]  # fmt: skip
    assert "The worlds: http://page" in capsys.readouterr().out
    assert FakeRun.made[0].after_step is not None
    shown.clear()
    assert main(["train", TASK, "--run-dir", "other", "--no-export"]) == 0
    assert shown == []
    assert not hasattr(FakeRun.made[1], "after_step")
