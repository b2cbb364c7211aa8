"""The file of a recording: records that were altered, cut off, or of other programs."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import pytest
from tests.raised import raises

from simstate import FileError, RecordingError
from simstate.record import Recording, recorder
from simstate.record.container import BLOCK, MAGIC, ContainerReader

CHUNK, ATTACHMENT, NAME = 6, 9, "a.simrec"


def record(kind: int, data: bytes) -> bytes:
    """A record of MCAP: kind, length and content."""
    return bytes([kind]) + struct.pack("<Q", len(data)) + data


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def attachment(name: str, data: bytes) -> bytes:
    """An attachment by MCAP's specification, with its checksum."""
    content = struct.pack("<QQ", 7, 8) + text(name) + text("text/plain")
    content += struct.pack("<Q", len(data)) + data
    return record(ATTACHMENT, content + struct.pack("<I", zlib.crc32(content)))


def read(folder: Path, content: bytes) -> ContainerReader:
    path = folder / NAME
    path.write_bytes(content)
    return ContainerReader(path)


def test_attachments_are_found_by_name_and_in_order(tmp_path):
    parts = [attachment("x", b"one"), record(3, b"schema"), attachment("x", b"two")]
    parts += [
        record(CHUNK, b"chunk"),
        attachment(BLOCK, b"{}"),
        attachment(BLOCK, b"2"),
    ]
    found = read(tmp_path, MAGIC + b"".join(parts))
    assert list(found.attachments) == ["x"]
    assert found.attachment("x") == b"two"
    assert [found.attachment("x", k) for k in (0, 1)] == [b"one", b"two"]
    (first, about), (second, other) = found.blocks
    assert (about, other, second) == (b"{}", b"2", None)
    at = len(MAGIC) + sum(map(len, parts[:3])) + 9
    assert first is not None
    assert (first.kind, first.start, first.length) == (CHUNK, at, 5)
    with raises(RecordingError, file=NAME):
        found.attachment("y")
    found.close()


@pytest.mark.parametrize("left", [0, 1, 8, 9, 10, -10, -1])
def test_a_record_that_was_cut_off_is_left_out(tmp_path, left):
    whole = attachment("x", b"first")
    cut = attachment("y", b"second")[:left]
    assert list(read(tmp_path, MAGIC + whole + cut).attachments) == ["x"]


def test_a_file_that_ends_with_a_record_has_it(tmp_path):
    both = attachment("x", b"") + attachment("y", b"second")
    assert list(read(tmp_path, MAGIC + both).attachments) == ["x", "y"]
    empty = record(0x0F, b"")  # the shortest record: kind and length
    assert read(tmp_path, MAGIC + empty).attachments == {}


@pytest.mark.parametrize("kind", [0x00, 0x10, 0xFF])
def test_kinds_of_records_that_mcap_does_not_have(tmp_path, kind):
    with raises(RecordingError, file=NAME):
        read(tmp_path, MAGIC + record(kind, b"abc"))


def test_attachments_that_are_none(tmp_path):
    garbage = b"\xff" * 20
    summed = garbage + struct.pack("<I", zlib.crc32(garbage))
    good = attachment("x", b"one")
    for wrong in (
        record(ATTACHMENT, b""), record(ATTACHMENT, b"abc"),
        record(ATTACHMENT, b"\0\0\0\0"),  # the checksum of nothing, and nothing
        record(ATTACHMENT, summed), good[:-1] + bytes([good[-1] ^ 1]),
    ):  # fmt: skip
        with raises(RecordingError, file=NAME):
            read(tmp_path, MAGIC + wrong)
    with raises(RecordingError, file=NAME):
        read(tmp_path, b"\x89MCAP1\r\n" + good)


def test_a_reader_that_fails_closes_its_file(tmp_path):
    (tmp_path / NAME).write_bytes(MAGIC + record(0, b""))
    before = len(os.listdir("/dev/fd"))
    with raises(RecordingError, file=NAME) as caught:
        ContainerReader(tmp_path / NAME)
    assert len(os.listdir("/dev/fd")) == before
    del caught  # whose traceback has kept the reader


@pytest.fixture
def blocks(make_sim, tmp_path, monkeypatch) -> tuple[Path, list[int]]:
    """A recording and the positions of its chunks."""
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 2)
    sim, path = make_sim(2), tmp_path / NAME
    with sim.record(path, fields=["qpos"]):
        for _ in range(3):
            sim.step()
    found = ContainerReader(path)
    found.close()
    return path, [place.start for place, _ in found.blocks if place is not None]


def test_a_chunk_that_was_altered_is_refused_when_it_is_read(blocks):
    """MCAP: two times, size, checksum, name of the compression, data."""
    path, (_, start) = blocks
    whole = path.read_bytes()
    for at, value in (
        (16, b"\x01"), (24, b"\x00\x00\x00\x00"), (28, b"\xff\xff\xff\xff"),
        (28, b"\x02"), (48, b"\xaa"),
    ):  # fmt: skip
        place = start + at
        path.write_bytes(whole[:place] + value + whole[place + len(value) :])
        with Recording(path) as found:
            assert len(found.read("qpos", 0, 2)) == 2
            with raises(RecordingError, file=NAME):
                found.read("qpos", 2, 4)
            with raises(RecordingError, file=NAME):
                found.read_steps(found.blocks[1])


def without(path: Path, wanted: int, kinds: tuple[int, ...]) -> None:
    """Remove the chunk of a block, its description, or both."""
    whole = path.read_bytes()
    kept, at, block = bytearray(whole[:8]), 8, 0
    while at + 9 <= len(whole) - 8:
        end = at + 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
        is_about = whole[at] == ATTACHMENT and text(BLOCK) in whole[at : at + 40]
        if not (
            block == wanted and whole[at] in kinds and (whole[at] == 6 or is_about)
        ):
            kept += whole[at:end]
        block += is_about
        at = end
    path.write_bytes(kept + whole[at:])


@pytest.mark.parametrize("kinds", [(CHUNK,), (ATTACHMENT,), (CHUNK, ATTACHMENT)])
def test_blocks_after_one_that_is_missing_are_counted(
    make_sim, tmp_path, monkeypatch, kinds
):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 2)
    sim, path = make_sim(2), tmp_path / NAME
    with sim.record(path, fields=["qpos"]):
        for _ in range(9):
            sim.step()
    without(path, 1, kinds)
    with pytest.warns(RuntimeWarning, match="gap"):
        found = Recording(path)
    with found:
        assert "block 1, from step 1 on" in found.missing
        assert "3 after it" in found.missing  # of five
        assert (len(found.blocks), len(found), found.num_steps) == (1, 2, 1)
        assert not found.is_whole


@pytest.mark.parametrize("step", ["-1", "01", "+1", "1.0", "¹", "٣", "1" * 19, ""])
def test_snapshots_are_named_by_a_step(make_sim, tmp_path, step):
    sim, path = make_sim(2), tmp_path / NAME
    with sim.record(path, fields=["qpos"]):
        sim.step()
    content = path.read_bytes()
    with Recording(path) as found:
        assert found.snapshot_steps == [0]
    path.write_bytes(content[:8] + attachment(f"snapshot/{step}", b"") + content[8:])
    with raises(RecordingError, file=NAME):
        Recording(path)
    path.write_bytes(content[:8] + attachment("snapshot/1", b"") + content[8:])
    with Recording(path) as found:
        assert found.snapshot_steps == [0, 1]


def test_a_folder_is_no_recording(tmp_path):
    with raises((RecordingError, FileError), file=tmp_path.name):
        Recording(tmp_path)
