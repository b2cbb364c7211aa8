"""Histories, runs and settings after calls that are interrupted or rolled back."""

from __future__ import annotations

import pytest
import torch
from tests.record.conftest import scene
from tests.tracer import lines_of, traced

from simstate import Simulation, integrate
from simstate.env import Env, tasks

SCHEMES = {"mujoco": None, "rk4": integrate.RK4(), "adaptive": integrate.DP54()}


def make(scheme: str) -> Simulation:
    sim = Simulation(scene(), 3, integrator=SCHEMES[scheme], seed=4)
    sim.data.qvel[:] = torch.linspace(-1, 1, 24, dtype=sim.dtype).reshape(3, 8)
    return sim


@pytest.mark.parametrize("every", [None, 0.004])
@pytest.mark.parametrize("scheme", ["mujoco", "rk4"])
def test_a_step_that_is_rolled_back_leaves_no_samples(scheme, every):
    """At any line of it, also after its last time step; one sample a time step."""
    sim = make(scheme)
    history = sim.record(quantities=["arm.joint_pos", "qvel"], every=every)
    sim.step(2)
    lines = lines_of(lambda: sim.step(2))
    for line in [*range(0, lines, max(lines // 40, 1)), *range(lines - 30, lines)]:
        before, count = sim.time.clone(), len(history)
        found = traced(lambda: sim.step(2), line)
        taken = round(float((sim.time - before)[1]) / sim.timestep)
        assert taken in (0, 2)
        assert len(history) == count + taken, found.places
        assert torch.equal(history.time[-1], sim.time.double()), found.places


def test_a_step_whose_end_fails_leaves_no_samples():
    """MuJoCo's warning, as an error, comes after the last time step."""
    sim = make("mujoco")
    history = sim.record(quantities=["qpos"])
    sim.step()
    sim.divergence.handle = lambda *_: 1 / 0  # the first line after the steps
    sim.data.qvel[1] = 1e9
    with pytest.raises(ZeroDivisionError):
        sim.step(10)
    del sim.divergence.handle
    assert len(history) == 2
    sim.data.qvel[1] = 0.3
    sim.step()
    assert len(history) == 3


def test_an_environments_step_that_is_rolled_back_leaves_no_samples():
    """Its substeps were complete, one by one, when a reward raised."""
    cfg, bad = tasks.make_cfg("Cartpole-Balance"), []
    reward = next(iter(cfg.rewards.values()))
    function = reward.func

    def failing(env, **params):
        if bad:
            raise ZeroDivisionError
        return function(env, **params)

    reward.func = failing
    env = Env(cfg, 2, seed=3)
    history = env.sim.record(quantities=["qpos"])
    action = torch.tensor([[0.4], [-0.7]])
    env.step(action)
    count, time = len(history), env.sim.time.clone()
    assert count == 1 + cfg.decimation > 2
    bad.append(1)
    with pytest.raises(ZeroDivisionError):
        env.step(action)
    assert len(history) == count
    assert torch.equal(history.time[-1], time.double())
    bad.clear()
    env.step(action)
    assert len(history) == count + cfg.decimation


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_a_run_that_is_interrupted_changes_no_setting(scheme):
    """At any line; afterwards three time steps advance by three time steps."""
    sim = make(scheme)
    goal = 0.0301  # between two time steps
    lines = lines_of(lambda: sim.run(until=goal))
    settings = sim.timestep, sim.on_divergence, sim.model.opt.timestep
    for line in [*range(0, lines, max(lines // 40, 1)), *range(lines - 12, lines)]:
        sim.reset()
        traced(lambda: sim.run(until=goal), line)
        assert (sim.timestep, sim.on_divergence, sim.model.opt.timestep) == settings
        before = sim.time.clone()
        sim.step(3)
        torch.testing.assert_close(
            sim.time - before, torch.full_like(before, 3 * sim.timestep)
        )


def test_a_stepper_that_is_lent_is_given_back():
    sim = make("mujoco")
    other = make("rk4").integration

    def lent():
        with sim.stepping(other):
            pass

    for line in range(lines_of(lent) - 1):  # its last line ends it
        traced(lent, line)
        before = sim.time.clone()
        sim.step()
        assert bool((sim.time > before).all())
