"""Histories: a job, the faults that meet it and when, all drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

Counts = Mapping[str, int]
"""Number of operations of each kind in a run without faults."""

COUNTER = {
    "ctrl-c": "step",
    "two ctrl-c": "step",
    "kill": "step",
    "kill in a file operation": "disk",
    "full disk": "write",
    "short write": "write",
    "torn write": "write",
    "failing write": "write",
    "failing fsync": "sync",
    "failing rename": "rename",
    "unreadable folder": "open",
    "failing allocation": "allocate",
    "thread count": "step",
    "jumping clock": "clock",
    "fork": "step",
    "lost worker": "remote",
}
"""Kinds of faults, and the operation that each is tied to."""

STAGES = 2
"""Runs of a job that faults may meet; another one without faults follows."""


@dataclass(frozen=True)
class Fault:
    """One fault of a history."""

    kind: str
    stage: int
    """The run that it meets, from 0."""
    at: float
    """Its place among the operations of a run without faults, from 0 to 1."""
    size: float
    """Its extent from 0 to 1: a distance, a duration or a fraction, by kind."""

    def number(self, counts: Counts) -> int:
        """Return the operation that it meets, counted from 0."""
        return int(self.at * counts[COUNTER[self.kind]])

    def __str__(self) -> str:
        place = f"run {self.stage}, {self.at:.3f} of {COUNTER[self.kind]}"
        return f"{self.kind} ({place}, size {self.size:.2f})"


@dataclass(frozen=True)
class History:
    """A job and its faults."""

    seed: int
    job: str
    variant: int
    by_opcode: bool
    """Interrupt between opcodes instead of lines."""
    schedule: int
    """Seed of the order in which the recorder's thread runs."""
    faults: tuple[Fault, ...]

    def only(self, indices: tuple[int, ...]) -> History:
        """Return the history with some of its faults."""
        return replace(self, faults=tuple(self.faults[k] for k in indices))

    def __str__(self) -> str:
        unit = "opcodes" if self.by_opcode else "lines"
        faults = "; ".join(str(fault) for fault in self.faults)
        return f"seed {self.seed}: {self.job} {self.variant} ({unit}): {faults}"


def draw(
    seed: int, jobs: Mapping[str, int], counts_of: Callable[[str, int, bool], Counts]
) -> History:
    """Return the history of a seed.

    Args:
        seed: any integer ≥ 0. Jobs take turns, so that all are met equally often.
        jobs: number of variants of each job, by name.
        counts_of: returns the counts of a job, a variant, by opcodes or lines.
    """
    chance = random.Random(seed)
    job = list(jobs)[seed % len(jobs)]
    variant = chance.randrange(jobs[job])
    by_opcode = chance.random() < 0.4
    counts = counts_of(job, variant, by_opcode)
    kinds = [kind for kind, counter in COUNTER.items() if counts.get(counter)]
    faults = [
        Fault(
            chance.choice(kinds), chance.randrange(STAGES), chance.random(),
            chance.random(),
        )
        for _ in range(chance.choice((1, 1, 2, 2, 3)))
    ]  # fmt: skip
    if all(fault.stage for fault in faults):
        faults[0] = replace(faults[0], stage=0)
    faults.sort(key=lambda fault: (fault.stage, fault.at))
    return History(
        seed, job, variant, by_opcode, chance.randrange(1 << 30), tuple(faults)
    )
