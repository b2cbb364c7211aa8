"""The file of a recording: MCAP, an open format for logs, written to be cut off.

MCAP appends records and needs no pointer at the front, so that a file ends wherever its
program was killed and is whole up to there; its chunks have checksums and an index, and
libraries in six languages and Foxglove read it. A block of a recording is one chunk and
the attachment after it, which says what it holds. Header, model and snapshots are
attachments, too: they have checksums of their own.
"""

from __future__ import annotations

import contextlib
import io
import queue
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from simstate.base.errors import FileError, RecordingError
from simstate.base.extras import library
from simstate.base.files import replacing
from simstate.record.compression import packed, zstandard

MAGIC = b"\x89MCAP0\r\n"
PROFILE = "simstate"
BLOCK = "block"
"""The name of what is said of a block, after its chunk."""

_CHUNK, _ATTACHMENT = 0x06, 0x09
_KNOWN = range(0x01, 0x10)
_WAITING = 2
"""Blocks that may wait to be written, each in memory."""
_PATIENCE = 0.5
"""How often a full queue is looked at [s]."""


@dataclass(frozen=True)
class Block:
    """What is written together: arrays and packed bytes by topic, and what they are."""

    arrays: Mapping[str, np.ndarray]
    payloads: Mapping[str, Callable[[], bytes]]
    """Made by the thread that writes them."""
    about: bytes
    """JSON."""
    done: Callable[[], None]
    """Called when its arrays are no longer needed."""


class ContainerWriter:
    """Writes blocks and attachments, in order, in a thread of its own.

    Compressing and writing go on while the next steps are computed. A block that finds
    two others waiting waits with the caller: memory is bounded.
    """

    def __init__(
        self, path: Path, topics: Sequence[str], attachments: Mapping[str, bytes]
    ) -> None:
        self._mcap = library("mcap.writer", "record", "Recordings")
        zstandard()
        self.path = path
        self._error: BaseException | None = None
        self._channels: dict[str, int] = {}
        with replacing(path) as part:  # what was there stays until this has begun
            self._file: IO[bytes] = open(part, "wb")  # noqa: SIM115 (closed by the thread)
            try:
                self._begin(topics, attachments)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._file.close()
                raise
        self._items: queue.Queue[Block | tuple[str, bytes] | None] = queue.Queue(
            _WAITING
        )
        self._thread = threading.Thread(
            target=self._run, name="simstate recorder", daemon=True
        )
        self._thread.start()

    def _begin(self, topics: Sequence[str], attachments: Mapping[str, bytes]) -> None:
        """Write all that comes before the samples."""
        self._writer: Any = self._mcap.Writer(
            self._file,
            chunk_size=1 << 62,  # blocks are chunks, whatever their size
            compression=self._mcap.CompressionType.NONE,  # arrays are, by themselves
        )
        self._writer.start(profile=PROFILE)
        for topic in topics:
            channel = self._writer.register_channel(topic, "simstate", 0)
            self._channels[topic] = channel
        for name, data in attachments.items():
            self._attach(name, data)
        self._file.flush()

    def write(self, block: Block) -> None:
        """Let a block be written."""
        self._put(block)

    def attach(self, name: str, data: bytes) -> None:
        """Let an attachment be written."""
        self._put((name, data))

    def close(self) -> None:
        """Write what is waiting, the index and the end."""
        if self._thread.is_alive():
            self._put(None)
            self._thread.join()
        self._raise()

    def abandon(self) -> None:
        """Let the thread end when it has written what is waiting."""
        with contextlib.suppress(queue.Full):
            self._items.put(None, timeout=_PATIENCE)

    def _put(self, item: Block | tuple[str, bytes] | None) -> None:
        while True:
            self._raise()
            try:
                self._items.put(item, timeout=_PATIENCE)
                return
            except queue.Full:
                continue

    def _raise(self) -> None:
        if self._error is not None:
            raise _cannot(self.path, self._error) from self._error

    # In the thread.

    def _run(self) -> None:
        try:
            with self._file:
                while (item := self._items.get()) is not None:
                    if isinstance(item, Block):
                        self._write_block(item)
                    else:
                        self._attach(*item)
                    self._file.flush()
                self._writer.finish()
        except BaseException as error:
            self._error = error

    def _write_block(self, block: Block) -> None:
        for topic, array in block.arrays.items():
            self._message(topic, packed(array))
        block.done()
        for topic, make in block.payloads.items():
            self._message(topic, make())
        self._writer.flush()
        self._attach(BLOCK, block.about)

    def _attach(self, name: str, data: bytes) -> None:
        now = time.time_ns()
        kind = "application/octet-stream"
        self._writer.add_attachment(now, now, name, kind, data)

    def _message(self, topic: str, data: bytes) -> None:
        now = time.time_ns()
        self._writer.add_message(self._channels[topic], now, data, now)


