"""The raw fields: shapes, liveness, errors, and plain MuJoCo's values bit for bit."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import columns_of, engine_of
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.engine import FIELDS, STATE_FIELDS, Stage

DERIVED = tuple(name for name in FIELDS if name not in STATE_FIELDS)
EVALUATED = tuple(name for name in DERIVED if FIELDS[name].stage == Stage.ACCELERATION)
CURRENT = tuple(name for name in DERIVED if name not in EVALUATED)

COMPONENTS = {
    "time": mujoco.mjtState.mjSTATE_TIME,
    "qpos": mujoco.mjtState.mjSTATE_QPOS,
    "qvel": mujoco.mjtState.mjSTATE_QVEL,
    "act": mujoco.mjtState.mjSTATE_ACT,
    "history": mujoco.mjtState.mjSTATE_HISTORY,
    "qacc_warmstart": mujoco.mjtState.mjSTATE_WARMSTART,
    "ctrl": mujoco.mjtState.mjSTATE_CTRL,
    "qfrc_applied": mujoco.mjtState.mjSTATE_QFRC_APPLIED,
    "xfrc_applied": mujoco.mjtState.mjSTATE_XFRC_APPLIED,
    "eq_active": mujoco.mjtState.mjSTATE_EQ_ACTIVE,
    "mocap_pos": mujoco.mjtState.mjSTATE_MOCAP_POS,
    "mocap_quat": mujoco.mjtState.mjSTATE_MOCAP_QUAT,
    "userdata": mujoco.mjtState.mjSTATE_USERDATA,
    "plugin_state": mujoco.mjtState.mjSTATE_PLUGIN,
}
if IS_4:
    COMPONENTS["plastic"] = mujoco.mjtState.mjSTATE_PLASTIC


def read_all(sim, names=FIELDS):
    return {name: getattr(sim.data, name) for name in names}


def value_of(data, name):
    """A field of plain MuJoCo; one of a later version has no columns."""
    return np.array(getattr(data, name, ()))


def plain_steps(model, data, n):
    """Every field after n × mj_step and the velocity stage at the new state."""
    for _ in range(n):
        mujoco.mj_step(model, data)
    fields = {name: np.array(getattr(data, name)) for name in EVALUATED}
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_sensorPos(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_sensorVel(model, data)
    for name in FIELDS:
        if name not in EVALUATED:
            fields[name] = value_of(data, name)
    fields["sensordata"] = np.array(data.sensordata)
    return fields


def assert_same(sim, plain, names):
    for name in names:
        got = getattr(sim.data, name)
        for world, fields in enumerate(plain):
            np.testing.assert_array_equal(
                got[world].numpy().ravel(),
                fields[name].ravel(),
                err_msg=f"{name} in world {world}",
            )


@pytest.fixture
def moving(make_sim, random_rows, load_row, small_model):
    """A native simulation in random states, and plain MuJoCo 6 steps later."""
    sim = make_sim(num_envs=5)
    rows = random_rows(small_model, 5, seed=3, height=-0.3)
    sim.write_state(rows)
    plain = [plain_steps(small_model, load_row(small_model, row), 6) for row in rows]
    return sim, plain


def test_every_field_has_its_declared_shape(make_sim, engine, small_model):
    sim = make_sim(engine, num_envs=3)
    data = mujoco.MjData(small_model)
    for name, tensor in read_all(sim).items():
        sizes = FIELDS[name].shape
        own = [getattr(small_model, k, 0) if isinstance(k, str) else k for k in sizes]
        assert tensor.shape == (3, *own), name
        assert tensor[0].numel() == value_of(data, name).size, name
        assert tensor.dtype in (sim.dtype, torch.bool), name


def test_a_field_is_live(make_sim, engine):
    sim = make_sim(engine)
    kept = read_all(sim)
    before = {name: tensor.clone() for name, tensor in kept.items()}
    sim.data.ctrl[:] = 0.5
    sim.step(2)
    for name, tensor in read_all(sim).items():
        assert tensor.data_ptr() == kept[name].data_ptr(), name
    moved = ("time", "qpos", "qvel", "act", "xpos", "cvel", "sensordata", "qacc")
    for name in moved:
        assert not torch.equal(kept[name], before[name]), name


def test_native_state_fields_are_columns_of_the_state(make_sim):
    sim = make_sim(num_envs=3)
    for name, columns in columns_of(sim).items():
        tensor = getattr(sim.data, name)
        if tensor.numel():
            assert tensor.data_ptr() == sim.state[0, columns].data_ptr(), name
    sim.state[1, columns_of(sim)["qpos"]] = torch.arange(13.0, dtype=sim.dtype)
    assert sim.data.qpos[1].tolist() == list(range(13))
    sim.data.mocap_pos[2, 0] = 7.0
    assert sim.state[2, columns_of(sim)["mocap_pos"]].tolist() == [7.0] * 3


@pytest.mark.parametrize("calls", [(6,), (1,) * 6, (2, 3, 1)])
def test_native_is_plain_mujoco(moving, calls):
    sim, plain = moving
    read_all(sim)
    for n in calls:
        sim.step(n)
    assert_same(sim, plain, FIELDS)


@pytest.mark.parametrize("name", CURRENT)
def test_first_read_after_steps_is_current(moving, name):
    sim, plain = moving
    sim.step(6)
    assert_same(sim, plain, [name])


@pytest.mark.parametrize("name", EVALUATED)
def test_first_read_after_steps_is_of_the_last_evaluation(moving, name):
    sim, plain = moving
    sim.step(6)
    assert_same(sim, plain, [name])


@pytest.mark.parametrize("reader", ["sim.data", "entity"])
def test_first_reads_leave_the_last_evaluation_alone(moving, reader):
    sim, plain = moving
    sim.data.sensordata  # noqa: B018
    sim.step(6)
    early = ("qacc", "actuator_force", "sensordata")
    before = {name: getattr(sim.data, name).clone() for name in early}
    if reader == "sim.data":
        read_all(sim, CURRENT)
    else:
        for name in ("body_com_vel_w", "site_vel_w", "geom_pose_w", "tendon_vel"):
            sim.scene["model"].data.read(name)
    for name in early:
        assert torch.equal(getattr(sim.data, name), before[name]), name
    assert_same(sim, plain, early)


def test_a_refresh_leaves_other_accelerations_alone(moving):
    sim, plain = moving
    read_all(sim)
    sim.step(6)
    sim.scene["model"].write_joint_position_to_sim([[0.1, 0.2]], env_ids=[1, 3])
    sim.data.xpos  # noqa: B018
    rest = [0, 2, 4]
    for name in EVALUATED:
        got = getattr(sim.data, name)
        for world in rest:
            np.testing.assert_array_equal(
                got[world].numpy().ravel(), plain[world][name].ravel(), err_msg=name
            )


def test_a_field_cannot_be_replaced(make_sim, engine):
    sim = make_sim(engine)
    before = sim.state.clone()
    with raises(InvalidInputError, name="qpos"):
        sim.data.qpos = torch.zeros_like(sim.data.qpos)
    with raises(InvalidInputError, name="xpos"):
        sim.data.xpos = torch.zeros_like(sim.data.xpos)
    assert torch.equal(sim.state, before)


def test_a_state_field_takes_augmented_assignment(make_sim, engine):
    sim = make_sim(engine)
    before = sim.data.qpos.clone()
    pointer = sim.data.qpos.data_ptr()
    sim.data.qpos += 0.25
    assert sim.data.qpos.data_ptr() == pointer
    assert torch.equal(sim.data.qpos, before + 0.25)
    x = sim.scene["model"].data.root_link_pos_w[:, 0]
    assert torch.equal(x, before[:, 0] + 0.25)


def test_an_unknown_field_is_refused_with_a_suggestion(make_sim):
    sim = make_sim()
    with raises(UnknownNameError, name="qposs"):
        sim.data.qposs  # noqa: B018
    with raises(AttributeError, name="nonsense"):
        sim.data.nonsense  # noqa: B018
    assert not hasattr(sim.data, "nonsense")
    assert hasattr(sim.data, "qpos")


@pytest.mark.parametrize("name", ["cacc", "cfrc_ext", "subtree_linvel", "energy"])
def test_a_field_on_demand_is_refused_with_the_way_round(make_sim, name):
    sim = make_sim()
    assert hasattr(mujoco.MjData(sim.model), name)
    with raises(UnknownNameError, name=name):
        getattr(sim.data, name)


@pytest.mark.parametrize(
    ("accessor", "name", "attribute"),
    [
        ("body", "lower", "xpos"),
        ("joint", "wrist", "qpos"),
        ("geom", "bob", "xpos"),
        ("site", "tip", "xpos"),
        ("camera", "eye", "xpos"),
        ("tendon", "cord", "length"),
    ],
)
def test_the_error_for_an_accessor_by_name_has_an_expression_that_replaces_it(
    make_sim, random_rows, small_model, load_row, accessor, name, attribute
):
    rows = random_rows(small_model, 2, seed=8)
    sim = make_sim(num_envs=2)
    sim.write_state(rows)
    with raises(UnknownNameError, name=accessor) as caught:
        getattr(sim.data, accessor)(name)
    expression = str(caught.value).partition("use ")[2].partition(", or ")[0]
    got = eval(expression, {"sim": sim, "name": name})
    for row, values in zip(rows, got, strict=True):
        data = load_row(small_model, row)
        mujoco.mj_forward(small_model, data)
        expected = getattr(getattr(data, accessor)(name), attribute)
        np.testing.assert_array_equal(values.numpy().ravel(), np.ravel(expected))


def test_cacc_names_quantities_that_exist(make_sim):
    sim = make_sim()
    with raises(UnknownNameError, name="cacc"):
        sim.data.cacc  # noqa: B018
    assert "body_link_lin_acc_w" in sim.scene["model"].data.quantities


def test_a_write_to_a_derived_field_raises_at_the_next_read(make_sim, engine):
    sim = make_sim(engine)
    sim.step()
    right = sim.data.xpos.clone()
    sim.data.xpos[:] = 0
    with raises(InvalidInputError, name="sim.data.xpos"):
        sim.scene["model"].data.root_link_quat_w  # noqa: B018
    assert torch.allclose(sim.data.xpos, right, rtol=0, atol=1e-6)


def test_columns_are_those_of_mj_getstate(make_sim, random_rows, load_row, small_model):
    later = () if IS_4 else ("plastic",)
    assert tuple(COMPONENTS) == tuple(n for n in STATE_FIELDS if n not in later)
    sim = make_sim(num_envs=2)
    rows = random_rows(small_model, 2, seed=1)
    sim.write_state(rows)
    assert torch.equal(sim.state, rows)
    for world in range(2):
        data = load_row(small_model, rows[world])
        for name, component in COMPONENTS.items():
            size = mujoco.mj_stateSize(small_model, component.value)
            part = np.zeros(size)
            mujoco.mj_getState(small_model, data, part, component.value)
            columns = columns_of(sim)[name]
            np.testing.assert_array_equal(sim.state[world, columns], part, name)
            field = getattr(sim.data, name)[world]
            np.testing.assert_array_equal(field.ravel(), part, name)


def test_state_round_trip(make_sim, engine, random_rows, small_model):
    sim = make_sim(engine, num_envs=4)
    rows = random_rows(small_model, 4, seed=2).to(sim.dtype)
    sim.write_state(rows)
    assert torch.equal(sim.state, rows)
    sim.step(3)
    moved = sim.state.clone()
    assert not torch.equal(moved, rows)
    sim.write_state(rows[[3, 1]], env_ids=[3, 1])
    assert torch.equal(sim.state[[1, 3]], rows[[1, 3]])
    assert torch.equal(sim.state[[0, 2]], moved[[0, 2]])


def test_state_round_trip_repeats_the_motion(make_sim, engine, random_rows):
    sim = make_sim(engine, num_envs=3)
    sim.write_state(random_rows(sim.model, 3, seed=4, height=-0.35))
    start = sim.state.clone()
    sim.step(5)
    first = sim.state.clone()
    sim.write_state(start)
    sim.step(5)
    assert torch.equal(sim.state, first)


def test_n_steps_in_one_call_are_n_calls(make_sim, engine, random_rows):
    one, many = make_sim(engine, num_envs=3), make_sim(engine, num_envs=3)
    rows = random_rows(one.model, 3, seed=4, height=-0.35)
    one.write_state(rows)
    many.write_state(rows)
    one.step(5)
    for _ in range(5):
        many.step()
    assert torch.equal(one.state, many.state)


def test_rows_of_the_state_can_be_shifted_by_a_world(make_sim, engine, random_rows):
    sim = make_sim(engine, num_envs=4)
    rows = random_rows(sim.model, 4, seed=5).to(sim.dtype)
    sim.write_state(rows)
    sim.write_state(sim.state[:-1], env_ids=slice(1, None))
    assert torch.equal(sim.state, rows[[0, 0, 1, 2]])


def test_a_bad_state_is_refused_whole(make_sim, engine):
    sim = make_sim(engine, num_envs=3)
    before = sim.state.clone()
    with raises(ShapeError, name="state"):
        sim.write_state(torch.zeros(2, engine_of(sim).nstate))
    with raises(InvalidInputError, name="state"):
        sim.write_state(torch.full_like(before, torch.nan))
    assert torch.equal(sim.state, before)


def test_native_state_carries_to_warp(make_sim, random_rows, small_model):
    native, warp = make_sim("native", 3), make_sim("warp", 3)
    native.write_state(random_rows(small_model, 3, seed=6, height=-0.35))
    native.step(20)
    warp.write_state(native.state)
    assert columns_of(warp) == columns_of(native)
    assert torch.equal(warp.state, native.state.float())
    for name in ("xpos", "site_xpos", "subtree_com", "geom_xpos"):
        got, want = getattr(warp.data, name), getattr(native.data, name)
        torch.testing.assert_close(got, want.float(), rtol=0, atol=1e-5, msg=name)
