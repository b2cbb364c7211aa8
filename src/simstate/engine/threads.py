"""Which thread runs what; and keeping torch's and MuJoCo's out of each other's way.

The threads of mujoco.batch go on spinning for some fifty milliseconds after a call. A
torch operation that is split over threads then waits for a core that a spinning thread
holds, at every one of its barriers: milliseconds instead of microseconds.
"""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

import torch


def is_running(thread: int, frame: FrameType) -> bool:
    """Whether a function is still running in a thread, by its identity and frame."""
    above = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
    while above is not None and above is not frame:
        above = above.f_back
    return above is not None


class OneTorchThread:
    """While it is entered, torch works in the calling thread alone."""

    def __enter__(self) -> None:
        self._threads = torch.get_num_threads()
        if self._threads > 1:
            torch.set_num_threads(1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._threads > 1:
            torch.set_num_threads(self._threads)
