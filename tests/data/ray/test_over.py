"""Work that is handed to others comes back to the same bits."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from tests.data.ray.ray_here import ClusterHere
from tests.raised import raises
from tests.record.conftest import scene

from simstate import InvalidInputError, Simulation
from simstate.base.python_file import run_file
from simstate.data.datasets import collect
from simstate.data.ray import Cluster
from simstate.env import tasks
from simstate.env.settings import described_settings
from simstate.study.dispersions import Study, normal


def make(draws, **options):
    sim = Simulation(scene(), **options)
    sim.data.qvel[:, 0] = draws["speed"].to(sim.dtype)
    return sim


STUDY = Study(
    make=make,
    draws={"speed": normal(1.0, 0.4)},
    until=0.1,
    results={"angle": (lambda sim: sim.data.qpos[:, 0], "rad")},
    record=["arm.joint_pos"],
)


def backwards(function, items):
    """As a cluster: the last is done first, and the order is kept."""
    some = list(items)
    done = [function(item) for item in reversed(some)]
    return reversed(done)


def test_a_study_over_others_is_the_same():
    here, there = STUDY.run(11, batch=11), STUDY.run(11, batch=4, over=backwards)
    assert torch.equal(here.results["angle"], there.results["angle"])
    one, other = (o.histories["arm.joint_pos"] for o in (here, there))
    assert torch.equal(one, other)
    assert torch.equal(here.times, there.times)
    assert here.history_units == there.history_units


def zeros(env):
    return lambda seen: torch.zeros(env.num_envs, env.action_dim)


def test_a_collection_over_others_is_the_same(tmp_path):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.3
    asked = []

    def eager(function, items):  # two ahead of what is taken
        with ThreadPoolExecutor(1) as pool:
            ahead = []
            for item in items:
                asked.append(item)
                ahead.append(pool.submit(function, item))
                if len(ahead) > 2:
                    yield ahead.pop(0).result()

    here = collect(cfg, zeros, tmp_path / "a", episodes=7, envs=3, seed=4)
    there = collect(cfg, zeros, tmp_path / "b", episodes=7, envs=3, seed=4, over=eager)
    assert [p.name for p in here.parts] == [p.name for p in there.parts]
    assert asked[:3] == [0, 1, 2]
    for one, other in zip(here.episodes(), there.episodes(), strict=True):
        for name, values in one.columns.items():
            np.testing.assert_array_equal(values, other.columns[name])


def test_a_cluster_says_what_it_needs():
    with raises(InvalidInputError, name="workers"):
        Cluster(workers=0)


def test_code_of_a_file_runs_where_the_file_is_not(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("START = 40\ndef add(x):\n    return START + x\n")
    sent = ClusterHere(1).put(partial(run_file(file).add, 2))
    file.unlink()
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, check=True
    )
    assert done.stdout.split() == [b"42"]


def test_settings_of_a_file_are_described_where_the_file_is_not(tmp_path, monkeypatch):
    """As in the headers of the recordings that workers make."""
    file = tmp_path / "own_task.py"
    file.write_text(
        "from simstate.env import RewardTermCfg\n\n\ndef effort(env):\n"
        "    return env.action.square().sum(1)\n\n\n"
        "TERM = RewardTermCfg(effort, weight=1.0)\n"
    )
    module, cfg = run_file(file), tasks.make_cfg("Cartpole-Balance")
    cfg.rewards["own"] = module.TERM
    sent, here = ClusterHere(1).put(cfg), described_settings(cfg, "env")
    assert here["env.rewards.own.func"] == "own_task.py:effort"
    monkeypatch.delitem(sys.modules, module.__name__)
    there = pickle.loads(sent)
    assert there.rewards["own"].func is not module.effort
    assert described_settings(there, "env") == here
