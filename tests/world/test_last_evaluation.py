"""Fields as the last evaluation left them, against mjData after mj_step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests import inside
from tests.conftest import SMALL
from tests.raised import raises

from simstate import (
    DivergenceError,
    InvalidInputError,
    Simulation,
    UnknownNameError,
)
from simstate.integrate import RK4

FIELDS = ("xpos", "xipos", "site_xpos", "cinert", "cvel", "qfrc_actuator",
          "qfrc_constraint", "qfrc_bias", "qacc", "ten_length", "ten_velocity",
          "cacc", "cfrc_int", "cfrc_ext")  # fmt: skip
NUM = 3
PLAIN = pytest.mark.parametrize("core", [True, False], ids=["core", "plain"])
INTEGRATORS = pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])


def model_of(integrator: str) -> mujoco.MjModel:
    option = f'<option timestep="0.004" integrator="{integrator}"'
    return mujoco.MjModel.from_xml_string(
        SMALL.replace('<option timestep="0.004"', option)
    )


def make(model: mujoco.MjModel, core: bool, monkeypatch, **options) -> Simulation:
    if not core:
        monkeypatch.setenv("SIMSTATE_CORE", "0")
    inside.forget_core()
    try:
        return Simulation(model, num_envs=NUM, **options)
    finally:
        monkeypatch.undo()
        inside.forget_core()


def scatter(sim: Simulation, seed: int = 1) -> None:
    """Put each world into another state, some in contact with the ground."""
    rng = np.random.default_rng(seed)
    qpos, qvel = sim.data.qpos, sim.data.qvel
    qpos += torch.tensor(rng.normal(size=qpos.shape) * 0.1)
    qpos[:, 2] = torch.tensor([0.05, 0.07, 0.3])
    qvel += torch.tensor(rng.normal(size=qvel.shape))


def twins(sim: Simulation) -> list[mujoco.MjData]:
    """An MjData in the state of each world."""
    state = mujoco.mjtState.mjSTATE_INTEGRATION
    found = []
    for row in sim.state.numpy():
        data = mujoco.MjData(sim.model)
        mujoco.mj_setState(sim.model, data, row, state)
        found.append(data)
    return found


def assert_kept(sim: Simulation, twin: list[mujoco.MjData], worlds=range(NUM)) -> None:
    for name in FIELDS:
        kept = getattr(sim.last_evaluated, name).numpy()
        for k in worlds:
            np.testing.assert_array_equal(
                kept[k].ravel(), getattr(twin[k], name).ravel(), err_msg=name
            )


@PLAIN
@INTEGRATORS
def test_they_are_what_mj_step_leaves(integrator, core, monkeypatch):
    sim = make(model_of(integrator), core, monkeypatch)
    sim.keep_evaluated(*FIELDS)
    scatter(sim)
    twin = twins(sim)
    rng = np.random.default_rng(4)
    for n in (1, 3, 2, 5):
        ctrl = rng.uniform(-1, 1, (NUM, sim.model.nu))
        sim.data.ctrl[:] = torch.tensor(ctrl)
        sim.step(n)
        for data, values in zip(twin, ctrl, strict=True):
            data.ctrl[:] = values
            mujoco.mj_step(sim.model, data, n)
            mujoco.mj_rnePostConstraint(sim.model, data)
        assert_kept(sim, twin)
    assert sim.last_evaluated.cfrc_ext.abs().max() > 1.0  # there are contacts
    fresh, kept = sim.data.xpos[:, 1], sim.last_evaluated.xpos[:, 1]
    assert (fresh - kept).abs().min() > 0.0


@PLAIN
@INTEGRATORS
def test_accelerations_and_sensors_are_of_the_state_before_the_step(
    integrator, core, monkeypatch
):
    sim = make(model_of(integrator), core, monkeypatch)
    scatter(sim)
    sim.step(4)
    twin = twins(sim)
    sim.step()
    for k, data in enumerate(twin):
        mujoco.mj_forward(sim.model, data)
        for name in ("qacc", "qfrc_constraint", "actuator_force"):
            got = getattr(sim.data, name)[k].numpy()
            np.testing.assert_array_equal(got, getattr(data, name), err_msg=name)
        acceleration = slice(3, 6)  # of the accelerometer
        np.testing.assert_array_equal(
            sim.data.sensordata[k, acceleration], data.sensordata[acceleration]
        )


@PLAIN
def test_steps_of_some_worlds_leave_the_others(core, monkeypatch):
    sim = make(model_of("RK4"), core, monkeypatch)
    sim.keep_evaluated(*FIELDS)
    scatter(sim)
    sim.step(2)
    before = {name: getattr(sim.last_evaluated, name).clone() for name in FIELDS}
    sim.step(1, env_ids=[2, 0])
    for name in FIELDS:
        now = getattr(sim.last_evaluated, name)
        assert torch.equal(now[1], before[name][1]), name
        if now[0].numel() and name != "qfrc_constraint":
            assert not torch.equal(now[2], before[name][2]), name


@PLAIN
def test_a_reset_gives_what_mj_forward_does(core, monkeypatch):
    sim = make(model_of("RK4"), core, monkeypatch)
    sim.keep_evaluated("xpos", "qfrc_constraint", "cvel", "cfrc_ext", "cinert")
    scatter(sim)
    sim.step(7)
    others = sim.last_evaluated.xpos[[0, 2]].clone()
    sim.reset([1])
    data = mujoco.MjData(sim.model)
    mujoco.mj_forward(sim.model, data)
    for name in ("xpos", "qfrc_constraint", "cvel", "cinert"):
        got = getattr(sim.last_evaluated, name)[1].numpy()
        np.testing.assert_array_equal(got, getattr(data, name), err_msg=name)
    assert torch.equal(sim.last_evaluated.xpos[[0, 2]], others)


def test_contact_forces_are_zero_after_a_reset_until_forward():
    plain = SMALL.replace('<accelerometer name="acc" site="imu"/>', "")
    sim = Simulation(mujoco.MjModel.from_xml_string(plain), num_envs=NUM)
    sim.keep_evaluated("cfrc_ext")
    scatter(sim)
    sim.step(3)
    assert sim.last_evaluated.cfrc_ext[0].abs().max() > 1.0
    sim.reset([0])
    assert sim.last_evaluated.cfrc_ext[0].abs().max() == 0.0
    sim.data.qpos[0, 2] = 0.05
    assert sim.last_evaluated.cfrc_ext[0].abs().max() == 0.0
    sim.forward([0])
    assert sim.last_evaluated.cfrc_ext[0].abs().max() > 1.0


def test_reads_do_not_change_them():
    sim = Simulation(model_of("Euler"), num_envs=NUM)
    sim.keep_evaluated("qacc", "xpos")
    scatter(sim)
    sim.step(2)
    kept = sim.last_evaluated.qacc.clone(), sim.last_evaluated.xpos.clone()
    sim.data.ctrl[:] = 0.4
    assert not torch.equal(sim.data.qacc, kept[0])
    sim.data.qpos[:, 0] += 1.0
    assert (sim.data.xpos[:, 1, 0] - kept[1][:, 1, 0]).abs().min() > 0.5
    assert torch.equal(sim.last_evaluated.qacc, kept[0])
    assert torch.equal(sim.last_evaluated.xpos, kept[1])


def test_snapshots_and_undone_steps_include_them():
    sim = Simulation(model_of("RK4"), num_envs=NUM)
    sim.keep_evaluated("xpos", "cfrc_ext")
    scatter(sim)
    sim.step(3)
    then = sim.snapshot()
    kept = sim.last_evaluated.xpos.clone(), sim.last_evaluated.cfrc_ext.clone()
    sim.step(2)
    sim.restore(then)
    assert torch.equal(sim.last_evaluated.xpos, kept[0])
    assert torch.equal(sim.last_evaluated.cfrc_ext, kept[1])

    sim.step(1)
    kept = sim.last_evaluated.xpos.clone(), sim.last_evaluated.cfrc_ext.clone()
    calls = []

    def fail_late(t, sim):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("a model that fails")

    sim.add_force(fail_late)
    with pytest.raises(RuntimeError, match="that fails"):
        sim.step(4)
    assert torch.equal(sim.last_evaluated.xpos, kept[0])
    assert torch.equal(sim.last_evaluated.cfrc_ext, kept[1])


def test_a_world_that_diverges_keeps_its_own():
    sim = Simulation(model_of("Euler"), num_envs=NUM, on_divergence="raise")
    sim.keep_evaluated("xpos", "qacc")
    scatter(sim)
    sim.step(2)
    kept = sim.last_evaluated.xpos.clone()
    sim.data.qvel[1, 0] = 1e9
    sim.data.qvel[1, 4] = -1e9
    with pytest.raises(DivergenceError):
        sim.step(3)
    assert torch.equal(sim.last_evaluated.xpos[1], kept[1])
    assert not torch.equal(sim.last_evaluated.xpos[0], kept[0])


def test_with_an_integrator_they_are_of_the_new_state():
    sim = Simulation(model_of("Euler"), num_envs=NUM, integrator=RK4())
    sim.keep_evaluated("xpos", "qacc", "cfrc_ext")
    scatter(sim)
    sim.step(3)
    assert torch.equal(sim.last_evaluated.xpos, sim.data.xpos)
    assert torch.equal(sim.last_evaluated.qacc, sim.data.qacc)
    assert sim.last_evaluated.cfrc_ext.abs().max() > 1.0


def test_a_read_finishes_a_rollback_that_did_not_complete():
    sim = Simulation(model_of("Euler"), num_envs=NUM)
    sim.keep_evaluated("qacc")
    scatter(sim)
    sim.step()
    before, ledger = sim.last_evaluated.qacc.clone(), inside.ledger_of(sim)

    def step_and_fail():
        sim.last_evaluated.qacc.data[:] = 7.0
        raise ValueError("the call failed")

    broken = inside.failing_undo(KeyboardInterrupt)
    with broken, pytest.raises(ValueError, match="failed"):
        ledger.run("sim", "a call", step_and_fail)
    assert ledger.open
    assert torch.equal(sim.last_evaluated.qacc, before)
    assert not ledger.open


def test_loads_of_force_models_act_in_an_evaluation():
    sim = Simulation(model_of("Euler"), num_envs=NUM)
    sim.keep_evaluated("qacc")
    scatter(sim)
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1].add_(30.0))
    sim.forward()
    assert torch.equal(sim.last_evaluated.qacc, sim.data.qacc)


def test_bad_calls_are_named():
    sim = Simulation(model_of("Euler"), num_envs=NUM)
    with raises(InvalidInputError, name="xpos"):
        _ = sim.last_evaluated.xpos
    with raises(UnknownNameError, name="cfrc_exd"):
        sim.keep_evaluated("xpos", "cfrc_exd")
    with raises(InvalidInputError, name="xpos"):  # nothing was kept
        _ = sim.last_evaluated.xpos
    with raises(UnknownNameError, name="sensordata"):
        sim.keep_evaluated("sensordata")
    with raises(UnknownNameError, name="energy"):
        _ = sim.last_evaluated.energy
    sim.keep_evaluated("xpos")
    with raises(InvalidInputError, name="xpos"):
        sim.last_evaluated.xpos = torch.zeros(3)
    sim.last_evaluated.xpos[0] = 1.0
    with raises(InvalidInputError, name="sim.last_evaluated.xpos"):
        sim.step()


def test_warp_keeps_the_same_fields():
    pytest.importorskip("mujoco_warp")
    for integrator in ("Euler", "RK4"):
        model = model_of(integrator)
        sims = [Simulation(model, num_envs=NUM, engine=e) for e in ("native", "warp")]
        for sim in sims:
            sim.keep_evaluated("xpos", "qacc", "cvel", "qfrc_actuator", "cfrc_ext")
            sim.data.qpos[:, 2] = torch.tensor([0.09, 0.07, 0.3])
            sim.data.qvel[:, 3] = torch.tensor([0.2, -0.4, 0.7])
            sim.data.ctrl[:] = 0.3
            sim.step(2, env_ids=[0, 2])
        for name in ("xpos", "cvel", "qacc", "qfrc_actuator", "cfrc_ext"):
            native, warp = (getattr(sim.last_evaluated, name).double() for sim in sims)
            scale = native.abs().amax() + 1e-3
            assert (native - warp).abs().max() / scale < 2e-2, name
        for sim in sims:
            sim.reset([0])
        for name in ("xpos", "cfrc_ext"):
            native, warp = (getattr(sim.last_evaluated, name)[0] for sim in sims)
            assert (native - warp).abs().max() < 1e-4, name
