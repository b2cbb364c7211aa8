"""When a block of a recording is written, and what its index and steps hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from mcap.reader import make_reader
from tests.raised import raises
from tests.record.conftest import PUCK

from simstate import EntityCfg, RecordingError, SceneCfg, Simulation
from simstate.record import Recording, recorder
from simstate.record.block import Block, Kept
from simstate.record.changes import Change, Step, steps_from_bytes, steps_to_bytes
from simstate.record.compression import size_of


def block_sizes(path) -> list[tuple[int, int]]:
    """The samples and steps of each block."""
    with Recording(path) as found:
        return [(block.samples, block.steps) for block in found.blocks]


@pytest.mark.parametrize(("room", "most"), [(4, 4), (4.9, 4), (5, 5), (0.5, 1)])
def test_a_block_has_as_many_samples_as_fit(
    make_sim, tmp_path, monkeypatch, room, most
):
    """A sample of two worlds: step, two times, two qpos of 9, in float64."""
    sample = 8 + 2 * 8 + 2 * 9 * 8
    monkeypatch.setattr(recorder, "BLOCK_BYTES", int(room * sample))
    monkeypatch.setattr(recorder, "BLOCK_SECONDS", 1e9)
    sim = make_sim(2)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"], inputs=False):
        for _ in range(10):
            sim.step()
    sizes = [samples for samples, _ in block_sizes(tmp_path / "a.simrec")]
    whole, rest = divmod(11, most)
    assert sizes == [most] * whole + [rest] * (rest > 0)


def test_a_block_is_written_once_its_steps_hold_more_than_its_bytes(
    make_sim, tmp_path, monkeypatch
):
    """40 kB are written before each step: the third goes beyond 100 kB."""
    monkeypatch.setattr(recorder, "BLOCK_BYTES", 100_000)
    monkeypatch.setattr(recorder, "BLOCK_SECONDS", 1e9)
    sim = make_sim(2)
    wide = sim.memory("wide", (2500,), reset=None)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"]):
        for k in range(8):
            wide[:] = k + 1
            sim.step()
    assert block_sizes(tmp_path / "a.simrec") == [(4, 3), (3, 3), (2, 2)]


@pytest.mark.parametrize(("seconds", "blocks"), [(-1.0, 6), (1e9, 1)])
def test_a_block_is_written_after_a_time(
    make_sim, tmp_path, monkeypatch, seconds, blocks
):
    monkeypatch.setattr(recorder, "BLOCK_SECONDS", seconds)
    sim = make_sim(2)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"]) as recording:
        assert (recording.samples, recording.steps) == (1, 0)
        for _ in range(6):
            sim.step()
        assert (recording.samples, recording.steps) == (7, 6)
    sizes = block_sizes(tmp_path / "a.simrec")
    assert len(sizes) == blocks
    assert np.sum(sizes, axis=0).tolist() == [7, 6]


def test_bytes_of_a_step_are_those_of_its_arrays():
    step = Step(
        [Change("a", None, np.zeros(3)), Change("b", np.arange(2), np.zeros((2, 5)))],
        {"n": 1},
        {"action": np.zeros(7, np.float32)},
        b"snapshot",
    )
    assert step.num_bytes == 8 * 3 + 8 * 10 + 4 * 7 + 8


def test_a_block_counts_from_where_the_one_before_it_ended():
    start = Kept(Step(), 10, 20, 300)
    block = Block({"a": torch.arange(8.0)}, start)
    assert (block.last, block.samples, block.num_bytes) == (start, 0, 0)
    one, other = Step(call={"n": 1}), Step(call={"n": 2})
    block.kept += [Kept(one, 11, 21, 340), Kept(None, 12, 21, 340)]
    block.kept += [Kept(other, 12, 22, 350)]
    assert (block.samples, block.num_bytes) == (2, 50)
    contents = block.contents()
    assert contents.samples == 2
    assert contents.steps == [one, other]
    assert contents.arrays["a"].tolist() == [0.0, 1.0]


def test_what_is_kept_starts_at_nothing():
    assert Kept() == (None, 0, 0, 0, None)


def test_each_block_states_its_samples_and_steps(make_sim, tmp_path, monkeypatch):
    """As attachments after the chunks, and as totals at the end."""
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 2)
    sim = make_sim(2)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"], every=0.008):
        for _ in range(9):
            sim.step()
    with open(tmp_path / "a.simrec", "rb") as file:
        each = list(make_reader(file).iter_attachments())
    blocks = [json.loads(one.data) for one in each if one.name == "block"]
    (end,) = [json.loads(one.data) for one in each if one.name == "end"]
    keys = ("block", "first_sample", "samples", "first_step", "steps")
    assert [tuple(block[key] for key in keys) for block in blocks] == [
        (0, 0, 2, 0, 2), (1, 2, 2, 2, 4), (2, 4, 1, 6, 3),
    ]  # fmt: skip
    assert end == {"blocks": 3, "samples": 5, "steps": 9}
    with Recording(tmp_path / "a.simrec") as found:
        assert found["step"].tolist() == [0, 2, 4, 6, 8]
        assert [len(list(found.steps(first))) for first in (0, 1, 2, 5, 8, 9)] == [
            9, 8, 7, 4, 1, 0,
        ]  # fmt: skip


def test_what_an_event_writes_is_no_write_between_steps(tmp_path):
    """A replay takes the event again."""
    puck = SceneCfg(entities={"puck": EntityCfg(model=PUCK)}, timestep=None)
    sim = Simulation(puck, 2)
    mass = sim.expand("body_mass")

    def lose(sim, env_ids):
        mass[env_ids, 1] = 0.25

    sim.add_event(lambda sim: sim.data.qpos[:, 2] - 0.49, action=lose, name="lose")
    with sim.record(tmp_path / "a.simrec", fields=["qpos"]):
        for _ in range(15):
            sim.step()
    assert mass[:, 1].tolist() == [0.25, 0.25]
    with Recording(tmp_path / "a.simrec") as found:
        assert [step.changes for step in found.steps()] == [[]] * 15


def test_steps_come_back_from_their_bytes():
    rows = np.array([2, 0])
    values = np.array([[1.5, -0.0], [np.nan, 3.0]])
    first = Step(
        [Change("qvel", rows, values), Change("time", None, np.arange(3.0))], {"n": 2}
    )
    second = Step([], {"n": 1}, {"mask": np.array([True, False]), "none": np.zeros(0)})
    one, other = steps_from_bytes(steps_to_bytes([first, second]))
    assert [change.slot for change in one.changes] == ["qvel", "time"]
    assert one.changes[0].rows.tolist() == [2, 0]
    assert one.changes[0].values.tobytes() == values.tobytes()
    assert one.changes[1].rows is None
    assert one.changes[1].values.tolist() == [0.0, 1.0, 2.0]
    assert (one.call, one.arrays, one.snapshot) == ({"n": 2}, {}, None)
    assert other.arrays["mask"].tolist() == [True, False]
    assert other.arrays["none"].shape == (0,)
    assert steps_from_bytes(steps_to_bytes([])) == []


def test_an_array_has_at_most_a_gibibyte():
    assert size_of("uint8", [2**30]) == size_of("float64", [2**27]) == 2**30
    for dtype, count in (("uint8", 2**30 + 1), ("float64", 2**27 + 1)):
        with raises(RecordingError, name="size"):
            size_of(dtype, [count])
