"""Block: samples and steps that are written together."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from torch import Tensor

from simstate.record.changes import Step

Spare: TypeAlias = "queue.SimpleQueue[Mapping[str, Tensor]]"
"""Buffers of written blocks, for reuse."""


class Kept(NamedTuple):
    """A step, a sample, or a sample after a step; with totals up to and including it.

    A recorder keeps each with one `append`, so that an interruption leaves all of it or
    none of it.
    """

    step: Step | None = None
    samples: int = 0
    """Number of samples since the start of the recording."""
    steps: int = 0
    """Number of steps since the start of the recording."""
    num_bytes: int = 0
    """Size of the data of the steps [bytes]."""
    until_snapshot: float | None = None
    """Simulated time until the next snapshot [s]; None: no further one."""


class Block:
    """Buffers for samples, and the entries since the previous block.

    Args:
        buffers: the samples of each column; shape (capacity, …).
        start: the last entry of the previous block.
    """

    def __init__(self, buffers: Mapping[str, Tensor], start: Kept) -> None:
        self.buffers = buffers
        self.start = start
        self.kept: list[Kept] = []
        self.opened = time.monotonic()
        """Time at which it was opened [s of the monotonic clock]."""

    @property
    def last(self) -> Kept:
        """The latest entry: of this block, or the one before it."""
        kept = self.kept
        return kept[-1] if kept else self.start

    @property
    def samples(self) -> int:
        """Number of samples in the block."""
        return self.last.samples - self.start.samples

    @property
    def num_bytes(self) -> int:
        """Size of the data of its steps [bytes]."""
        return self.last.num_bytes - self.start.num_bytes

    def contents(self) -> Contents:
        """Return the contents of a closed block."""
        samples = self.samples
        return Contents(
            {name: buffer[:samples].numpy() for name, buffer in self.buffers.items()},
            [kept.step for kept in self.kept if kept.step is not None],
            samples,
        )


@dataclass(frozen=True)
class Contents:
    """Contents of a block."""

    arrays: Mapping[str, np.ndarray]
    """The samples of each column; shape (samples, …)."""
    steps: list[Step]
    samples: int
