"""The file of a recording: MCAP, an open format for logs.

MCAP appends records and needs no pointer at the front, so that the file of a program
that was killed is complete up to its last record. Chunks have checksums and an index;
libraries in six languages and Foxglove read them. A block of a recording is a chunk,
followed by an attachment that describes it. Header, model and snapshots are attachments
with checksums.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from simstate.base.errors import RecordingError
from simstate.base.extras import library
from simstate.base.files import naming_errors

MAGIC = b"\x89MCAP0\r\n"
PROFILE = "simstate"
BLOCK = "block"
"""Name of the attachment that describes a block, after its chunk."""
SNAPSHOT = "snapshot/"
"""Prefix of the names of snapshots; the number of their step follows."""

_CHUNK, _ATTACHMENT = 0x06, 0x09
_KNOWN = range(0x01, 0x10)


@dataclass(frozen=True)
class RecordPlace:
    """Location of a record in a file, after its nine bytes of kind and length."""

    kind: int
    start: int
    length: int


class ContainerReader:
    """Finds the chunks and attachments of a file, and verifies their checksums.

    The index at the end is not used: a file that was cut off has none.
    """

    def __init__(self, path: Path) -> None:
        self._records = library("mcap.records", "record", "Recordings")
        self._stream = library("mcap.data_stream", "record", "Recordings")
        self._broken_up = library("mcap.stream_reader", "record", "Recordings")
        self.path = path
        if not path.is_file():
            raise RecordingError(f"There is no file {str(path)!r}.", name=str(path))
        if not path.stat().st_size:
            raise RecordingError(
                f"{str(path)!r} is empty: a recording that was cut off before it "
                "began.",
                name=str(path),
            )
        with naming_errors(path, "read"):
            self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115 (closed by close)
        self.blocks: list[tuple[RecordPlace | None, bytes]] = []
        """The chunk of each block, None where it is missing, and its description."""
        self.attachments: dict[str, list[RecordPlace]] = {}
        """Positions of the other attachments by name, in the order of the file."""
        self._is_cut = False
        try:
            self._find()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def attachment(self, name: str, number: int = -1) -> bytes:
        """Return the content of an attachment; of several of one name, the last one."""
        if name not in self.attachments:
            raise self._unreadable("was cut off" if self._is_cut else "was altered",
                                   f"{name!r} is missing")  # fmt: skip
        return self._attachment(self.attachments[name][number])[1]

    def messages(self, place: RecordPlace) -> dict[int, bytes]:
        """Return the messages of a chunk by channel; raise if the chunk was altered."""
        try:
            stream = self._stream.ReadDataStream(io.BytesIO(self._data(place)))
            chunk = self._records.Chunk.read(stream)
            sound = (
                chunk.compression == ""
                and chunk.uncompressed_size == len(chunk.data)
                and zlib.crc32(chunk.data) == chunk.uncompressed_crc
            )
            parts: list[Any] = self._broken_up.breakup_chunk(chunk) if sound else []
        except Exception as error:  # damaged bytes may raise anything
            raise self.altered(str(error)) from error
        if not sound:
            raise self.altered("a block's checksum does not fit")
        messages = (part for part in parts if isinstance(part, self._records.Message))
        return {message.channel_id: message.data for message in messages}

    def _find(self) -> None:
        chunk: RecordPlace | None = None
        for place in self._walk():
            if place.kind == _CHUNK:
                chunk = place
            elif place.kind == _ATTACHMENT:
                name, data = self._attachment(place)
                if name != BLOCK:
                    self.attachments.setdefault(name, []).append(place)
                else:
                    self.blocks.append((chunk, data))
                    chunk = None

    def _walk(self) -> Iterator[RecordPlace]:
        """Yield the records of the file, up to its end or to where it was cut off."""
        size = self.path.stat().st_size
        if self._file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(
                f"{str(self.path)!r} is no recording of simstate.", name=str(self.path)
            )
        at = len(MAGIC)
        while at + 9 <= size:
            self._file.seek(at)
            head = self._file.read(9)
            kind, length = head[0], int.from_bytes(head[1:], "little")
            if kind not in _KNOWN:
                raise self.altered(f"there is no record of kind {kind}")
            if at + 9 + length > size:
                break
            yield RecordPlace(kind, at + 9, length)
            at += 9 + length
        self._file.seek(size - len(MAGIC))
        self._is_cut = self._file.read() != MAGIC  # which ends a complete file

    def _attachment(self, place: RecordPlace) -> tuple[str, bytes]:
        data = self._data(place)
        stated = int.from_bytes(data[-4:], "little")
        if zlib.crc32(data[:-4]) != stated:
            raise self.altered("an attachment's checksum does not fit")
        try:
            stream = self._stream.ReadDataStream(io.BytesIO(data))
            found = self._records.Attachment.read(stream)
        except Exception as error:  # damaged bytes may raise anything
            raise self.altered(str(error)) from error
        return found.name, found.data

    def _data(self, place: RecordPlace) -> bytes:
        self._file.seek(place.start)
        return self._file.read(place.length)

    def altered(self, why: str) -> RecordingError:
        """Return the error for a file that was altered."""
        return self._unreadable("was altered", why)

    def _unreadable(self, what: str, why: str) -> RecordingError:
        path = str(self.path)
        return RecordingError(f"{path!r} {what}: {why}.", name=path)
