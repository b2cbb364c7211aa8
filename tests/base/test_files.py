"""Files: whole or as before, of the mode that was asked for, and never a trap."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from tests.inside import array_from, part_prefix
from tests.raised import raises
from tests.soak import SOAK

from simstate import (
    EntityCfg,
    FileError,
    InvalidInputError,
    SceneCfg,
    SimStateError,
    Simulation,
    SnapshotError,
)
from simstate.base.archive import read_archive, read_arrays, write_archive
from simstate.base.files import (
    check_text,
    filling,
    replacing,
    write_atomically,
)
from simstate.state import Snapshot
from simstate.train.checkpoint import read_checkpoint, write_checkpoint

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "ours", b"1")
        (tmp_path / "theirs").write_bytes(b"1")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("ours", "theirs")]
    assert modes == [0o666 & ~mask] * 2


def test_an_old_file_keeps_its_mode(tmp_path):
    path = tmp_path / "it"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False], ids=["file", "nothing yet"])
def test_a_link_stays_a_link(tmp_path, there):
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "real", tmp_path / "link"
    if there:
        real.write_bytes(b"old")
    link.symlink_to("far/real")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert {p.name for p in tmp_path.rglob("*")} == {"far", "real", "link"}


def test_what_killed_processes_left_is_removed(tmp_path):
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from simstate.base import files\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomically(Path(sys.argv[1]), b'half')\n"
    )
    path, other = tmp_path / "it.npz", tmp_path / "other.npz"
    path.write_bytes(b"old")
    for target in (path, path, other):
        run = subprocess.run([sys.executable, "-c", script, target], check=False)
        assert run.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 3  # the second has removed the first's
    mine = tmp_path / f".it.npz.{os.getpid()}-0.simstate-part"
    mine.write_bytes(b"a save of a process that lives")
    write_atomically(path, b"new")
    left = {p.name for p in tmp_path.iterdir()} - {mine.name}
    assert len(left) == 2  # the file, and what another file's save left
    write_atomically(other, b"new")
    assert {p.name for p in tmp_path.iterdir()} == {"it.npz", "other.npz", mine.name}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_full_or_read_only_disk_is_one_clear_error(
    tmp_path, monkeypatch, call, number
):
    path = tmp_path / "it.npz"
    path.write_bytes(b"old")

    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with raises(FileError, name=str(path)) as caught:
            write_atomically(path, b"new")
    assert os.strerror(number) in str(caught.value)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["it.npz"]


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_is_filled_whole_or_not_at_all(tmp_path, there):
    target = tmp_path / "deep" / "set"
    if there:
        target.mkdir(parents=True)

    def fill(text: str, error: OSError | None = None) -> None:
        with filling(target) as part:
            (part / "data").mkdir()
            (part / "data" / "file").write_text(text)
            if error is not None:
                raise error

    full = OSError(errno.ENOSPC, "a paragraph\nof a library's own")
    with raises(FileError, file="set"):
        fill("half", full)
    assert target.exists() == there
    assert [p for p in tmp_path.rglob("*") if p.is_file() or "part" in p.name] == []
    fill("whole")
    assert (target / "data" / "file").read_text() == "whole"
    assert [p.name for p in target.iterdir()] == ["data"]
    with raises(InvalidInputError, file="set"):
        fill("again")
    with raises(InvalidInputError, file="file"):
        filling(target / "data" / "file").__enter__()


@pytest.mark.parametrize("there", [False, True])
def test_what_a_killed_process_left_of_a_folder_is_removed(tmp_path, there):
    target = tmp_path / "set"
    if there:
        target.mkdir()
    script = (
        "import os, sys, pathlib; from simstate.base.files import filling\n"
        "with filling(pathlib.Path(sys.argv[1])) as part:\n"
        "    (part / 'a').write_text('half'); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    assert any(p.name == "a" for p in tmp_path.rglob("*"))
    with filling(target) as part:
        (part / "b").write_text("whole")
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert files == [target / "b"]


def test_a_folder_that_is_not_there(tmp_path):
    with raises(FileError, file="it"):
        write_atomically(tmp_path / "nowhere" / "it", b"1")


def test_a_long_name(tmp_path):
    path = tmp_path / ("n" * 250)
    write_atomically(path, b"1")
    assert [p.name for p in tmp_path.iterdir()] == ["n" * 250]


# What is read.


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.npy", npy(np.zeros(3_000_000)))
    unpacked = []
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *a: unpacked.append(a))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *a: unpacked.append(a))
    for load in (Snapshot.load, read_checkpoint):
        with raises(SnapshotError, file="bomb.npz"):
            load(path)
    assert unpacked == []


class Pipe(io.BytesIO):
    """A file that cannot be sought: sizes of members follow their data."""

    def seek(self, *where):
        raise io.UnsupportedOperation("seek")

    def tell(self):
        raise io.UnsupportedOperation("tell")


def test_a_compressed_member_whose_sizes_follow_is_refused(tmp_path):
    values = np.random.default_rng(3).normal(
        size=50
    )  # which compression does not shorten
    for kind, name in ((zipfile.ZIP_STORED, "a"), (zipfile.ZIP_DEFLATED, "bomb")):
        path, pipe = tmp_path / f"{name}.npz", Pipe()
        with zipfile.ZipFile(pipe, "w", kind) as archive:
            archive.writestr("state.npy", npy(values))
        path.write_bytes(pipe.getvalue())
    assert np.array_equal(read_arrays(tmp_path / "a.npz")["state"], values)
    with raises(SimStateError, file="bomb.npz"):
        read_arrays(path)


def test_a_file_that_claims_the_same_bytes_often_is_refused(tmp_path):
    """Entries of the archive that overlap."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1000)))
        (info,) = archive.filelist
        for k in range(50):
            twin = zipfile.ZipInfo(f"b{k}.npy")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(twin, name, getattr(info, name))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
    with raises(SnapshotError, file="bomb.npz"):
        read_archive(path, ("x",))


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path):
    path = tmp_path / "it.npz"
    data = npy(np.zeros(4)).replace(b"(4,), }      ", b"(4000000000,)}")
    assert b"4000000000" in data
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("state.npy", data[: len(npy(np.zeros(4)))])
    with raises(SnapshotError, file="it.npz"):
        read_archive(path, ("x",))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_arrays_of_every_version_that_has_no_names(version):
    """NumPy writes the second where a header is long; the third is for names."""
    values, buffer = np.arange(6.0).reshape(2, 3).T, io.BytesIO()
    np.lib.format.write_array(buffer, values, version=version)
    if version == (3, 0):
        with pytest.raises(KeyError):
            array_from(buffer.getvalue())
    else:
        assert np.array_equal(array_from(buffer.getvalue()), values)


