"""Files and requests that are refused: each case has one fault, and no other."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import torch
from mcap.reader import make_reader
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.data.datasets import hdf5, read_hdf5, write_foxglove, write_hdf5
from simstate.data.datasets.lerobot_films import Films
from simstate.data.logs import read_log
from simstate.data.replay import branch, collect_from, replay
from simstate.data.replay.recorded_worlds import function_of
from simstate.data.replay.recording_page import share_recording, thinned
from simstate.record import Recording, recorder


def scene(timestep: float = 0.01) -> SceneCfg:
    entities = {"cart": EntityCfg(model="cartpole")}
    return SceneCfg(entities=entities, ground=False, timestep=timestep)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Six samples, half a second apart, of two worlds that differ, in two blocks."""
    path = tmp_path_factory.mktemp("data") / "cart.simrec"
    sim = Simulation(scene(0.5), 2)
    sim.data.qvel[1] = 0.01
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "MOST_SAMPLES", 4)
        with sim.record(path, fields=["qpos"]):
            for _ in range(5):
                sim.step()
    with Recording(path) as found:
        assert [block.samples for block in found.blocks] == [4, 2]
    return path


def write_demonstration(file, name="data") -> None:
    file.create_group(f"{name}/demo_0").create_dataset("actions", data=np.ones((3, 2)))


def test_a_file_of_demonstrations_has_them_in_itself(tmp_path):
    with h5py.File(tmp_path / "whole.hdf5", "w") as file:
        write_demonstration(file)
    assert len(read_hdf5(tmp_path / "whole.hdf5")) == 1
    with h5py.File(tmp_path / "none.hdf5", "w") as file:
        write_demonstration(file, "other")
    with h5py.File(tmp_path / "array.hdf5", "w") as file:
        file["data"] = np.ones(3)
    with h5py.File(tmp_path / "soft.hdf5", "w") as file:
        write_demonstration(file, "other")
        file["data"] = h5py.SoftLink("/other")
    with h5py.File(tmp_path / "away.hdf5", "w") as file:
        file["data"] = h5py.ExternalLink("whole.hdf5", "/data")
    with h5py.File(tmp_path / "part.hdf5", "w") as file:
        write_demonstration(file)
        file["data/demo_1"] = h5py.ExternalLink("whole.hdf5", "/data/demo_0")
    for name in ("none", "array", "soft", "away", "part"):
        with pytest.raises(InvalidInputError):
            read_hdf5(tmp_path / f"{name}.hdf5")


def test_arrays_of_demonstrations_are_in_the_file_and_small(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "MAX_BYTES", 80)
    with h5py.File(tmp_path / "whole.hdf5", "w") as file:
        write_demonstration(file)
        file["data/demo_0/ten"] = np.arange(10.0)
    assert read_hdf5(tmp_path / "whole.hdf5")[0].arrays["ten"][9] == 9.0
    with h5py.File(tmp_path / "large.hdf5", "w") as file:
        write_demonstration(file)
        file["data/demo_0/eleven"] = np.arange(11.0)
    with h5py.File(tmp_path / "virtual.hdf5", "w") as file:
        write_demonstration(file)
        layout = h5py.VirtualLayout((10,), "f8")
        layout[:] = h5py.VirtualSource("whole.hdf5", "data/demo_0/ten", (10,))
        file.create_virtual_dataset("data/demo_0/ten", layout)
    (tmp_path / "bytes").write_bytes(bytes(80))
    with h5py.File(tmp_path / "external.hdf5", "w") as file:
        write_demonstration(file)
        outside = [(str(tmp_path / "bytes"), 0, 80)]
        file.create_dataset("data/demo_0/ten", (10,), "f8", external=outside)
    for name in ("large", "virtual", "external"):
        with raises(InvalidInputError, file=f"{name}.hdf5"):
            read_hdf5(tmp_path / f"{name}.hdf5")


def test_films_have_an_even_width_and_height(tmp_path):
    films = Films(tmp_path, "observation.images.eye", 10)
    for height, width in ((17, 34), (18, 33)):
        with raises(InvalidInputError, name="observation.images.eye"):
            films.add(np.zeros((2, height, width, 3), np.uint8))


@pytest.mark.parametrize(
    "text", ["", "t,q\n0,1\n", "t,\n0,1\n1,2\n"], ids=["empty", "one row", "no heading"]
)
def test_a_table_has_headings_and_two_rows(tmp_path, text):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InvalidInputError):
        read_log(tmp_path / "log.csv")


@pytest.mark.parametrize(
    ("heading", "given", "seconds"),
    [
        ("t", None, 1.0), ("t [ms]", None, 1e-3), ("time_us", None, 1e-6),
        ("stamp_ns", None, 1e-9), ("t [ms]", "s", 1.0), ("t", "µs", 1e-6),
        ("t_ms [s]", None, 1.0),
    ],
)  # fmt: skip
def test_units_of_time(tmp_path, heading, given, seconds):
    (tmp_path / "log.csv").write_text(f"{heading},q\n0,1\n2,2\n4,3\n")
    log = read_log(tmp_path / "log.csv", time_unit=given)
    np.testing.assert_allclose(log["q"].time, [0, 2 * seconds, 4 * seconds])
    assert bool(log.notes) == (heading == "t" and given is None)
    with raises(UnknownNameError, name="min"):
        read_log(tmp_path / "log.csv", time_unit="min")


