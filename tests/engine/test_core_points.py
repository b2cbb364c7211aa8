"""Rays against mujoco.batch, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from mujoco import batch
from tests.engine.core_models import load, random_states
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.engine import core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 6


@pytest.mark.parametrize("ids", [None, [1, 4, 5]])
def test_rays(ids):
    model = load("sensors")
    rows = random_states(model, NUM, 5)
    ours, theirs = core.CoreBatch(model, NUM, 2), batch.Batch(model, NUM, 1)
    ours.state[:], theirs.state[:] = rows, rows
    ours.bind("geom_xpos")
    ours.forward()
    start = np.array([1.5, -1.2, 1.8])
    to = ours.bind("geom_xpos")[slice(None) if ids is None else ids] - start
    hit = set()
    for normal, exclude, static in (
        (False, -1, True),
        (True, 3, True),
        (True, 2, False),
    ):
        options = {"geomgroup": [1, 0, 1, 1, 1, 1], "bodyexclude": exclude}
        options |= {"ids": ids, "normal": normal, "flg_static": static}
        got = ours.ray(start, to, **options)
        want = theirs.ray(start, to, **options)
        hit.add(frozenset(want[1].flat))
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(hit) == 3  # what is left out would have been hit
    np.testing.assert_array_equal(ours.state, rows)


def test_wrong_rays_and_worlds_are_refused():
    model = load("sensors")
    worlds = core.CoreBatch(model, NUM, 1)
    with pytest.raises(ValueError, match="num_worlds must be at least 1, got 0"):
        core.CoreBatch(model, 0)
    with raises(InvalidInputError, name="bodyexclude"):
        worlds.ray((0, 0, 1), (0, 0, -1), bodyexclude=model.nbody)
    with raises(InvalidInputError, name="bodyexclude"):
        worlds.ray((0, 0, 1), (0, 0, -1), bodyexclude=0.5)
    with raises(InvalidInputError, name="world"):
        worlds.get_model(NUM)
    with raises(InvalidInputError, name="efc_force"):
        worlds.bind("efc_force")
    with raises(InvalidInputError, name="mesh_vert"):
        worlds.expand("mesh_vert")
    with raises(InvalidInputError, name="ids"):
        worlds.step([True, False])


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("dtype", [np.float64, np.uint64, np.int32])
def test_streams_of_random_numbers_are_int64(k, dtype):
    streams = [np.arange(1, NUM + 1) for _ in range(3)]
    drawn = core.draws.uniform(tuple(s.copy() for s in streams), None, 2, 0.0, 1.0)
    assert len(np.unique(drawn)) == 2 * NUM
    streams[k] = streams[k].astype(dtype)
    with pytest.raises(ValueError, match="int64"):
        core.draws.uniform(tuple(streams), None, 2, 0.0, 1.0)
