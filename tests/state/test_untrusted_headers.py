"""Snapshots whose checksum fits, but which say what simstate never wrote."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from tests.raised import raises
from tests.world.test_user_memory import cartpole, counting, still

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.archive import archive_bytes
from simstate.base.errors import SimStateError, SnapshotError
from simstate.state import Snapshot, diff

ODD = (None, -1, 1e308, float("nan"), "", "x", [], {}, [None], {"a": 1}, True, 2**70,
       "env", [10**12], [[[]]])  # fmt: skip


def make(num_envs: int = 3) -> Simulation:
    scene = SceneCfg(entities={"c": EntityCfg(model="cube")}, timestep=0.002)
    return Simulation(scene, num_envs)


def places(value, path=()):
    """The path of everything within a header."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, list) else inner:
        yield (*path, key)
        yield from places(part, (*path, key))


def altered(header, draw):
    """A header in which something is lost, is another thing, or has another name."""
    header = copy.deepcopy(header)
    path = draw.choice(list(places(header)))
    owner = header
    for key in path[:-1]:
        owner = owner[key]
    how = draw.random()
    if how < 0.3:
        del owner[path[-1]]
    elif how < 0.9 or isinstance(owner, list):
        owner[path[-1]] = copy.deepcopy(draw.choice(ODD))
    else:
        owner["other"] = owner.pop(path[-1])
    return header


def test_altered_headers_are_refused_or_harmless():
    sim, draw = make(), random.Random(4)
    sim.data.qvel[:] = torch.linspace(-1.0, 1.0, 18, dtype=sim.dtype).view(3, 6)
    sim.step(2)
    good = sim.snapshot()
    sim.step()
    before, refused = sim.snapshot().slots, 0
    for _ in range(100):
        data = bytes(archive_bytes(altered(good.header, draw), good.slots))
        try:
            snapshot = Snapshot.from_bytes(data)
            str(diff(snapshot, good))
            sim.restore(snapshot)
        except SimStateError:
            refused += 1
            for name, value in sim.snapshot().slots.items():
                assert torch.equal(value, before[name]), name
        else:
            assert torch.equal(sim.state, good.state)
            sim.step()
    assert refused > 40


@pytest.mark.parametrize("part", ["sizes", "names", "fields"])
@pytest.mark.parametrize("value", [None, [], {"body": 3}])
def test_a_model_that_is_not_described_is_refused(part, value):
    if part != "names" and value:
        value = "text"
    sim = make()
    good = sim.snapshot()
    header = {**good.header, "model": {**good.header["model"], part: value}}
    with raises(SnapshotError, name="a snapshot"):
        Snapshot.from_bytes(bytes(archive_bytes(header, good.slots)))
    with raises(SnapshotError, name="slots"):
        sim.restore(Snapshot(header, good.slots))


def with_contract(snapshot, **changes):
    """A snapshot that says other things of the memory of a reward."""
    header = copy.deepcopy(snapshot.header)
    header["slots"]["env/reward/counts/count"].update(changes)
    return Snapshot(header, snapshot.slots)


@pytest.mark.parametrize(
    "contract",
    [{"shape": [10**13]}, {"shape": "x"}, {"dtype": "nonsense"}, {"shared": "yes"}],
    ids=str,
)
def test_memory_that_is_made_for_a_snapshot_has_the_size_of_its_values(contract):
    """A file of some kilobytes cannot ask for terabytes."""
    one, other = cartpole(counts=counting), cartpole(counts=counting)
    for _ in range(3):
        one.step(still(one))
    other.restore(with_contract(one.snapshot(), **contract))
    assert torch.equal(one.step(still(one))[1], other.step(still(other))[1])


@pytest.mark.parametrize("reset", [{"a": 1}, [[[]], 1], [1.0, 2.0, 3.0]])
def test_a_value_at_reset_that_makes_no_sense_is_refused(reset):
    one, other = cartpole(counts=counting), cartpole(counts=counting)
    one.step(still(one))
    before = other.snapshot().slots
    with raises(SimStateError, name="env/reward/counts/count"):
        other.restore(with_contract(one.snapshot(), reset=reset))
    for key, value in before.items():
        assert torch.equal(other.snapshot().slots[key], value), key


def test_memory_of_another_version_of_a_term_is_reported():
    def counting_more(env):
        return env.memory("count", (2,)).sum(1)

    one, other = cartpole(counts=counting), cartpole(counts=counting_more)
    one.step(still(one))
    other.restore(one.snapshot())
    with raises(SimStateError, name="count"):
        other.step(still(other))


def test_whole_numbers_beyond_float64_differ():
    sim = make()
    one, two = sim.snapshot(), sim.snapshot()
    one.slots["random/seed"][1] = 2**62
    two.slots["random/seed"][1] = 2**62 + 1
    found = list(diff(one, two))
    assert [(d.world, d.quantity, d.error) for d in found] == [(1, "seed", 1.0)]
