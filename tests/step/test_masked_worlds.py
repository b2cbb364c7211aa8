"""Worlds that have diverged do not move, whichever stepper advances the others."""

from __future__ import annotations

import math

import mujoco
import pytest

from simstate import Simulation
from simstate.step import RK4

MODEL = """
<mujoco><option timestep="0.004"/><worldbody>
  <body name="bus" quat="0.8 0.36 -0.4 0.26"><freejoint/>
    <geom type="box" size="0.1 0.2 0.3" mass="2" pos="0.02 0.01 0"/>
    <body pos="0.3 0 0"><joint axis="0.6 0 0.8"/>
      <geom type="capsule" size="0.03 0.2" pos="0 0.1 -0.2" mass="0.7"/></body>
  </body>
</worldbody></mujoco>
"""


def add_force(sim):
    sim.add_force(lambda t, sim: sim.data.qfrc_applied[:, 6].add_(0.3))


def add_event(sim):
    sim.add_event(lambda sim: sim.time - 1.0, name="later")


@pytest.mark.parametrize(
    ("scheme", "prepare"),
    [(None, None), (None, add_force), (None, add_event), (RK4(), None),
     (RK4(), add_force)],
    ids=["mujoco", "held loads", "timeline", "rk4", "rk4 with a force"],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_a_world_that_has_diverged_stays(engine, scheme, prepare):
    model = mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(model, 3, engine=engine, on_divergence="mask", integrator=scheme)
    if prepare is not None:
        prepare(sim)
    sim.data.qvel[1, 6] = math.nan
    sim.step()
    assert sim.diverged.tolist() == [False, True, False]
    sim.data.qvel[1, 6] = 0.2  # it could move again, but was not reset
    before = sim.state[1].clone()
    sim.step(2)
    assert sim.diverged.tolist() == [False, True, False]
    assert sim.state[1].equal(before)
    assert sim.time.tolist() == pytest.approx([0.012, 0.0, 0.012])
