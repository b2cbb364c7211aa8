"""The result of a replay: errors of each column, by sample and over time."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.record.conftest import scene

from simstate import InvalidInputError, Simulation
from simstate.data.replay import replay
from simstate.data.replay.comparison import Replay, ReplayDifference


def replayed(**changes) -> Replay:
    found = Replay("native", 0.0, 5, 6, 1, ["a", "b"])
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_lines_of_errors_are_spread_over_time():
    found = replayed(
        time=[0.1 * k for k in range(10)],
        over_time={"a": [1.0 * k for k in range(10)], "b": [0.5] * 10},
    )
    for rows, samples in ((6, [0, 2, 4, 5, 7, 9]), (2, [0, 9]), (1, [0])):
        lines = found.course(rows)
        assert len(lines) == len(samples)
        for line, k in zip(lines, samples, strict=True):
            assert f"after {0.1 * k:.3g} s" in line
            assert line.endswith(f"a {k}, b 0.5")
    assert len(found.course()) == 6
    few = replayed(time=[0.0, 0.5], over_time={"a": [0.0, 2.0]})
    assert len(few.course()) == 2  # none of them twice
    assert replayed().course() == []


def test_a_horizon_is_the_first_time_beyond_a_bound():
    gaps = [0.0, 1e-3, math.nan, 2e-3, 0.0]
    found = replayed(time=[0.0, 0.1, 0.2, 0.3, 0.4], over_time={"a": gaps})
    assert found.horizon("a", 1e-4) == 0.1
    assert found.horizon("a", 1e-3) == 0.3  # at the bound is not beyond it
    assert found.horizon("a", 1.0) is None


def test_a_replay_is_the_same_if_nothing_differs():
    first = ReplayDifference(3, 1, 0.25, "qpos", "slide", 1.5, 1.75, "m")
    assert replayed().is_same
    for change in ({"first": first}, {"model": ["x"]}, {"settings": ["x"]}):
        found = replayed(**change)
        assert not found.is_same
        assert found.to_dict()["is_same"] is False
        json.dumps(found.to_dict())
    assert str(first) == (
        "world 1, t = 0.25 s (after 3 steps), qpos of slide: 1.5 recorded, "
        "1.75 replayed m"
    )
    for unit in ("", "1", "not declared"):
        bare = ReplayDifference(3, 1, 0.25, "qpos", "", 1.5, 1.75, unit)
        assert str(bare).endswith("qpos: 1.5 recorded, 1.75 replayed")


def test_the_text_counts_what_was_compared():
    counts = "5 steps on native: 6 samples of 2 columns and "
    assert str(replayed()) == f"{counts}1 snapshot are the same, bit for bit."
    assert str(replayed(snapshots=2, tolerance=0.5, left_out=["c", "d"])) == (
        f"{counts}2 snapshots are the same, within 0.5.\nNot compared: c, d."
    )
    first = ReplayDifference(3, 1, 0.25, "a", "", 1.5, 1.75)
    drift = {"time": [0.0], "over_time": {"a": [0.5]}}
    exact = str(replayed(first=first, model=["m"], settings=["s"], **drift)).split("\n")
    assert exact[:3] == [
        f"{counts}1 snapshot were compared, bit for bit.",
        "The model differs: m.", "The task differs: s.",
    ]  # fmt: skip
    assert exact[3:] == [f"First difference: {first}."]
    rough = str(replayed(first=first, tolerance=0.1, **drift))
    assert "largest errors after 0 s: a 0.5" in rough
    assert "largest errors" not in str(replayed(tolerance=0.1, **drift))


def run(kp: float, path: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Positions after each call and their times, under the same controls."""
    sim = Simulation(scene(kp), 3, seed=4)
    kept, times = [sim.data.qpos.clone()], [0.0]
    generator = torch.Generator().manual_seed(2)
    with nullcontext() if path is None else sim.record(path, fields=["qpos"]):
        for k in range(15):
            noise = torch.randn(3, 2, generator=generator, dtype=torch.float64)
            sim.data.ctrl[:] = noise
            sim.step(1 + k % 3, [2, 0] if k % 6 == 5 else None)
            kept.append(sim.data.qpos.clone())
            times.append(times[-1] + 0.004 * (1 + k % 3))
    return torch.stack(kept).numpy(), np.array(times)


def test_errors_are_the_differences_of_two_runs(tmp_path):
    path = tmp_path / "a.simrec"
    old, times = run(3.0, path)
    new, _ = run(3.001)
    gap = np.abs(new - old)
    ratio = gap / (1.0 + np.abs(old))
    other = Simulation(scene(3.001), 3, seed=4)
    most = float(ratio.max())
    loose = replay(path, other, tolerance=1.0001 * most)
    assert loose.first is None
    assert loose.samples == len(old)
    assert loose.largest["qpos"] == pytest.approx(gap.max(), rel=1e-12)
    np.testing.assert_allclose(loose.over_time["qpos"], gap.max((1, 2)), rtol=1e-12)
    np.testing.assert_allclose(loose.time, times, atol=1e-12)
    for share in (0.9999, 0.3, 1e-6):
        found = replay(path, other, tolerance=share * most)
        assert found.first is not None
        beyond = np.argwhere(ratio > share * most)[0]
        k, world, place = (int(x) for x in beyond)
        assert (found.first.step, found.first.world) == (k, world)
        assert found.first.recorded == old[k, world, place]
        assert found.first.replayed == new[k, world, place]
        assert loose.horizon("qpos", gap.max() / 2) == pytest.approx(
            times[np.flatnonzero(gap.max((1, 2)) > gap.max() / 2)[0]]
        )


def test_a_tolerance_is_not_negative(tmp_path):
    run(3.0, tmp_path / "a.simrec")
    for wrong in (-1e-9, math.nan):
        with raises(InvalidInputError, name="tolerance"):
            replay(tmp_path / "a.simrec", tolerance=wrong)
    everything = replay(
        tmp_path / "a.simrec", Simulation(scene(9.0), 3), tolerance=math.inf
    )
    assert everything.first is None


def test_samples_between_steps_have_their_times(tmp_path):
    """Every third step, and after a step in part."""
    sim = Simulation(scene(), 2, seed=4)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"], every=0.012):
        for _ in range(10):
            sim.step()
    found = replay(tmp_path / "a.simrec")
    assert found.is_same
    assert (found.steps, found.samples, found.snapshots) == (10, 4, 1)
    np.testing.assert_allclose(found.time, [0.0, 0.012, 0.024, 0.036], atol=1e-12)
    assert found.columns == ["qpos"]
    assert found.largest == {}
    assert found.over_time == {"qpos": [0.0] * 4}
