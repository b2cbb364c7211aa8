"""Demonstration: worlds driven by hand, recorded as an episode."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from simstate.base.errors import InvalidInputError
from simstate.record.recorder import Recorder
from simstate.view.course import Course, Input

KEYS = (("I", "K"), ("J", "L"), ("U", "O"))
"""Keys that raise and lower the first three drives; viser's camera uses others."""
CENTRE = "M"
"""Key that moves all drives to the middle of their ranges."""
NAME = "demonstration.simrec"
_STEPS = 10
"""Number of key presses from the middle of a range to its end."""


class HandDemonstration:
    """Drives inputs of a world with keys, and records the world.

    Args:
        course: the course to drive.
    """

    def __init__(self, course: Course) -> None:
        self._course = course
        self.drives: Sequence[Input] = course.drives()
        """Inputs for keys and sliders: velocity commands, mocap bodies."""
        self._open = contextlib.ExitStack()
        self._recorder: Recorder | None = None
        self._path = Path()

    @property
    def is_recording(self) -> bool:
        """True between `start` and `stop`."""
        return self._recorder is not None

    def nudge(self, drive: int, sign: int, world: int) -> None:
        """Move a drive of a world by a tenth of half its range, within the range."""
        if drive >= len(self.drives):
            return
        one = self.drives[drive]
        value = one.read(world) + sign * (one.high - one.low) / (2 * _STEPS)
        one.write(world, min(max(value, one.low), one.high))

    def centre(self, world: int) -> None:
        """Move all drives of a world to the middle of their ranges."""
        for one in self.drives:
            one.write(world, (one.low + one.high) / 2.0)

    def start(self, world: int) -> None:
        """Reset a world and start to record it."""
        if self._recorder is not None:
            raise InvalidInputError(
                "A demonstration is being recorded: stop it first.", name="start"
            )
        self._course.reset([world])
        folder = self._open.enter_context(tempfile.TemporaryDirectory())
        self._path = Path(folder) / NAME
        self._recorder = self._course.record(self._path, world)

    def stop(self) -> bytes:
        """End the recording; return its file."""
        if self._recorder is None:
            raise InvalidInputError("No demonstration is being recorded.", name="stop")
        try:
            self._recorder.close()
            return self._path.read_bytes()
        finally:
            self.discard()

    def discard(self) -> None:
        """End the recording, if there is one, and delete it."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
        self._open.close()