@pytest.mark.parametrize("header", [[1, 2], "text", 7, None, {"format": ["x"]}, {}])
def test_a_header_of_another_kind_is_refused(tmp_path, header):
    path = tmp_path / "it.npz"
    write_archive(path, header, {"a": torch.ones(2)})
    with raises(SnapshotError, file="it.npz"):
        read_archive(path, ("x",))


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    sim = Simulation(SceneCfg(entities={"c": EntityCfg(model="cube")}), 2)
    sim.data.qvel[:, 0] = torch.tensor([0.5, 0.7], dtype=sim.dtype)
    sim.step(3)
    return sim.snapshot()


@pytest.mark.parametrize("lost", ["model", "mujoco", "slots", "engine"])
def test_a_snapshot_without_a_part_of_its_header_is_refused(snapshot, tmp_path, lost):
    header = {key: value for key, value in snapshot.header.items() if key != lost}
    write_archive(tmp_path / "it.npz", header, snapshot.slots)
    with raises(SnapshotError, file="it.npz") as caught:
        Snapshot.load(tmp_path / "it.npz")
    assert lost in str(caught.value)


def test_a_snapshot_whose_slots_disagree_is_refused(snapshot, tmp_path):
    slots = {**snapshot.slots, "qvel": snapshot.slots["qvel"][:1]}
    write_archive(tmp_path / "it.npz", snapshot.header, slots)
    with raises(SnapshotError, file="it.npz"):
        Snapshot.load(tmp_path / "it.npz")


