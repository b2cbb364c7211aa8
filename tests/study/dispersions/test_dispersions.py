"""Studies of scattered worlds: the same in any batch, with bounds that scipy has."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats

from simstate.base.errors import InvalidInputError
from simstate.cli import main
from simstate.state import Snapshot
from simstate.study.dispersions import (
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
        ["dispersions", str(file), "--worlds", "9", "--batch", "4", "--seed", "3",
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


def test_wrong_studies_are_refused(tmp_path):
    for wrong, message in (
        (lambda: normal(0.0), "std or cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 2.0], [2.0, 1.0]]), "positive"),
        (lambda: normal(0.0, -1.0), "std"),
        (lambda: uniform(2.0, 1.0), "low"),
        (lambda: choice([]), "at least one"),
        (lambda: load_study(tmp_path / "none.py"), "no file"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            wrong()
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with pytest.raises(InvalidInputError, match="study"):
        load_study(empty)
