"""Keeping torch's threads and MuJoCo's out of each other's way.

The threads of mujoco.batch go on spinning for some fifty milliseconds after a call. A
torch operation that is split over threads then waits for a core that a spinning thread
holds, at every one of its barriers: milliseconds instead of microseconds.
"""

from __future__ import annotations

from types import TracebackType

import torch


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
