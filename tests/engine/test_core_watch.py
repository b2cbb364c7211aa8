"""The core's look at bad worlds against the engine's own, on the same steps."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_models import load, random_states

from simstate import Simulation
from simstate.engine import MAX_VALUE, core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 8


@pytest.fixture
def engine():
    model = load("small")
    sim = Simulation(model, NUM, on_divergence="mask")
    sim.write_state(torch.tensor(random_states(model, NUM, 5)))
    return sim.engine


def watch_of(engine):
    columns = engine.columns
    others = slice(columns["mocap_pos"].start, columns["mocap_quat"].stop)
    before = np.zeros((NUM, engine.num_evolving))
    return core.Watch(engine.batch, before, others, MAX_VALUE), before


def test_a_sound_step(engine):
    watch, before = watch_of(engine)
    rows = engine.batch.state.copy()
    watch.remember()
    assert engine.step(3, None) is None
    assert watch.look() == (False, False)
    np.testing.assert_array_equal(before, rows[:, : engine.num_evolving])
    assert not watch.bad.any()
    assert not watch.risen.any()


def test_worlds_that_go_bad_are_those_of_the_engine(engine):
    watch, _ = watch_of(engine)
    fields = {name: engine.field(name).data for name in ("qvel", "mocap_pos", "ctrl")}
    fields["qvel"][2, 3] = torch.nan
    fields["mocap_pos"][4, 0, 1] = torch.inf
    fields["ctrl"][6, 1] = torch.nan
    engine.field("qfrc_applied").data[1, 2] = 1e15
    watch.remember()
    want = engine.step(2, None)
    assert watch.look() == (True, True)
    np.testing.assert_array_equal(watch.bad, want.numpy())
    np.testing.assert_array_equal(np.flatnonzero(watch.bad), [1, 2, 4, 6])
    control = mujoco.mjtWarning.mjWARN_BADCTRL.value
    np.testing.assert_array_equal(np.flatnonzero(watch.risen[:, control]), [6])
    np.testing.assert_array_equal(watch.risen, engine._risen)
    watch.remember()
    assert watch.look()[1] is False  # nothing new


def test_a_number_at_the_limit_is_fine(engine):
    watch, _ = watch_of(engine)
    watch.remember()
    engine.field("mocap_pos").data[3, 0, 0] = -MAX_VALUE
    assert watch.look() == (False, False)
    engine.field("mocap_pos").data[3, 0, 0] = np.nextafter(-MAX_VALUE, -np.inf)
    assert watch.look() == (True, False)
    np.testing.assert_array_equal(np.flatnonzero(watch.bad), [3])
    engine.field("mocap_pos").data[3, 0, 0] = torch.nan
    assert watch.look() == (True, False)


def test_wrong_shapes_are_refused(engine):
    wide = np.zeros((NUM, engine.nstate + 1))
    with pytest.raises(ValueError, match="before must have shape"):
        core.Watch(engine.batch, wide, slice(0, 0), 1.0).remember()
    watch = core.Watch(engine.batch, wide, slice(0, 0), 1.0)
    with pytest.raises(ValueError, match="Columns must be from 0"):
        watch.look()
