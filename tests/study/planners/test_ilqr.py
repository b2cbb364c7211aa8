"""iLQR: the optimum of a linear system, and a swing-up."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import torch
from tests.raised import raises
from tests.study.planners.test_planners import carts, slots_of
from torch import Tensor

from simstate import Simulation, integrate
from simstate.base.errors import SimStateError
from simstate.env import Env, tasks
from simstate.scene import EntityCfg, SceneCfg
from simstate.study.planners import drive, iLQR

SLIDERS = """
<mujoco>
  <option timestep="0.02" gravity="0 0 0"/>
  <worldbody>
    <body><joint name="a" type="slide" axis="1 0 0" damping="0.3"/>
      <geom size=".1" mass="1.3" pos=".02 0 0"/>
      <body pos="0 0 .5"><joint name="b" type="slide" axis="1 0.2 0" stiffness="2"/>
        <geom size=".1" mass="0.6" pos="0 .03 0" contype="0"/></body></body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="2" ctrlrange="-50 50"/>
    <motor joint="b" gear="3" ctrlrange="-50 50"/>
  </actuator>
</mujoco>
"""
HORIZON, HOLD = 12, 2


def weighted(sim: Any) -> Tensor:
    parts = (2.0 * (sim.data.qpos - 0.4), 0.3 * sim.data.qvel, 0.1 * sim.data.ctrl)
    return torch.cat(parts, dim=1)


def sliders() -> Simulation:
    scene = SceneCfg(entities={"robot": EntityCfg(model=SLIDERS)}, ground=False)
    sim = Simulation(scene, 2)
    sim.data.qpos[:] = torch.tensor([[0.1, -0.3], [0.7, 0.2]])
    sim.data.qvel[:] = torch.tensor([[0.5, 0.2], [-0.1, 0.3]])
    return sim


def optimum(sim: Simulation, world: int) -> np.ndarray:
    """Controls of least cost by least squares on plain MuJoCo's steps."""
    model, data = sim.model, mujoco.MjData(sim.model)

    def residual(controls: np.ndarray) -> np.ndarray:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = sim.data.qpos[world].numpy()
        data.qvel[:] = sim.data.qvel[world].numpy()
        rows: list[np.ndarray] = []
        for control in controls.reshape(HORIZON, -1):
            data.ctrl[:] = control
            mujoco.mj_step(model, data, HOLD)
            rows += [2.0 * (data.qpos - 0.4), 0.3 * data.qvel, 0.1 * control]
        return np.concatenate(rows)

    size = HORIZON * model.nu
    base = residual(np.zeros(size))
    columns = [residual(unit) - base for unit in np.eye(size)]
    found = np.linalg.lstsq(np.stack(columns, axis=1), -base, rcond=None)[0]
    return found.reshape(HORIZON, -1)


def test_one_iteration_solves_a_linear_system():
    sim = sliders()
    before = slots_of(sim)
    planner = iLQR(HORIZON, residual=weighted, hold=HOLD, iterations=1, damping=1e-9)
    controls = planner.plan(sim)
    assert slots_of(sim) == before
    assert controls.shape == (2, HORIZON * HOLD, 2)
    for world in range(2):
        wanted = torch.from_numpy(optimum(sim, world))
        assert torch.allclose(controls[world, ::HOLD], wanted, rtol=1e-4, atol=1e-4)
        assert torch.equal(controls[world, ::HOLD], controls[world, 1::HOLD])


def test_bounds_may_be_infinite():
    sim = sliders()
    plans = [
        iLQR(HORIZON, residual=weighted, hold=HOLD, bounds=bounds).plan(sim)
        for bounds in ((-math.inf, math.inf), (-1e9, 1e9))
    ]
    torch.testing.assert_close(*plans)


def test_bounds_hold_and_the_plan_is_shifted():
    sim = sliders()
    planner = iLQR(
        HORIZON, residual=weighted, hold=HOLD, iterations=3, bounds=(-0.5, [0.4, 0.3])
    )
    first = planner.plan(sim)
    assert -0.5 <= float(first.amin()) < float(first.amax()) <= 0.4
    planner.iterations = 0  # the start of the next plan
    sim.step(2 * HOLD)
    second = planner.plan(sim)
    assert torch.equal(second[:, : -2 * HOLD], first[:, 2 * HOLD :])
    assert planner.best is not None
    planner.reset()
    assert planner.best is None


def swing(sim: Any) -> Tensor:
    (cart, pole), speed = sim.data.qpos.unbind(1), sim.data.qvel
    parts = [1 - torch.cos(pole), 0.5 * torch.sin(pole), 0.5 * cart]
    parts += [0.05 * speed[:, 0], 0.05 * speed[:, 1], 0.03 * sim.data.ctrl[:, 0]]
    return torch.stack(parts, dim=1)


def test_a_hanging_pole_swings_up():
    """After 2 s the pole is within 0.1 rad of upright."""
    sim = carts(1)
    sim.data.ctrl[:] = 0.05
    planner = iLQR(50, residual=swing, hold=2, iterations=4)
    drive(sim, planner, 2.0, replan=10)
    assert math.cos(float(sim.data.qpos[0, 1])) > math.cos(0.1)


def test_mistakes():
    sim = sliders()
    with raises(SimStateError, name="residual"):
        iLQR(4, residual=3)  # pyright: ignore[reportArgumentType]
    with raises(SimStateError, name="residual"):
        iLQR(4, residual=lambda: sim.time)
    with raises(SimStateError, name="residual"):
        iLQR(4, residual=lambda sim: sim.time).plan(sim)
    with raises(SimStateError, name="residual"):
        iLQR(4, residual=lambda sim: (sim.data.qpos - 9.0).sqrt()).plan(sim)
    env = Env(tasks.make_cfg("Cartpole-SwingUp"), 1)
    with raises(SimStateError, name="derivatives"):
        iLQR(4, residual=weighted).plan(env)
    sim.add_force(lambda t, sim: None)
    with raises(SimStateError, name="make"):
        iLQR(4, residual=weighted).plan(sim)
    sim = Simulation(sim.model, 2, integrator=integrate.SRIW1())
    sim.add_process(integrate.OrnsteinUhlenbeck("gusts", [0.1], 0.3, [0.5]))
    with raises(SimStateError, name="processes"):
        iLQR(4, residual=weighted).plan(sim)
