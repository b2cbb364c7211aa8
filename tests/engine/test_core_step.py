"""The core's fused step against mujoco.batch, bit for bit."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from mujoco import batch
from tests.engine.core_models import NAMES, load, random_states

from simstate.base.errors import ModelError
from simstate.engine import core
from simstate.engine.fields import EVALUATED_FIELDS, FIELDS, STATE_FIELDS

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
DERIVED = tuple(name for name in FIELDS if name not in STATE_FIELDS)
LATE = ("qfrc_bias", "qfrc_passive", "qfrc_spring", "qfrc_damper", "qfrc_gravcomp",
        "qfrc_fluid", "M", "flexvert_xpos")  # fmt: skip
CHEAP = tuple(name for name in DERIVED if name not in LATE)
NUM = 7


def pair(model, fields, seed=3, threads=2):
    ours = core.CoreBatch(model, NUM, threads)
    theirs = batch.Batch(model, NUM, threads)
    rows = random_states(model, NUM, seed)
    for each in (ours, theirs):
        each.state[:] = rows
        for name in fields:
            each.bind(name)
    return ours, theirs


def step(each, ids, n):
    """Step the core's worlds or mujoco.batch's, which needs the stage."""
    stage = () if isinstance(each, core.CoreBatch) else (VELOCITY,)
    each.step(ids, n, *stage)


def assert_equal(ours, theirs, fields, rows=slice(None)):
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.warning, theirs.warning)
    np.testing.assert_array_equal(ours.status, theirs.status)
    rk4 = mujoco.mjtIntegrator.mjINT_RK4
    for name in fields:
        if ours.model.opt.integrator == rk4 and name in EVALUATED_FIELDS:
            continue  # of the first evaluation: tests/world/test_last_evaluation.py
        got, want = ours.bind(name), theirs.bind(name)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_array_equal(got[rows], want[rows], err_msg=name)


def run_both(ours, theirs, fields, seed=5):
    rng = np.random.default_rng(seed)
    for ids, n in ((None, 1), ([1, 2, 6], 3), (None, 4), ([0, 5], 1), (None, 2)):
        control = rng.uniform(-1, 1, (NUM, ours.model.nu))
        for each in (ours, theirs):
            each.bind("ctrl")[:] = control
            step(each, ids, n)
        assert_equal(ours, theirs, fields, slice(None) if ids is None else ids)


@pytest.mark.parametrize("name", NAMES)
def test_step_and_refresh_have_the_bits_of_the_batch(name):
    model = load(name)
    ours, theirs = pair(model, CHEAP)
    run_both(ours, theirs, CHEAP)


@pytest.mark.parametrize("name", NAMES)
def test_whole_stage_has_the_bits_of_the_batch(name):
    model = load(name)
    fields = (*CHEAP, *LATE, "ncon", "energy")
    ours, theirs = pair(model, fields, seed=4)
    run_both(ours, theirs, fields)
    assert ours.core.needs_everything()


@pytest.mark.parametrize("name", ["sensors", "gymnasium-ant"])
@pytest.mark.parametrize("field", CHEAP)
def test_each_field_alone_is_brought_up_to_date(name, field):
    """What one bound field needs does not come by way of another."""
    model = load(name)
    ours, theirs = pair(model, (field,))
    run_both(ours, theirs, (field,))


def test_cheap_fields_do_not_need_the_whole_stage():
    ours, _ = pair(load("sensors"), CHEAP)
    assert not ours.core.needs_everything()
    ours.bind("qfrc_bias")
    assert ours.core.needs_everything()


@pytest.mark.parametrize("name", ["late sensors", "small", "quadruped"])
def test_sensors_of_constraints_need_the_whole_stage(name):
    ours, _ = pair(load(name), EVALUATED_FIELDS)
    assert ours.core.needs_everything() == (name == "late sensors")


def test_the_number_of_threads_does_not_matter():
    model = load("sensors")
    ours, theirs = pair(model, CHEAP, threads=3)
    run_both(ours, theirs, CHEAP)


def test_parameters_of_each_world():
    model = load("sensors")
    ours, theirs = pair(model, CHEAP)
    rng = np.random.default_rng(8)
    for each in (ours, theirs):
        each.expand("body_mass")
    mass = ours.expand("body_mass") * rng.uniform(0.5, 2, (NUM, model.nbody))
    ipos = model.body_ipos + 0.02 * rng.standard_normal((NUM, model.nbody, 3))
    gear = ours.expand("actuator_gear") * rng.uniform(0.5, 2, (NUM, model.nu, 6))
    for each in (ours, theirs):
        each.expand("body_mass")[:] = mass
        each.expand("body_ipos")[:] = ipos
        each.expand("actuator_gear")[:] = gear
        each.expand("opt.timestep")[:] = np.linspace(0.001, 0.004, NUM)
        each.expand("opt.gravity")[:, 0] = np.linspace(-1, 1, NUM)
        each.set_const([1, 4])
    run_both(ours, theirs, CHEAP)
    for name in ("body_subtreemass", "dof_invweight0", "bvh_aabb", "geom_sameframe"):
        got, want = ours.expand(name), theirs.expand(name)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=name)
    got, want = ours.get_model(4), theirs.get_model(4)
    np.testing.assert_array_equal(got.body_mass, want.body_mass)
    np.testing.assert_array_equal(got.body_invweight0, want.body_invweight0)


def test_actuation_switched_off_in_some_worlds():
    model = load("sensors")
    ours, theirs = pair(model, CHEAP)
    off = mujoco.mjtDisableBit.mjDSBL_ACTUATION.value
    for each in (ours, theirs):
        each.expand("opt.disableflags")[[2, 5]] |= off
    # MuJoCo does not compute act_dot then: it is whatever the thread had before.
    run_both(ours, theirs, [name for name in CHEAP if name != "act_dot"])
    assert (ours.bind("actuator_velocity")[2] == 0).all()


def test_forward_of_some_worlds():
    model = load("sensors")
    fields = (*CHEAP, *LATE)
    ours, theirs = pair(model, fields)
    for each in (ours, theirs):
        each.forward([0, 3, 4], mujoco.mjtStage.mjSTAGE_ACC.value)
    assert_equal(ours, theirs, fields, [0, 3, 4])


def test_bad_state_counts_the_same_warnings():
    model = load("quadruped")
    ours, theirs = pair(model, EVALUATED_FIELDS)
    for each in (ours, theirs):
        each.bind("qvel")[3, 2] = np.inf
        each.bind("qpos")[5, 1] = np.nan
        each.bind("ctrl")[1, 4] = np.nan
        each.bind("qfrc_applied")[2, 3] = 1e9
        step(each, None, 2)
    assert ours.warning[..., 1].sum() > 4
    np.testing.assert_array_equal(ours.warning, theirs.warning)
    np.testing.assert_array_equal(ours.state, theirs.state)


def test_an_error_in_some_worlds_leaves_them_as_they_were():
    model = load("small")
    ours, theirs = pair(model, ("xpos",))
    before = ours.state.copy()
    for each in (ours, theirs):
        each.expand("eq_type")[[3, 6]] = 99
        errors = (ModelError, batch.SimulationError)
        with pytest.raises(errors) as error:
            step(each, None, 2)
        original = error.value.__cause__ or error.value
        np.testing.assert_array_equal(original.ids, [3, 6])
    assert ours.error(3) == theirs.error(3) != ""
    assert ours.error(0) == ""
    np.testing.assert_array_equal(ours.state[[3, 6]], before[[3, 6]])
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.bind("xpos")[:3], theirs.bind("xpos")[:3])
    for each in (ours, theirs):  # the next call is sound again
        each.expand("eq_type")[:] = model.eq_type
        step(each, None, 1)
    assert_equal(ours, theirs, ("xpos",))


def test_many_substeps_are_the_same_in_one_call_or_several():
    model = load("quadruped")
    ours, theirs = pair(model, CHEAP)
    ours.step(None, 101)  # more than one call of the library
    theirs.step(None, 101, VELOCITY)
    assert_equal(ours, theirs, CHEAP)
