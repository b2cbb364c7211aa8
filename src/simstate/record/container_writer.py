"""ContainerWriter: writes the file of a recording in a thread."""

from __future__ import annotations

import contextlib
import io
import json
import queue
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simstate.base.errors import FileError
from simstate.base.extras import library
from simstate.base.files import replacing
from simstate.record.block import Block, Spare
from simstate.record.changes import steps_to_bytes
from simstate.record.compression import packed, zstandard
from simstate.record.container import BLOCK, PROFILE, SNAPSHOT
from simstate.record.header import END, STEPS

_WAITING = 3
"""Maximum number of closed blocks in memory; with more, `next` waits."""
_PAUSE = 0.002
"""Interval at which a waiting call checks the thread [s]."""
_PATIENCE = 0.5
"""Maximum sleep of the thread, in case it was not woken [s]."""


class ContainerWriter:
    """Writes blocks, in order, while the next steps are computed.

    The last block in the queue is open, and the recorder adds to it; the others are
    closed. One `append` closes a block and opens the next, so that an interruption
    cannot lose one, and the thread numbers them as it writes them. The recorder's
    thread takes no lock, which an interruption could leave locked.

    Args:
        path: the file, which is replaced.
        topics: the columns, and the steps.
        attachments: contents by name, before all blocks.
        first: the initial open block.
        spare: receives the buffers of written blocks, for reuse.
    """

    def __init__(
        self,
        path: Path,
        topics: Sequence[str],
        attachments: Mapping[str, bytes],
        first: Block,
        spare: Spare,
    ) -> None:
        self._mcap = library("mcap.writer", "record", "Recordings")
        zstandard()
        self.path = path
        self._blocks, self._spare = deque([first]), spare
        self._error: BaseException | None = None
        self._ending = self._finished = False
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._channels: dict[str, int] = {}
        with replacing(path) as part:  # an existing file stays until then
            self._file = _File(part)
            try:
                self._begin(topics, attachments)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._file.close()
                raise
        threading.Thread(
            target=self._run, name="simstate recorder", daemon=True
        ).start()

    def _begin(self, topics: Sequence[str], attachments: Mapping[str, bytes]) -> None:
        """Write the records before the samples."""
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

    @property
    def block(self) -> Block:
        """The open block."""
        return self._blocks[-1]

    @property
    def is_open(self) -> bool:
        """True until it is closed, or a write fails."""
        return not self._ending and not self._finished

    def next(self, block: Block) -> None:
        """Close the open block, so that it is written, and open another.

        With many closed blocks in memory, it waits for the disk first.
        """
        while len(self._blocks) > _WAITING and not self._finished:
            time.sleep(_PAUSE)
        self._raise()
        self._blocks.append(block)
        self._wake.put(None)

    def close(self) -> None:
        """Write the remaining blocks, the index and the end; then close the file.

        A call after one that was interrupted waits again.
        """
        self.abandon()
        while not self._finished:
            time.sleep(_PAUSE)
        self._raise()

    def abandon(self) -> None:
        """End the thread when it has written the remaining blocks."""
        self._ending = True
        self._wake.put(None)

    def leave(self) -> None:
        """Write nothing more: a fork has no thread."""
        self._ending = self._finished = True
        self._error = None

    def _raise(self) -> None:
        """Raise the error of the thread, in every call: one may be interrupted."""
        if self._error is not None:
            raise _cannot(self.path, self._error) from self._error

    # In the thread.

    def _run(self) -> None:
        try:
            with contextlib.closing(self._file):
                self._write_all()
        except BaseException as error:
            self._error = error
        finally:
            self._finished = True

    def _write_all(self) -> None:
        totals = {"blocks": 0, "samples": 0, "steps": 0}
        while True:
            is_last = self._ending and len(self._blocks) == 1
            if is_last or len(self._blocks) > 1:
                self._write(self._blocks[0], totals)
                if is_last:
                    break
                self._blocks.popleft()
                continue
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=_PATIENCE)
        self._attach(END, json.dumps(totals).encode())
        self._writer.finish()

    def _write(self, block: Block, totals: dict[str, int]) -> None:
        """Write a closed block as the next one."""
        contents = block.contents()
        if not contents.samples and not contents.steps:
            return
        about = {
            "block": totals["blocks"],
            "first_sample": totals["samples"],
            "samples": contents.samples,
            "first_step": totals["steps"],
            "steps": len(contents.steps),
        }
        for number, step in enumerate(contents.steps, totals["steps"]):
            if step.snapshot is not None:
                self._attach(f"{SNAPSHOT}{number}", step.snapshot)
        for topic, array in contents.arrays.items():
            self._message(topic, packed(array))
        self._spare.put(block.buffers)
        self._message(STEPS, steps_to_bytes(contents.steps))
        self._writer.flush()
        self._attach(BLOCK, json.dumps(about).encode())
        totals["blocks"] += 1
        totals["samples"] += contents.samples
        totals["steps"] += len(contents.steps)

    def _attach(self, name: str, data: bytes) -> None:
        now = time.time_ns()
        kind = "application/octet-stream"
        self._writer.add_attachment(now, now, name, kind, data)

    def _message(self, topic: str, data: bytes) -> None:
        now = time.time_ns()
        self._writer.add_message(self._channels[topic], now, data, now)


class _File:
    """An unbuffered file, whose writes are complete or raise.

    A child process would write the contents of a buffer a second time.
    """

    def __init__(self, path: Path) -> None:
        self._raw = io.FileIO(path, "wb")

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._raw.write(rest) or 0 :]

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def tell(self) -> int:
        return self._raw.tell()

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        self._raw.close()


def _cannot(path: Path, error: BaseException) -> FileError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return FileError(
        f"Cannot write {str(path)!r}: {reason}. The recording ends with its last "
        "whole block.",
        name=str(path),
    )
