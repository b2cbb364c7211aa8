"""Studies of scattered worlds: the same in any batch, with bounds that scipy has."""

from __future__ import annotations

import csv
import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.raised import raises

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.cli import main
from simstate.state import Snapshot
from simstate.study.dispersions import (
    Outcome,
    Study,
    choice,
    load_study,
    log_normal,
    mean_bounds,
    normal,
    proportion_bounds,
    quantile_bounds,
    uniform,
)
from simstate.study.dispersions.distributions import draw_worlds

STUDY = '''
import torch

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.study.dispersions import Study, normal, uniform

BALL = """<mujoco><worldbody><body name="ball"><freejoint/>
  <inertial pos="0 0 0.02" mass="2" diaginertia="1 2 2.5"/>
</body></worldbody></mujoco>"""


def height(sim):
    return sim.data.qpos[:, 2]


def make(draws, **options):
    scene = SceneCfg(entities={"ball": EntityCfg(model=BALL)}, ground=False,
                     gravity=(0, 0, -9.80665), timestep=0.1)
    sim = Simulation(scene, integrator=integrate.RK4(), **options)
    sim.data.qpos[:, 2] = draws["height"]
    sim.data.qvel[:, :3] = draws["velocity"]
    sim.add_event(height, "falling", terminal=True)
    return sim


def study():
    return Study(
        make=make,
        draws={"height": uniform(5.0, 9.0),
               "velocity": normal([3.0, 0.0, 1.0], [0.5, 0.4, 0.2])},
        until=3.0,
        results={"range": (lambda sim: sim.data.qpos[:, 0], "m"),
                 "left": lambda sim: sim.data.qpos[:, 1] > 0},
        record={"height": (height, "m")},
        every=0.2,
    )
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "drop.py"
    path.write_text(STUDY)
    return path


def test_worlds_are_the_same_in_any_batch_and_are_those_of_the_closed_form(file):
    study = load_study(file)
    one, two = study.run(7, batch=3, seed=5), study.run(7, batch=7, seed=5)
    assert torch.equal(one.results["range"], two.results["range"])
    assert torch.equal(one.results["left"], two.results["left"])
    first = one.histories["height"]
    torch.testing.assert_close(first, two.histories["height"], rtol=0, atol=0,
                               equal_nan=True)  # fmt: skip
    velocity, height = one.draws["velocity"], one.draws["height"]
    fall = velocity[:, 2] + (velocity[:, 2] ** 2 + 2 * 9.80665 * height).sqrt()
    want = velocity[:, 0] * fall / 9.80665
    np.testing.assert_allclose(one.results["range"], want, atol=1e-8)
    other = study.run(7, batch=7, seed=6)
    assert not torch.equal(one.results["range"], other.results["range"])


def test_the_command_and_the_worst_world(file, tmp_path, capsys):
    out = tmp_path / "out"
    code = main(
        ["dispersions", str(file), "--envs", "9", "--batch", "4", "--seed", "3",
         "--out", str(out), "--json"]
    )  # fmt: skip
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    study = load_study(file)
    outcome = study.run(9, seed=3)
    values = outcome.results["range"].numpy()
    assert found["worst_world"] == int(np.abs(values).argmax())
    rows = {row["statistic"]: row for row in found["table"] if row["result"] == "range"}
    assert rows["mean"]["value"] == pytest.approx(values.mean())
    t = stats.t.interval(0.95, 8, values.mean(), stats.sem(values))
    assert (rows["mean"]["low"], rows["mean"]["high"]) == pytest.approx(t, rel=1e-6)
    assert (out / "envelopes.png").stat().st_size > 1000
    assert len((out / "worlds.csv").read_text().splitlines()) == 10
    again = study.simulation(1)  # another world, until the snapshot is restored
    again.restore(Snapshot.load(out / "worst.npz"))
    again.run(until=3.0)
    assert float(again.data.qpos[0, 0]) == values[found["worst_world"]]


def test_results_may_be_arrays(file):
    study = load_study(file)
    as_array = {"range": lambda sim: sim.data.qpos[:, 0].numpy()}
    found = dataclasses.replace(study, results=as_array).run(3, seed=5)
    assert torch.equal(found.results["range"], study.run(3, seed=5).results["range"])


def test_bounds_are_scipys():
    values = torch.as_tensor(np.random.default_rng(2).gumbel(size=83))
    for confidence in (0.9, 0.99):
        want = stats.t.interval(confidence, 82, values.mean(), stats.sem(values))
        assert mean_bounds(values, confidence) == pytest.approx(want, rel=1e-5)
        for share in (0.1, 0.5):
            low, high = quantile_bounds(values, share, confidence)
            tail = (1 - confidence) / 2
            r = int(stats.binom.ppf(tail, 83, share))
            s = int(stats.binom.ppf(1 - tail, 83, share)) + 1
            ordered = np.sort(values.numpy())
            assert (low, high) == (ordered[r - 1], ordered[s - 1])
        test = stats.binomtest(17, 83)
        want = test.proportion_ci(confidence, method="wilson")
        got = proportion_bounds(17, 83, confidence)
        assert got == pytest.approx((want.low, want.high), rel=1e-9)


def test_distributions_have_their_moments():
    cov = np.array([[2.0, 0.6], [0.6, 0.5]])
    draws = {
        "a": normal([1.0, -2.0], cov=cov), "b": uniform(-1.0, [2.0, 4.0]),
        "c": log_normal(3.0, 0.2), "d": choice([[1.0, 2.0], [5.0, 6.0]]),
    }  # fmt: skip
    drawn = draw_worlds(draws, 20000, 4, 0)
    np.testing.assert_allclose(drawn["a"].mean(0), [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn["a"].T), cov, atol=0.08)
    np.testing.assert_allclose(drawn["b"].mean(0), [0.5, 1.5], atol=0.05)
    np.testing.assert_allclose(drawn["c"].log().std(), 0.2, atol=0.005)
    assert set(drawn["d"][:, 0].tolist()) == {1.0, 5.0}
    part = draw_worlds(draws, 3, 4, 11)
    assert all(torch.equal(part[n], drawn[n][11:14]) for n in draws)


def test_numbers_without_spread_are_their_means():
    draws = {"a": normal([2.0, 3.0], [0.0, 0.5]), "b": uniform(4.0, 4.0)}
    drawn = draw_worlds(draws, 5, 1, 0)
    assert drawn["a"][:, 0].tolist() == [2.0] * 5
    assert len(set(drawn["a"][:, 1].tolist())) == 5
    assert drawn["b"].tolist() == [4.0] * 5


def test_wrong_studies_are_refused(tmp_path, file):
    study = load_study(file)
    of_one = study.simulation(1)

    def falling(**changes):
        return dataclasses.replace(study, **changes)

    for wrong, name in (
        (lambda: normal(0.0), "std"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 2.0], [2.0, 1.0]]), "cov"),
        (lambda: normal(0.0, -1.0), "std"),
        (lambda: uniform(2.0, 1.0), "low"),
        (lambda: choice([]), "values"),
        (lambda: choice(3.0), "values"),
        (lambda: normal([0.0, 0.0], cov=[[1.0]]), "cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 0.5], [0.2, 1.0]]), "cov"),
        (lambda: normal(0.0, 1.0, cov=[[1.0]]), "std"),
        (lambda: Study(print, {}, 1.0, {"x": abs}), "draws"),
        (lambda: Study(print, {"a": choice([1])}, 1.0, {}), "results"),
        (lambda: falling(make=3), "make"),
        (lambda: falling(draws={"mass": 2.0}), "draws['mass']"),
        (lambda: falling(until=-3.0), "until"),
        (lambda: falling(every=0.0), "every"),
        (lambda: falling(results={"x": (abs,)}), "results['x']"),
        (lambda: falling(results={"x": ("m", abs)}), "results['x']"),
        (lambda: falling(results={"x": lambda: 3.0}), "results['x']"),
        (lambda: falling(results={"x": lambda sim: 3.0}).run(2), "results['x']"),
        (lambda: study.snapshot(2.5), "world"),
        (lambda: falling(worst="rang"), "rang"),
        (lambda: falling(results={"x": 3.0}), "results['x']"),
        (lambda: falling(make=lambda draws, **o: None).simulation(2), "make"),
        (lambda: falling(make=lambda d, **o: of_one).simulation(2), "make"),
        (lambda: load_study(tmp_path / "none.py"), str(tmp_path / "none.py")),
    ):
        with raises(SimStateError, name=name):
            wrong()
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with raises(InvalidInputError, name="study"):
        load_study(empty)


def outcome(**changes) -> Outcome:
    given = {
        "results": {
            "miss": torch.tensor([0.5, -3.0, 2.0, math.nan, math.inf, 1.0]).double(),
            "hit": torch.tensor([True, False, True, True, False, True]),
            "lost": torch.full((6,), math.nan),
        },
        "draws": {"mass": torch.arange(6.0), "wind": torch.arange(12.0).reshape(6, 2)},
        "units": {"miss": "m"}, "times": None, "histories": {}, "history_units": {},
        "worst_by": "miss", "seed": 2,
    }  # fmt: skip
    return Outcome(**{**given, **changes})


def test_the_table_has_the_statistics_of_finite_results():
    rows = {(row.result, row.statistic): row for row in outcome().table(0.9)}
    fine = np.array([0.5, -3.0, 2.0, 1.0])
    assert rows["miss", "mean"].value == pytest.approx(fine.mean())
    assert rows["miss", "deviation"].value == pytest.approx(fine.std(ddof=1))
    for share in (5, 50, 95):
        row = rows["miss", f"{share} %"]
        assert row.value == pytest.approx(np.quantile(fine, share / 100))
    assert (rows["miss", "least"].value, rows["miss", "greatest"].value) == (-3.0, 2.0)
    assert {row.unit for row in outcome().table() if row.result == "miss"} == {"m", ""}
    wilson = stats.binomtest(2, 6).proportion_ci(0.9, "wilson")
    lost = rows["miss", "not finite"]
    assert (lost.value, lost.unit) == (2 / 6, "")
    assert (lost.low, lost.high) == pytest.approx((wilson.low, wilson.high))
    hit = stats.binomtest(4, 6).proportion_ci(0.9, "wilson")
    assert rows["hit", "probability"].value == 4 / 6
    assert rows["hit", "probability"].low == pytest.approx(hit.low)
    assert [key[1] for key in rows if key[0] == "lost"] == ["not finite"]
    assert rows["lost", "not finite"].value == 1.0


def test_the_worst_world_is_the_largest_either_way_and_nan_is_worse():
    assert outcome().worst_world == 3
    sizes = torch.tensor([0.5, -3.0, 2.0])
    assert outcome(results={"miss": sizes}).worst_world == 1
    assert outcome(worst_by="hit").worst_world == 0


def test_the_file_of_results_has_a_line_for_each_world(tmp_path):
    outcome().save_csv(tmp_path / "worlds.csv")
    head, *lines = csv.reader((tmp_path / "worlds.csv").read_text().splitlines())
    assert head == ["world", "mass", "wind[0]", "wind[1]", "miss", "hit", "lost"]
    assert [line[0] for line in lines] == ["0", "1", "2", "3", "4", "5"]
    assert lines[2] == ["2", "2.0", "4.0", "5.0", "2.0", "True", "nan"]


def test_bounds_of_a_few_values():
    assert all(math.isnan(bound) for bound in mean_bounds(torch.ones(1), 0.9))
    low, high = mean_bounds(torch.tensor([1.0, 4.0]).double(), 0.95)
    want = stats.t.interval(0.95, 1, 2.5, stats.sem([1.0, 4.0]))
    assert (low, high) == pytest.approx(want, rel=1e-4)
    assert proportion_bounds(0, 0, 0.9) == (0.0, 1.0)
    assert quantile_bounds(torch.tensor([1.0, 2.0]), 0.5, 0.9) == (-math.inf, math.inf)
    eight = torch.arange(8.0).flip(0)
    # Of eight, the least and the greatest enclose the median but for 2 of 2⁸ cases.
    assert quantile_bounds(eight, 0.5, 0.99) == (0.0, 7.0)
    assert quantile_bounds(eight, 0.5, 0.993) == (-math.inf, math.inf)


def test_histories_of_batches_of_different_lengths_are_joined(file):
    study = dataclasses.replace(load_study(file), every=None)
    one, many = study.run(5, batch=2, seed=1), study.run(5, batch=5, seed=1)
    assert torch.equal(one.times, many.times)
    assert float(one.times[1] - one.times[0]) == pytest.approx(0.03)
    torch.testing.assert_close(
        one.histories["height"], many.histories["height"], rtol=0, atol=0,
        equal_nan=True,
    )  # fmt: skip
    assert one.histories["height"].isnan().any()
    without = dataclasses.replace(study, record=None).run(3, batch=2, seed=1)
    with raises(InvalidInputError, name="record"):
        without.plot("envelopes.png")
    assert without.times is None
    assert without.histories == {}
    assert torch.equal(without.results["range"], one.results["range"][:3])
    assert without.worst_by == "range"
