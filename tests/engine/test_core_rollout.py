"""Rollouts of the core against mujoco.batch stepped once for each control."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco import batch
from tests.engine.core_models import NAMES, load, random_states

from simstate.engine import core
from simstate.engine.stage import Seen

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
RECORDED = ("qpos", "qvel", "act", "sensordata")
NUM, STEPS = 5, 41  # more than a round of the core
SAMPLES = np.array([1, 2, 7, 16, 17, 30, 41], np.int32)


def worlds(model, threads=2):
    ours = core.CoreBatch(model, NUM, threads)
    ours.state[:] = random_states(model, NUM, 3)
    ours.bind("xpos")
    return ours


def arrays(ours):
    return {
        name: np.full((len(SAMPLES), NUM, ours.bind(name).shape[1]), np.nan)
        for name in RECORDED
    }


def some_controls(model, count=NUM):
    return np.random.default_rng(7).uniform(-1, 1, (count, STEPS, model.nu))


@pytest.mark.parametrize("ids", [None, [0, 3]])
@pytest.mark.parametrize("name", NAMES)
def test_a_rollout_has_the_bits_of_single_steps(name, ids):
    model = load(name)
    ours, theirs = worlds(model), batch.Batch(model, NUM, 1)
    controls, found = some_controls(model), arrays(ours)
    rows = np.arange(NUM) if ids is None else np.array(ids)
    theirs.state[:] = ours.state
    for field in (*RECORDED, "xpos"):
        theirs.bind(field)
    seen = ours.rollout(ours.ids(ids), controls, SAMPLES, found)
    for step in range(STEPS):
        theirs.bind("ctrl")[rows] = controls[rows, step]
        theirs.step(ids, 1, VELOCITY)
        for k in np.flatnonzero(step + 1 == SAMPLES):
            for field in RECORDED:
                want = theirs.bind(field)[rows]
                np.testing.assert_array_equal(found[field][k][rows], want, field)
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.warning, theirs.warning)
    np.testing.assert_array_equal(ours.bind("xpos")[rows], theirs.bind("xpos")[rows])
    assert not seen & Seen.FAILED


def test_controls_of_one_world_are_for_all():
    model = load("arm")
    one, all_rows = worlds(model), worlds(model)
    controls = some_controls(model, 1)
    one.rollout(None, controls, SAMPLES, {})
    all_rows.rollout(None, np.repeat(controls, NUM, 0), SAMPLES, {})
    np.testing.assert_array_equal(one.state, all_rows.state)


def test_a_part_of_the_horizon_is_no_copy():
    """Rows of controls need not be contiguous."""
    model = load("arm")
    one, other = worlds(model), worlds(model)
    controls = some_controls(model)[:, 9:30]
    assert not controls.flags.c_contiguous
    none = np.empty(0, np.int32)
    one.rollout(None, controls, none, {})
    other.rollout(None, controls.copy(), none, {})
    np.testing.assert_array_equal(one.state, other.state)


def test_a_world_that_diverges_is_reported():
    model = load("arm")
    ours, controls = worlds(model), some_controls(model)
    watch = core.StepWatch(ours, [slice(0, ours.nstate)], 1e10)
    assert ours.rollout(None, controls, SAMPLES, {}) == 0
    ours.bind("qvel")[2, 1] = 1e12
    assert ours.rollout(None, controls, SAMPLES, {}) & Seen.BAD
    assert np.flatnonzero(watch.bad).tolist() == [2]


@pytest.mark.parametrize(
    "change",
    [
        {"controls": np.zeros((NUM, STEPS, 99))},
        {"controls": np.zeros((NUM + 1, STEPS, 8))},
        {"samples": np.array([3, 3], np.int32)},
        {"samples": np.array([0], np.int32)},
        {"samples": np.array([STEPS + 1], np.int32)},
        {"fields": {"xpos": np.zeros(3)}},
        {"fields": {"qpos": np.zeros(3)}},
        {"ids": np.array([NUM], np.int32)},
    ],
)
def test_wrong_arrays_are_rejected(change):
    model = load("arm")
    ours = worlds(model)
    before = ours.state.copy()
    given = {"ids": None, "controls": some_controls(model), "samples": SAMPLES,
             "fields": {}, **change}  # fmt: skip
    with pytest.raises(ValueError, match=r"controls|samples|recorded|qpos|ids"):
        ours.rollout(**given)
    np.testing.assert_array_equal(ours.state, before)
