"""Greatest norms over substeps; rays and Jacobians; all against MuJoCo in a loop."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco import batch
from tests.engine.core_models import load, random_states

from simstate.engine import core
from simstate.errors import InvalidInputError

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 6
VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
GROUPS = (("sensordata", 3, 3), ("sensordata", 0, 1), ("qfrc_constraint", 2, 4))


def loop_maxima(model, rows, n):
    """The greatest norms by mj_step in a loop; (worlds, groups)."""
    greatest = np.zeros((len(rows), len(GROUPS)))
    for row, best in zip(rows, greatest, strict=True):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, row, STATE)
        for _ in range(n):
            mujoco.mj_step(model, data)
            for k, (name, start, width) in enumerate(GROUPS):
                values = getattr(data, name)[start : start + width]
                best[k] = max(best[k], np.linalg.norm(values))
    return greatest


@pytest.fixture(scope="module")
def falling():
    """Quadrupeds that hit the ground within the next steps."""
    model = load("quadruped")
    rows = random_states(model, NUM, 4)
    rows[:, 3] = np.linspace(0.1, 0.4, NUM)
    return model, rows


def worlds_of(model, rows):
    worlds = core.CoreBatch(model, NUM, 2)
    worlds.state[:] = rows
    for name in ("sensordata", "qfrc_constraint", "xpos"):
        worlds.bind(name)
    return worlds


def test_maxima_are_those_of_a_loop(falling):
    model, rows = falling
    worlds = worlds_of(model, rows)
    maxima = core.Maxima.of(NUM, GROUPS)
    worlds.step([0, 2, 5], 7, VELOCITY, maxima)
    want = loop_maxima(model, rows, 7)
    want[[1, 3, 4]] = 0.0
    assert (want[[0, 2, 5]] > 0).any()
    np.testing.assert_allclose(maxima.greatest, want, rtol=1e-14)
    last = np.linalg.norm(worlds.bind("sensordata")[:, 3:6], axis=1)
    assert (maxima.greatest[:, 0] > last + 1e-9).any()  # the last substep is not all


def test_maxima_go_on_until_they_are_cleared(falling):
    model, rows = falling
    worlds = worlds_of(model, rows)
    maxima = core.Maxima.of(NUM, GROUPS)
    for n in (1, 16, 3):
        worlds.step(None, n, VELOCITY, maxima)
    np.testing.assert_allclose(
        maxima.greatest, loop_maxima(model, rows, 20), rtol=1e-14
    )
    maxima.greatest[:] = 0.0
    middle = worlds.state.copy()
    worlds.step(None, 2, VELOCITY, maxima)
    np.testing.assert_allclose(
        maxima.greatest, loop_maxima(model, middle, 2), rtol=1e-14
    )


def test_maxima_change_no_bits(falling):
    model, rows = falling
    one, other = worlds_of(model, rows), worlds_of(model, rows)
    one.step(None, 9, VELOCITY, core.Maxima.of(NUM, GROUPS))
    other.step(None, 9, VELOCITY)
    np.testing.assert_array_equal(one.state, other.state)
    for name in ("sensordata", "qfrc_constraint", "xpos"):
        np.testing.assert_array_equal(one.bind(name), other.bind(name))


def test_what_is_not_a_number_stays(falling):
    model, rows = falling
    worlds = worlds_of(model, rows)
    worlds.bind("qfrc_applied")[3, 4] = np.nan
    maxima = core.Maxima.of(NUM, [("qfrc_constraint", 0, 18)])
    worlds.step(None, 3, VELOCITY, maxima)
    bad = np.isnan(maxima.greatest[:, 0])
    np.testing.assert_array_equal(np.flatnonzero(bad), [3])


@pytest.mark.parametrize(
    "group",
    [
        *(("xquat", 0, 4), ("sensordata", 0, 999), ("xpos", -1, 2), ("xpos", 0, 0)),
        ("nothing", 0, 1),
    ],
)
def test_groups_are_elements_of_bound_fields(falling, group):
    worlds = worlds_of(*falling)
    with pytest.raises(ValueError, match="elements of bound fields"):
        worlds.step(None, 1, VELOCITY, core.Maxima.of(NUM, [group]))
    with pytest.raises(InvalidInputError, match="mjSTAGE_VEL"):
        worlds.step(None, 1, 0, core.Maxima.of(NUM, GROUPS))


@pytest.mark.parametrize("ids", [None, [1, 4, 5]])
def test_rays_and_jacobians(ids):
    model = load("sensors")
    rows = random_states(model, NUM, 5)
    ours, theirs = core.CoreBatch(model, NUM, 2), batch.Batch(model, NUM, 1)
    ours.state[:], theirs.state[:] = rows, rows
    n = NUM if ids is None else len(ids)
    rng = np.random.default_rng(2)
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
    bodies, points = rng.integers(1, model.nbody, n), rng.standard_normal((n, 3))
    for one, other in zip(
        ours.jac(bodies, points, ids), theirs.jac(bodies, points, ids), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(ours.state, rows)


def test_wrong_rays_and_worlds_are_refused():
    model = load("sensors")
    worlds = core.CoreBatch(model, NUM, 1)
    with pytest.raises(ValueError, match="num_worlds must be at least 1, got 0"):
        core.CoreBatch(model, 0)
    with pytest.raises(InvalidInputError, match="bodyexclude must be whole numbers"):
        worlds.ray((0, 0, 1), (0, 0, -1), bodyexclude=model.nbody)
    with pytest.raises(InvalidInputError, match="body must be whole numbers"):
        worlds.jac(0.5, (0, 0, 0))
    with pytest.raises(InvalidInputError, match="from 0 to 5, got 6"):
        worlds.get_data(NUM)
    with pytest.raises(InvalidInputError, match="'efc_force' is no field"):
        worlds.bind("efc_force")
    with pytest.raises(InvalidInputError, match="'mesh_vert' is no field"):
        worlds.expand("mesh_vert")
    with pytest.raises(InvalidInputError, match="A mask of worlds"):
        worlds.step([True, False])


def test_the_data_of_one_world():
    model = load("sensors")
    worlds = core.CoreBatch(model, NUM, 1)
    worlds.state[:] = random_states(model, NUM, 5)
    row = np.zeros(worlds.nstate)
    mujoco.mj_getState(model, worlds.get_data(4), row, STATE)
    np.testing.assert_array_equal(row, worlds.state[4])
