"""Ctrl-C at any line of simstate's own code, once or twice, as often as wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import simstate

_OURS = str(Path(simstate.__file__).parent)


class Interruption:
    """Raises KeyboardInterrupt at chosen lines, counted from 0, that simstate runs."""

    def __init__(self, *lines: int) -> None:
        self._lines = set(lines)
        self.count = 0
        """How many lines have run."""
        self.places: list[str] = []
        """Where it has raised."""

    def __enter__(self) -> Interruption:
        self._outer = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._outer)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        if event == "line":
            if self.count in self._lines:
                self._lines.discard(self.count)
                where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                self.places.append(where.removeprefix(_OURS))
                self.count += 1
                raise KeyboardInterrupt
            self.count += 1
        return self._trace


def lines_of(call: Callable[[], object]) -> int:
    """How many lines of simstate a call runs."""
    with Interruption() as counted:
        call()
    return counted.count


def interrupted(call: Callable[[], object], *lines: int) -> Interruption:
    """Make a call that is interrupted at these lines, and the places."""
    interruption = Interruption(*lines)
    try:
        with interruption:
            call()
    except KeyboardInterrupt:
        pass
    return interruption
