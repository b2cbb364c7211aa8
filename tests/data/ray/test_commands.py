"""`--ray`: commands on workers that are in this process."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from tests.data.ray.ray_here import ClusterHere

from simstate.cli import bench, main, train


@pytest.fixture
def cluster(monkeypatch):
    made = ClusterHere(4)
    for command in (bench, train):
        monkeypatch.setattr(command, "cluster_of", lambda address: nullcontext(made))
    return made


def test_bench_ends_the_workers_of_each_number_of_worlds(cluster, capsys):
    args = ["bench", "cartpole", "--envs", "2", "5", "--seconds", "0.1"]
    assert main([*args, "--ray", "local"]) == 0
    assert "one process" in capsys.readouterr().out
    assert [actor.is_killed for actor in cluster.ray.started] == [True] * (2 + 4)


def test_train_with_fewer_worlds_than_workers(cluster, tmp_path):
    args = ["train", "Cartpole-Balance", "--envs", "3", "--iterations", "1"]
    args += ["--logger", "none", "--no-export", "--run-dir", str(tmp_path / "run")]
    assert main([*args, "--ray", "local"]) == 0
    assert len(cluster.ray.started) == 3


def test_train_keeps_its_remote_worlds_on_cpus(cluster, tmp_path, capsys):
    args = ["train", "Cartpole-Balance", "--engine", "warp", "--device", "cuda"]
    args += ["--run-dir", str(tmp_path / "run"), "--ray", "local"]
    assert main(args) == 1
    assert "--ray keeps the worlds on the workers' CPUs" in capsys.readouterr().err
    assert not cluster.ray.started
