"""Native against plain MuJoCo in a loop, bit for bit, in any batch, on any threads."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import batch_of

from simstate import EntityCfg, NativeCfg, SceneCfg, Simulation
from simstate.engine import FIELDS

STEPS = 200
INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value


@pytest.fixture(scope="module")
def quadruped():
    """The shipped quadruped over the ground, compiled."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")})
    return Simulation(scene).model


def inputs_at(model, step, num_envs):
    """Controls and mocap positions of all worlds at a step, each its own."""
    phase = 0.05 * step + torch.arange(num_envs, dtype=torch.float64)[:, None]
    ctrl = 0.5 * torch.sin(phase + torch.arange(model.nu, dtype=torch.float64))
    mocap = torch.tensor([1.0, 0.0, 0.6], dtype=torch.float64).expand(num_envs, 1, 3)
    sway = 0.1 * torch.sin(phase)[..., None]
    return ctrl, mocap + sway


def is_switched_on(step):
    """Whether the equality constraint acts: not in the middle of the run."""
    return not 80 <= step < 120


def drive(sim):
    for step in range(STEPS):
        ctrl, mocap = inputs_at(sim.model, step, sim.num_envs)
        sim.data.ctrl[:] = ctrl
        if sim.model.nmocap:
            sim.data.mocap_pos[:] = mocap
        if sim.model.neq:
            sim.data.eq_active[:] = is_switched_on(step)
        sim.step()


def drive_plain(model, data, world, num_envs):
    """The same for one world with mj_step; how often what was at work."""
    seen = {"contact": 0, "equality": 0}
    for step in range(STEPS):
        ctrl, mocap = inputs_at(model, step, num_envs)
        data.ctrl[:] = ctrl[world]
        if model.nmocap:
            data.mocap_pos[:] = mocap[world]
        if model.neq:
            data.eq_active[:] = is_switched_on(step)
        mujoco.mj_step(model, data)
        seen["contact"] += data.ncon > 0
        seen["equality"] += data.ne > 0
    row = np.zeros(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, row, INTEGRATION)
    return row, seen


@pytest.mark.parametrize("integrator", ["EULER", "IMPLICITFAST", "RK4"])
def test_a_batch_is_a_loop_of_mj_step(small_model, random_rows, load_row, integrator):
    model = copy.copy(small_model)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    sim = Simulation(model, 3)
    rows = random_rows(model, 3, seed=11, height=-0.3)
    sim.write_state(rows)
    drive(sim)
    for world in range(3):
        data = load_row(model, rows[world])
        act = data.act.copy()
        want, seen = drive_plain(model, data, world, 3)
        np.testing.assert_array_equal(sim.state[world], want)
        assert seen["contact"] > 50
        assert seen["equality"] == STEPS - 40
        assert not np.allclose(data.act, act)


def test_a_batch_of_quadrupeds_is_a_loop_of_mj_step(quadruped, random_rows, load_row):
    sim = Simulation(quadruped, 2)
    rows = random_rows(quadruped, 2, seed=12, height=0.0)
    sim.write_state(rows)
    drive(sim)
    for world in range(2):
        data = load_row(quadruped, rows[world])
        want, seen = drive_plain(quadruped, data, world, 2)
        np.testing.assert_array_equal(sim.state[world], want)
        assert seen["contact"] > 50


def test_a_batch_of_one_is_a_world_of_many(make_sim, random_rows):
    many = make_sim(num_envs=5)
    rows = random_rows(many.model, 5, seed=13, height=-0.35)
    many.write_state(rows)
    many.step(60)
    for world in range(5):
        one = make_sim(num_envs=1)
        one.write_state(rows[world : world + 1])
        one.step(60)
        assert torch.equal(one.state[0], many.state[world])
        data, all_data = one.scene["model"].data, many.scene["model"].data
        for name in data.quantities:
            got, want = data.read(name)[0], all_data.read(name)[world]
            # Products of matrices and vectors may round by the size of the batch.
            torch.testing.assert_close(
                got, want, rtol=1e-12, atol=1e-12, equal_nan=True, msg=name
            )
        for name in ("xpos", "cvel", "qacc", "actuator_force", "ten_length"):
            got, want = getattr(one.data, name)[0], getattr(many.data, name)[world]
            assert torch.equal(got, want), name


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter(make_sim, random_rows, threads):
    sims = [
        make_sim(NativeCfg(num_threads=count), num_envs=7) for count in (1, threads)
    ]
    assert [batch_of(sim).nthread for sim in sims] == [1, threads]
    rows = random_rows(sims[0].model, 7, seed=14, height=-0.35)
    for sim in sims:
        sim.write_state(rows)
        for _ in range(20):
            sim.step(3)
            sim.scene["model"].write_joint_position_to_sim([[0.1, 0.2]], env_ids=[5, 1])
    for name in FIELDS:
        got, want = (getattr(sim.data, name) for sim in sims)
        assert torch.equal(got, want), name
    assert torch.equal(sims[0].state, sims[1].state)
