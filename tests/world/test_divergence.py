"""Divergence: bad worlds are named and stopped, the others go on as if alone."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import DivergenceError

pytestmark = pytest.mark.long

BAD = 1
"""The world that goes wrong."""
OTHERS = [0, 2, 3]

# Where the bad number goes, and the name that the error has to give.
PLACES = {
    "qpos": ((7,), "hinge 'elbow'"),
    "qpos of a quaternion": ((4,), "free joint 'root'"),
    "qpos of a ball": ((9,), "ball joint 'ball'"),
    "qvel": ((3,), "free joint 'root'"),
    "act": ((0,), "actuator 'wrist'"),
    "ctrl": ((2,), "actuator 'push'"),
    "qfrc_applied": ((9,), "ball joint 'ball'"),
    "xfrc_applied": ((1, 4), "body 'trunk'"),
}
VALUES = [float("nan"), float("inf"), -1e20]
FEWER_VALUES = [float("nan"), 1e20]
INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied")


@pytest.fixture(scope="module")
def made():
    """Simulations that tests reset and use again, by their options."""
    return {}


@pytest.fixture
def started(made, make_sim, engine, random_rows):
    """Starts simulations: each has taken two steps from the same random states."""
    count = 0

    def start(on_divergence="raise"):
        nonlocal count
        count += 1
        key = engine, on_divergence, count
        if key not in made:
            made[key] = make_sim(engine, on_divergence=on_divergence)
        sim = made[key]
        sim.reset()
        sim.write_state(random_rows(sim.model, 4, seed=8, height=-0.35))
        sim.step(2)
        return sim

    return start


def poison(sim, field, value):
    place, _ = PLACES[field]
    getattr(sim.data, field.split()[0])[(BAD, *place)] = value


def assert_same_rows(got, want, engine, worlds=OTHERS):
    assert torch.equal(got[worlds], want[worlds])


def same_numbers(got, want):
    return np.array_equal(got.numpy(), want.numpy(), equal_nan=True)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("field", PLACES)
def test_raise_tells_the_world_and_lets_the_others_advance(
    started, engine, field, value
):
    sim, healthy = started(), started()
    poison(sim, field, value)
    with raises(DivergenceError, worlds=[BAD]) as c:
        sim.step(5)
    healthy.step(5)
    assert c.value.env_ids == [BAD]
    assert not sim.diverged.any()
    assert_same_rows(sim.state, healthy.state, engine)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("field", PLACES)
def test_raise_names_the_element_that_was_bad(started, engine, field, n):
    sim = started()
    poison(sim, field, float("nan"))
    with pytest.raises(DivergenceError) as caught:
        sim.step(n)
    assert f"{field.split()[0]}[" in str(caught.value)
    assert PLACES[field][1] in str(caught.value)


@pytest.mark.parametrize("value", FEWER_VALUES)
@pytest.mark.parametrize("field", PLACES)
def test_raise_keeps_the_state_of_the_bad_world(started, engine, field, value):
    sim = started()
    poison(sim, field, value)
    before = sim.state.clone()
    with pytest.raises(DivergenceError):
        sim.step(5)
    assert same_numbers(sim.state[BAD], before[BAD])


@pytest.mark.parametrize("value", FEWER_VALUES)
@pytest.mark.parametrize("field", PLACES)
def test_reads_do_not_change_a_bad_state(started, engine, field, value):
    sim = started()
    poison(sim, field, value)
    before = sim.state.clone()
    sim.data.xpos  # noqa: B018
    sim.scene["model"].data.body_link_acc_w  # noqa: B018
    sim.forward()
    assert same_numbers(sim.state, before)


@pytest.mark.parametrize("field", PLACES)
def test_a_repaired_world_goes_on(started, engine, field):
    sim, healthy = started(), started()
    good = getattr(sim.data, field.split()[0]).clone()
    poison(sim, field, float("nan"))
    with pytest.raises(DivergenceError):
        sim.step()
    healthy.step()
    getattr(sim.data, field.split()[0])[BAD] = good[BAD]
    sim.step(3)
    healthy.step(3)
    assert_same_rows(sim.state, healthy.state, engine)
    assert float(sim.time[BAD]) == pytest.approx(float(healthy.time[BAD]) - 0.004)


@pytest.mark.parametrize("field", INPUTS)
def test_a_bad_input_taken_back_before_the_step_does_no_harm(started, engine, field):
    """Also if a read has evaluated the dynamics with it."""
    sim, healthy = started(), started()
    good = getattr(sim.data, field).clone()
    poison(sim, field, float("nan"))
    sim.forward()
    sim.scene["model"].data.body_link_lin_acc_w  # noqa: B018
    getattr(sim.data, field).copy_(good)
    sim.step(3)
    healthy.step(3)
    assert_same_rows(sim.state, healthy.state, engine, worlds=[0, 1, 2, 3])


@pytest.mark.parametrize("value", FEWER_VALUES)
@pytest.mark.parametrize("field", PLACES)
def test_mask_stops_the_world_and_goes_on_with_the_others(
    started, engine, field, value
):
    sim, healthy = started("mask"), started("mask")
    poison(sim, field, value)
    before = sim.state.clone()
    for n in (1, 5, 2):
        sim.step(n)
        healthy.step(n)
        assert sim.diverged.tolist() == [False, True, False, False]
        assert same_numbers(sim.state[BAD], before[BAD])
        assert_same_rows(sim.state, healthy.state, engine)
    assert not healthy.diverged.any()
    if field in INPUTS:
        data = sim.scene["model"].data
        for name in ("body_link_pose_w", "body_link_vel_w", "joint_pos", "joint_vel"):
            assert data.read(name).isfinite().all(), name


def test_a_marked_world_waits_for_a_reset(started, engine):
    sim, healthy = started("mask"), started("mask")
    good = sim.data.ctrl.clone()
    poison(sim, "ctrl", float("nan"))
    sim.step()
    healthy.step()
    sim.data.ctrl.copy_(good)
    before = sim.state.clone()
    sim.step(3)
    healthy.step(3)
    assert sim.diverged.tolist() == [False, True, False, False]
    assert torch.equal(sim.state[BAD], before[BAD])
    assert_same_rows(sim.state, healthy.state, engine)


@pytest.mark.parametrize("field", PLACES)
def test_reset_clears_the_mask(started, make_sim, engine, field):
    sim, healthy, new = started("mask"), started("mask"), make_sim(engine)
    poison(sim, field, float("nan"))
    sim.step()
    healthy.step()
    assert sim.diverged[BAD]
    sim.reset(env_ids=[BAD])
    assert not sim.diverged.any()
    for each in (sim, healthy, new):
        each.step(4)
    assert not sim.diverged.any()
    assert_same_rows(sim.state, healthy.state, engine)
    assert_same_rows(sim.state, new.state, engine, worlds=[BAD])
    assert sim.data.xpos.isfinite().all()
    assert sim.data.qacc.isfinite().all()


@pytest.mark.parametrize("on_divergence", ["raise", "mask"])
def test_a_blow_up_is_caught(started, made, engine, on_divergence):
    sim, healthy = started(on_divergence), started(on_divergence)
    del made[engine, on_divergence, 1]  # it gets another spring
    wrist = sim.model.joint("wrist").id
    sim.expand("jnt_stiffness")[BAD, wrist] = 1e7
    calls = 0
    caught = None
    while caught is None and not sim.diverged.any():
        before = sim.state.clone()
        calls += 1
        assert calls < 40, "the absurd spring has not blown up"
        healthy.step(5)
        try:
            sim.step(5)
        except DivergenceError as error:
            caught = error
    assert (caught is not None) == (on_divergence == "raise")
    if caught is not None:
        assert caught.env_ids == [BAD]
        assert "joint" in str(caught) or "hinge" in str(caught)
    else:
        assert sim.diverged.tolist() == [False, True, False, False]
    assert torch.equal(sim.state[BAD], before[BAD])
    assert_same_rows(sim.state, healthy.state, engine)
    for name in ("xpos", "cvel"):
        assert getattr(sim.data, name).isfinite().all(), name


def test_time_never_runs_back(started, engine):
    """MuJoCo would reset the world within the call and go on from its default."""
    sim = started("mask")
    ahead = sim.time.clone()
    poison(sim, "xfrc_applied", float("nan"))
    sim.step(5)
    assert sim.diverged[BAD]
    assert float(sim.time[BAD]) == float(ahead[BAD])
    assert (sim.time[OTHERS] > ahead[OTHERS]).all()


def test_several_worlds_are_listed_in_order(started, engine):
    sim = started()
    sim.data.qvel[3, 8] = float("nan")
    sim.data.ctrl[0, 2] = float("inf")
    with pytest.raises(DivergenceError) as caught:
        sim.step()
    assert caught.value.env_ids == [0, 3]
    message = str(caught.value)
    assert "2 of 4 worlds" in message
    assert message.index("actuator 'push'") < message.index("ball joint 'ball'")


def test_a_nan_control_is_caught_behind_a_control_range(started, engine):
    sim = started()
    assert sim.model.actuator("elbow").ctrllimited
    sim.data.ctrl[BAD, 1] = float("nan")
    with raises(DivergenceError, worlds=[1]):
        sim.step()


def test_a_healthy_simulation_is_not_masked(started, engine):
    sim = started("mask")
    sim.step(20)
    assert not sim.diverged.any()
    assert sim.state.isfinite().all()


@pytest.mark.parametrize("on_divergence", ["raise", "mask"])
def test_nothing_is_printed_or_logged(
    started, engine, on_divergence, capfd, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    sims = {field: started(on_divergence) for field in PLACES}
    for sim in sims.values():
        sim.step()
    capfd.readouterr()
    for field, sim in sims.items():
        poison(sim, field, float("nan"))
        try:
            sim.step(3)
        except DivergenceError:
            assert on_divergence == "raise"
        sim.data.xpos  # noqa: B018
        sim.forward()
        sim.scene["model"].data.body_link_acc_w  # noqa: B018
    printed = capfd.readouterr()
    assert printed.err == ""
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_plain_mujoco_would_have_reset_it(small_model, random_rows, load_row):
    """What the tests above guard against: a reset in silence, as if all were well."""
    data = load_row(small_model, random_rows(small_model, 1, seed=8)[0])
    data.xfrc_applied[1, 4] = 1e12
    heard = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        for _ in range(5):
            mujoco.mj_step(small_model, data)
    finally:
        mujoco.set_mju_user_warning(before)
    assert heard
    assert np.isfinite(data.qpos).all()
    assert data.time == pytest.approx(5 * small_model.opt.timestep)


def test_what_diverged_in_the_last_step_is_kept(started, engine):
    sim = started("mask")
    assert sim.divergence.cause is None
    sim.data.qvel[[1, 3], 7] = 1e12
    before = sim.state.clone()
    sim.step()
    assert sim.divergence.cause is not None
    assert sim.divergence.cause.env_ids == [1, 3]
    assert "wrist" in sim.divergence.cause.elements[0]
    after = sim.divergence.cause.after
    assert after.shape == (2, sim.state.shape[1])
    assert not bool((after.abs() <= 1e10).all())
    assert torch.equal(sim.state[[1, 3]], before[[1, 3]])
    sim.step()
    assert sim.divergence.cause is None


@pytest.mark.parametrize("force", [1e20, -1e25])
def test_a_force_beyond_all_measure_is_not_hidden_by_an_evaluation(
    started, engine, force
):
    """Newton's law for the joint's force; the solver gave what it had begun with."""
    sim = started()
    twin = started()
    for each in (sim, twin):
        each.data.qfrc_applied[:, 8] = 0.3
        each.forward()
    sim.data.qfrc_applied[BAD, 8] = force
    assert not torch.equal(sim.data.qacc[BAD], twin.data.qacc[BAD])
    assert float(sim.data.qacc[BAD].abs().max()) > 1e-3 * abs(force)
    assert_same_rows(sim.data.qacc, twin.data.qacc, engine)


def test_a_wrench_on_what_cannot_move_is_named_too(started):
    """MuJoCo takes no note of it; a snapshot of it would not be restored."""
    sim = started()
    sim.data.xfrc_applied[BAD, 0, 3] = float("nan")
    with raises(DivergenceError, worlds=[1]):
        sim.step()
    assert sim.divergence.cause.env_ids == [BAD]


@pytest.mark.parametrize("value", FEWER_VALUES)
@pytest.mark.parametrize("field", PLACES)
def test_an_evaluation_of_a_bad_world_names_it(started, engine, field, value):
    """MuJoCo takes a bad control for 0, and Warp a NaN attitude for another one."""
    sim, twin = started(), started()
    poison(sim, field, value)
    twin.forward()
    if engine == "native" and "applied" in field:
        sim.forward()  # the accelerations show it
        assert not bool((sim.data.qacc[BAD].abs() <= 1e10).all())
        assert_same_rows(sim.data.qacc, twin.data.qacc, engine)
        return
    named = rf"In 1 of 4 worlds \({BAD}\): .*{PLACES[field][1]}"
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=named):
            sim.forward()
        assert_same_rows(sim.data.qacc, twin.data.qacc, engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.forward(OTHERS)
    with pytest.warns(RuntimeWarning, match=named):
        sim.forward([BAD, 0])


def test_a_read_that_evaluates_a_bad_world_names_it(started, engine):
    sim = started()
    sim.data.ctrl[BAD, 2] = float("nan")
    with pytest.warns(RuntimeWarning, match=rf"\({BAD}\): ctrl\[2\] = nan"):
        _ = sim.scene["model"].data.body_link_acc_w


def test_marked_worlds_are_not_reported_again(started, engine):
    sim = started("mask")
    sim.data.ctrl[BAD, 2] = float("nan")
    sim.step()
    assert sim.diverged.tolist() == [i == BAD for i in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.forward()
    sim.data.ctrl[0, 2] = float("nan")
    with pytest.warns(RuntimeWarning, match=r"In 1 of 4 worlds \(0\)"):
        sim.forward()