def test_random_alterations_are_refused_or_harmless(snapshot, tmp_path):
    """Of snapshots and of checkpoints: bytes changed, cut out, put in, exchanged."""
    weights = {"a": torch.randn(40, 3), "b": [torch.arange(5), {"lr": 1e-3}]}
    good = {"snap": tmp_path / "snap.npz", "check": tmp_path / "check.npz"}
    snapshot.save(good["snap"])
    write_checkpoint(good["check"], weights)
    rng = np.random.default_rng(5)
    path = tmp_path / "altered.npz"
    refused = 0
    for k in range(300 * SOAK):
        kind = "snap" if k % 2 else "check"
        path.write_bytes(altered(good[kind].read_bytes(), rng))
        try:
            read = Snapshot.load(path).slots if k % 2 else read_checkpoint(path)
        except SimStateError:
            refused += 1
            continue
        if k % 2:
            for name, value in snapshot.slots.items():
                assert torch.equal(read[name], value), name
        else:
            assert torch.equal(read["a"], weights["a"])
            assert torch.equal(read["b"][0], weights["b"][0])
            assert read["b"][1] == weights["b"][1]
    assert refused > 150 * SOAK


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_in_a_save_is_ctrl_c(snapshot, tmp_path, monkeypatch):
    """The zip archive that is then half written complains of something else."""
    path = tmp_path / "it.npz"
    snapshot.save(path)
    before = path.read_bytes()

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile._ZipWriteFile, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        snapshot.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_as_a_file_is_begun_leaves_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "it.txt"
    path.write_bytes(b"old")
    really = os.open

    def interrupted(*args):
        os.close(really(*args))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("letter", ["a", "ß", "机", "🤖"])
def test_a_name_may_be_as_long_as_the_system_allows(tmp_path, letter):
    """255 bytes, of which a letter takes one to four."""
    path = tmp_path / (letter * (255 // len(letter.encode())))
    for data in (b"old", b"new"):
        write_atomically(path, data)
        assert path.read_bytes() == data
    litter = tmp_path / f"{part_prefix(path)}{2**22 + 1}-0.simstate-part"
    litter.write_bytes(b"killed")
    write_atomically(path, b"newer")
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    """A device, a pipe or a folder would be gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "folder").mkdir()
    for path in (pipe, tmp_path / "folder"):
        with raises(FileError, name=str(path)):
            write_atomically(path, b"new")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "folder", pipe]


def test_a_text_has_no_zero_bytes(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1")
    check_text(path)
    path.write_bytes(b"x = \x001")
    with raises(InvalidInputError, file="a.py"):
        check_text(path)


def altered(data: bytes, rng: np.random.Generator) -> bytes:
    """The same with a random change of one kind."""
    i, j = sorted(int(x) for x in rng.integers(0, len(data), 2))
    kind = int(rng.integers(5))
    if kind == 0:
        return data[:i] + bytes([data[i] ^ int(rng.integers(1, 256))]) + data[i + 1 :]
    if kind == 1:
        return data[:i] + data[j:]
    if kind == 2:
        return data[:i] + rng.bytes(8) + data[i:]
    if kind == 3:
        return data[:i] + rng.bytes(16) + data[i + 16 :]
    return data[:i] + data[j : j + 32] + data[i + 32 :]


def test_an_error_of_another_file_within_the_block_stays_its_own(tmp_path):
    with (
        raises(FileError, name="elsewhere"),
        replacing(tmp_path / "kept"),
    ):
        raise FileError("Cannot write 'elsewhere'.", name="elsewhere")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_filled_wholly_or_not_at_all(tmp_path, monkeypatch):
    """An interruption while the second of two files is moved leaves none of them."""
    target = tmp_path / "set"
    target.mkdir()
    replace, calls = os.replace, []

    def interrupted(source, destination):
        calls.append(destination)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(source, destination)

    monkeypatch.setattr(os, "replace", interrupted)
    filled = filling(target)
    folder = filled.__enter__()
    (folder / "one").write_text("1")
    (folder / "two").write_text("2")
    with pytest.raises(KeyboardInterrupt):
        filled.__exit__(None, None, None)
    monkeypatch.undo()
    assert not list(target.iterdir())
    with filling(target) as folder:
        (folder / "one").write_text("1")
    assert [item.name for item in target.iterdir()] == ["one"]
