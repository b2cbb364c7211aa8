"""Mass as a state: rockets, and MuJoCo's constants that follow the mass."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from tests.raised import raises

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
    for steps in (10, 30):
        with raises(InvalidInputError, name="rocket", worlds=[1]):
            sim.step(steps)
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
    with raises(InvalidInputError, name="mass_rate"):
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


SPINNER = """
<mujoco><option timestep="0.02" gravity="0 0 0"/><worldbody>
  <body name="stage" quat="0.5 -0.5 0.5 0.5">
    <freejoint/>
    <inertial pos="0.1 0.2 -0.3" mass="4" diaginertia="1 2 2.5"/>
  </body>
</worldbody></mujoco>
"""
COM, NOZZLE = np.array([0.1, 0.2, -0.3]), np.array([-1.4, 0.6, 0.1])


def thomson(flow: float, spin: np.ndarray, until: float) -> np.ndarray:
    """Angular velocity of a body that loses mass through a nozzle, body axes."""
    inertia, arm = np.array([1.0, 2.0, 2.5]), NOZZLE - COM

    def rate(t, w):
        now = inertia * (1 - flow * t / 4)
        jet = flow * np.cross(arm, np.cross(w, arm))
        shrinking = flow / 4 * inertia * w  # −dI/dt ω
        return (np.cross(now * w, w) + shrinking - jet) / now

    return solve_ivp(rate, (0, until), spin, rtol=1e-11, atol=1e-12).y[:, -1]


def test_jet_damping_is_thomsons_equation():
    sim = Simulation(mujoco.MjModel.from_xml_string(SPINNER), 2, integrator=RK4())
    spins = np.array([[0.5, -0.2, 0.3], [-0.1, 0.6, 0.4]])
    sim.data.qvel[:, 3:] = torch.as_tensor(spins)
    sim.add_force(
        Thruster(
            "model", "stage", (0, 0, 0), NOZZLE.tolist(),
            mass_flow=torch.tensor([1.0, 0.6]), throttle=torch.tensor([0.5, 1.0]),
            jet_damping=True,
        )
    )  # fmt: skip
    sim.step(50)
    for world, flow in enumerate((0.5, 0.6)):
        wanted = thomson(flow, spins[world], 1.0)
        np.testing.assert_allclose(sim.data.qvel[world, 3:], wanted, rtol=2e-6)
        assert np.abs(wanted - spins[world]).max() > 0.05


def test_transverse_spin_decays_by_the_closed_form():
    """ω ∝ m^(l²/k² − 1) for a nozzle at l from the COM and radius of gyration k."""
    model = mujoco.MjModel.from_xml_string(ROCKET.format(m=2, i="3 3 3"))
    sim = Simulation(model, integrator=RK4())
    sim.data.qvel[0, 4] = 0.7
    sim.add_force(
        Thruster("model", "rocket", (5.0, 0, 0), (-2.0, 0, 0), 0.8, jet_damping=True)
    )
    sim.step(10)
    left = (2 - 0.8) / 2
    assert float(sim.data.qvel[0, 4]) == pytest.approx(0.7 * left ** (4 / 1.5 - 1))


def test_jet_damping_needs_a_mass_flow():
    with raises(InvalidInputError, name="jet_damping"):
        rocket(RK4()).add_force(
            Thruster("model", "rocket", (1.0, 0, 0), jet_damping=True)
        )
    with raises(InvalidInputError, name="jet_damping"):
        Thruster("model", "rocket", (1.0, 0, 0), mass_flow=1.0, jet_damping=2)


LANDED = """
<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="0 0 1"/>
  <body name="stage" pos="0 0 .1"><freejoint/>
    <inertial pos="0.01 0 0.02" mass="1.3" diaginertia=".01 .02 .025"/>
    <geom type="box" size=".1 .1 .1" mass="0"/>
    <body name="flap" pos="0.3 0.2 0"><joint axis="0 1 0" range="-.1 .1"/>
      <inertial pos="0.1 0 0.2" mass="0.3" diaginertia=".1 .2 .25"/>
      <geom size=".05" mass="0"/></body>
  </body>
</worldbody></mujoco>
"""


def test_constants_follow_masses_after_every_restore():
    """Contacts and limits depend on them: a restored run must repeat its bits."""
    sim = Simulation(mujoco.MjModel.from_xml_string(LANDED), 2, integrator=RK4())
    flow = torch.tensor([0.5, 0.3], dtype=torch.float64)
    sim.add_force(
        Thruster("model", "stage", (1.0, 0.2, 0.3), (0.1, -0.3, 0.2), mass_flow=flow)
    )
    sim.step(30)
    kept = sim.snapshot()
    sim.step(3)
    wanted = sim.state.clone()
    for times in (1, 1, 2, 3):
        for _ in range(times):
            sim.restore(kept)
        sim.step(3)
        assert torch.equal(sim.state, wanted)
