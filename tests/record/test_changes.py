"""Writes between steps: each slot, world and bit that changed, and no other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from simstate.record import Recording

INPUTS = ["qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied", "qacc_warmstart"]


def changes_of(sim, path, writes) -> list[list]:
    """Record a step after each of some writes; the changes before each step."""
    with sim.record(path, fields=["qpos"]):
        for write in writes:
            write()
            sim.step()
    with Recording(path) as found:
        return [step.changes for step in found.steps()]


@pytest.mark.parametrize("slot", INPUTS)
def test_one_number_of_one_world_is_found_in_every_field(make_sim, tmp_path, slot):
    sim = make_sim(4)
    tensor = getattr(sim.data, slot)
    kept = []

    def write():
        tensor[2].view(-1)[-1] += 0.125
        kept.append(tensor[2].clone())

    (changes, none) = changes_of(sim, tmp_path / "a.simrec", [write, lambda: None])
    assert [change.slot for change in changes] == [slot]
    assert changes[0].rows.tolist() == [2]
    np.testing.assert_array_equal(changes[0].values, torch.stack(kept).numpy())
    assert none == []


def test_neighbours_in_memory_are_distinguished(make_sim, tmp_path):
    sim = make_sim(3)

    def write():
        sim.data.qpos[0, -1] += 0.25
        sim.data.qvel[1, 0] += 0.25
        sim.data.ctrl[:, 1] += torch.tensor([0.1, 0.2, 0.3]).double()

    (changes,) = changes_of(sim, tmp_path / "a.simrec", [write])
    rows = {c.slot: None if c.rows is None else c.rows.tolist() for c in changes}
    assert rows == {"qpos": [0], "qvel": [1], "ctrl": None}


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(torch.float64, (2, 3)), (torch.float32, ()), (torch.float16, (5,)),
     (torch.int64, (2,)), (torch.int32, ()), (torch.int16, (3,)), (torch.int8, (2,)),
     (torch.uint8, (4, 1)), (torch.bool, (3,))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("num_envs", [1, 3])
def test_memory_of_all_dtypes_and_shapes(make_sim, tmp_path, dtype, shape, num_envs):
    sim = make_sim(num_envs)
    sim.memory("other", (2,), dtype=dtype, reset=None)
    mine = sim.memory("mine", shape, dtype=dtype, reset=None)
    empty = sim.memory("empty", (0,), dtype=dtype, reset=None)

    def write():
        mine[num_envs - 1].view(-1)[-1] = 1

    (changes, none) = changes_of(sim, tmp_path / "a.simrec", [write, write])
    assert [change.slot for change in changes] == ["memory/mine"]
    if num_envs == 1:
        assert changes[0].rows is None
    else:
        assert changes[0].rows.tolist() == [num_envs - 1]
    np.testing.assert_array_equal(changes[0].values, mine[num_envs - 1 :].numpy())
    assert none == []  # the same value again
    assert empty.shape == (num_envs, 0)


def test_memory_that_all_worlds_share(make_sim, tmp_path):
    sim = make_sim(3)
    shared = sim.memory("gains", (3,), reset=None, shared=True)

    def write():
        shared[1] += 2.5

    each = changes_of(sim, tmp_path / "a.simrec", [write, lambda: None, write])
    assert [[(c.slot, c.rows) for c in changes] for changes in each] == [
        [("memory/gains", None)], [], [("memory/gains", None)],
    ]  # fmt: skip
    assert [each[k][0].values.tolist() for k in (0, 2)] == [[0, 2.5, 0], [0, 5, 0]]


def test_values_are_those_before_their_step(make_sim, tmp_path):
    """Although they change again before the block is written."""
    sim = make_sim(2)

    def write():
        sim.data.ctrl[:] += 0.5

    each = changes_of(sim, tmp_path / "a.simrec", [write] * 3)
    found = [changes[0].values.tolist() for changes in each]
    assert found == [[[value] * 2] * 2 for value in (0.5, 1.0, 1.5)]


def test_bits_are_compared(make_sim, tmp_path):
    """−0 is not 0, and NaN is the NaN that it was."""
    sim = make_sim(2)
    number = sim.memory("number", (), reset=None)
    number[1] = math.nan

    def negate():
        number[0] = -0.0
        number[1] = math.nan

    (changes, none) = changes_of(sim, tmp_path / "a.simrec", [negate, negate])
    assert [(change.slot, change.rows.tolist()) for change in changes] == [
        ("memory/number", [0])
    ]
    assert np.signbit(changes[0].values).tolist() == [True]
    assert none == []


def test_parameters_of_worlds_are_slots(make_sim, tmp_path):
    sim = make_sim(3)
    mass, damping = sim.expand("body_mass"), sim.expand("dof_damping")

    def write():
        mass[2, 1] = 0.75
        damping[[0, 1]] *= 1.5

    (changes, none) = changes_of(sim, tmp_path / "a.simrec", [write, lambda: None])
    found = {change.slot: change for change in changes}
    assert set(found) == {"model/body_mass", "model/dof_damping"}
    assert found["model/body_mass"].rows.tolist() == [2]
    assert found["model/dof_damping"].rows.tolist() == [0, 1]
    np.testing.assert_array_equal(
        found["model/dof_damping"].values, damping[:2].numpy()
    )
    assert none == []
