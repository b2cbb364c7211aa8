"""Files of others that are damaged: each is read, or refused with its name."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import tracemalloc
import zipfile
import zlib
from fractions import Fraction
from math import factorial, sqrt
from pathlib import Path

import h5py
import numpy as np
import pytest
from tests.inside import replace_attach
from tests.raised import raises
from tests.record.conftest import drive, scene
from tests.soak import SOAK

from simstate import EntityCfg, SceneCfg, SimStateError, Simulation, SnapshotError
from simstate.data.datasets import read_hdf5
from simstate.data.replay import replay
from simstate.env.motion_files import read_motion
from simstate.record import Recording, header, recorder
from simstate.space import read_gfc
from simstate.space.coefficients import SHIPPED
from simstate.state import Snapshot
from simstate.train.checkpoint import read_checkpoint

JOINTS = ("hip", "knee")


def altered(whole: bytes, seed: int) -> bytes:
    """Bytes with flipped bits, a cut, a run of zeros or of noise, or other text."""
    random = np.random.default_rng(seed)
    data = bytearray(whole)
    at = int(random.integers(len(data)))
    kind = seed % 5
    if kind == 0:
        for k in random.integers(0, len(data), int(random.integers(1, 9))):
            data[k] ^= 1 << int(random.integers(8))
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif kind == 3:
        data[at : at + 16] = random.bytes(len(data[at : at + 16]))
    else:
        data[at:at] = random.choice([b"nan", b"-1", b"\xff\xfe", b"1e999", b"\0\0\0\0"])
    return bytes(data)


def refusals(whole: bytes, path: Path, read, count: int) -> int:
    """How many of the altered files were refused; all of them by their name."""
    refused = 0
    for seed in range(count * SOAK):
        path.write_bytes(altered(whole, seed))
        try:
            read(path)
        except Exception as error:
            is_named = isinstance(error, SimStateError) and path.name in str(error)
            if not is_named:
                raise AssertionError(f"seed {seed}") from error
            refused += 1
    return refused


SECONDS = 8
"""Time after which a child process that reads a file is ended; of CPU time, one."""


def in_child(read):
    """Return a reader that reads in a child process, of bounded time and memory.

    HDF5's library loops forever in some altered files, without a way to interrupt it,
    and may allocate as it does.
    """

    def reads(path: Path) -> None:
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
            if (statm := Path("/proc/self/statm")).is_file():
                pages = int(statm.read_text().split()[0])
                most = pages * resource.getpagesize() + (1 << 30)
                resource.setrlimit(resource.RLIMIT_AS, (most, most))
            status = 2
            try:
                read(path)
                status = 0
            except SimStateError as error:
                status = 1 if path.name in str(error) else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU)
        elif os.waitstatus_to_exitcode(status) == 1:
            raise SimStateError(path.name)
        else:
            assert status == 0, "it raised an error that does not name the file"

    return reads


def motion(path: Path, **other: np.ndarray) -> Path:
    random = np.random.default_rng(3)
    quat = random.normal(size=(6, 3, 4))
    arrays = {
        "fps": np.array([50.0]),
        "joint_pos": random.normal(size=(6, 2)),
        "joint_vel": random.normal(size=(6, 2)),
        "body_pos_w": random.normal(size=(6, 3, 3)),
        "body_quat_w": quat / np.linalg.norm(quat, axis=-1, keepdims=True),
    }
    np.savez(path, **(arrays | other))
    return path


def demonstrations(path: Path) -> Path:
    random = np.random.default_rng(4)
    with h5py.File(path, "w") as file:
        file.attrs["format_version"] = 1
        for k in range(2):
            group = file.create_group(f"data/demo_{k}")
            group.attrs["num_samples"] = 5 + k
            made = group.create_dataset("actions", data=random.normal(size=(5 + k, 3)))
            made.attrs["names"] = json.dumps(["a", "b", "c"])
            poses = random.normal(size=(5 + k, 7))
            group.create_dataset("states/articulation/robot/root_pose", data=poses)
            group.create_dataset("obs/policy", data=poses, compression="gzip")
    return path


def test_altered_motions_are_refused_by_name(tmp_path):
    whole = motion(tmp_path / "whole.npz").read_bytes()
    read_motion(tmp_path / "whole.npz", JOINTS)
    found = refusals(
        whole, tmp_path / "altered.npz", lambda path: read_motion(path, JOINTS), 240
    )
    assert found > 150


def test_altered_lines_of_motions_are_refused_by_name(tmp_path):
    rows = np.random.default_rng(5).normal(size=(20, 9))
    rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
    np.savetxt(tmp_path / "whole.csv", rows, delimiter=",")
    whole = (tmp_path / "whole.csv").read_bytes()
    found = refusals(
        whole, tmp_path / "altered.csv", lambda path: read_motion(path, JOINTS, 50), 150
    )
    assert found > 60


def test_altered_demonstrations_are_refused_by_name(tmp_path):
    whole = demonstrations(tmp_path / "whole.hdf5").read_bytes()
    assert len(read_hdf5(tmp_path / "whole.hdf5")) == 2
    read = in_child(read_hdf5)
    assert refusals(whole, tmp_path / "altered.hdf5", read, 100) > 15


def test_arrays_of_other_files_are_refused(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(80))
    demonstrations(tmp_path / "other.hdf5")
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        group = file.create_group("data/demo_0")
        group.create_dataset(
            "actions", (10,), np.float64, external=[(str(secret), 0, 80)]
        )
    with h5py.File(tmp_path / "b.hdf5", "w") as file:
        layout = h5py.VirtualLayout((5, 3), np.float64)
        source = str(tmp_path / "other.hdf5")
        layout[:] = h5py.VirtualSource(source, "data/demo_0/actions", (5, 3))
        file.create_group("data/demo_0").create_virtual_dataset("actions", layout)
    with h5py.File(tmp_path / "c.hdf5", "w") as file:
        file["data/demo_0/actions"] = np.zeros((2, 3))
        file["data/demo_1"] = h5py.ExternalLink(source, "data/demo_0")
    with h5py.File(tmp_path / "e.hdf5", "w") as file:
        file["data/demo_0/actions"] = np.zeros((2, 3))
        file["elsewhere"] = h5py.ExternalLink(source, "data/demo_0")
        file["data/demo_1"] = h5py.SoftLink("/elsewhere")
    with h5py.File(tmp_path / "d.hdf5", "w") as file:  # 8 TiB, of which none is there
        group = file.create_group("data/demo_0")
        group.create_dataset("actions", (1 << 40,), np.float64, chunks=(1 << 20,))
    for name in "abcde":
        with raises(SimStateError, file=f"{name}.hdf5"):
            read_hdf5(tmp_path / f"{name}.hdf5")


def test_altered_gravity_fields_are_refused_by_name(tmp_path):
    whole = SHIPPED.read_bytes()
    assert refusals(whole, tmp_path / "altered.gfc", read_gfc, 150) > 20


def test_altered_models_are_refused_by_name(tmp_path):
    from tests.record.conftest import ARM

    def read(path):
        arm = EntityCfg(model=path)
        Simulation(SceneCfg(entities={"arm": arm}, ground=False, timestep=None))

    found = refusals(ARM.replace("KP", "3").encode(), tmp_path / "a.xml", read, 150)
    assert found > 60


def test_a_name_that_is_not_utf_8(tmp_path):
    from tests.record.conftest import ARM

    text = ARM.replace("KP", "3").replace("elbow", "coud\xe9")
    (tmp_path / "a.xml").write_bytes(text.encode("latin-1"))
    with raises(SimStateError, file="a.xml"):
        Simulation(SceneCfg(entities={"arm": EntityCfg(model=tmp_path / "a.xml")}))


# Recordings have checksums: what is wrong in them was written so.


def recorded(path: Path, monkeypatch=None, **changes) -> Path:
    """A recording whose header, or the names in it, are others than they would be."""
    make = header.header_bytes

    def changed(*args):
        told = json.loads(make(*args))
        told.update({k: x for k, x in changes.items() if not callable(x)})
        for change in changes.values():
            if callable(change):
                change(told)
        return json.dumps(told).encode()

    if monkeypatch is not None:
        monkeypatch.setattr(recorder, "header_bytes", changed)
    sim = Simulation(scene(), 3, seed=2)
    with sim.record(path, quantities=["arm.joint_pos"], snapshot_every=0.01):
        import torch

        drive(sim, 6, torch.Generator().manual_seed(2))
    return path


NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("place", ["header", "block", "end", "steps"])
def test_nested_texts_of_a_recording(tmp_path, monkeypatch, place):
    path = tmp_path / "a.simrec"
    if place == "header":
        monkeypatch.setattr(recorder, "header_bytes", lambda *_: NESTED)
    elif place == "steps":
        dumps = json.dumps
        monkeypatch.setattr(
            "simstate.record.changes.json.dumps",
            lambda x, **k: NESTED.decode() if "arrays" in x else dumps(x, **k),
        )
    else:

        def nested(attach, name, data):
            attach(name, NESTED if name == place else data)

        replace_attach(monkeypatch, nested)
    recorded(path)
    with raises(SimStateError, file="a.simrec"):
        replay(path)


@pytest.mark.parametrize(
    "changes",
    [{"worlds": [0, 1, 5]}, {"worlds": [0, -1, 2]}, {"worlds": [1, 1, 2]},
     {"worlds": ["a"]}, {"worlds": [True]}, {"worlds": {}}, {"kind": "x"},
     {"kind": None}, {"columns": []}, {"simulation": 3},
     {"count": lambda told: told["simulation"].update(num_envs=-1)},
     {"count": lambda told: told["simulation"].update(num_envs="3")},
     {"unit": lambda told: told["columns"]["arm.joint_pos"].update(unit=3)},
     {"names": lambda told: told["columns"]["arm.joint_pos"].update(names=3)},
     {"shape": lambda told: told["columns"]["arm.joint_pos"].update(shape=[2, -1])}],
)  # fmt: skip
def test_headers_of_recordings_that_make_no_sense(tmp_path, monkeypatch, changes):
    path = recorded(tmp_path / "a.simrec", monkeypatch, **changes)
    with raises(SimStateError, file="a.simrec"):
        replay(path)


@pytest.mark.parametrize(
    ("name", "given"),
    [("model.mjb", None), ("snapshot/0", None), ("snapshot/2", "snapshot/02"),
     ("snapshot/2", "snapshot/x")],
)  # fmt: skip
def test_attachments_that_are_missing_or_misnamed(tmp_path, monkeypatch, name, given):
    def changed(attach, other, data):
        if other != name:
            attach(other, data)
        elif given is not None:
            attach(given, data)

    replace_attach(monkeypatch, changed)
    path = recorded(tmp_path / "a.simrec")
    with raises(SimStateError, file="a.simrec") as caught:
        replay(path)
    assert (given or name) in str(caught.value)


def test_altered_recordings_are_refused_by_name(tmp_path):
    whole = recorded(tmp_path / "whole.simrec").read_bytes()

    def read(path):
        with Recording(path) as found:
            for name in found.names:
                found[name]
            list(found.steps())
            for step in found.snapshot_steps:
                found.snapshot(step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simstate.record.recording_file.warn", lambda text: None)
        found = refusals(whole, tmp_path / "altered.simrec", read, 200)
    assert found > 60


# Gravity fields and motions whose values are wrong.


@pytest.mark.parametrize(
    "line",
    ["gfc 2 -1 3.0 4.0", "gfc -1 0 3.0 4.0", "gfc 2 3 1.0 1.0", "gfc 2 0 nan 0.0",
     "gfc 2 0 1.0 inf", "gfc 2 0 1d999 0.0", "gfc 2 0 1.0", "gfc 2.5 0 1.0 1.0"],
)  # fmt: skip
def test_lines_of_gravity_fields(tmp_path, line):
    path = tmp_path / "a.gfc"
    path.write_text(SHIPPED.read_text() + line + "\n")
    with raises(SimStateError, file="a.gfc"):
        read_gfc(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_degree", "30000"), ("max_degree", "-1"), ("max_degree", "x"),
     ("max_degree", "9" * 30), ("radius", "nan"), ("radius", "-1"),
     ("earth_gravity_constant", "inf"), ("earth_gravity_constant", "x")],
)  # fmt: skip
def test_heads_of_gravity_fields(tmp_path, key, value):
    path = tmp_path / "a.gfc"
    path.write_text(re.sub(rf"(?m)^{key}\s.*$", f"{key} {value}", SHIPPED.read_text()))
    tracemalloc.start()
    with raises(SimStateError, name=key):
        read_gfc(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def unnormalised(path: Path, degree: int, *lines: str) -> Path:
    head = ("earth_gravity_constant 3.986e14", "radius 6378000")
    norm = (f"max_degree {degree}", "norm unnormalized", "end_of_head")
    path.write_text("\n".join((*head, *norm, *lines)) + "\n")
    return path


def test_unnormalised_gravity_fields_of_a_high_degree(tmp_path):
    lines = ("gfc 2 0 -1.0826e-3 0", "gfc 100 100 3e-190 -2e-190")
    read = read_gfc(unnormalised(tmp_path / "a.gfc", 400, *lines))
    assert read.c.isfinite().all()
    assert read.s.isfinite().all()
    assert float(read.c[2, 0]) == pytest.approx(-1.0826e-3 / 5**0.5, rel=1e-12)
    squared = Fraction(2 * 201, factorial(200))  # N², exactly
    wanted = sqrt(Fraction(9, 10**380) / squared)
    assert float(read.c[100, 100]) == pytest.approx(wanted, rel=1e-9)
    path = unnormalised(tmp_path / "b.gfc", 400, "gfc 400 399 1.0 0.0")
    with raises(SimStateError, name="norm"):
        read_gfc(path)


@pytest.mark.parametrize("name", ["joint_pos", "joint_vel", "body_pos_w"])
@pytest.mark.parametrize("kind", ["nan", "inf", "complex", "text", "bool", "empty"])
def test_values_of_motions(tmp_path, name, kind):
    with np.load(motion(tmp_path / "whole.npz")) as file:
        values = file[name].copy()
    wrong = {
        "complex": values + 0j, "text": values.astype("U8"), "bool": values > 0,
        "empty": values[:0],
    }.get(kind)  # fmt: skip
    if wrong is None:
        wrong = values
        wrong[4, 1] = float(kind)
    path = motion(tmp_path / "a.npz", **{name: wrong})
    with pytest.raises(SimStateError) as caught:
        read_motion(path, JOINTS)
    assert "a.npz" in str(caught.value)


# Archives.


def bomb(path: Path, megabytes: int) -> None:
    """A compressed member whose size the directory states as that of its bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("header.npy", "w") as file:
            for _ in range(megabytes):
                file.write(bytes(1 << 20))
        (member,) = archive.infolist()
        member.file_size = member.compress_size


