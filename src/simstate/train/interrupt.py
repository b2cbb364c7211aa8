"""StopRequest: Ctrl-C that lets the current work finish."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from simstate.base.closeable import Closing


class StopRequest(Closing):
    """Context in which Ctrl-C or SIGTERM requests a stop; a second Ctrl-C interrupts.

    Outside the main thread, signals are not handled.
    """

    def __init__(self, on_request: Callable[[], None] = lambda: None) -> None:
        self.is_made = False
        """True if a stop was requested."""
        self._on_request = on_request
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Return True if a stop was requested."""
        return self.is_made

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def close(self) -> None:
        """Restore the former handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.is_made and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_made = True
        self._on_request()
