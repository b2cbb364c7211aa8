"""The core's look at bad worlds against the engine's own, on the same steps."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_models import load, random_states
from tests.inside import engine_of, find_bad_by_numpy, risen_warnings, watch_of

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
    return engine_of(sim)


def test_a_sound_step(engine):
    watch = watch_of(engine)
    watch.begin()
    engine.begin_step()
    engine.advance(3, None)
    assert find_bad_by_numpy(engine) is None
    assert watch.look() == (False, False)
    assert not watch.warned()
    assert not watch.bad.any()


def test_worlds_that_go_bad_are_those_of_the_engine(engine):
    watch = watch_of(engine)
    fields = {name: engine.field(name).data for name in ("qvel", "mocap_pos", "ctrl")}
    fields["qvel"][2, 3] = torch.nan
    fields["mocap_pos"][4, 0, 1] = torch.inf
    fields["ctrl"][6, 1] = torch.nan
    engine.field("qfrc_applied").data[1, 2] = 1e15
    watch.begin()
    engine.begin_step()
    engine.advance(2, None)
    want = find_bad_by_numpy(engine)
    assert watch.look() == (True, True)
    assert watch.warned()
    np.testing.assert_array_equal(watch.bad, want.numpy())
    np.testing.assert_array_equal(np.flatnonzero(watch.bad), [1, 2, 4, 6])
    control = mujoco.mjtWarning.mjWARN_BADCTRL.value
    np.testing.assert_array_equal(
        np.flatnonzero(risen_warnings(engine)[:, control]), [6]
    )
    found = engine.find_bad()
    assert torch.equal(found, want)
    watch.begin()
    assert watch.look()[1] is False  # nothing new
    assert not watch.warned()


def test_what_the_engine_found_is_kept(engine):
    engine.field("qvel").data[2, 3] = torch.nan
    engine.begin_step()
    engine.advance(1, None)
    found = engine.find_bad()
    engine.field("qvel").data[2, 3] = 0.0
    engine.field("qpos").data[:, :3] = 0.0
    engine.begin_step()
    engine.find_bad()
    np.testing.assert_array_equal(found.nonzero().flatten(), [2])


def test_a_number_at_the_limit_is_fine(engine):
    watch = watch_of(engine)
    watch.begin()
    mocap = engine.field("mocap_pos").data
    for value, is_bad in (
        (-MAX_VALUE, False),
        (np.nextafter(-MAX_VALUE, -np.inf), True),
        (np.nan, True),
    ):
        mocap[3, 0, 0] = value
        assert watch.look() == (is_bad, False)
        np.testing.assert_array_equal(np.flatnonzero(watch.bad), [3] * is_bad)


def test_wrong_columns_are_refused(engine):
    with pytest.raises(ValueError, match="columns has the id"):
        core.StepWatch(engine.batch, [slice(0, engine.nstate + 1)], 1.0)


def test_a_watch_that_is_refused_leaves_the_earlier_one(engine):
    watch = watch_of(engine)
    short = np.zeros(NUM - 1, bool)
    columns = np.array([[0, 1]], np.int32)
    with pytest.raises(ValueError, match="bad"):
        engine.batch.core.watch(1e-9, (columns, watch.counts, short))
    watch.begin()
    assert watch.look() == (False, False)  # with the limit that it had
    engine.field("qvel").data[2, 3] = torch.nan
    assert watch.look() == (True, False)
    np.testing.assert_array_equal(np.flatnonzero(watch.bad), [2])
