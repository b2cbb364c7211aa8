"""Manifold RK4 is MuJoCo's; a batch is its worlds; a step leaves nothing stale."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.mujoco_versions import its_rk4_is_ours

from simstate import Simulation
from simstate.base.errors import DivergenceError
from simstate.integrate import RK4
from simstate.scene import models


def rk4_model(name):
    spec = models.spec(name)
    if name == "quadruped":
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    return spec.compile()


@its_rk4_is_ours
@pytest.mark.parametrize(
    ("name", "steps", "tolerance"),
    [
        ("satellite", 1000, 1e-11),
        ("arm", 1000, 1e-11),
        ("glider", 1000, 1e-11),
        ("quadruped", 200, 1e-7),  # contacts amplify the last bits
    ],
)
def test_manifold_rk4_is_mujocos(name, steps, tolerance):
    model = rk4_model(name)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    data.qvel[:] = 0.3 * rng.normal(size=model.nv)
    data.ctrl[:] = 0.1 * rng.normal(size=model.nu)
    sim = Simulation(model, 2, integrator=RK4(attitude="manifold"))
    sim.data.qpos[:] = torch.from_numpy(data.qpos)
    sim.data.qvel[:] = torch.from_numpy(data.qvel)
    if model.nu:
        sim.data.ctrl[:] = torch.from_numpy(data.ctrl)
    sim.step(steps)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    for world in range(2):
        for field in ("qpos", "qvel"):
            got, want = getattr(sim.data, field)[world], getattr(data, field)
            np.testing.assert_allclose(got.numpy(), want, atol=tolerance)
    assert sim.time.tolist() == [data.time] * 2


def test_limited_activations_are_mujocos():
    model = mujoco.MjModel.from_xml_string("""
<mujoco><option timestep="0.01" integrator="RK4"/><worldbody><body>
  <joint name="x" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.5" mass="1"/>
</body></worldbody><actuator>
  <general joint="x" dyntype="integrator" actlimited="true" actrange="-0.1 0.1"/>
  <general joint="x" dyntype="filter" dynprm="0.1"/>
</actuator></mujoco>""")
    data = mujoco.MjData(model)
    sim = Simulation(model, 1, integrator=RK4(attitude="manifold"))
    data.ctrl[:] = (1.0, -0.5)
    sim.data.ctrl[:] = torch.from_numpy(data.ctrl)
    sim.step(100)
    for _ in range(100):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(sim.data.act[0].numpy(), data.act, atol=1e-13)
    np.testing.assert_allclose(sim.data.qvel[0].numpy(), data.qvel, atol=1e-13)
    assert data.act[0] == 0.1


def test_a_batch_is_its_worlds(make_sim, random_rows):
    batch = make_sim(num_envs=4, integrator=RK4())
    rows = random_rows(batch.model, 4, seed=5)
    batch.write_state(rows)
    batch.step(20)
    for world in range(4):
        alone = make_sim(num_envs=1, integrator=RK4())
        alone.write_state(rows[world : world + 1])
        alone.step(20)
        assert torch.equal(alone.state[0], batch.state[world])


@pytest.mark.parametrize("freshness", ["auto", "strict", "off"])
def test_reads_and_calls_do_not_change_the_trajectory(make_sim, random_rows, freshness):
    quiet = make_sim(integrator=RK4())
    rows = random_rows(quiet.model, 4, seed=6)
    quiet.write_state(rows)
    quiet.step(10)
    busy = make_sim(integrator=RK4(), freshness=freshness)
    busy.write_state(rows)
    for _ in range(10):
        busy.step()
        data = busy.data.xpos.clone(), busy.data.qacc.clone(), busy.data.cvel.clone()
    assert torch.equal(quiet.state, busy.state)
    want = mujoco.MjData(quiet.model)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    mujoco.mj_setState(quiet.model, want, busy.state[2].numpy().copy(), spec)
    mujoco.mj_forward(quiet.model, want)
    np.testing.assert_allclose(data[0][2].numpy(), want.xpos, atol=1e-14)
    np.testing.assert_allclose(data[1][2].numpy(), want.qacc, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("on_divergence", ["raise", "mask"])
def test_bad_worlds_stop_and_the_others_go_on(make_sim, random_rows, on_divergence):
    rows = random_rows(make_sim().model, 4, seed=7)
    good = make_sim(integrator=RK4())
    good.write_state(rows)
    good.step(3)
    sim = make_sim(integrator=RK4(), on_divergence=on_divergence)
    sim.write_state(rows)
    sim.data.qfrc_applied[1, 6] = float("nan")
    before = sim.data.qpos[1].clone()
    if on_divergence == "raise":
        with pytest.raises(DivergenceError) as error:
            sim.step(3)
        assert error.value.env_ids == [1]
    else:
        sim.step(3)
        assert sim.diverged.tolist() == [False, True, False, False]
    assert torch.equal(sim.data.qpos[1], before)
    assert torch.equal(sim.data.qpos[[0, 2, 3]], good.data.qpos[[0, 2, 3]])