def test_a_replay_takes_worlds_or_a_task(recorded):
    with raises(InvalidInputError, name="task"):
        replay(recorded, worlds=Simulation(scene(0.5), 2), task="Cartpole-Balance")


def test_arguments_of_replays_and_branches(recorded):
    for wrong, name in (
        (lambda: replay(recorded, tolerance="a"), "tolerance"),
        (lambda: replay(recorded, tolerance=-1e-9), "tolerance"),
        (lambda: replay(recorded, worlds=3), "worlds"),
        (lambda: branch(recorded, step=1.5), "step"),
        (lambda: branch(recorded, step=6), "step"),
        (lambda: branch(recorded, time=2.76), "time"),
        (lambda: branch(recorded, time=1.0, step=2), "time"),
        (lambda: collect_from([], "data"), "files"),
        (lambda: read_log(None), "path"),
        (lambda: read_log(recorded, columns="qpos"), "columns"),
        (lambda: Recording(3), "path"),
    ):
        with raises(InvalidInputError, name=name):
            wrong()
    assert float(branch(recorded, step=5).time[0]) == 2.5
    assert float(branch(recorded, time=2.74).time[0]) == 2.5
    assert float(branch(recorded, time=0.74).time[0]) == 0.5


def test_arguments_of_exports(recorded, tmp_path):
    target = tmp_path / "a.mcap"
    for options, name in (
        ({"worlds": []}, "worlds"),
        ({"worlds": 1}, "worlds"),
        ({"names": "qpos"}, "names"),
    ):
        with raises(InvalidInputError, name=name):
            write_foxglove(recorded, target, **options)
    assert write_foxglove(recorded, target, worlds=np.array([1]), names=["qpos"]) == 6
    target.write_bytes(b"")
    with raises(SimStateError, file="none.simrec"):
        write_foxglove(tmp_path / "none.simrec", target)
    with raises(SimStateError, file="none.simrec"):
        write_hdf5(tmp_path / "none.simrec", target)
    with raises(InvalidInputError, name="source"):
        write_hdf5([], target)


def test_samples_and_columns_of_a_recording(recorded, tmp_path):
    with Recording(recorded) as found:
        whole = torch.cat(
            [torch.as_tensor(found.read_block(one)["qpos"]) for one in found.blocks]
        )
        for first, last in ((0, 6), (2, 5), (5, 9), (3, 3), (6, None)):
            assert torch.equal(found.read("qpos", first, last), whole[first:last])
        for given, name in (
            ((1.5,), "first"), ((-1,), "first"), ((4, 3), "first"), ((0, 2.5), "last"),
        ):  # fmt: skip
            with raises(InvalidInputError, name=name):
                found.read("qpos", *given)
        for options, name in (({"names": "qpos"}, "names"), ({"worlds": 1}, "worlds")):
            with raises(InvalidInputError, name=name):
                found.plot(tmp_path / "a.png", **options)


def test_a_function_is_of_a_python_file_that_is_there(tmp_path):
    for name in ("a.py", "a.txt"):
        (tmp_path / name).write_text("def twice(x):\n    return 2 * x\n\nthree = 3\n")
    assert function_of(f"{tmp_path}/a.py:twice")(4) == 8
    for name in ("a.txt:twice", "b.py:twice", "a.py:three", "a.py:none", "a.py"):
        with pytest.raises(InvalidInputError):
            function_of(f"{tmp_path}/{name}")


def test_a_page_shows_each_world_once(recorded, tmp_path):
    with Recording(recorded) as found:
        for worlds in ([], [1, 1], 1):
            with raises(InvalidInputError, name="worlds"):
                share_recording(found, tmp_path / "a.html", worlds=worlds)
        with raises(InvalidInputError, worlds=[2]):
            share_recording(found, tmp_path / "a.html", worlds=[2])
        for fps in (0.0, -1.0):
            with raises(InvalidInputError, name="fps"):
                share_recording(found, tmp_path / "a.html", fps=fps)
        with raises(InvalidInputError, file="a.txt"):
            share_recording(found, tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_stamps_of_a_log_have_seconds_and_nanoseconds(recorded, tmp_path):
    write_foxglove(recorded, tmp_path / "a.mcap", worlds=[1])
    with open(tmp_path / "a.mcap", "rb") as file:
        found = [
            (m.log_time, json.loads(m.data)["timestamp"])
            for _, c, m in make_reader(file).iter_messages()
            if c.topic == "/world_1/qpos"
        ]
    start = found[0][0]
    assert [time - start for time, _ in found] == [k * 500_000_000 for k in range(6)]
    assert found[-1][0] > 2_000_000_000
    for time, stamp in found:
        assert (stamp["sec"], stamp["nsec"]) == divmod(time, 1_000_000_000)


def test_thinned_curves_keep_the_extremes():
    """Of each part of a curve; its times are those of its start and its middle."""
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(10, 2, generator=generator).numpy()
    found = thinned(values, 4, is_time=False)
    for part in range(3):
        rows = values[4 * part : 4 * part + 4]
        np.testing.assert_array_equal(found[2 * part], rows.min(0))
        np.testing.assert_array_equal(found[2 * part + 1], rows.max(0))
    assert len(found) == 6
    times = np.arange(10.0)[:, None]
    np.testing.assert_array_equal(
        thinned(times, 4, is_time=True)[:, 0], [0, 2, 4, 6, 8, 9]
    )
    np.testing.assert_array_equal(thinned(values, 1, is_time=False), values)
