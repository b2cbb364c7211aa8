"""Collections: the same bits in any batch, after any interruption."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.tracer import lines_of, traced

from simstate import InvalidInputError
from simstate.cli import main
from simstate.data.datasets import collect, episodes_of, read_hdf5
from simstate.env import tasks
from simstate.record import Recording, recorder

GAINS = (0.4, 3.0, 0.6, 0.7)


def controller(env):
    """Balances some worlds and lets others fall: those whose cart is on the left.

    Number by number: a matrix product rounds otherwise in another batch.
    """

    def act(seen):
        columns = zip(seen["policy"].T, GAINS, strict=True)
        push = sum(values * gain for values, gain in columns)
        return (push * (seen["policy"][:, 0] > 0))[:, None]

    return act


def cfg_of(seconds=0.8):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = seconds
    return cfg


def columns(collection):
    """What each world did, by its global id."""
    found = {}
    for part in collection.parts:
        with Recording(part) as recording:
            first = recording.header["simulation"]["first_world"]
            for episode in episodes_of(recording, keep=collection.keep):
                found[first + episode.world] = episode.columns
    return found


@pytest.mark.parametrize(
    ("make_act", "name"),
    [
        (lambda env: torch.zeros(2, 1), "make_act(env)"),
        (lambda env: lambda: 0, "make_act(env)"),
        (lambda: 0, "make_act"),
        (None, "make_act"),
    ],
)
def test_a_policy_is_made_for_the_worlds_and_maps_observations(
    make_act, name, tmp_path
):
    with raises(InvalidInputError, name=name):
        collect(cfg_of(), make_act, tmp_path / "a", episodes=2, envs=2)


def test_what_a_world_does_does_not_depend_on_the_batch(tmp_path):
    many = collect(cfg_of(), controller, tmp_path / "a", episodes=8, envs=4, seed=3)
    few = collect(cfg_of(), controller, tmp_path / "b", episodes=8, envs=2, seed=3)
    assert (len(many.parts), len(few.parts)) == (2, 4)
    one, other = columns(many), columns(few)
    assert sorted(one) == sorted(other) == list(range(8))
    for world, mine in one.items():
        for name, values in mine.items():
            np.testing.assert_array_equal(values, other[world][name], err_msg=name)
    lengths = [len(mine["time"]) for mine in one.values()]
    assert len(set(lengths)) > 1


def test_only_those_that_succeed_are_counted(tmp_path):
    found = collect(
        cfg_of(), controller, tmp_path, episodes=5, envs=6, success="time_out", seed=1
    )
    episodes = list(found.episodes())
    assert len(episodes) >= 5
    assert all(len(episode) == 40 for episode in episodes)
    assert len(found.parts) > 1
    with raises(InvalidInputError, name="success"):
        collect(cfg_of(), controller, tmp_path, episodes=5, success="win")
    with raises(InvalidInputError, name="tipped"):
        collect(
            cfg_of(0.04), controller, tmp_path / "x", episodes=1, envs=100,
            success="tipped",
        )  # fmt: skip


def test_an_interrupted_collection_goes_on_to_the_same_bits(tmp_path):
    whole = collect(cfg_of(), controller, tmp_path / "a", episodes=9, envs=3, seed=2)
    steps = []

    def interrupted(env):
        act = controller(env)

        def until(seen):
            steps.append(1)
            if len(steps) == 60:
                raise KeyboardInterrupt
            return act(seen)

        return until

    with pytest.raises(KeyboardInterrupt):
        collect(cfg_of(), interrupted, tmp_path / "b", episodes=9, envs=3, seed=2)
    names = sorted(file.name for file in (tmp_path / "b").glob("part-*"))
    assert names == ["part-00000.simrec", "part-00001.begun"]
    again = collect(cfg_of(), controller, tmp_path / "b", episodes=9, envs=3, seed=2)
    one, other = columns(whole), columns(again)
    assert sorted(one) == sorted(other)
    for world, mine in one.items():
        np.testing.assert_array_equal(mine["action"], other[world]["action"])
    with raises(InvalidInputError, file="b"):
        collect(cfg_of(), controller, tmp_path / "b", episodes=9, envs=3, seed=4)


def test_a_collection_that_is_interrupted_at_any_line(tmp_path, monkeypatch):
    """Parts that are there are whole, and the others are done again."""
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 3)

    def collected(name):
        return collect(
            cfg_of(0.2), controller, tmp_path / name, episodes=4, envs=2, seed=2
        )

    whole = columns(collected("a"))
    lines = lines_of(lambda: collected("b"))
    random = np.random.default_rng(5)
    for k, line in enumerate(random.integers(0, lines, 12).tolist()):
        traced(lambda name=f"c{k}": collected(name), line)
        for part in (tmp_path / f"c{k}").glob("part-*.simrec"):
            with Recording(part) as found:
                assert found.is_whole
        again = columns(collected(f"c{k}"))
        assert sorted(again) == sorted(whole)
        for world, mine in whole.items():
            np.testing.assert_array_equal(mine["action"], again[world]["action"])


def test_the_command(tmp_path, capsys):
    script = tmp_path / "teacher.py"
    script.write_text(
        "import torch\n"
        "def policy(env):\n"
        "    return lambda seen: torch.zeros(env.num_envs, env.action_dim)\n"
    )
    out = tmp_path / "data"
    args = ["collect", "Cartpole-Balance", "--policy", f"{script}:policy"]
    args += ["--episodes", "3", "--envs", "4", "--out", str(out), "--to", "hdf5"]
    assert main(args) == 0
    assert "4 episodes in 1 parts" in capsys.readouterr().out
    demos = read_hdf5(out / "demos.hdf5")
    assert len(demos) == 4
    assert not demos[0].actions.any()
    args[3] = str(tmp_path / "none.onnx")
    assert main(args) == 1
    assert "There is no policy" in capsys.readouterr().err


def test_a_collection_that_continues_is_exported_again(tmp_path):
    def export(episodes: int) -> int:
        found = collect(cfg_of(0.1), controller, tmp_path, episodes=episodes, envs=2)
        info = json.loads((found.export("lerobot") / "meta/info.json").read_text())
        return info["total_episodes"]

    assert (export(2), export(4), export(4)) == (2, 4, 4)
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {
        "collect.json",
        "lerobot",
        "part-00000.simrec",
        "part-00001.simrec",
    }
    (tmp_path / "lerobot/meta/info.json").unlink()  # then it is none of ours
    with raises(InvalidInputError, file="lerobot"):
        export(4)
