"""A step of some worlds: the others are not touched."""

from __future__ import annotations

import pytest
import torch

FIELDS = ("qpos", "qvel", "act", "time", "qacc", "sensordata", "xpos", "cvel")
MOVING = [0, 3]
RESTING = [1, 2]


@pytest.fixture
def pair(make_sim, engine, random_rows):
    """Two simulations in the same random states, two steps on."""
    sims = make_sim(engine), make_sim(engine)
    for sim in sims:
        sim.write_state(random_rows(sim.model, 4, seed=8, height=-0.35))
        sim.step(2)
    return sims


def fields(sim):
    return {name: getattr(sim.data, name).clone() for name in FIELDS}


def test_chosen_worlds_step_as_they_would_and_the_others_rest(pair):
    some, every = pair
    before = fields(some)
    some.step(3, env_ids=MOVING)
    every.step(3)
    for name, values in fields(some).items():
        assert torch.equal(values[RESTING], before[name][RESTING]), name
        torch.testing.assert_close(
            values[MOVING], fields(every)[name][MOVING], rtol=1e-4, atol=1e-4
        )
    assert not torch.equal(some.data.qpos[MOVING], before["qpos"][MOVING])


def test_a_step_of_no_world_changes_nothing(pair):
    sim, _ = pair
    before = fields(sim)
    sim.step(2, env_ids=[])
    for name, values in fields(sim).items():
        assert torch.equal(values, before[name]), name


def test_a_resting_world_does_not_diverge(pair):
    sim, _ = pair
    sim.on_divergence = "mask"
    sim.data.ctrl[RESTING[0], 0] = float("nan")
    sim.step(1, env_ids=MOVING)
    assert not sim.diverged.any()
    sim.step(1)
    assert sim.diverged.tolist() == [k == RESTING[0] for k in range(4)]
