"""Demonstrations from recordings: the same episodes, with more of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tests.inside import is_same_array
from tests.raised import raises
from tests.record.conftest import scene

from simstate import InvalidInputError, RecordingError, SimStateError, Simulation
from simstate.cli import main
from simstate.data.datasets import episodes_of, read_hdf5
from simstate.data.replay import collect_from, demonstrations, replay
from simstate.env import Env, tasks
from simstate.record import Recording


@pytest.fixture
def run(tmp_path):
    """Two episodes and more in each of three worlds, nothing but what is seen."""
    path = tmp_path / "cart.simrec"
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.2
    env = Env(cfg, 3, seed=8, first_world=5)
    env.episode_length_buf = torch.tensor([0, 4, 7])
    generator = torch.Generator().manual_seed(1)
    truth = []
    with env.record(path, task="Cartpole-Balance"):
        for k in range(27):
            truth.append(env.scene["robot"].data.joint_vel.clone())
            env.step(torch.randn(3, 1, generator=generator))
            if k == 15:
                env.sim.data.qvel[1, 1] += 0.4
    return path, torch.stack(truth)


def test_what_was_not_kept_comes_from_the_states(run, tmp_path):
    path, truth = run
    calls = []
    found = collect_from(
        [path], tmp_path / "data", quantities=["robot.joint_vel"],
        success="time_out", on_progress=lambda *what: calls.append(what),
    )  # fmt: skip
    (part,) = found.parts
    with Recording(part) as recording, Recording(path) as before:
        assert torch.equal(recording["robot.joint_vel"], truth)
        for name in before.names:
            assert torch.equal(recording[name], before[name]), name
    assert replay(part).is_same
    episodes, others = list(found.episodes()), list(episodes_of(path))
    assert len(episodes) == len(others) == 8
    assert calls == [(8, 1)]
    for one, other in zip(episodes, others, strict=True):
        np.testing.assert_array_equal(one.columns["action"], other.columns["action"])


def test_what_does_not_come_out_the_same_is_refused(run, tmp_path, monkeypatch):
    path, _ = run

    def lighter(cfg, *args):
        scene = dataclasses.replace(cfg.scene, gravity=(0.0, 0.0, -9.8))
        return dataclasses.replace(cfg, scene=scene)

    monkeypatch.setattr(demonstrations, "with_cameras", lighter)
    with raises(RecordingError, name="observation/policy"):
        collect_from([path], tmp_path / "data")
    assert not list((tmp_path / "data").glob("part-*.simrec"))


def recorded(path, worlds):
    """A few steps of four worlds, of which some are kept."""
    env = Env(tasks.make_cfg("Cartpole-Balance"), 4, seed=8)
    generator = torch.Generator().manual_seed(1)
    with env.record(path, task="Cartpole-Balance", worlds=worlds):
        for _ in range(9):
            env.step(torch.randn(4, 1, generator=generator))
    return path


def test_worlds_that_were_kept_are_compared(tmp_path, monkeypatch):
    path = recorded(tmp_path / "some.simrec", [3, 1])
    found = collect_from([path], tmp_path / "data")
    with Recording(found.parts[0]) as now, Recording(path) as then:
        assert torch.equal(now["action"][:, [3, 1]], then["action"])
    read = Recording.read

    def altered(self, name, *args):
        values = read(self, name, *args)
        if name == "reward":
            values[2, wrong] += 1e-6
        return values

    monkeypatch.setattr(Recording, "read", altered)
    wrong = 1
    with raises(RecordingError, name="reward"):
        collect_from([path], tmp_path / "other")
    wrong = 2  # of which the recording knows nothing
    collect_from([path], tmp_path / "third")


def test_nan_is_the_same_as_nan_alone():
    one, other = np.array([1.0, np.nan, 3.0]), np.array([1.0, np.nan, 3.0])
    assert is_same_array(one, other)
    other[2] = np.nan
    assert not is_same_array(one, other)
    assert not is_same_array(other, one)


def test_what_cannot_be_had_is_refused_before_the_folder_is_described(run, tmp_path):
    path, _ = run
    data = tmp_path / "data"
    sim = Simulation(scene(), 2)
    with sim.record(tmp_path / "sim.simrec"):
        sim.step(3)
    with raises(InvalidInputError, name="success"):
        collect_from([path], data, success="tim_out")
    with raises(SimStateError, name="font"):
        collect_from([path], data, cameras=["font"])
    with raises(RecordingError, file="sim.simrec"):
        collect_from([path, tmp_path / "sim.simrec"], data)
    assert not data.exists()
    assert collect_from([path], data, success="time_out").parts


@pytest.mark.parametrize(
    "option", [("--episodes", "3"), ("--envs", "2"), ("--seed", "0"),
               ("--engine", "native")],
)  # fmt: skip
def test_the_command_takes_no_option_that_recordings_answer(
    run, tmp_path, capsys, option
):
    args = ["collect", "Cartpole-Balance", "--from", str(run[0]), *option]
    assert main([*args, "--out", str(tmp_path / "data")]) == 1
    assert f"{option[0]} cannot be chosen with --from" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_the_command(run, tmp_path, capsys):
    path, _ = run
    args = ["collect", "Cartpole-Balance", "--from", str(path)]
    args += ["--out", str(tmp_path / "data"), "--quantities", "robot.joint_pos"]
    assert main([*args, "--to", "hdf5"]) == 0
    assert "8 episodes in 1 parts" in capsys.readouterr().out
    demos = read_hdf5(tmp_path / "data/demos.hdf5")
    assert "states/articulation/robot/joint_position" in demos[0].arrays
    assert main([*args, "--policy", "x.onnx"]) == 1
    assert "Give either --policy" in capsys.readouterr().err
    with raises(InvalidInputError, file="data"):
        collect_from([path], tmp_path / "data", success=None)
