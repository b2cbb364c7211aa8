"""Recorder: writes a recording block by block while worlds go on."""

from __future__ import annotations

import atexit
import contextlib
import json
import queue
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.closeable import Closing
from simstate.base.contract import NO
from simstate.base.errors import FileError, InvalidInputError
from simstate.base.ids import Ids, int_list
from simstate.record.changes import Changes, Step, steps_to_bytes
from simstate.record.columns import Column
from simstate.record.container import Block, ContainerWriter
from simstate.record.header import (
    END,
    HEADER,
    MODEL,
    STEP,
    STEPS,
    TIME,
    describe_worlds,
    header_bytes,
    model_bytes,
)
from simstate.state import Snapshot, take_snapshot
from simstate.step.stepping_host import SteppingHost, stepper_of
from simstate.world import Owner
from simstate.world.worlds import worlds_of

BLOCK_BYTES = 4 << 20
"""When so much is waiting, a block is written."""
BLOCK_SECONDS = 1.0
"""Or so long after the last one [s of wall clock], at the next sample."""
MOST_SAMPLES = 4096
"""In a block."""


class Recorder(Closing):
    """Keeps samples and steps, and hands them on in blocks.

    A file is whole up to its last block whenever its program ends. `close`, or the end
    of a `with` block, writes the rest.

    Args:
        sim: the simulation.
        path: the file, which is replaced.
        kind: what is recorded: "sim" or "env".
        columns: what is kept.
        owners: whose slots are looked at for what was written between steps.
        worlds: those whose columns are kept; None: all.
        inputs: whether steps, what was written between them, and snapshots are kept.
        snapshot_every: time between two snapshots [s]; None: only the first.
        about: further lines of the header.
        detach: called once, when recording has ended.
    """

    def __init__(
        self,
        sim: SteppingHost,
        path: str | Path,
        kind: str,
        columns: Sequence[Column],
        owners: Sequence[Owner],
        *,
        worlds: Ids,
        inputs: bool,
        snapshot_every: float | None,
        about: Mapping[str, Any],
        detach: Callable[[], None],
    ) -> None:
        if snapshot_every is not None and not snapshot_every > 0:
            raise InvalidInputError(
                f"snapshot_every must be > 0 [s], or None; got {snapshot_every}."
            )
        self.path = Path(path)
        """The file."""
        _check_free(self.path)
        self._sim, self._owners, self._detach = sim, owners, detach
        rows = worlds_of(sim).select(worlds)
        self._rows: Tensor | None = None if rows.is_all else rows.tensor(sim.device)
        self._worlds = int_list(rows.tensor(torch.device("cpu")))
        self._columns = list(columns)
        read = {column.name: column.checked(sim.num_envs) for column in columns}
        told: dict[str, Any] = {TIME: TIME_CONTRACT, STEP: STEP_CONTRACT}
        told |= {c.name: c.describe(read[c.name]) for c in columns}
        self._kinds = {
            name: (np.dtype(c["dtype"]), self._shape(name, c["shape"]))
            for name, c in told.items()
        }
        sample = sum(
            dtype.itemsize * int(np.prod(shape))
            for dtype, shape in self._kinds.values()
        )
        self._most = max(1, min(MOST_SAMPLES, BLOCK_BYTES // max(sample, 1)))
        self._changes = Changes(worlds_of(sim), owners) if inputs else None
        self._snapshot_every = snapshot_every
        self._until_snapshot = snapshot_every
        self._steps: list[Step] = []
        self._steps_before = 0
        """Steps that are in blocks already."""
        self._samples_before = 0
        self._count = 0
        self._waiting = 0
        """Bytes of the steps that are in no block yet."""
        self._blocks = 0
        self._last_block = time.monotonic()
        self._written: queue.SimpleQueue[dict[str, Tensor]] = queue.SimpleQueue()
        """Memory of blocks that were written, to be used again."""
        self._buffers = self._new_buffers()
        attachments = {
            HEADER: header_bytes(
                kind, describe_worlds(sim), told, self._worlds,
                {"inputs": inputs, **about},
            ),
            MODEL: model_bytes(sim.model),
        }  # fmt: skip
        if inputs:
            attachments["snapshot/0"] = self._snapshot().to_bytes()
        topics = [*self._kinds, STEPS]
        self._writer = ContainerWriter(self.path, topics, attachments)
        self._closed = False
        _OPEN.add(self)
        weakref.finalize(self, self._writer.abandon).atexit = False

    @property
    def samples(self) -> int:
        """How many samples were taken."""
        return self._samples_before + self._count

    @property
    def steps(self) -> int:
        """How many steps were recorded."""
        return self._steps_before + len(self._steps)

    @property
    def is_open(self) -> bool:
        """Whether it still records."""
        return not self._closed

    def close(self) -> None:
        """Write what is left and end the file; a second call does nothing."""
        if self._closed:
            return
        self._write_block()
        self._end()
        told = {"blocks": self._blocks, "samples": self.samples, "steps": self.steps}
        self._writer.attach(END, json.dumps(told).encode())
        self._writer.close()

    # What subclasses call.

    def begin_step(self) -> Step:
        """A step with what was written since the last; a snapshot where it is time.

        Slots that were not there before are in a snapshot, which a replay restores.
        """
        if self._changes is None:
            return Step()
        added = self._changes.added()
        due = self._until_snapshot is not None and self._until_snapshot <= 1e-9
        if due or added:
            self._until_snapshot = self._snapshot_every
            data = self._snapshot().to_bytes()
            self._guarded(lambda: self._writer.attach(f"snapshot/{self.steps}", data))
        if added:
            self._changes.follow()
            return Step([], {"restore": True})
        return Step(self._changes.find())

    def end_step(self, step: Step, seconds: float) -> None:
        """Keep a step that was taken, which moved time on [s]."""
        if self._until_snapshot is not None:
            self._until_snapshot -= seconds
        self._steps.append(step)
        self._waiting += sum(c.values.nbytes for c in step.changes)
        self._waiting += sum(array.nbytes for array in step.arrays.values())
        if self._changes is not None:
            self._changes.follow(self._all_may_change)

    def add_sample(self, values: Mapping[str, Tensor]) -> None:
        """Keep a sample: the values of all columns, in all worlds."""
        if self._count >= self._most:
            self._write_block()
        k = self._count
        for name, tensor in values.items():
            rows = tensor if self._rows is None else tensor[self._rows]
            self._buffers[name][k].copy_(rows.detach())
        self._buffers[STEP][k] = self.steps
        self._count += 1

    def write_if_due(self) -> None:
        """Write a block if enough is waiting, or if the last was long ago."""
        full = self._count >= self._most or self._waiting > BLOCK_BYTES
        if full or time.monotonic() - self._last_block > BLOCK_SECONDS:
            self._write_block()

    def read_columns(self) -> dict[str, Tensor]:
        """The present values of what a user asked for, and the time."""
        found = {c.name: c.checked(self._sim.num_envs) for c in self._columns}
        found[TIME] = self._sim.time
        return found

    # Inner parts.

    @property
    def _all_may_change(self) -> bool:
        """Whether a step may change what physics leaves alone."""
        return "env" in self._owners or stepper_of(self._sim).scope == "run"

    def _shape(self, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        return () if name == STEP else (len(self._worlds), *shape)

    def _new_buffers(self) -> dict[str, Tensor]:
        """Memory for a block: of one that was written, if there is any."""
        with contextlib.suppress(queue.Empty):
            return self._written.get_nowait()
        return {
            name: torch.as_tensor(np.empty((self._most, *shape), dtype))
            for name, (dtype, shape) in self._kinds.items()
        }

    def _snapshot(self) -> Snapshot:
        parts = worlds_of(self._sim)
        return take_snapshot(parts, parts.everywhere, self._owners)

    def _write_block(self) -> None:
        """Hand what was kept to the writer, and begin anew."""
        if not (self._count or self._steps):
            return
        about = {
            "block": self._blocks,
            "first_sample": self._samples_before,
            "samples": self._count,
            "first_step": self._steps_before,
            "steps": len(self._steps),
        }
        buffers, again = self._buffers, self._written
        block = Block(
            {name: b[: self._count].numpy() for name, b in buffers.items()},
            {STEPS: partial(steps_to_bytes, self._steps)},
            json.dumps(about).encode(),
            lambda: again.put(buffers),
        )
        self._samples_before, self._steps_before = self.samples, self.steps
        self._count, self._waiting, self._blocks = 0, 0, self._blocks + 1
        self._steps = []
        self._buffers = self._new_buffers()
        self._last_block = time.monotonic()
        self._guarded(lambda: self._writer.write(block))

    def _guarded(self, write: Callable[[], None]) -> None:
        """Write; where that fails recording ends, and the worlds can go on."""
        try:
            write()
        except FileError:
            self._end()
            raise

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._detach()


TIME_CONTRACT: dict[str, Any] = {
    "unit": "s", "axes": NO, "point": NO, "names": [], "shape": [], "source": "",
    "doc": "Simulation time of each world.", "dtype": "float64",
}  # fmt: skip
STEP_CONTRACT: dict[str, Any] = {
    "unit": "1", "axes": NO, "point": NO, "names": [], "shape": [], "source": "",
    "doc": "How many steps were taken before the sample.", "dtype": "int64",
}  # fmt: skip


_OPEN: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _check_free(path: Path) -> None:
    """Raise if a recording that is not closed is being written there."""
    for other in _OPEN:
        if other.is_open and other.path.resolve() == path.resolve():
            raise InvalidInputError(
                f"{str(path)!r} is being written by a recording that is not closed: "
                "close it, or name another file."
            )


@atexit.register
def _close_all() -> None:
    """Let recordings be whole that a program has left open at its end."""
    for recorder in list(_OPEN):
        with contextlib.suppress(FileError):
            recorder.close()
