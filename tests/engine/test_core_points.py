"""Arguments of the core that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.core_models import load
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.engine import core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 6


def test_wrong_worlds_and_fields_are_refused():
    model = load("sensors")
    worlds = core.CoreBatch(model, NUM, 1)
    with pytest.raises(ValueError, match="num_worlds must be at least 1, got 0"):
        core.CoreBatch(model, 0)
    with raises(InvalidInputError, name="world"):
        worlds.get_model(NUM)
    with raises(InvalidInputError, name="efc_force"):
        worlds.bind("efc_force")
    with raises(InvalidInputError, name="mesh_vert"):
        worlds.expand("mesh_vert")


@pytest.mark.parametrize("k", range(3))
@pytest.mark.parametrize("dtype", [np.float64, np.uint64, np.int32])
def test_streams_of_random_numbers_are_int64(k, dtype):
    streams = [np.arange(1, NUM + 1) for _ in range(3)]
    drawn = core.draws.uniform(tuple(s.copy() for s in streams), None, 2, 0.0, 1.0)
    assert len(np.unique(drawn)) == 2 * NUM
    streams[k] = streams[k].astype(dtype)
    with pytest.raises(ValueError, match="int64"):
        core.draws.uniform(tuple(streams), None, 2, 0.0, 1.0)
