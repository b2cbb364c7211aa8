"""Unified states are lists of dictionaries, and hold nothing but their values."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inside import columns_of
from tests.raised import raises
from tests.state.conftest import document_scene

from simstate import InvalidInputError, Simulation
from simstate.interop.metasim import MetaSimEnv
from simstate.state import state_dicts


@pytest.fixture(scope="module")
def sim():
    """No two worlds alike, without the document's camera."""
    sim = Simulation(replace(document_scene(), cameras={}), num_envs=3)
    rng = np.random.default_rng(3)
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=sim.data.qvel.shape)) * 0.3
    sim.step(5)
    return sim


def parts_of(value):
    """Everything within a state, itself included."""
    yield value
    if isinstance(value, dict):
        for part in value.values():
            yield from parts_of(part)


def assert_plain(states):
    """A list of dictionaries of dictionaries, tensors and floats; no other class."""
    assert type(states) is list
    for state in states:
        for part in parts_of(state):
            assert type(part) in (dict, float, torch.Tensor)


def test_states_are_lists_of_dictionaries(sim):
    assert_plain(sim.get_states())
    assert_plain(sim.get_states(env_ids=[2, 0]))
    env = MetaSimEnv(sim, decimation=2)
    kept = sim.snapshot()
    states, _ = env.reset()
    assert_plain(states)
    assert_plain(env.step([{} for _ in states])[0])
    sim.restore(kept)


def test_the_links_are_where_mujoco_has_them(sim):
    names = sim.scene["franka"].body_names
    ids = [sim.model.body(f"franka/{name}").id for name in names]
    for world, state in enumerate(sim.get_states()):
        links = state["robots"]["franka"]["body"]
        assert tuple(links) == names
        found = torch.stack([link["pos"] for link in links.values()])
        assert torch.equal(found, sim.data.xpos[world, ids])


def test_a_state_is_saved_without_the_other_worlds(sim):
    """A row by unbind shares its storage, and pickle writes a storage in full."""
    many = Simulation(replace(document_scene(), cameras={}), num_envs=200)
    few = [len(pickle.dumps(s)) for s in (sim.get_states()[1], many.get_states()[1])]
    assert few[0] == few[1]


def test_no_two_tensors_of_a_state_share_memory(sim):
    states = sim.get_states()
    for state in states:
        for part in parts_of(state):
            if isinstance(part, torch.Tensor):
                part.fill_(7.0)
    tensors = [x for s in states for x in parts_of(s) if isinstance(x, torch.Tensor)]
    for count, tensor in enumerate(tensors):
        assert bool((tensor == 7.0).all())
        tensor.fill_(float(-count))
    assert all(bool((x == -k).all()) for k, x in enumerate(tensors))


def test_written_as_they_were_read(sim):
    states = sim.get_states()
    before = sim.state.clone()
    for given in (states, copy.deepcopy(states), pickle.loads(pickle.dumps(states))):
        sim.reset()
        assert not torch.equal(sim.state, before)
        sim.set_states(given)
        for name in ("qpos", "qvel", "ctrl"):
            columns = columns_of(sim)[name]
            torch.testing.assert_close(
                sim.state[:, columns], before[:, columns], rtol=0, atol=1e-12
            )


def test_a_value_that_is_not_finite_is_named(sim):
    tensors = sim.get_states(mode="tensor")
    tensors.objects["box"].body_vel[2, 1, 0] = torch.nan
    before = sim.state.clone()
    with raises(InvalidInputError, name="objects.box.body.box_lid.vel"):
        sim.set_states(state_dicts(tensors))
    assert torch.equal(sim.state, before)
