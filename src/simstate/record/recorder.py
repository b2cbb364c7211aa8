"""Recorder: writes a recording block by block while worlds are stepped."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import as_path, number
from simstate.base.closeable import Closing
from simstate.base.contract import NO
from simstate.base.errors import FileError, InvalidInputError
from simstate.base.ids import Ids, int_list
from simstate.record.block import Block, Kept, Spare
from simstate.record.changes import Changes, Step
from simstate.record.columns import Column, columns_of
from simstate.record.container import SNAPSHOT
from simstate.record.container_writer import ContainerWriter
from simstate.record.header import (
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
from simstate.world.invalid_values import DESCRIBED_FIELDS
from simstate.world.worlds import worlds_of

BLOCK_BYTES = 4 << 20
"""Write a block when this many bytes are buffered."""
BLOCK_SECONDS = 1.0
"""Or this long after the last one [s of wall clock], at the next sample."""
MOST_SAMPLES = 4096
"""Largest number of samples in a block."""


class Recorder(Closing):
    """Collects samples and steps, and writes them in blocks.

    If the program is killed, the file is complete up to its last block. `close`, or the
    end of a `with` block, writes the rest. An interruption such as Ctrl-C loses nothing
    that was kept: the effect of a step that was interrupted before it was kept is
    recorded as a write before the next step.

    Args:
        sim: the simulation.
        path: the file, which is replaced.
        kind: kind of the recorded object: "sim" or "env".
        columns: columns to record.
        owners: owners of the slots that are compared for writes between steps.
        worlds: worlds whose columns are recorded; None: all.
        inputs: True to record steps, writes between them, and snapshots.
        snapshot_every: time between two snapshots [s]; None: only the first.
        about: further entries of the header.
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
        if snapshot_every is not None:
            number(
                "snapshot_every", snapshot_every, more_than=0, finite=False, unit="s"
            )
        self.path = as_path("path", path)
        """The file."""
        _check_free(self.path)
        self._sim, self._owners, self._detach = sim, owners, detach
        rows = worlds_of(sim).select(worlds)
        self._rows: Tensor | None = rows.ids_or_none(sim.device)
        self._worlds = int_list(rows.tensor(torch.device("cpu")))
        self._columns = list(columns)
        read = {column.name: column.checked(sim.num_envs) for column in columns}
        contracts: dict[str, Any] = {TIME: TIME_CONTRACT, STEP: STEP_CONTRACT}
        contracts |= {c.name: c.describe(read[c.name]) for c in columns}
        self._kinds = {
            name: (np.dtype(c["dtype"]), self._shape(name, c["shape"]))
            for name, c in contracts.items()
        }
        sample = sum(
            dtype.itemsize * int(np.prod(shape))
            for dtype, shape in self._kinds.values()
        )
        self._most = max(1, min(MOST_SAMPLES, BLOCK_BYTES // max(sample, 1)))
        self._changes = Changes(worlds_of(sim), owners) if inputs else None
        self._snapshot_every = snapshot_every
        attachments = {
            HEADER: header_bytes(
                kind, describe_worlds(sim), contracts, self._worlds,
                {"inputs": inputs, **about},
            ),
            MODEL: model_bytes(sim.model),
        }  # fmt: skip
        if inputs:
            attachments[f"{SNAPSHOT}0"] = self._snapshot().to_bytes()
        topics = [*self._kinds, STEPS]
        self._spare: Spare = queue.SimpleQueue()
        first = Block(self._new_buffers(), Kept(until_snapshot=snapshot_every))
        self._writer = ContainerWriter(
            self.path, topics, attachments, first, self._spare
        )
        _OPEN.add(self)
        weakref.finalize(self, self._writer.abandon).atexit = False

    @property
    def samples(self) -> int:
        """Number of samples that were taken."""
        return self._writer.block.last.samples

    @property
    def steps(self) -> int:
        """Number of steps that were recorded."""
        return self._writer.block.last.steps

    @property
    def is_open(self) -> bool:
        """True until it is closed, or its file cannot be written."""
        return self._writer.is_open

    def close(self) -> None:
        """Write the rest and end the file; a second call does nothing.

        If the file could not be written, each call raises. After a call that was
        interrupted, the next one waits for the file's end. In a fork of the process
        that opened it, it does nothing.
        """
        self._detach()
        self._writer.close()

    def leave(self) -> None:
        """End it in a fork of the process that opened it, which writes the file."""
        self._writer.leave()
        self._detach()

    # Called by subclasses.

    def begin_step(self) -> Step:
        """Return a step with the writes since the last one.

        It has a snapshot if one is due or if slots were added. A replay restores the
        latter, because writes to added slots are not recorded.
        """
        if self._writer.block.samples >= self._most:  # waits before the step, not after
            self._write_block()
        if self._changes is None:
            return Step()
        added = self._changes.added()
        until = self._writer.block.last.until_snapshot
        step = Step(self._changes.find(), {"restore": True} if added else {})
        if added or (until is not None and until <= 1e-9):
            step.snapshot = self._snapshot().to_bytes()
        return step

    def keep(
        self,
        step: Step | None,
        seconds: float,
        sample: Mapping[str, Tensor] | None,
        is_before: bool = False,
    ) -> None:
        """Keep a step that was taken and a sample, both or neither.

        Args:
            step: None: no step was taken.
            seconds: time by which it moved the worlds [s].
            sample: the values of all columns in all worlds; None: no sample was taken.
            is_before: True if the sample is of the worlds before the step.
        """
        block = self._writer.block
        last = block.last
        steps = last.steps + (step is not None)
        if sample is not None:
            k = block.samples
            for name, tensor in sample.items():
                rows = tensor if self._rows is None else tensor[self._rows]
                block.buffers[name][k].copy_(rows.detach())
            block.buffers[STEP][k] = last.steps if is_before else steps
        until = last.until_snapshot
        if step is not None and until is not None:
            is_taken = step.snapshot is not None
            until = (self._snapshot_every or 0.0) if is_taken else until
            until -= seconds
        num_bytes = last.num_bytes + (0 if step is None else step.num_bytes)
        block.kept.append(
            Kept(step, last.samples + (sample is not None), steps, num_bytes, until)
        )  # all of it at once
        if step is not None and self._changes is not None:
            self._changes.follow(self._all_may_change)

    def write_if_due(self) -> None:
        """Write a block if it is full or was opened `BLOCK_SECONDS` ago."""
        block = self._writer.block
        full = block.samples >= self._most or block.num_bytes > BLOCK_BYTES
        if full or time.monotonic() - block.opened > BLOCK_SECONDS:
            self._write_block()

    def read_columns(self) -> dict[str, Tensor]:
        """Return the current values of the columns, and the time."""
        found = {c.name: c.checked(self._sim.num_envs) for c in self._columns}
        found[TIME] = self._sim.time
        return found

    # Inner parts.

    @property
    def _all_may_change(self) -> bool:
        """True if a step may change slots that physics leaves unchanged."""
        return "env" in self._owners or stepper_of(self._sim).scope == "run"

    def _shape(self, name: str, shape: Sequence[int]) -> tuple[int, ...]:
        return () if name == STEP else (len(self._worlds), *shape)

    def _new_buffers(self) -> Mapping[str, Tensor]:
        """Return memory for a block, if possible that of a written one."""
        with contextlib.suppress(queue.Empty):
            return self._spare.get_nowait()
        return {
            name: torch.as_tensor(np.empty((self._most, *shape), dtype))
            for name, (dtype, shape) in self._kinds.items()
        }

    def _snapshot(self) -> Snapshot:
        parts = worlds_of(self._sim)
        return take_snapshot(parts, parts.everywhere, self._owners)

    def _write_block(self) -> None:
        """Close the block, so that it is written; if that fails, recording ends.

        The worlds can continue.
        """
        block = self._writer.block
        if not block.kept:
            return
        try:
            self._writer.next(Block(self._new_buffers(), block.last))
        except FileError:
            self._detach()
            raise


TIME_CONTRACT: dict[str, Any] = {
    "unit": "s", "axes": NO, "point": NO, "names": [], "shape": [], "source": "",
    "doc": "Simulation time of each world.", "dtype": "float64",
}  # fmt: skip
STEP_CONTRACT: dict[str, Any] = {
    "unit": "1", "axes": NO, "point": NO, "names": [], "shape": [], "source": "",
    "doc": "Number of steps before the sample.", "dtype": "int64",
}  # fmt: skip


_DUMPED = [name for name in DESCRIBED_FIELDS if name != TIME]
"""Fields that a dump keeps."""


def write_dump(
    path: Path, sim: SteppingHost, before: Snapshot, n: int, element: str
) -> None:
    """Write the state of one world before a step of n time steps, and that step.

    Args:
        path: the file.
        sim: the simulation of the world.
        before: the world's snapshot, with the controls of the step.
        n: number of time steps of the call.
        element: description of the first invalid value after it.
    """
    columns: dict[str, Any] = {TIME: TIME_CONTRACT, STEP: STEP_CONTRACT}
    arrays = {TIME: before.time[None].double().numpy(), STEP: np.zeros(1, np.int64)}
    for column in columns_of(sim, (), _DUMPED):
        values = before.slots[column.name]
        columns[column.name] = column.describe(values)
        arrays[column.name] = values[None].numpy()
    worlds = describe_worlds(sim) | {"num_envs": 1, "on_divergence": "mask"}
    worlds["first_world"] = int(before.slots["random/world"][0])
    about = {"inputs": True, "every": None}
    step = Step([], {"n": n, "diverged": {"0": element}})
    block = Block({n: torch.as_tensor(x) for n, x in arrays.items()}, Kept())
    block.kept.append(Kept(step, 1, 1))
    ContainerWriter(
        path,
        [*columns, STEPS],
        {
            HEADER: header_bytes("sim", worlds, columns, [0], about),
            MODEL: model_bytes(sim.model),
            f"{SNAPSHOT}0": before.to_bytes(),
        },
        block,
        queue.SimpleQueue(),
    ).close()


_OPEN: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _check_free(path: Path) -> None:
    """Raise if an open recording is being written to this file."""
    for other in _OPEN:
        if other.is_open and other.path.resolve() == path.resolve():
            raise InvalidInputError(
                f"{str(path)!r} is being written by a recording that is not closed: "
                "close it, or name another file.",
                name=str(path),
            )


@atexit.register
def _close_all() -> None:
    """Complete the recordings that are open when the program ends."""
    for recorder in list(_OPEN):
        with contextlib.suppress(FileError):
            recorder.close()


def _leave_all() -> None:
    """In a fork, end the recordings whose files the parent writes."""
    for recorder in list(_OPEN):
        recorder.leave()
    _OPEN.clear()


os.register_at_fork(after_in_child=_leave_all)
