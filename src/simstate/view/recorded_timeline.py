"""Timeline: the steps of a recorded run, and the marks on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Kind: TypeAlias = Literal["reset", "divergence", "event", "write"]
SIGNS: dict[Kind, str] = {"reset": "↺", "divergence": "✖", "event": "◆", "write": "✎"}
"""Symbol of each kind of mark."""


@dataclass(frozen=True)
class Mark:
    """An occurrence in a world before a step of a timeline."""

    step: int
    """Number of steps taken before it."""
    kind: Kind
    world: int
    text: str
    """Description, in words."""


class RecordedTimeline:
    """The times of the steps, and the marks.

    Args:
        times: start of each step, and end of the last one, since the start of the
            recording [s]; (steps + 1,).
        marks: the marks, in the order of the steps.
    """

    def __init__(self, times: np.ndarray, marks: Sequence[Mark]) -> None:
        self.times = times
        self.marks = tuple(marks)

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return len(self.times) - 1

    def step_at(self, time: float) -> int:
        """Return the step whose start is nearest to a time [s]."""
        after = int(np.searchsorted(self.times, time))
        near = [k for k in (after - 1, after) if 0 <= k <= self.num_steps]
        return min(near, key=lambda k: abs(float(self.times[k]) - time))

    def of_world(self, world: int) -> list[Mark]:
        """Return the marks of one world."""
        return [mark for mark in self.marks if mark.world == world]

    def next_mark(self, step: int, world: int, ahead: bool) -> Mark | None:
        """Return the first mark of a world after a step, or the last one before it."""
        marks = self.of_world(world)
        if ahead:
            return next((mark for mark in marks if mark.step > step), None)
        return next((mark for mark in reversed(marks) if mark.step < step), None)

    def diverged(self, step: int) -> dict[int, str]:
        """Return the first invalid value of each world that diverged before a step.

        Worlds that were reset since then are not included.
        """
        found: dict[int, str] = {}
        for mark in self.marks:
            if mark.step > step:
                break
            if mark.kind == "divergence":
                found[mark.world] = mark.text
            elif mark.kind == "reset":
                found.pop(mark.world, None)
        return found
