"""Recordings: what is in them is what was, with units and names."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mcap.reader import make_reader
from tests.inside import file_of, replace_attach, write_block
from tests.raised import raises
from tests.record.conftest import drive
from tests.soak import SOAK

from simstate import (
    EntityCfg,
    FileError,
    InvalidInputError,
    RecordingError,
    SceneCfg,
    SimStateError,
    Simulation,
)
from simstate.base import samples
from simstate.cli import main
from simstate.data.replay import replay
from simstate.record import Recording, recorder
from simstate.record.compression import packed, unpacked
from simstate.record.header import read_header

QUANTITIES = ("arm.joint_pos", "puck.root_link_lin_vel_b", "arm.body_link_pos_w")


def recorded(sim, path, steps=23, **options) -> list[torch.Tensor]:
    """Record while the states are kept by hand, after each call of step."""
    kept = [sim.data.qpos.clone()]
    step = sim.step

    def keeping(n=1, env_ids=None):
        step(n, env_ids)
        kept.append(sim.data.qpos.clone())

    sim.step = keeping
    options = {"quantities": QUANTITIES, "fields": ["qpos"]} | options
    with sim.record(path, **options):
        drive(sim, steps, torch.Generator().manual_seed(1))
    sim.step = step
    return kept


def test_columns_are_what_the_worlds_had(make_sim, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 4)
    sim = make_sim()
    kept = recorded(sim, tmp_path / "run.simrec")
    with Recording(tmp_path / "run.simrec") as found:
        assert len(found.blocks) > 4
        assert found.is_whole
        assert torch.equal(found["qpos"], torch.stack(kept))
        assert torch.equal(found.read("qpos", 5, 11), torch.stack(kept)[5:11])
        assert torch.equal(found["arm.joint_pos"], found["qpos"][:, :, :2])
        assert torch.equal(found.time[-1], sim.time)
        assert found.units["puck.root_link_lin_vel_b"] == "m/s"
        contract = found.contract("root_link_lin_vel_b")
        assert (contract["axes"], contract["point"]) == ("root link", "link origin")
        assert contract["names"] == ["x", "y", "z"]
        assert found.contract("arm.joint_pos")["names"] == ["shoulder", "elbow"]
        assert found.contract("body_link_pos_w")["names"][3:5] == ["lower.x", "lower.y"]
        assert "elbow" in found.contract("qpos")["names"][1]
        # Positions of the links, by MuJoCo itself from the recorded qpos.
        data = mujoco.MjData(found.model)
        for k, world in ((0, 3), (9, 1), (23, 2)):
            data.qpos[:] = found["qpos"][k, world].numpy()
            mujoco.mj_kinematics(found.model, data)
            np.testing.assert_allclose(
                found["arm.body_link_pos_w"][k, world], data.xpos[1:3], atol=1e-12
            )


def test_a_block_of_one_sample(make_sim, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 1)
    kept = recorded(make_sim(), tmp_path / "run.simrec", 5)
    with Recording(tmp_path / "run.simrec") as found:
        assert torch.equal(found["qpos"], torch.stack(kept))
        assert len(found.blocks) == len(found) == 6
        assert replay(found).is_same


def test_a_block_is_closed_by_its_bytes_as_well(make_sim, tmp_path, monkeypatch):
    """By samples, or by what was written between steps: whichever is full first."""
    sim = make_sim()
    wide = sim.memory("wide", (4000,), reset=None)
    monkeypatch.setattr(recorder, "BLOCK_BYTES", 100_000)
    with sim.record(tmp_path / "run.simrec", fields=["qpos"]):
        for k in range(9):
            wide[:] = k + 1  # 128 kB, all worlds
            sim.step()
    with Recording(tmp_path / "run.simrec") as found:
        assert len(found.blocks) == 9
        assert replay(found).is_same


def test_of_a_write_only_the_worlds_that_it_changed_are_kept(make_sim, tmp_path):
    sim, path = make_sim(5), tmp_path / "run.simrec"
    with sim.record(path):
        sim.data.qvel[3, 1] += 0.25
        sim.step()
        sim.data.qvel[:] += torch.arange(5.0).double()[:, None] + 1
        sim.step()
    one, every = (
        {change.slot: change for change in step.changes}["qvel"]
        for step in Recording(path).steps()
    )
    assert list(one.rows) == [3]
    assert one.values.shape == (1, sim.model.nv)
    assert every.rows is None
    assert every.values.shape == (5, sim.model.nv)


def test_chosen_worlds_are_found_in_the_columns(make_sim, tmp_path):
    path = tmp_path / "a.simrec"
    sim = make_sim(5)
    with sim.record(path, quantities=["arm.joint_pos"], worlds=[3, 1, 4]):
        sim.step(2)
    with Recording(path) as found:
        assert found.places() == {3: 0, 1: 1, 4: 2}
        assert found.places(most=2) == {3: 0, 1: 1}
        for worlds in ([4, 3], (4, 3), torch.tensor([4, 3]), np.array([4, 3])):
            assert list(found.places(worlds).items()) == [(4, 2), (3, 0)]
        for worlds in ([], [1, 1], 1, "1", torch.tensor(1)):
            with raises(InvalidInputError, name="worlds"):
                found.places(worlds)
        with raises(InvalidInputError, name="worlds[1]"):
            found.places([3, 1.0])
        for mask in (torch.ones(1, dtype=torch.bool), np.array([True]), [True]):
            with raises(InvalidInputError, name="worlds[0]"):  # not world 1
                found.places(mask)
        with raises(InvalidInputError, name="world"):
            found.to_pandas(1.0)
        with raises(InvalidInputError, name="world", worlds=[2]):
            found.places([3, 2])
        found.plot(tmp_path / "a.png", worlds=torch.tensor([4, 3]))


def test_some_worlds_at_some_times(make_sim, tmp_path):
    sim, path = make_sim(5), tmp_path / "some.simrec"
    twice = {
        "q": "arm.joint_pos",
        "double": (lambda s: 2 * s.data.qvel[:, :1], "rad/s"),
    }
    with sim.record(path, quantities=twice, every=0.012, worlds=[3, 1], inputs=False):
        for _ in range(7):
            sim.data.ctrl[:] = torch.randn(5, 2, dtype=torch.float64)
            sim.step(2)
    found = Recording(path)
    assert found.worlds == [3, 1]
    assert found["q"].shape == (5, 2, 2)
    times = [0.0, 0.016, 0.024, 0.04, 0.048]  # the first call's end after each 12 ms
    np.testing.assert_allclose(found.time[:, 0], times, atol=1e-12)
    assert found["double"].shape == (5, 2, 1)
    assert found.units["double"] == "rad/s"
    assert not found.snapshot_steps
    with raises(RecordingError, name="inputs"):
        replay(found)
    table = found.to_pandas(3)
    assert list(table.columns) == ["q[0]", "q[1]", "double[0]"]
    assert table.attrs["units"]["q"] == "rad"
    both = found.to_pandas()
    np.testing.assert_array_equal(both.loc[1]["q[1]"], found["q"][:, 1, 1])
    found.plot(tmp_path / "double.png", ["double"], [1])
    assert (tmp_path / "double.png").stat().st_size > 1000
    with raises(InvalidInputError, name="world"):
        found.to_pandas(2)
    with raises(SimStateError, name="doubel"):
        found["doubel"]


CART = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="0.3"/>
      <body name="pole">
        <joint name="pin" axis="0 1 0"/>
        <geom size="0.05" pos="0 0 0.4" mass="0.2"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_each_component_has_its_unit(tmp_path, capsys):
    cart = EntityCfg(model=CART)
    sim = Simulation(SceneCfg(entities={"cart": cart}, ground=False, timestep=None), 2)
    names = ["joint_pos", "joint_vel", "joint_pos_limits", "qfrc_actuator"]
    names += ["body_link_pose_w", "body_external_wrench", "body_link_pos_w"]
    with sim.record(tmp_path / "cart.simrec", quantities=[f"cart.{n}" for n in names]):
        sim.step()
    found = Recording(tmp_path / "cart.simrec")
    units = {name: found.component_units(name) for name in names}
    assert units["joint_pos"] == ["m", "rad"]
    assert units["joint_vel"] == ["m/s", "rad/s"]
    assert units["joint_pos_limits"] == ["m", "m", "rad", "rad"]
    assert units["qfrc_actuator"] == ["N", "N·m"]
    assert units["body_link_pose_w"] == 2 * [*3 * ["m"], *4 * ["1"]]
    assert units["body_external_wrench"] == 2 * [*3 * ["N"], *3 * ["N·m"]]
    assert units["body_link_pos_w"] == 6 * ["m"]
    assert found.units["cart.joint_pos"] == "rad or m"
    assert found.contract("joint_pos")["units"] == ["m", "rad"]
    assert main(["info", str(found.path)]) == 0
    assert "m, rad" in capsys.readouterr().out


def test_every_quantity_can_be_recorded(make_sim, tmp_path):
    sim = make_sim()
    names = [
        f"{e.name}.{name}" for e in sim.scene.values() for name in e.data.quantities
    ]
    with sim.record(tmp_path / "all.simrec", quantities=names):
        sim.step()
    found = Recording(tmp_path / "all.simrec")
    for name in names:
        width = found[name][0, 0].numel()
        assert len(found.component_units(name)) == width, name
        if name.endswith("mocap_pose_w"):
            assert found.component_units(name) == [*3 * ["m"], *4 * ["1"]] * (
                width // 7
            )


def test_time_continues_where_worlds_are_reset(make_sim, tmp_path, monkeypatch):
    sim, drawn = make_sim(3), []
    sim.step(5)  # the recording begins later than the worlds
    with sim.record(tmp_path / "a.simrec", quantities=["arm.joint_pos"], every=0.008):
        for k in range(6):
            if k == 3:
                sim.reset([1])
            sim.step(1 + k % 3)
    found = Recording(tmp_path / "a.simrec")
    steps = found["step"].tolist()
    ends = [0.004 * sum(1 + k % 3 for k in range(n)) for n in steps]
    np.testing.assert_allclose(found.elapsed, ends, atol=1e-12)
    assert len(steps) > 4
    save = samples.save_figure
    monkeypatch.setattr(
        samples, "save_figure", lambda f, p: (drawn.append(f), save(f, p))
    )
    found.plot(tmp_path / "a.png")
    found.plot(tmp_path / "b.png", ["joint_pos"], [2])
    begun_anew, other = (figure.axes[0] for figure in drawn)
    for line in begun_anew.lines:
        x = line.get_xdata()
        assert (np.diff(x[~np.isnan(x)]) > 0).all()
    broken = [np.isnan(line.get_ydata()).sum() for line in begun_anew.lines]
    assert broken == [0, 0, 1, 1, 0, 0]  # two joints of three worlds
    assert "since the first" in drawn[0].get_supxlabel()
    assert drawn[1].get_supxlabel() == "time [s]"
    assert drawn[1].get_suptitle() == "world 2"
    np.testing.assert_array_equal(other.lines[0].get_xdata(), found.time[:, 2])
    for figure in drawn:
        (legend,) = figure.legends
        told = [text.get_text() for text in legend.get_texts()]
        assert told == ["shoulder", "elbow"]
        assert figure.axes[0].get_title(loc="left") == "arm.joint_pos [rad]"
    shades = [line.get_alpha() for line in begun_anew.lines]
    assert shades == sorted(shades, reverse=True)
    assert shades[0] > shades[2] > shades[4]
    colours = [line.get_color() for line in begun_anew.lines]
    assert colours == 3 * colours[:2]
    assert colours[0] != colours[1]


def test_what_is_no_curve_is_not_drawn(make_sim, tmp_path):
    columns = {
        "none": lambda sim: sim.data.qpos[:, :0],
        "one": lambda sim: sim.data.qpos[:, 0],
    }
    sim = make_sim(2)
    with sim.record(tmp_path / "a.simrec", quantities=columns):
        sim.step()
    found = Recording(tmp_path / "a.simrec")
    found.plot(tmp_path / "a.png")
    with raises(InvalidInputError, name="none"):
        found.plot(tmp_path / "b.png", ["one", "none"])


def test_the_library_of_mcap_reads_it(make_sim, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 6)
    recorded(make_sim(), tmp_path / "run.simrec")
    with open(tmp_path / "run.simrec", "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        topics = {c.topic: i for i, c in summary.channels.items()}
        assert set(topics) == {*QUANTITIES, "qpos", "time", "step", "steps"}
        counts = summary.statistics.channel_message_counts
        assert counts[topics["qpos"]] == summary.statistics.chunk_count == 4
        names = [a.name for a in reader.iter_attachments()]
        assert names[:3] == ["header", "model.mjb", "snapshot/0"]
        (header,) = (a for a in reader.iter_attachments() if a.name == "header")
        assert json.loads(header.data)["columns"]["qpos"]["shape"] == [9]
        assert sum(1 for _ in reader.iter_messages(topics=["qpos"])) == 4


def test_what_a_step_that_fails_did_is_not_recorded(make_sim, tmp_path):
    sim, path = make_sim(), tmp_path / "run.simrec"
    bad: list[int] = []

    def force(t, sim):
        if bad:
            raise ZeroDivisionError

    sim.add_force(force)
    with sim.record(path, fields=["qpos"]):
        sim.step(2)
        bad.append(1)
        with pytest.raises(ZeroDivisionError):
            sim.step(3)
        bad.clear()
        sim.step(4)
    found = Recording(path)
    assert [step.call["n"] for step in found.steps()] == [2, 4]
    np.testing.assert_allclose(found.time[:, 1], [0, 0.008, 0.024], atol=1e-15)


def step_until_written(sim, recording) -> None:
    for _ in range(5000):
        sim.step()
        write_block(recording)


def test_a_full_disk_ends_the_recording_and_nothing_else(make_sim, tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    sim = make_sim()
    recording = sim.record(tmp_path / "a.simrec", fields=["qpos"])
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), file_of(recording).fileno())
    with raises(FileError, file="a.simrec"):
        step_until_written(sim, recording)
    assert not recording.is_open
    time = sim.time.clone()
    sim.step()
    assert bool((sim.time > time).all())
    with raises(FileError, name="/nowhere/at/all.simrec"):
        sim.record("/nowhere/at/all.simrec", fields=["qpos"])


def test_a_recording_that_cannot_begin_leaves_the_one_that_was_there(
    make_sim, tmp_path, monkeypatch
):
    """The disk is full before its header is written."""
    path = tmp_path / "a.simrec"
    with make_sim().record(path, fields=["qpos"]):
        pass
    before = path.read_bytes()

    def full(attach, name, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    replace_attach(monkeypatch, full)
    for place in (path, tmp_path / "new.simrec"):
        with raises(FileError, file=place.name):
            make_sim().record(place, fields=["qpos"])
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with make_sim().record(path, fields=["qvel"]):
        pass
    assert "qvel" in Recording(path).names
    with raises(FileError, name="/dev/null"):
        make_sim().record("/dev/null", fields=["qpos"])


def test_a_file_is_written_by_one_recording(make_sim, tmp_path):
    sim, path = make_sim(2), tmp_path / "a.simrec"
    (tmp_path / "link.simrec").symlink_to(path)
    with sim.record(path, fields=["qpos"]):
        sim.step()
        for same in (path, tmp_path / "link.simrec"):
            with raises(InvalidInputError, name=str(same)):
                make_sim(3).record(same, fields=["qpos"])
        sim.step()
    assert replay(path).is_same
    with sim.record(path, fields=["qpos"]):  # it is replaced
        sim.step()
    assert replay(path).steps == 1


def test_names_that_cannot_be(make_sim, tmp_path):
    sim = make_sim()
    with raises(SimStateError, name="joint_poss"):
        sim.record(tmp_path / "a", quantities=["arm.joint_poss"])
    with raises(SimStateError, name="arm/joint_pos"):
        sim.record(tmp_path / "a", quantities=["arm/joint_pos"])
    alone = Simulation(SceneCfg(entities={"a": EntityCfg(model="cartpole")}))
    with raises(SimStateError, name="joint_pso"):
        alone.record(tmp_path / "a", quantities=["joint_pso"])
    with raises(InvalidInputError, name="qpos"):
        sim.record(tmp_path / "a", quantities=["qpos"], fields=["qpos"])
    with raises(InvalidInputError, name="every"):
        sim.record(tmp_path / "a", quantities=["qpos"], every=0.0)
    with raises(InvalidInputError, name="path"):
        sim.record(quantities=["qpos"], worlds=[1])
    with raises(RecordingError, file="none.simrec"):
        Recording(tmp_path / "none.simrec")
    (tmp_path / "empty").write_text("")
    with raises(RecordingError, file="empty"):
        Recording(tmp_path / "empty")
    (tmp_path / "text").write_text("hello, this is none")
    with raises(RecordingError, file="text"):
        Recording(tmp_path / "text")


def content(path) -> list[object]:
    """All that a recording holds."""
    with Recording(path) as found:
        columns = [found[name].numpy().tobytes() for name in (*found.names, "step")]
        steps = [
            (s.call, [(c.slot, c.values.tobytes()) for c in s.changes])
            for s in found.steps()
        ]
        slots = [
            {name: x.numpy().tobytes() for name, x in found.snapshot(k).slots.items()}
            for k in found.snapshot_steps
        ]
        return [found.header, columns, steps, slots, found.is_whole]


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    from tests.record.conftest import scene

    from simstate import Simulation

    path = tmp_path_factory.mktemp("small") / "small.simrec"
    sim = Simulation(scene(), 3, seed=2)
    most, recorder.MOST_SAMPLES = recorder.MOST_SAMPLES, 3
    try:
        recorded(sim, path, 8, snapshot_every=0.02)
    finally:
        recorder.MOST_SAMPLES = most
    return path


def test_bytes_that_were_altered_are_refused_or_do_not_matter(small_file, tmp_path):
    whole = small_file.read_bytes()
    wanted, random = content(small_file), np.random.default_rng(0)
    copy = tmp_path / "altered.simrec"
    refused = 0
    for k in range(150 * SOAK):
        first = len(whole) - 3000 if k % 3 else 0  # also where attachments are small
        at = int(random.integers(first, len(whole)))
        bit = 1 << int(random.integers(8))
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        try:
            assert content(copy) == wanted, f"byte {at}, bit {bit}"
        except SimStateError:
            refused += 1
    assert refused > 20


def test_a_file_that_was_cut_holds_whole_blocks(small_file, tmp_path):
    whole, wanted = small_file.read_bytes(), Recording(small_file)
    copy, random = tmp_path / "cut.simrec", np.random.default_rng(1)
    opened = 0
    for length in random.integers(1, len(whole), 60 * SOAK):
        copy.write_bytes(whole[:length])
        try:
            found = Recording(copy)
        except RecordingError:
            continue
        opened += 1
        count = len(found)
        assert torch.equal(found["qpos"], wanted["qpos"][:count])
        assert len(list(found.steps())) == found.num_steps
    assert opened > 3


def test_a_file_that_was_cut_in_its_model_is_not_called_altered(small_file, tmp_path):
    whole, copy = small_file.read_bytes(), tmp_path / "cut.simrec"
    copy.write_bytes(whole[: whole.index(b"model") + 200])
    with raises(RecordingError, name=str(copy)) as caught, Recording(copy) as found:
        found.model()
    assert "was cut off" in str(caught.value)


def test_a_complete_file_without_its_model_is_called_altered(small_file, tmp_path):
    """One that was cut off right before the model is not."""
    whole, copy = small_file.read_bytes(), tmp_path / "other.simrec"
    at, starts = 8, []
    while at + 9 <= len(whole) - 8:
        starts.append(at)
        at += 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
    model = next(
        k for k, at in enumerate(starts) if b"model.mjb" in whole[at : at + 50]
    )
    for content, word in (
        (whole[: starts[model]] + whole[starts[model + 1] :], "altered"),
        (whole[: starts[model]], "cut off"),
    ):
        copy.write_bytes(content)
        with raises(RecordingError, name=str(copy)) as caught, Recording(copy) as found:
            found.model()
        assert f"was {word}" in str(caught.value)


def test_a_file_cut_at_the_end_of_a_block_holds_that_block(small_file, tmp_path):
    """One byte less, and the block is lost."""
    whole, wanted = small_file.read_bytes(), Recording(small_file)
    copy, at, ends = tmp_path / "cut.simrec", 8, []
    while at + 9 <= len(whole) - 8:
        end = at + 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
        if whole[at] == 9 and b"\x05\x00\x00\x00block" in whole[at : at + 40]:
            ends.append(end)
        at = end
    assert len(ends) > 2
    counts = []
    for end in ends[1:]:
        copy.write_bytes(whole[: end - 1])
        short = len(Recording(copy))
        copy.write_bytes(whole[:end])
        counts.append(len(Recording(copy)))
        assert short < counts[-1]
    assert counts[-1] == len(wanted)


def test_an_array_unpacks_to_no_more_than_it_should():
    large = packed(np.zeros(1 << 20))
    assert len(large) < 2000
    with raises(RecordingError, name="size"):
        unpacked(large, "float64", [10])
    with raises(RecordingError, name="size"):
        unpacked(large, "float64", [1 << 40])
    with raises(RecordingError, name="dtype"):
        unpacked(large, "object", [10])
    for few in (np.array([7]), np.array([True, False]), np.zeros(0)):
        assert unpacked(packed(few), few.dtype.name, few.shape).flags.writeable
    back = unpacked(packed(np.arange(6.0).reshape(2, 3)), "float64", [2, 3])
    np.testing.assert_array_equal(back, [[0, 1, 2], [3, 4, 5]])


def kill(tmp_path, times: int) -> None:
    """Let a process record, kill it, and look at the file; so many times."""
    script = Path(__file__).parent / "killed.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(times)],
        capture_output=True, text=True, timeout=300 + 30 * times,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("*.simrec"))
    assert len(files) == times
    for file in files:
        with Recording(file) as found:
            assert not found.is_whole
            assert len(found) > 0
            proof = replay(found)
        assert proof.is_same, proof
        assert proof.samples == len(found)


def test_a_killed_process_leaves_whole_blocks(tmp_path):
    kill(tmp_path, 3)


@pytest.mark.soak
def test_a_hundred_killed_processes_leave_whole_blocks(tmp_path):
    kill(tmp_path, 100)


def test_names_that_differ_only_by_what_is_not_shown_are_refused(make_sim, tmp_path):
    """Shown alike, one of them would take the place of the other."""
    with make_sim().record(tmp_path / "a.simrec", fields=["qpos", "qvel"]):
        pass
    header = Recording(tmp_path / "a.simrec").header
    columns = header["columns"]
    columns["a\x1b[2J"] = columns.pop("qpos")
    told = read_header(json.dumps(header).encode(), "a file")
    assert "a\N{REPLACEMENT CHARACTER}[2J" in told["columns"]
    columns["a\x07[2J"] = columns.pop("qvel")
    with raises(RecordingError, name="a file"):
        read_header(json.dumps(header).encode(), "a file")


def test_memory_and_file_take_the_same_names(tmp_path):
    """Of a single entity, quantities are found without its name."""
    sim = Simulation(SceneCfg(entities={"cart": EntityCfg(model="cartpole")}), 2)
    names = ["joint_pos", "cart.joint_vel", "qvel"]
    history = sim.record(quantities=names)
    with sim.record(tmp_path / "run.simrec", quantities=names):
        sim.data.qvel[:] = torch.tensor([[0.3, -0.2], [0.1, 0.4]])
        for _ in range(3):
            sim.step()
    with Recording(tmp_path / "run.simrec") as recording:
        for name in names:
            assert torch.equal(recording[name][-3:], history[name][-3:])
