"""Contact sensors in schemes of simstate's: the core's loops against the blocks."""

from __future__ import annotations

import pytest
import torch
from tests.inside import steps_in_core
from tests.sensors.heap import CONTACTS, ROCK, heap, stir

from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation
from simstate.engine import core
from simstate.integrate import DP54, RK4, Heun

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

CLOCKS = ("air_time", "contact_time", "last_air_time", "last_contact_time")
FORCES = ("greatest_force", "force_history_w", "force_w")


def push(t, sim):
    """A force of Python's, which depends on the state."""
    sim.data.xfrc_applied[:, 2, 0] += 0.8 - 0.3 * sim.data.qvel[:, 1]


def make_pair(monkeypatch, make, with_force):
    """The same scene in the core and without it."""
    sims = [make()]
    with monkeypatch.context() as patch:
        patch.setenv("SIMSTATE_CORE", "0")
        sims.append(make())
    for sim in sims:
        if with_force:
            sim.add_force(push)
    return sims


def check(sims, names, rtol):
    """Clocks and forces agree; the number of readings that are not zero."""
    count = 0
    for name in names:
        for slot in (*CLOCKS, *FORCES):
            ours, blocks = (sim.contacts[name].read(slot) for sim in sims)
            atol = 1e-12 if slot in CLOCKS else rtol * float(blocks.abs().sum())
            torch.testing.assert_close(ours, blocks, rtol=rtol, atol=atol)
            count += int((blocks != 0).sum())
    return count


@pytest.mark.parametrize("with_force", [False, True])
@pytest.mark.parametrize("scheme", [RK4, Heun])
def test_a_fixed_step(monkeypatch, scheme, with_force):
    """Many steps in a call, some worlds, evaluations in between."""

    def make():
        return heap(3, integrator=scheme(), timestep=0.0003)

    sims = make_pair(monkeypatch, make, with_force)
    for sim in sims:
        stir(sim, 11)
        sim.data.qvel[:, 2] -= 0.9
    count = 0
    for n, env_ids in ((60, None), (20, [2, 0]), (60, None), (1, [1]), (30, None)):
        for sim in sims:
            sim.step(n, env_ids)
        count += check(sims, CONTACTS, 1e-6)
        for sim in sims:
            sim.forward()
    assert steps_in_core(sims[0])
    assert not steps_in_core(sims[1])
    assert count > 100


def rock(integrator, num_envs=3):
    scene = SceneCfg(
        entities={"rock": EntityCfg(model=ROCK)},
        contacts={"rock": ContactCfg(of="rock/rock", against="ground", history=2)},
        ground=True,
        timestep=0.004,
    )
    sim = Simulation(scene, num_envs=num_envs, integrator=integrator)
    sim.data.qpos[:, 2] = torch.tensor([0.062, 0.066, 0.071])[:num_envs]
    sim.data.qvel[:, 3] = torch.tensor([0.3, -0.2, 0.1])[:num_envs]
    return sim


@pytest.mark.parametrize("with_force", [False, True])
def test_an_adaptive_step(monkeypatch, with_force):
    """Contact begins in one call and ends in none; both loops find the same touch."""

    def make():
        return rock(DP54(rtol=1e-9, atol=1e-11))

    sims = make_pair(monkeypatch, make, with_force=False)
    if with_force:
        for sim in sims:
            sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, 0].add_(0.4))
    count = 0
    for n in (3, 4, 1, 6, 2, 5):
        for sim in sims:
            sim.step(n)
        for slot in CLOCKS:
            ours, blocks = (sim.contacts["rock"].read(slot) for sim in sims)
            torch.testing.assert_close(ours, blocks, rtol=0, atol=1e-12)
            count += int((blocks != 0).sum())
        ours, blocks = (sim.contacts["rock"].force_history_w for sim in sims)
        torch.testing.assert_close(ours, blocks, rtol=1e-4, atol=1e-3)
    assert steps_in_core(sims[0])
    assert not steps_in_core(sims[1])
    assert count > 20
    assert (sims[0].contacts["rock"].contact_time > 0).all()


@pytest.mark.parametrize("in_core", [True, False])
@pytest.mark.parametrize("scheme", [RK4, DP54])
def test_steps_that_an_event_cuts_last_as_long_as_they_are(
    monkeypatch, scheme, in_core
):
    """The clocks go on by the time that has passed, not by whole time steps."""
    with monkeypatch.context() as patch:
        patch.setenv("SIMSTATE_CORE", "1" if in_core else "0")
        sim = rock(scheme())
    event = sim.add_event(lambda sim: sim.data.qpos[:, 2] - 0.0611)
    sim.step(5)
    sensor = sim.contacts["rock"]
    whole = sensor.air_time + sensor.contact_time
    whole += torch.where(sensor.contact_time > 0, sensor.last_air_time, 0.0)
    assert (event.count > 0).any()
    torch.testing.assert_close(whole[:, 0], sim.data.time.double(), rtol=0, atol=1e-12)
