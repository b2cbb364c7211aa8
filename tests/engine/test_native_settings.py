"""How the native engine runs a model: threads by the work, no islands for one tree."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_models import load, random_states
from tests.inside import batch_of

from simstate import NativeCfg, Simulation
from simstate.engine import threads

STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
NUM = 4


@pytest.mark.parametrize(
    ("seconds", "num_envs", "cpus", "wanted"),
    [
        *((1e-5, 1, 8, 1), (1e-5, 16, 8, 1), (1e-5, 64, 8, 5), (1e-5, 1024, 8, 8)),
        *((1e-3, 2, 8, 2), (1e-3, 3, 2, 2), (1e-6, 64, 64, 1)),
    ],
)
def test_threads_by_the_work(monkeypatch, seconds, num_envs, cpus, wanted):
    monkeypatch.setattr(threads, "step_seconds", lambda model: seconds)
    monkeypatch.setattr(threads, "available_cpus", lambda: cpus)
    assert threads.threads_by_work(load("small"), num_envs) == wanted


def test_one_world_runs_in_the_calling_thread():
    assert batch_of(Simulation(load("cartpole"), 1)).nthread == 1
    sim = Simulation(load("cartpole"), NUM, engine=NativeCfg(num_threads=3))
    assert batch_of(sim).nthread == 3


def test_measuring_leaves_the_user_alone(tmp_path, monkeypatch, capfd):
    """An ill-conditioned model warns when it is evaluated; measuring does not print."""
    (tmp_path / "compiled").mkdir()
    monkeypatch.chdir(tmp_path / "compiled")  # which warns, and writes a log
    text = (
        '<mujoco><worldbody><body><joint axis="0 0 1"/><joint axis="0 0 1"/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    kept = mujoco.get_mju_user_warning()
    assert 0 < threads.step_seconds(model) < 1
    assert mujoco.get_mju_user_warning() is kept
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
    assert "WARNING" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("name", ["quadruped", "arm", "gymnasium-ant", "limb"])
@pytest.mark.parametrize("solver", ["PGS", "CG", "NEWTON"])
def test_the_bits_are_those_of_the_model_as_it_is(name, solver):
    """With contacts and limits, against mj_step in a loop; one tree or two."""
    model = load(name)
    model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver}")
    rows = random_states(model, NUM, 9)
    sim = Simulation(model, NUM, on_divergence="mask")
    sim.write_state(torch.tensor(rows))
    sim.step(60)
    for world, row in enumerate(rows):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, row, STATE)
        for _ in range(60):
            mujoco.mj_step(model, data)
        mujoco.mj_getState(model, data, row, STATE)
        np.testing.assert_array_equal(sim.state[world].numpy(), row)
    island = mujoco.mjtDisableBit.mjDSBL_ISLAND.value
    off = int(sim.expand("opt.disableflags")[0]) & island
    assert bool(off) == (model.ntree == 1)


@pytest.mark.parametrize("core", ["0", "1"])
def test_the_sensor_of_the_kinetic_energy_is_that_of_the_new_state(core, monkeypatch):
    """In free fall it is ½ m v²; MuJoCo's has the state before where energy is on."""
    monkeypatch.setenv("SIMSTATE_CORE", core)
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.01"><flag energy="enable"/></option><worldbody>'
        '<body><freejoint/><geom size=".1" mass="2"/></body></worldbody>'
        "<sensor><e_kinetic/><e_potential/></sensor></mujoco>"
    )
    sim = Simulation(model, 2)
    for _ in range(3):
        sim.step()
        height, speed = sim.data.qpos[:, 2], sim.data.qvel[:, 2]
        want = torch.stack([speed**2, 2 * 9.81 * height], dim=1)
        torch.testing.assert_close(sim.data.sensordata, want, rtol=1e-12, atol=1e-12)
