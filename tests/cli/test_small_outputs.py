"""Small parts of commands: names, tables, sums, figures, and memory of a container."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from tests.inside import dispersion_table, joint_labels, names_policy, set_free_memory

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.compiled_core import is_available
from simstate.cli import main, report, trajectory
from simstate.cli.dispersions import DispersionsCommand
from simstate.cli.named_worlds import Viewed
from simstate.engine import memory_budget
from simstate.study.dispersions import Row


def test_report_lists_packages_whose_names_end_in_a_digit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["stable-baselines3>=2.7; extra == 'rl'", "h5py (>=3)", "pillow[x]~=13"]
    monkeypatch.setattr(report, "requires", lambda _: lines)
    found = report.packages()
    assert found["stable-baselines3"] == version("stable-baselines3")
    assert found["h5py"] == version("h5py")
    assert found["pillow"] == version("pillow")


def test_dispersions_align_words_left_and_numbers_right() -> None:
    command = DispersionsCommand(Path("drop.py"))
    table = dispersion_table(command, [Row("range", "m", "mean", 1.5, 1.0, 2.0)])
    assert [c.justify for c in table.columns] == ["left"] * 2 + ["right"] * 3


def test_a_full_container_has_no_memory_left(monkeypatch: pytest.MonkeyPatch) -> None:
    set_free_memory(monkeypatch, of_machine=10**9, of_container=0)
    assert memory_budget.free_memory(torch.device("cpu")) == 0


@pytest.mark.skipif(not is_available(), reason="the compiled core is not built")
def test_streams_of_floats_are_rejected() -> None:
    from simstate.engine.core import draws

    whole = [np.arange(3), np.arange(3), np.arange(3)]
    draws.uniform((whole[0], whole[1], whole[2]), None, 2, 0.0, 1.0)
    for k in range(3):
        wrong = [x.astype(float) if i == k else x for i, x in enumerate(whole)]
        with pytest.raises(ValueError, match="int64"):
            draws.uniform((wrong[0], wrong[1], wrong[2]), None, 2, 0.0, 1.0)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("arm", "model"),
        ("arm.xml", "model"),
        ("worlds.npz", "model"),
        ("run.simrec", "recording"),
        ("policy.onnx", "policy"),
        ("model_12.npz", "policy"),
        ("run", "policy"),
        ("empty", "model"),
        ("Cartpole-Balance", "task"),
        ("swing.py", "task"),
        ("package.module:function", "task"),
    ],
)
def test_what_is_named_is_a_model_a_recording_a_policy_or_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("run", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "run" / "model_3.npz").touch()
    (tmp_path / "empty" / "worlds.npz").touch()
    named = Viewed(what, None, None, None, 0.0, 0, "native", "cpu")
    assert named.is_recording() is (kind == "recording")
    assert named.is_model() is (kind == "model")
    assert names_policy(named) is (kind == "policy")


def write_run(folder: Path, rewards: list[float], wanted: int, gamma: float) -> None:
    folder.mkdir()
    lines = [
        {"iteration": k, "Train/mean_reward": reward, "Train/mean_episode_length": 7.0,
         "Perf/collection_time": 2.0, "Perf/learning_time": 0.5}
        for k, reward in enumerate(rewards, 1)
    ]  # fmt: skip
    (folder / "progress.jsonl").write_text(
        "".join(map("{}\n".format, map(json.dumps, lines)))
    )
    settings = {"train.iterations": wanted, "train.gamma": gamma}
    facts = {"task": "swing", "seed": 3, "settings": settings}
    (folder / "run.json").write_text(json.dumps(facts))


def test_runs_are_compared_by_their_last_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a", [100.0, *range(10)], 20, 0.9)
    write_run(tmp_path / "b", [1.0, 2.0], 2, 0.99)
    assert main(["runs", "a", "b", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["updates"], first["updates_wanted"]) == (11, 20)
    assert first["reward"] == 4.5  # of the last ten
    assert (second["reward"], second["episode_steps"]) == (1.5, 7.0)
    assert (first["seconds"], second["seconds"]) == (27.5, 5.0)
    assert first["settings"] == {"train.iterations": 20, "train.gamma": 0.9}
    assert main(["runs", "a", "b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (first,) = (line for line in lines if line.strip("│ ").startswith("a "))
    (second,) = (line for line in lines if line.strip("│ ").startswith("b "))
    assert "11 of 20" in first
    assert " of " not in second
    assert main(["runs", "a", "--metric", "Train/mean_rewards", "--plot", "x.png"]) == 1
    assert "Train/mean_reward" in capsys.readouterr().err


BLOCK = """
<mujoco><option gravity="1.2 0 -7"/><worldbody>
  <geom name="floor" type="plane" size="3 3 0.1" friction="2"/>
  <body name="block" pos="0.1 0.2 0.1"><freejoint/>
    <geom name="block" type="box" size="0.3 0.2 0.1" mass="2.5" friction="2"/></body>
