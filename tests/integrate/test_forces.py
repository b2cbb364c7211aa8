"""Force models act at every stage, add up, and leave the user's inputs alone."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

from simstate import Simulation
from simstate.errors import InvalidInputError, UnknownNameError
from simstate.integrate import (
    DOP853,
    RK4,
    Drag,
    PointMassGravity,
    Thruster,
    UniformGravity,
)

BODY = """
<mujoco><option timestep="0.1" gravity="0 0 {g}"/><worldbody><body name="body">
  <freejoint name="root"/><inertial pos="0 0 0" mass="2" diaginertia="1 2 3"/>
</body></worldbody></mujoco>
"""


def body(integrator, num_envs=1, g=0.0, **options):
    model = mujoco.MjModel.from_xml_string(BODY.format(g=g))
    return Simulation(model, num_envs, integrator=integrator, **options)


def test_models_run_at_stage_times_and_inputs_come_back():
    sim = body(RK4(), 2)
    sim.data.xfrc_applied[:, 1, 0] = 4.0
    times = []

    def push(t, sim):
        times.append(t.tolist())
        sim.data.xfrc_applied[:, 1, 0] += 2 * t

    sim.add_force(push)
    sim.add_force(push)
    sim.step()
    assert [x[0] for x in times[::2]] == pytest.approx([0, 0.05, 0.05, 0.1])
    assert sim.data.xfrc_applied[:, 1, 0].tolist() == [4.0, 4.0]
    # 2 a = 4 + 4 t
    assert sim.data.qvel[0, 0].item() == pytest.approx(0.2 + 0.01, abs=1e-15)
    assert sim.data.qacc[0, 0].item() == pytest.approx(2.2, abs=1e-14)


def test_bad_models_leave_the_state():
    def nan_wind(t, sim):
        sim.data.xfrc_applied[1, 1, 0] = math.nan if float(t[0]) > 0.04 else 0.0

    def broken(t, sim):
        sim.data.xfrc_applied[:] = 5.0
        raise ZeroDivisionError

    def reader(t, sim):
        sim.data.xfrc_applied[:, 1, 0] = sim.data.qacc[:, 0]

    cases = {nan_wind: "nan_wind.*world 1", broken: None, reader: "acceleration"}
    for model, text in cases.items():
        sim = body(RK4(), 2)
        sim.data.qvel[:, 0] = 1.0
        before = sim.state.clone()
        sim.add_force(model)
        error = ZeroDivisionError if text is None else InvalidInputError
        with pytest.raises(error, match=text):
            sim.step()
        assert torch.equal(sim.state, before)


def test_held_loads_without_an_integrator():
    sim = body(None)
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, 0].add_(2 * t))
    sim.step(3)  # accelerations 0, 0.1, 0.2, each over 0.1 s
    assert sim.data.qvel[0, 0].item() == pytest.approx(0.03, abs=1e-15)


def test_uniform_gravity_is_mujocos():
    ours, theirs = body(RK4()), body(RK4(), g=-9.81)
    ours.add_force(UniformGravity((0, 0, -9.81)))
    ours.step(5)
    theirs.step(5)
    torch.testing.assert_close(ours.data.qpos, theirs.data.qpos, rtol=0, atol=1e-13)


def test_kepler_orbit_over_ten_revolutions():
    sim = body(DOP853(atol=1e-12, rtol=1e-12))
    sim.add_force(PointMassGravity(1.0))
    sim.data.qpos[0, 0] = 0.7  # perihelion of a = 1, e = 0.3
    speed = math.sqrt(1.3 / 0.7)
    sim.data.qvel[0, 1] = speed
    steps = 628
    sim.step(steps)
    mean = steps * 0.1
    e = mean
    for _ in range(50):
        e -= (e - 0.3 * math.sin(e) - mean) / (1 - 0.3 * math.cos(e))
    want = [math.cos(e) - 0.3, math.sqrt(0.91) * math.sin(e), 0.0]
    np.testing.assert_allclose(sim.data.qpos[0, :3].numpy(), want, atol=1e-9)


def test_drag_and_thrust_by_closed_form():
    sim = body(RK4())
    sim.add_force(Drag("model", "body", area=0.4, density=1.0))
    sim.data.qvel[0, 0] = 3.0
    sim.step(20)  # v' = −k v², k = 0.4 / 2 / 2
    assert sim.data.qvel[0, 0].item() == pytest.approx(3 / (1 + 0.1 * 3 * 2), abs=1e-7)
    sim = body(RK4())
    sim.add_force(Thruster("model", "body", (0, 1, 0), position=(2, 0, 0)))
    sim.step(10)  # the moment is 2 N·m about z, where the inertia is 3 kg·m²
    assert sim.data.qvel[0, 5].item() == pytest.approx(2 / 3, abs=1e-12)


def test_unknown_names_and_bad_values():
    sim = body(RK4(), g=-9.81)
    for model in (Drag("model", "bode", 1.0), Drag("modl", "body", 1.0)):
        with pytest.raises(UnknownNameError, match=r"body|model"):
            sim.add_force(model)
    with pytest.raises(InvalidInputError, match="gravity"):
        sim.add_force(PointMassGravity(1.0))
    with pytest.raises(InvalidInputError, match="mu"):
        PointMassGravity(-1.0)
    with pytest.raises(InvalidInputError, match="model\\(t, sim\\)"):
        sim.add_force(3)
    assert sim.integration.forces.models == []


def test_a_model_is_not_blamed_for_a_world_that_diverged():
    sim = body(RK4(), 2, on_divergence="mask")
    sim.add_force(Drag("model", "body", area=1.0))
    sim.data.qvel[:, 0] = 1.0
    sim.data.xfrc_applied[0, 1, 0] = 1e300
    sim.step(3)
    assert sim.diverged.tolist() == [True, False]
