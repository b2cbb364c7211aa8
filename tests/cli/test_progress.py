"""The share of the work that a command reports while it works."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.inside import shown_progress

from simstate.cli import main


@pytest.fixture
def report(monkeypatch, capsys):
    """Runs a command; returns its code, JSON and the fractions and notes reported."""

    def run(*args: str):
        shown = shown_progress(monkeypatch)
        code = main([*args, "--json"])
        parts = [
            (fraction, note) for _, fraction, note in shown if fraction is not None
        ]
        answer = json.loads(capsys.readouterr().out)
        assert shown[-1][1] is None  # only working, when the part is done
        fractions = [fraction for fraction, _ in parts]
        assert fractions == sorted(fractions)
        return code, answer, fractions, [note for _, note in parts]

    return run


def test_a_run_reports_its_steps(report):
    args = ["run", "cartpole", "--envs", "2", "--seconds", "0.1", "--no-check"]
    code, answer, fractions, notes = report(*args)
    assert (code, answer["steps"], fractions[-1]) == (0, 20, 1.0)
    assert all(0.0 < fraction <= 1.0 for fraction in fractions)
    assert all(note.endswith("world-steps/s") for note in notes)


def test_a_plan_reports_its_decisions(report):
    args = ["plan", "cartpole", "--seconds", "0.06", "--samples", "4"]
    _, answer, fractions, _ = report(*args)
    assert answer["plans"] == 3
    assert fractions == pytest.approx([1 / 3, 2 / 3, 1.0])
    task = ["plan", "Cartpole-Balance", "--seconds", "0.1", "--samples", "4"]
    _, answer, fractions, _ = report(*task, "--replan", "2")
    assert answer["plans"] == 3
    assert fractions == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_benchmark_reports_a_share_for_each_number_of_worlds(report, monkeypatch):
    from simstate.cli import bench

    now = [50.0]

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    monkeypatch.setattr(bench.time, "perf_counter", clock)
    args = ["bench", "cartpole", "--envs", "1", "2", "--seconds", "1"]
    _, answer, fractions, _ = report(*args)
    (rounds, others) = (one["rounds"] for one in answer["results"])
    assert rounds == others > 5
    half = np.array(fractions[:rounds])
    assert half[0] < 0.1
    assert half[-1] == pytest.approx(0.5 * 0.99)  # the time is up, a round is not
    assert (np.diff(half[:-1]) > 0.04).all()
    np.testing.assert_allclose(fractions[rounds:-1], 0.5 + half)
    assert fractions[-1] == 1.0


def test_a_film_of_a_replay_reports_its_steps(report, tmp_path):
    path = tmp_path / "a.simrec"
    args = ["run", "cartpole", "--envs", "1", "--seconds", "0.1", "--no-check"]
    assert report(*args, "--record", str(path))[0] == 0
    film = ["--film", str(tmp_path / "a.gif"), "--size", "16", "12", "--fps", "20"]
    code, _, fractions, notes = report(
        "replay", str(path), *film, "--renderer", "software"
    )
    assert code == 0
    assert fractions == pytest.approx([k / 20 for k in range(1, 21)])
    times = [float(note.removesuffix(" s")) for note in notes]
    np.testing.assert_allclose(times, 0.005 * np.arange(1, 21), atol=0.0051)


def test_a_page_reports_its_steps(report, tmp_path):
    path = tmp_path / "a.simrec"
    args = ["run", "cartpole", "--envs", "2", "--seconds", "0.1", "--no-check"]
    assert report(*args, "--record", str(path))[0] == 0
    code, answer, fractions, _ = report("share", str(path), "--fps", "20")
    assert code == 0
    assert fractions == pytest.approx([0.0, 0.45, 0.9, 1.0])
    assert answer["bytes"] == (tmp_path / "a.html").stat().st_size


def test_a_collection_reports_episodes(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "still.py").write_text(
        "import torch\n\n\ndef still(env):\n"
        "    return lambda seen: torch.zeros(env.num_envs, env.action_dim)\n"
    )
    args = ["collect", "Cartpole-Balance", "--policy", "still.py:still"]
    args += ["--episodes", "5", "--envs", "2", "--out", "data"]
    code, answer, fractions, notes = report(*args)
    assert (code, answer["parts"], answer["episodes"]) == (0, 3, 6)
    assert fractions == pytest.approx([0.4, 0.8, 1.0])
    assert notes == ["2 of 2 episodes", "4 of 4 episodes", "6 of 6 episodes"]
    files = sorted(str(file) for file in (tmp_path / "data").glob("*.simrec"))
    again = ["collect", "Cartpole-Balance", "--from", *files, "--out", "again"]
    code, answer, fractions, notes = report(*again)
    assert (code, answer["parts"]) == (0, 3)
    assert fractions == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert notes[-1] == f"{answer['episodes']} episodes"
