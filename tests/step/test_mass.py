"""Mass as a state: rockets, and MuJoCo's constants that follow the mass."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

from simstate import Simulation
from simstate.base.errors import InvalidInputError
from simstate.integrate import DP54, RK4, Thruster

ROCKET = """
<mujoco><option timestep="0.1" gravity="0 0 0"/><worldbody><body name="rocket">
  <freejoint name="root"/><inertial pos="0 0 0" mass="{m}" diaginertia="{i}"/>
</body></worldbody></mujoco>
"""


def rocket(integrator, num_envs=1):
    text = ROCKET.format(m=1, i="1 2 2.5")
    model = mujoco.MjModel.from_xml_string(text)
    return Simulation(model, num_envs, integrator=integrator)


def test_the_rocket_equation_and_the_constants():
    sim = rocket(RK4(), 2)
    rates = torch.tensor([-0.5, -0.25], dtype=torch.float64)
    sim.mass_rate[:, 1] = rates
    sim.data.xfrc_applied[:, 1, 0] = 1.0
    sim.step(10)
    for world, rate in enumerate((0.5, 0.25)):
        mass = 1 - rate
        got = sim.data.qvel[world, 0].item()
        assert got == pytest.approx(-math.log(mass) / rate, abs=1e-6)
        inertia = f"{mass} {2 * mass} {2.5 * mass}"
        fresh = mujoco.MjModel.from_xml_string(ROCKET.format(m=mass, i=inertia))
        for name in ("body_mass", "body_inertia", "body_subtreemass", "dof_invweight0"):
            want = getattr(fresh, name)
            np.testing.assert_allclose(
                sim.expand(name)[world].numpy(), want, rtol=1e-12
            )


def test_running_out_raises_before_it_happens():
    sim = rocket(RK4(), 2)
    sim.mass_rate[1, 1] = -0.9
    sim.step(5)
    before, mass = sim.state.clone(), sim.expand("body_mass").clone()
    with pytest.raises(InvalidInputError, match="'rocket' of world 1 would run out"):
        sim.step(10)
    assert torch.equal(sim.state, before)
    assert torch.equal(sim.expand("body_mass"), mass)


def test_reset_and_snapshots():
    sim = rocket(RK4(), 2)
    sim.mass_rate[:, 1] = -0.3
    sim.data.xfrc_applied[:, 1, 0] = 1.0
    sim.step(10)
    snapshot = sim.snapshot()
    sim.step(5)
    end = sim.state.clone(), sim.expand("body_mass").clone()
    sim.restore(snapshot)
    sim.step(5)
    assert torch.equal(sim.state, end[0])
    assert torch.equal(sim.expand("body_mass"), end[1])
    sim.reset([0])
    assert sim.expand("body_mass")[:, 1].tolist() == [1.0, end[1][1, 1].item()]


def test_mass_flow_needs_an_integrator():
    with pytest.raises(InvalidInputError, match="integrator"):
        _ = rocket(None).mass_rate


def test_an_adaptive_trial_step_does_not_empty_the_tank():
    sim = rocket(DP54(atol=1e-8, rtol=1e-8))
    burn = Thruster(
        "model", "rocket", (1, 0, 0), mass_flow=0.9, throttle=lambda t: (t < 1).double()
    )
    sim.add_force(burn)
    sim.step(50)
    assert sim.expand("body_mass")[0, 1].item() == pytest.approx(0.1, abs=1e-6)
    assert sim.data.qvel[0, 0].item() == pytest.approx(math.log(10) / 0.9, abs=1e-4)
