"""Freshness: any write is seen, reads are cached, and reads never change anything."""

from __future__ import annotations

from contextlib import nullcontext

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import (
    columns_of,
    engine_of,
    failing_undo,
    fresh_of,
    ledger_of,
    record_forwards,
)
from tests.raised import raises

from simstate.base.errors import InvalidInputError, StaleReadError
from simstate.engine import FIELDS, Stage

pytestmark = pytest.mark.fast

ACCURACY = {"native": 0.0, "warp": 1e-6}
MODES = {
    "plain": nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


def put_item(sim, view):
    sim.data.qpos[1, 2] = 2.0


def put_slice(sim, view):
    sim.data.qpos[1:3, 2] = 2.0


def put_mask(sim, view):
    sim.data.qpos[torch.tensor([False, True, False, True]), 2] = 2.0


def put_index(sim, view):
    index = (torch.tensor([1]), torch.tensor([2]))
    sim.data.qpos.index_put_(index, sim.data.qpos.new_tensor(2.0))


def put_copy(sim, view):
    sim.data.qpos.copy_(
        sim.data.qpos + sim.data.qpos.new_tensor([0, 0, 1.5] + [0] * 10)
    )


def put_out(sim, view):
    shift = sim.data.qpos.new_tensor([0, 0, 1.5] + [0] * 10)
    torch.add(sim.data.qpos, shift, out=sim.data.qpos)


def put_augmented(sim, view):
    sim.data.qpos[:, 2] += 1.5


def put_kept_view(sim, view):
    view.fill_(2.0)


def put_new_view(sim, view):
    sim.data.qpos[:, :7].view(4, 7)[1, 2].add_(1.5)


def put_state(sim, view):
    if not engine_of(sim).state_is_live:
        pytest.skip("the state is a copy on this engine")
    sim.state[1, columns_of(sim)["qpos"].start + 2] = 2.0


RAW_WRITES = [
    put_item,
    put_slice,
    put_mask,
    put_index,
    put_copy,
    put_out,
    put_augmented,
    put_kept_view,
    put_new_view,
    put_state,
]


def assert_positions_fresh(sim, engine):
    """The root's height, three ways, is what qpos says."""
    data = sim.scene["model"].data
    for height in (
        data.root_link_pos_w[:, 2],
        data.root_link_pose_w[:, 2],
        sim.data.xpos[:, sim.model.body("trunk").id, 2],
    ):
        torch.testing.assert_close(
            height, sim.data.qpos[:, 2], rtol=0, atol=ACCURACY[engine]
        )


def read_everything(sim):
    for name in FIELDS:
        getattr(sim.data, name)
    for entity in sim.scene.values():
        for name in entity.data.quantities:
            entity.data.read(name)


# Raw writes.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("write", RAW_WRITES)
def test_a_raw_write_is_seen(make_sim, engine, write, mode):
    sim = make_sim(engine)
    view = sim.data.qpos[:, 2:3]
    sim.step()
    assert_positions_fresh(sim, engine)
    before = sim.scene["model"].data.root_link_pos_w.clone()
    with MODES[mode]():
        write(sim, view)
        inside = sim.scene["model"].data.root_link_pos_w.clone()
    assert float((inside - before).abs().max()) > 1.0
    assert_positions_fresh(sim, engine)


@pytest.mark.parametrize("write", RAW_WRITES)
def test_a_raw_write_in_inference_mode_is_seen_outside(make_sim, engine, write):
    with torch.inference_mode():
        sim = make_sim(engine)
        view = sim.data.qpos[:, 2:3]
        assert_positions_fresh(sim, engine)
        write(sim, view)
    assert_positions_fresh(sim, engine)
    sim.step()
    assert_positions_fresh(sim, engine)
    with torch.inference_mode():
        write(sim, view)
        assert_positions_fresh(sim, engine)


def test_velocities_follow_a_raw_write(make_sim, engine):
    sim = make_sim(engine)
    sim.step()
    sim.data.qvel[2, :3] = torch.tensor([1.0, 2.0, 3.0], dtype=sim.dtype)
    sim.data.qvel[2, 3:6] = 0.0
    velocity = sim.scene["model"].data.root_link_lin_vel_w[2]
    want = torch.tensor([1.0, 2.0, 3.0], dtype=sim.dtype)
    torch.testing.assert_close(velocity, want, rtol=0, atol=1e-5)


def test_a_mocap_write_is_seen(make_sim, engine):
    sim = make_sim(engine)
    sim.step()
    target = sim.model.body("target").id
    sim.data.mocap_pos[1, 0] = torch.tensor([3.0, 2.0, 1.0], dtype=sim.dtype)
    assert sim.data.xpos[1, target].tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("mode", MODES)
def test_every_quantity_can_be_used_in_autograd(make_sim, engine, mode):
    with MODES[mode]():
        sim = make_sim(engine)
        sim.step()
        data = sim.scene["model"].data
        values = {name: data.read(name) for name in data.quantities}
        values |= {f"sim.data.{name}": getattr(sim.data, name) for name in FIELDS}
    for name, value in values.items():
        assert not value.requires_grad, name
        weight = torch.ones(value.shape, dtype=sim.dtype, requires_grad=True)
        (weight * value).sum().backward()
        want = value.to(sim.dtype)
        torch.testing.assert_close(weight.grad, want, equal_nan=True, msg=name)


# The three rules.


def test_strict_names_the_quantity_the_write_and_the_remedy(make_sim, engine):
    sim = make_sim(engine, freshness="strict")
    entity = sim.scene["model"]
    sim.step()
    entity.data.root_link_pos_w  # noqa: B018
    entity.write_joint_position_to_sim([[0.1, 0.2]], env_ids=[0, 2])
    with pytest.raises(StaleReadError) as caught:
        entity.data.root_link_pos_w  # noqa: B018
    message = str(caught.value)
    assert "model.data.root_link_pos_w is stale in 2 of 4 worlds" in message
    assert "a write to sim.data.qpos" in message
    assert "sim.forward()" in message
    with raises(StaleReadError, name="xpos"):
        sim.data.xpos  # noqa: B018
    sim.forward()
    assert_positions_fresh(sim, engine)


@pytest.mark.parametrize("field", ["qpos", "qvel", "mocap_pos", "ctrl", "xfrc_applied"])
def test_strict_sees_raw_writes_from_their_stage_on(make_sim, engine, field):
    sim = make_sim(engine, freshness="strict")
    data = sim.scene["model"].data
    sim.step()
    getattr(sim.data, field).add_(0.01)
    reads = {
        Stage.POSITION: lambda: data.root_link_pos_w,
        Stage.VELOCITY: lambda: data.root_link_vel_w,
        Stage.ACCELERATION: lambda: data.joint_acc,
    }
    first = {
        "qpos": Stage.POSITION,
        "qvel": Stage.VELOCITY,
        "mocap_pos": Stage.POSITION,
        "ctrl": Stage.ACCELERATION,
        "xfrc_applied": Stage.ACCELERATION,
    }[field]
    for stage, read in reads.items():
        if stage < first:
            read()
        else:
            with raises(StaleReadError, worlds=[0, 1, 2, 3]) as caught:
                read()
            assert f"sim.data.{field}" in str(caught.value)
    assert data.joint_pos.shape == (4, 2)  # state itself is never stale
    sim.forward()
    for read in reads.values():
        read()


def test_strict_reads_after_a_step(make_sim, engine):
    sim = make_sim(engine, freshness="strict")
    sim.step()
    sim.data.ctrl[:] = 0.3
    sim.data.qpos[:, 2] += 0.5
    sim.step()
    read_everything(sim)


def test_strict_partial_forward_leaves_the_rest_stale(make_sim, engine):
    sim = make_sim(engine, freshness="strict")
    sim.step()
    sim.data.qpos[:, 2] += 0.5
    sim.forward(env_ids=[0, 1, 3])
    with raises(StaleReadError, name="xpos"):
        sim.data.xpos  # noqa: B018
    sim.forward(env_ids=[2])
    assert_positions_fresh(sim, engine)


def test_off_returns_what_is_there(make_sim, engine):
    sim = make_sim(engine, freshness="off")
    data = sim.scene["model"].data
    sim.step()
    names = ("root_link_pos_w", "root_link_vel_w", "joint_acc", "site_pose_w")
    before = {name: data.read(name).clone() for name in names}
    sim.data.qpos[:, 2] += 1.5
    sim.data.qvel[:] = 1.0
    for name in names:
        assert torch.equal(data.read(name), before[name]), name
    sim.forward()
    assert_positions_fresh(sim, engine)
    sim.data.qpos[:, 2] += 1.5
    sim.step()
    assert_positions_fresh(sim, engine)


# What is computed, and how often.


def test_native_recomputes_touched_worlds_alone(make_sim, monkeypatch):
    sim = make_sim("native", num_envs=6)
    entity = sim.scene["model"]
    read_everything(sim)
    sim.step()
    calls = record_forwards(sim, monkeypatch)
    entity.data.body_link_vel_w  # noqa: B018
    assert calls == []
    entity.write_joint_position_to_sim([[0.1, 0.2]], env_ids=[1, 4])
    entity.write_joint_velocity_to_sim([[0.1, 0.2]], env_ids=[2])
    entity.data.body_link_vel_w  # noqa: B018
    assert calls == [([1, 2, 4], Stage.VELOCITY)]
    entity.write_ctrl_to_sim([[0.1, 0.2, 0.3]], env_ids=[5])
    entity.data.body_link_pose_w  # noqa: B018
    assert len(calls) == 1
    entity.data.joint_acc  # noqa: B018
    assert calls[1:] == [([1, 2, 4, 5], Stage.ACCELERATION)]
    sim.reset(env_ids=[3])
    entity.data.joint_acc  # noqa: B018
    assert calls[2:] == [([3], Stage.ACCELERATION)]


@pytest.mark.parametrize("raw_first", [False, True])
def test_a_raw_write_touches_all_worlds(make_sim, monkeypatch, engine, raw_first):
    sim = make_sim(engine)
    entity = sim.scene["model"]
    read_everything(sim)
    sim.step()
    calls = record_forwards(sim, monkeypatch)
    if raw_first:
        sim.data.qpos[3, 2] += 1.0
    entity.write_joint_position_to_sim([[0.1, 0.2]], env_ids=[1])
    if not raw_first:
        sim.data.qpos[3, 2] += 1.0
    assert_positions_fresh(sim, engine)
    assert calls == [(None, Stage.VELOCITY)]


def test_a_failed_write_leaves_everything_fresh(make_sim, monkeypatch):
    sim = make_sim()
    read_everything(sim)
    sim.step()
    calls = record_forwards(sim, monkeypatch)
    with pytest.raises(InvalidInputError):
        sim.scene["model"].write_joint_position_to_sim([[torch.nan, 0.2]])
    sim.data.xpos  # noqa: B018
    assert calls == []


@pytest.mark.parametrize("name", ["root_link_vel_w", "body_com_pose_w", "site_pose_w"])
def test_a_quantity_is_computed_once_a_state(make_sim, engine, monkeypatch, name):
    sim = make_sim(engine)
    sim.step()
    data = sim.scene["model"].data
    quantity = data.quantities[name]
    compute, times = quantity.compute, []

    def counted(data):
        times.append(1)
        return compute(data)

    monkeypatch.setattr(quantity, "compute", counted)
    monkeypatch.setattr(quantity, "compiled", None)
    first = data.read(name)
    assert data.read(name) is first
    sim.data.xpos, data.joint_acc, data.body_link_lin_acc_w  # noqa: B018
    assert data.read(name) is first
    assert len(times) == 1
    sim.step()
    assert data.read(name) is not first
    assert len(times) == 2
    sim.data.qpos[0, 0] += 0.1
    data.read(name)
    assert len(times) == 3


def test_accelerations_are_evaluated_once_a_state(make_sim, engine, monkeypatch):
    sim = make_sim(engine)
    read_everything(sim)
    sim.step()
    data = sim.scene["model"].data
    data.body_link_lin_acc_w  # noqa: B018
    calls = record_forwards(sim, monkeypatch)
    data.body_link_ang_acc_w, data.body_com_lin_acc_w, data.body_com_acc_w  # noqa: B018
    assert calls == []
    sim.data.ctrl[:, 2] += 1.0
    before = data.body_link_lin_acc_w.clone()
    sim.data.ctrl[:, 2] += 1.0
    assert not torch.equal(data.body_link_lin_acc_w, before)


# Reads change nothing.


@pytest.mark.parametrize("n", [1, 2])
def test_reads_do_not_change_the_motion(make_sim, engine, random_rows, n):
    watched, alone = make_sim(engine), make_sim(engine)
    rows = random_rows(alone.model, 4, height=-0.4)
    for sim in (watched, alone):
        sim.write_state(rows)
    for k in range(200 // n if engine == "native" else 12):
        read_everything(watched)
        if k % 2:
            watched.forward()
            read_everything(watched)
        control = torch.full_like(alone.data.ctrl, 0.5 * np.sin(0.1 * k))
        for sim in (watched, alone):
            sim.data.ctrl[:] = control
            sim.step(n)
    assert torch.equal(watched.state, alone.state)
    assert float(alone.data.qfrc_constraint[:, 2].abs().max()) > 1.0  # in contact


def test_body_accelerations_leave_the_last_evaluation_alone(make_sim, engine):
    sim = make_sim(engine)
    entity = sim.scene["model"]
    names = ("qacc", "actuator_force", "sensordata", "qfrc_constraint", "act_dot")
    for name in names:
        getattr(sim.data, name)
    sim.data.ctrl[:] = torch.tensor([[0.1], [0.2], [0.3], [0.4]], dtype=sim.dtype)
    sim.step(5)
    before = {name: getattr(sim.data, name).clone() for name in names}
    joint_acc, reading = entity.data.joint_acc.clone(), entity.sensor("acc").clone()
    entity.data.body_link_lin_acc_w  # noqa: B018
    entity.data.body_com_ang_acc_w  # noqa: B018
    for name in names:
        assert torch.equal(getattr(sim.data, name), before[name]), name
    assert torch.equal(entity.data.joint_acc, joint_acc)
    assert torch.equal(entity.sensor("acc"), reading)
    sim.forward()
    assert not torch.equal(entity.data.joint_acc, joint_acc)


@pytest.mark.parametrize("name", ["actuator_force", "qfrc_actuator", "qacc"])
def test_body_accelerations_leave_fields_alone_that_were_not_read(
    make_sim, engine, name
):
    sim, other = make_sim(engine), make_sim(engine)
    for each in (sim, other):
        each.data.ctrl[:] = 0.3
        each.step(5)
    sim.scene["model"].data.body_link_lin_acc_w  # noqa: B018
    assert torch.equal(getattr(sim.data, name), getattr(other.data, name))


def test_joint_acc_is_of_the_last_step(make_sim, engine, random_rows, load_row):
    sim = make_sim(engine)
    sim.write_state(random_rows(sim.model, 4, height=0.5))
    rows = sim.state.clone()
    sim.step(4)
    got = sim.scene["model"].data.joint_acc
    for world in range(4):
        data = load_row(sim.model, rows[world])
        for _ in range(4):
            mujoco.mj_step(sim.model, data)
        want = torch.as_tensor(data.qacc[6:8], dtype=sim.dtype)
        limit = 0.0 if engine == "native" else 1e-3
        torch.testing.assert_close(got[world], want, rtol=limit, atol=limit)


def test_joint_acc_after_a_write_is_fresh_in_that_world(
    make_sim, engine, random_rows, load_row
):
    sim = make_sim(engine)
    entity = sim.scene["model"]
    sim.write_state(random_rows(sim.model, 4, height=0.5))
    sim.step(4)
    before = entity.data.joint_acc.clone()
    entity.write_joint_velocity_to_sim([[1.0, -2.0]], env_ids=[2])
    entity.write_ctrl_to_sim([[0.1, 0.2, 3.0]], env_ids=[2])
    got = entity.data.joint_acc
    data = load_row(sim.model, sim.state[2])
    mujoco.mj_forward(sim.model, data)
    want = torch.as_tensor(data.qacc[6:8], dtype=sim.dtype)
    limit = 0.0 if engine == "native" else 1e-3
    torch.testing.assert_close(got[2], want, rtol=limit, atol=limit)
    assert torch.equal(got[[0, 1, 3]], before[[0, 1, 3]])


def test_body_acceleration_is_that_of_now(make_sim, random_rows, load_row):
    """The root's is qacc of mj_forward at the present state, not of the last step."""
    sim = make_sim()
    sim.write_state(random_rows(sim.model, 4, height=0.5))
    sim.step(3)
    got = sim.scene["model"].data.body_link_lin_acc_w[:, 0]
    for world in range(4):
        data = load_row(sim.model, sim.state[world])
        mujoco.mj_forward(sim.model, data)
        np.testing.assert_allclose(got[world], data.qacc[:3], rtol=1e-9, atol=1e-9)


# Reset.


def test_reset_leaves_the_other_worlds_alone(make_sim, engine, random_rows):
    sim, alone = make_sim(engine), make_sim(engine)
    start = sim.state.clone()
    rows = random_rows(sim.model, 4, height=-0.4)
    for each in (sim, alone):
        each.write_state(rows)
        each.step(5)
    sim.reset(env_ids=[0, 2])
    others = [1, 3]
    assert torch.equal(sim.state[others], alone.state[others])
    assert torch.equal(sim.state[[0, 2]], start[[0, 2]])
    fields = ("qacc", "actuator_force", "xpos", "cvel")
    for name in fields:
        got, want = getattr(sim.data, name), getattr(alone.data, name)
        assert torch.equal(got[others], want[others]), name
    sim.step(10)
    alone.step(10)
    assert torch.equal(sim.state[others], alone.state[others])


def test_a_world_after_reset_is_a_new_one(make_sim, engine, random_rows):
    sim, new = make_sim(engine), make_sim(engine)
    sim.write_state(random_rows(sim.model, 4, height=-0.4))
    sim.step(5)
    sim.reset(env_ids=[1])
    sim.step(5)
    new.step(5)
    assert torch.equal(sim.state[1], new.state[1])


def test_a_step_of_some_worlds_leaves_what_is_behind_in_others(make_sim, engine):
    """A world that was written and has not moved is still read as it was written."""
    sim = make_sim(engine)
    robot = sim.scene["model"]
    pose = robot.data.root_link_pose_w[1:2].clone()
    pose[0, :3] = torch.tensor([3.0, -2.0, 1.5])
    robot.write_root_link_pose_to_sim(pose, env_ids=[1])
    sim.step(1, env_ids=[0])
    assert np.allclose(robot.data.root_link_pos_w[1], pose[0, :3], atol=1e-6)
    trunk = sim.model.body("trunk").id
    assert np.allclose(sim.data.xpos[1, trunk], pose[0, :3], atol=1e-6)


def test_a_read_finishes_a_rollback_that_did_not_complete(make_sim, engine):
    """A call whose rollback fails every time is undone by the next read."""
    sim = make_sim(engine)
    before, ledger = sim.data.xpos.clone(), ledger_of(sim)

    def change():
        engine_of(sim).field("qpos").data[:, 2] += 1.0
        fresh_of(sim).write(Stage.POSITION, None, "a call")
        raise ValueError("the call failed")

    with failing_undo(KeyboardInterrupt), pytest.raises(ValueError, match="failed"):
        ledger.run("sim", "a call", change)
    assert [call.failed for call in ledger.open] == [True]
    assert np.allclose(sim.data.xpos, before, atol=1e-6)
    assert not ledger.open