</worldbody></mujoco>
"""


def test_contacts_carry_the_weight(tmp_path: Path, capsys) -> None:
    model = tmp_path / "block.xml"
    model.write_text(BLOCK)
    assert main(["contacts", str(model), "--seconds", "0.6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["time"] == pytest.approx(0.6)
    np.testing.assert_allclose(found["weight"], [3.0, 0.0, -17.5])
    np.testing.assert_allclose(found["force_of_the_world"], [-3.0, 0, 17.5], atol=0.2)
    assert main(["contacts", str(model), "--seconds", "0.6"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    share = float(text.partition("N: ")[2].partition(" %")[0])
    assert share == pytest.approx(100.0, abs=1.0)
    assert main(["contacts", str(model), "--seconds", "-1"]) == 1
    assert main(["contacts", str(model), "--seconds", "0"]) == 0


def test_a_trajectory_keeps_samples_of_one_world() -> None:
    entities = {"it": EntityCfg(model="cartpole")}
    sim = Simulation(SceneCfg(entities=entities, ground=False), 3)
    sim.data.qvel[:] = 0.5 * sim.data.qvel.new_tensor([[1, 2], [3, 4], [5, 6]])
    kept = trajectory.Trajectory(sim.scene["it"], 1, 4500, sim.timestep)
    states = [sim.data.qpos[1].tolist()]
    for step in range(1, 6):
        sim.step()
        kept.record(step)
        states.append(sim.data.qpos[1].tolist())
    assert kept.names == ("joint_pos", "joint_vel")
    np.testing.assert_allclose(kept["joint_pos"][:, 0], states[::2])  # each second step
    np.testing.assert_allclose(kept["joint_vel"][0, 0], [1.5, 2.0])
    np.testing.assert_allclose(kept.time[:, 0], sim.timestep * np.array([0, 2, 4]))
    np.testing.assert_allclose(kept["elapsed"], kept.time)
    labels = joint_labels(kept, "/s")
    assert [label.partition(" ")[2] for label in labels] == ["[m/s]", "[rad/s]"]
    ball = Simulation(SceneCfg(entities={"it": EntityCfg(model="cube")}, ground=False))
    falling = trajectory.Trajectory(ball.scene["it"], 0, 10, ball.timestep)
    assert falling.names == ("root_link_pos_w", "root_link_lin_vel_w")
    assert falling.units["root_link_lin_vel_w"] == "m/s"
    legs = Simulation(SceneCfg(entities={"it": EntityCfg(model="quadruped")}))
    units = trajectory.Trajectory(legs.scene["it"], 0, 10, legs.timestep).units
    assert (units["joint_pos"], units["joint_vel"]) == ("rad", "rad/s")


class FakeViewer:
    """Keeps the options of a viewer that would be shown."""

    made: ClassVar[list[dict[str, object]]] = []
    url = "http://localhost:1/"

    def __init__(self, course: object, **options: object) -> None:
        self.made.append(options | {"course": course})

    def __enter__(self) -> FakeViewer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, seconds: float | None) -> None:
        """Keep the time that it would be shown for [s]."""
        self.made[-1]["seconds"] = seconds


def test_options_of_the_viewer(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    opened: list[str] = []
    monkeypatch.setattr("simstate.view.viewer.Viewer", FakeViewer)
    monkeypatch.setattr("webbrowser.open", opened.append)
    FakeViewer.made.clear()
    given = ["view", "arm", "--envs", "20", "--seconds", "0.5"]
    assert main(given) == 0
    first = FakeViewer.made[0]
    assert (first["playing"], first["worlds"], first["seconds"]) == (True, 16, 0.5)
    assert first["course"].worlds.num_envs == 20
    assert first["reload"] is not None
    assert opened == []
    assert main(["view", "Cartpole-Balance", "--envs", "2", "--paused", "--open"]) == 0
    second = FakeViewer.made[1]
    assert (second["playing"], second["worlds"]) == (False, 2)
    assert (second["reload"], second["seconds"]) == (None, None)
    assert opened == [FakeViewer.url]
    assert FakeViewer.url in capsys.readouterr().out
    assert main(["view", "arm", "--seconds", "0"]) == 1


def test_ctrl_c_ends_the_viewer_without_an_error(monkeypatch) -> None:
    def interrupted(self: FakeViewer, seconds: float | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("simstate.view.viewer.Viewer", FakeViewer)
    monkeypatch.setattr(FakeViewer, "run", interrupted)
    assert main(["view", "cartpole"]) == 0
    assert main(["view", "cartpole", "--compare", "native"]) == 0
    assert FakeViewer.made[-1]["reload"] is None  # the other one has no file


def test_a_run_prints_tables_only_if_all_is_requested(capsys) -> None:
    given = ["run", "arm", "--envs", "2", "--seconds", "0.05", "--no-check"]
    assert main(given) == 0
    few = capsys.readouterr().out
    assert main([*given, "--all"]) == 0
    every = capsys.readouterr().out
    assert "joint_pos" not in few
    assert "joint" in every
    assert len(every.splitlines()) > len(few.splitlines()) + 10
    assert "Interrupted" not in every


def test_the_list_of_commands_says_how_to_go_on(capsys) -> None:
    with suppress(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert "`simstate COMMAND --help` lists the options of a command" in text
    assert "simstate --version" in text
