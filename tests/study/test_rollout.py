"""Rollouts of a simulation against one call of MuJoCo for each time step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation, study
from simstate.study import rollout
from simstate.study.planners import MPPI

MODEL = """
<mujoco>
  <option timestep="0.004"><flag {flag}/></option>
  <worldbody>
    <body pos="0.1 0 1">
      <joint name="slide" type="slide" axis="1 0 0" damping="0.3"/>
      <geom size="0.1" mass="0.7" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="2.5"/></actuator>
</mujoco>
"""


def make_sim(flag='warmstart="enable"'):
    cart = EntityCfg(model=MODEL.format(flag=flag))
    scene = SceneCfg(entities={"cart": cart}, ground=False, timestep=None)
    sim = Simulation(scene, 3, on_divergence="mask")
    sim.data.ctrl[:] = torch.tensor([[0.25], [-0.5], [0.75]])
    sim.data.qvel[:] = torch.tensor([[0.125], [0.25], [0.375]])
    return sim


def test_worlds_move_as_in_mujoco():
    sim, controls = make_sim(), np.random.default_rng(5).uniform(-1, 1, (3, 9, 1))
    rollout.advance(sim, torch.from_numpy(controls))
    for world in range(3):
        data = mujoco.MjData(sim.model)
        data.qvel = 0.125 * (world + 1)
        for control in controls[world]:
            data.ctrl = control
            mujoco.mj_step(sim.model, data)
        assert sim.data.qpos[world].tolist() == data.qpos.tolist()


@pytest.mark.parametrize("kind", ["float32", "expanded"])
def test_controls_of_other_layouts_are_taken(kind):
    sim, other = make_sim(), make_sim()
    value = torch.tensor([[[0.5]], [[-0.25]], [[0.125]]], dtype=torch.float64)
    rollout.advance(sim, value.repeat(1, 4, 1))
    value = value.float() if kind == "float32" else value
    rollout.advance(other, value.expand(3, 4, 1))
    assert torch.equal(sim.data.qpos, other.data.qpos)


def test_a_world_that_diverges_keeps_its_controls():
    sim = make_sim()
    before = sim.data.ctrl.clone()
    controls = torch.full((3, 6, 1), 0.5, dtype=torch.float64)
    controls[1, 2:] = 9e9
    rollout.advance(sim, controls)
    assert sim.diverged.tolist() == [False, True, False]
    assert sim.time.tolist() == pytest.approx([0.024, 0.0, 0.024])
    assert sim.data.ctrl[1].tolist() == before[1].tolist()
    assert sim.data.qvel[1].tolist() == [0.25]


def test_controls_that_are_not_numbers_diverge_where_they_have_no_effect():
    sim = make_sim('actuation="disable"')
    controls = torch.zeros(3, 4, 1, dtype=torch.float64)
    controls[2, 1] = torch.nan
    rollout.advance(sim, controls)
    assert sim.diverged.tolist() == [False, False, True]


@pytest.fixture(params=["1", "0"], ids=["core", "batch"])
def sim(request, monkeypatch):
    """Worlds on the compiled core, and without it."""
    monkeypatch.setenv("SIMSTATE_CORE", request.param)
    return make_sim()


def test_a_rollout_without_steps_changes_nothing(sim):
    before, none = sim.state.clone(), torch.zeros(1, 0, sim.model.nu)
    rollout.advance(sim, none)
    found = rollout.record_fields(sim, none, np.empty(0, int), ["qpos"])
    rollout.hold(sim, sim.data.ctrl.clone(), 0)
    assert torch.equal(sim.state, before)
    assert found is None or found["qpos"].shape == (0, sim.num_envs, sim.model.nq)


def test_public_calls_reject_no_steps(sim):
    nu = sim.model.nu
    roll = study.differentiable(sim)
    state = torch.zeros(sim.num_envs, roll.size)
    for call, name in (
        (lambda: sim.step(0), "n"),
        (lambda: study.futures(sim, torch.zeros(1, 2, 0, nu)), "controls"),
        (lambda: study.differentiable(sim, steps=0), "steps"),
        (lambda: roll(state, torch.zeros(sim.num_envs, 0, nu)), "controls"),
        (lambda: MPPI(0), "horizon"),
    ):
        with raises(InvalidInputError, name=name):
            call()
