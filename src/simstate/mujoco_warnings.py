"""MuJoCo's own warnings, which are not printed while simstate reports what they say."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

import mujoco


class MujocoWarnings:
    """Silences the handler of warnings for the calls that run, in any thread.

    The handler is one for the process: the first of the calls that overlap puts ours
    in its place, the last puts it back.
    """

    def __init__(self) -> None:
        self._threads: set[int] = set()
        self._theirs = None

    @contextmanager
    def silenced(self) -> Generator[None]:
        """Nothing is told to the user's handler, nor printed."""
        self.silence()
        try:
            yield
        finally:
            self.restore()

    def silence(self) -> None:
        """For the call that this thread begins."""
        self._threads.add(threading.get_ident())
        present = mujoco.get_mju_user_warning()
        if present is not _ignore:
            self._theirs = present
            mujoco.set_mju_user_warning(_ignore)

    def restore(self) -> None:
        """For the call that this thread ends."""
        self._threads.discard(threading.get_ident())
        if self._threads:  # one may have died within a call
            self._threads &= {thread.ident or 0 for thread in threading.enumerate()}
        if not self._threads:
            mujoco.set_mju_user_warning(self._theirs)
            if self._threads:  # one has begun meanwhile
                mujoco.set_mju_user_warning(_ignore)

    def forked(self) -> None:
        """In a child: the calls of other threads will never end."""
        self._threads.clear()
        if mujoco.get_mju_user_warning() is _ignore:
            mujoco.set_mju_user_warning(self._theirs)


def _ignore(message: str) -> None:
    del message


MUJOCO_WARNINGS = MujocoWarnings()
if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=MUJOCO_WARNINGS.forked)
