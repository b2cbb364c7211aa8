"""The links of a state: made when they are looked at, and a dictionary all the same."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inside import columns_of
from tests.state.conftest import document_scene
from torch.utils import _pytree as pytree

from simstate import InvalidInputError, Simulation
from simstate.state.lazy_links import LazyLinks


@pytest.fixture(scope="module")
def sim():
    """No two worlds alike, without the document's camera."""
    sim = Simulation(replace(document_scene(), cameras={}), num_envs=3)
    rng = np.random.default_rng(3)
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=sim.data.qvel.shape)) * 0.3
    sim.step(5)
    return sim


def untouched(sim, world=1):
    """The links of the arm, which nobody has looked at."""
    links = sim.get_states()[world]["robots"]["franka"]["body"]
    assert isinstance(links, LazyLinks)
    assert links.source is not None
    return links


def expected(sim, world=1):
    """Where MuJoCo has the links; shape (links, 3)."""
    ids = [sim.model.body(f"franka/{name}").id for name in untouched(sim)]
    return sim.data.xpos[world, ids]


def positions(links):
    return torch.stack([link["pos"] for link in links.values()])


WAYS = {
    "items": lambda links: dict(links.items()),
    "dict": dict,
    "unpacked": lambda links: {**links},
    "copy": lambda links: links.copy(),
    "copied": copy.copy,
    "deep": copy.deepcopy,
    "pickled": lambda links: pickle.loads(pickle.dumps(links)),
    "or": lambda links: links | {},
    "or from the right": lambda links: {} | links,
    "get": lambda links: {name: links.get(name) for name in links},
    "pop": lambda links: {name: links.pop(name) for name in list(links)},
    "setdefault": lambda links: {name: links.setdefault(name, {}) for name in links},
    "values": lambda links: dict(zip(links.keys(), links.values(), strict=True)),
    "tree": lambda links: pytree.tree_map(lambda x: x, links),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_the_links_makes_them(sim, way):
    found = WAYS[way](untouched(sim))
    assert type(found) is dict
    assert list(found) == list(sim.scene["franka"].body_names)
    torch.testing.assert_close(positions(found), expected(sim), rtol=0, atol=0)


def test_updates_take_the_links_along(sim):
    other = {"mine": {"pos": torch.zeros(3)}}
    other.update(untouched(sim))
    torch.testing.assert_close(
        torch.stack([x["pos"] for x in list(other.values())[1:]]), expected(sim)
    )
    links = untouched(sim)
    links |= {"mine": {"pos": torch.zeros(3)}}
    torch.testing.assert_close(positions(links)[:-1], expected(sim))


def test_names_need_no_tensors(sim):
    links, names = untouched(sim), sim.scene["franka"].body_names
    assert (len(links), list(links), tuple(links.keys())) == (
        len(names), list(names), names
    )  # fmt: skip
    assert names[2] in links
    assert "nobody" not in links
    assert links.source is not None


def test_changes_stay(sim):
    links, name = untouched(sim), sim.scene["franka"].body_names[1]
    del links[name]
    assert name not in links.keys() | set(dict(links))
    links.clear()
    assert not links
    assert links == {}
    assert len(untouched(sim)) == sim.scene["franka"].num_bodies
    assert untouched(sim) != {}
    nothing = {}
    assert nothing != untouched(sim)
    assert "tensor" in repr(untouched(sim))


def test_those_who_look_past_the_methods_see_no_empty_dictionary(sim):
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(untouched(sim))


def test_written_as_they_were_read(sim):
    """Untouched links, links that were looked at, and a mixture of both."""
    states = list(sim.get_states())
    touched = copy.deepcopy(states)
    mixed = [states[0], touched[1], states[2]]
    before = sim.state.clone()
    for given in (states, touched, mixed):
        sim.reset()
        assert not torch.equal(sim.state, before)
        sim.set_states(given)
        names = ("qpos", "qvel", "ctrl")
        rows = [columns_of(sim)[name] for name in names]
        for columns in rows:
            torch.testing.assert_close(
                sim.state[:, columns], before[:, columns], rtol=0, atol=1e-12
            )


def test_a_number_that_is_not_finite_is_named(sim):
    tensors = sim.get_states(mode="tensor")
    tensors.objects["box"].body_vel[2, 1, 0] = torch.nan
    states = type(sim.get_states())(tensors)
    before = sim.state.clone()
    with pytest.raises(
        InvalidInputError, match=r"states\[2\].objects.box.body.box_lid"
    ):
        sim.set_states(states)
    assert torch.equal(sim.state, before)