def stored_bomb(path: Path) -> None:
    """The directory states that a member is stored, its head that it is deflated."""
    data = zlib.compress(bytes(1 << 22), 9)[2:-4]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", data)
        offset = archive.infolist()[0].header_offset
    whole = bytearray(path.read_bytes())
    whole[offset + 8 : offset + 10] = (8).to_bytes(2, "little")
    path.write_bytes(whole)


@pytest.mark.parametrize("make", [lambda path: bomb(path, 12), stored_bomb])
@pytest.mark.parametrize(
    "read",
    [Snapshot.load, read_checkpoint, lambda path: read_motion(path, JOINTS),
     lambda path: Snapshot.from_bytes(path.read_bytes(), path)],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["npz", "pt"])
def test_an_archive_that_inflates_is_not_unpacked(tmp_path, read, make, ending):
    path = tmp_path / f"a.{ending}"
    make(path)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    with raises((SnapshotError, SimStateError), file=path.name):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


# Texts of files, as they are shown.

ESCAPES = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202e \b\r"
CONTROLS = set("\x1b\x07\x9b\u202e\b\r")


def test_no_escape_sequence_of_a_recording_is_printed(tmp_path, monkeypatch, capsys):
    from simstate.cli import main

    def change(told):
        told["columns"][f"x{ESCAPES}"] = told["columns"].pop("arm.joint_pos")
        column = told["columns"][f"x{ESCAPES}"]
        column["unit"] = column["axes"] = column["point"] = ESCAPES
        column["names"] = [f"hip{ESCAPES}", f"knee{ESCAPES}"]
        told["simulation"]["entities"] = [ESCAPES]
        told["versions"] = {ESCAPES: ESCAPES}

    path = recorded(tmp_path / "a.simrec", monkeypatch, change=change)
    for more in ([], ["--json"]):
        assert main(["info", str(path), *more]) == 0
        shown = capsys.readouterr()
        assert "hip" in shown.out
        assert not CONTROLS & {*shown.out, *shown.err}
    with Recording(path) as found:
        (name,) = found.names
        assert found[name].shape[2:] == (2,)
        with pytest.raises(SimStateError) as told:
            found["nothing"]
        assert not CONTROLS & set(str(told.value))


def test_no_escape_sequence_of_any_text_is_printed(capsys):
    from rich.table import Table

    from simstate.cli.answer import Answer, present
    from simstate.cli.console import report_error

    table = Table()
    table.add_column(ESCAPES)
    table.add_row(f"value {ESCAPES}")
    report_error(SimStateError(f"bad {ESCAPES}"))
    present(Answer({"a": ESCAPES}, [f"line {ESCAPES}\nnext\tone", table]), False)
    present(Answer({ESCAPES: [ESCAPES]}, []), True)
    shown = capsys.readouterr()
    assert "line" in shown.out
    assert "next" in shown.out
    assert not CONTROLS & {*shown.out, *shown.err}
