"""Jacobians and dynamics against MuJoCo's C functions, on many models."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.entity.dynamics.compare import check, dynamics, jacobians
from tests.foreign_models import FOREIGN, foreign_scene
from tests.laws import zoo

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.scene import models

pytestmark = pytest.mark.fast

ZOO = {name: xml for name, xml in vars(zoo).items() if str(xml).startswith("\n<mujoco")}


def _prepared(sim: Simulation, random_rows, seed: int) -> Simulation:
    rows = random_rows(sim.model, sim.num_envs, seed=seed, height=0.05)
    sim.write_state(rows)
    return sim


@pytest.mark.parametrize("name", models.NAMES)
def test_shipped_models(name: str, random_rows) -> None:
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=name)}, ground=None, timestep=None
    )
    sim = _prepared(Simulation(scene, num_envs=3), random_rows, 3)
    for world in (2, 0):
        assert check(jacobians(sim, world), 1e-10) >= 6
        assert check(dynamics(sim, world), 1e-10) == 15


@pytest.mark.parametrize("name", ZOO)
def test_kinds_that_others_get_wrong(name: str, random_rows) -> None:
    entities = {"one": EntityCfg(model=ZOO[name]), "two": EntityCfg(model=ZOO["BALLS"])}
    if "BALLS" not in ZOO or name == "BALLS":
        entities.pop("two")
    scene = SceneCfg(entities=entities, ground=False, timestep=None)
    sim = _prepared(Simulation(scene, num_envs=3), random_rows, 4)
    check(jacobians(sim, 1), 1e-10)
    check(dynamics(sim, 1), 1e-10)


@pytest.mark.parametrize("engine", ["native", "warp"])
def test_the_small_model_on_both_engines(engine: str, make_sim, random_rows) -> None:
    sim = make_sim(engine, 4)
    sim.write_state(random_rows(sim.model, 4, seed=6, height=0.1))
    tol = 1e-10 if engine == "native" else 3e-4
    for world in (3, 1):
        check(jacobians(sim, world), tol)
        check(dynamics(sim, world), tol)


GYMNASIUM = [name for name in FOREIGN if name.startswith("gymnasium/")]


@pytest.mark.parametrize("name", GYMNASIUM)
def test_gymnasium_s_models(name: str, random_rows) -> None:
    sim = _prepared(Simulation(foreign_scene(name), num_envs=2), random_rows, 5)
    check(jacobians(sim, 1), 1e-10)
    check(dynamics(sim, 1), 1e-9)


@pytest.mark.soak
@pytest.mark.parametrize("name", [n for n in FOREIGN if n not in GYMNASIUM])
def test_dm_control_s_models(name: str, random_rows) -> None:
    sim = _prepared(Simulation(foreign_scene(name), num_envs=2), random_rows, 5)
    check(jacobians(sim, 1), 1e-9)
    check(dynamics(sim, 1), 1e-8)


def test_worlds_have_their_own_numbers(make_sim, random_rows) -> None:
    """Energies and wrenches are never another world's, whichever was asked for last."""
    sim = make_sim("native", 5)
    sim.write_state(random_rows(sim.model, 5, seed=8))
    scale = torch.linspace(1.0, 2.0, 5).double()[:, None]
    sim.expand("body_mass")[:] *= scale
    sim.expand("body_inertia")[:] *= scale[..., None]
    own = sim.dynamics
    for _ in range(2):
        sim.forward([3])
        energy = own.potential_energy + own.kinetic_energy
        for world in (4, 1):
            model = mujoco.MjModel.from_xml_string(_xml(sim))
            model.body_mass[:] *= float(scale[world])
            model.body_inertia[:] *= float(scale[world])
            data = mujoco.MjData(model)
            row = sim.state[world].numpy().copy()
            mujoco.mj_setConst(model, data)
            spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
            mujoco.mj_setState(model, data, row, spec)
            mujoco.mj_forward(model, data)
            mujoco.mj_energyPos(model, data)
            mujoco.mj_energyVel(model, data)
            assert abs(float(energy[world]) - data.energy.sum()) < 1e-10
            mujoco.mj_rnePostConstraint(model, data)
            force = own.incoming_wrench_w[world, :, :3].numpy()
            assert np.abs(force - data.cfrc_int[1:, 3:]).max() < 1e-9
        sim.step(3, env_ids=[4, 0])


def _xml(sim: Simulation) -> str:
    from tests.conftest import SMALL

    del sim
    return SMALL
