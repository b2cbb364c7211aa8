"""Demonstrations from recordings: the same episodes, with more of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from simstate import InvalidInputError, RecordingError
from simstate.cli import main
from simstate.datasets import episodes_of, read_hdf5
from simstate.env import Env, tasks
from simstate.record import Recording
from simstate.replay import collect_from, demonstrations, replay


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
    told = []
    found = collect_from(
        [path], tmp_path / "data", quantities=["robot.joint_vel"],
        success="time_out", told=lambda *what: told.append(what),
    )  # fmt: skip
    (part,) = found.parts
    with Recording(part) as recording, Recording(path) as before:
        assert torch.equal(recording["robot.joint_vel"], truth)
        for name in before.names:
            assert torch.equal(recording[name], before[name]), name
    assert replay(part).is_same
    episodes, others = list(found.episodes()), list(episodes_of(path))
    assert len(episodes) == len(others) == 8
    assert told == [(8, 1)]
    for one, other in zip(episodes, others, strict=True):
        np.testing.assert_array_equal(one.columns["action"], other.columns["action"])


def test_what_does_not_come_out_the_same_is_refused(run, tmp_path, monkeypatch):
    path, _ = run

    def lighter(cfg, *args):
        scene = dataclasses.replace(cfg.scene, gravity=(0.0, 0.0, -9.8))
        return dataclasses.replace(cfg, scene=scene)

    monkeypatch.setattr(demonstrations, "with_cameras", lighter)
    with pytest.raises(RecordingError, match=r"does not come out .*simstate replay"):
        collect_from([path], tmp_path / "data")
    assert not list((tmp_path / "data").glob("part-*.simrec"))


def test_the_command(run, tmp_path, capsys):
    path, _ = run
    args = ["collect", "Cartpole-Balance", "--from", str(path)]
    args += ["--out", str(tmp_path / "data"), "--quantities", "robot.joint_pos"]
    assert main([*args, "--to", "hdf5"]) == 0
    assert "8 episodes in 1 parts" in capsys.readouterr().out
    demos = read_hdf5(tmp_path / "data/demos.hdf5")
    assert "states/articulation/robot/joint_position" in demos[0].arrays
    assert main([*args, "--policy", "x.onnx"]) == 1
    assert "Say who acts" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="with other quantities"):
        collect_from([path], tmp_path / "data", success=None)
