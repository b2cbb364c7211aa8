"""Simulations and environments are not copied or pickled, their snapshots are."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from tests.raised import raises
from tests.record.conftest import scene

from simstate import InvalidInputError, Simulation
from simstate.env import Env, tasks


@pytest.fixture(scope="module")
def sim() -> Simulation:
    made = Simulation(scene(), 2, seed=3)
    made.data.qvel[1] = 0.3
    made.step(2)
    return made


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_is_refused_and_snapshot_is_named(sim, copied):
    env = Env(tasks.make_cfg("Cartpole-Balance"), 2)
    for worlds, name in ((sim, "sim"), (env, "env")):
        before = worlds.snapshot()
        with raises(InvalidInputError, name=name):
            copied(worlds)
        for slot, value in worlds.snapshot().slots.items():
            assert torch.equal(value, before.slots[slot])


def test_what_the_error_says_works(sim):
    other = Simulation(scene(), 2, seed=3)
    other.restore(pickle.loads(pickle.dumps(sim.snapshot())))
    for one in (sim, other):
        one.step(3)
    assert torch.equal(other.state, sim.state)