def _cannot(path: Path, error: BaseException) -> FileError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FileError(
        f"Cannot write {str(path)!r}: {reason}. The recording ends with its last "
        "whole block."
    )


@dataclass(frozen=True)
class RecordPlace:
    """Where a record is in a file: after its nine bytes of kind and length."""

    kind: int
    start: int
    length: int


class ContainerReader:
    """Finds the chunks and attachments of a file, and reads them with their checksums.

    The index at the end is not needed: a file that was cut off has none.
    """

    def __init__(self, path: Path) -> None:
        self._records = library("mcap.records", "record", "Recordings")
        self._stream = library("mcap.data_stream", "record", "Recordings")
        self._broken_up = library("mcap.stream_reader", "record", "Recordings")
        self.path = path
        if not path.is_file():
            raise RecordingError(f"There is no file {str(path)!r}.")
        if not path.stat().st_size:
            raise RecordingError(
                f"{str(path)!r} is empty: a recording that was cut off before it began."
            )
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115 (closed by close)
        self.blocks: list[tuple[RecordPlace, bytes]] = []
        """The chunk of each whole block, and what is said of it."""
        self.attachments: dict[str, RecordPlace] = {}
        """Where the other attachments are, by name."""
        try:
            self._find()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def attachment(self, name: str) -> bytes:
        """The content of an attachment."""
        return self._attachment(self.attachments[name])[1]

    def messages(self, place: RecordPlace) -> dict[int, bytes]:
        """The messages of a chunk by channel; a chunk that was altered is refused."""
        try:
            stream = self._stream.ReadDataStream(io.BytesIO(self._data(place)))
            chunk = self._records.Chunk.read(stream)
            sound = (
                chunk.compression == ""
                and chunk.uncompressed_size == len(chunk.data)
                and zlib.crc32(chunk.data) == chunk.uncompressed_crc
            )
            parts: list[Any] = self._broken_up.breakup_chunk(chunk) if sound else []
        except Exception as error:  # what damaged bytes raise is without limits
            raise self._altered(str(error)) from error
        if not sound:
            raise self._altered("a block's checksum does not fit")
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
                    self.attachments[name] = place
                elif chunk is None:
                    raise self._altered("a block is missing")
                else:
                    self.blocks.append((chunk, data))
                    chunk = None

    def _walk(self) -> Iterator[RecordPlace]:
        """The records of the file, up to its end or to where it was cut off."""
        size = self.path.stat().st_size
        if self._file.read(len(MAGIC)) != MAGIC:
            raise RecordingError(f"{str(self.path)!r} is no recording of simstate.")
        at = len(MAGIC)
        while at + 9 <= size:
            self._file.seek(at)
            head = self._file.read(9)
            kind, length = head[0], int.from_bytes(head[1:], "little")
            if kind not in _KNOWN:
                raise self._altered(f"there is no record of kind {kind}")
            if at + 9 + length > size:
                return
            yield RecordPlace(kind, at + 9, length)
            at += 9 + length

    def _attachment(self, place: RecordPlace) -> tuple[str, bytes]:
        data = self._data(place)
        stated = int.from_bytes(data[-4:], "little")
        if len(data) < 4 or zlib.crc32(data[:-4]) != stated:
            raise self._altered("an attachment's checksum does not fit")
        try:
            stream = self._stream.ReadDataStream(io.BytesIO(data))
            found = self._records.Attachment.read(stream)
        except Exception as error:  # what damaged bytes raise is without limits
            raise self._altered(str(error)) from error
        return found.name, found.data

    def _data(self, place: RecordPlace) -> bytes:
        self._file.seek(place.start)
        return self._file.read(place.length)

    def _altered(self, why: str) -> RecordingError:
        return RecordingError(f"{str(self.path)!r} was altered: {why}.")
