"""MuJoCo's warnings, silenced while simstate reports their causes itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

import mujoco

from simstate.base import compiled_core


@contextmanager
def silenced() -> Generator[None]:
    """Suppress MuJoCo's warnings, and the user's handler for them, in the block.

    MuJoCo has one handler per process. The compiled core counts the calls of all
    threads that silence it, including its own.
    """
    if compiled_core.is_available():
        quiet = compiled_core.module().Quiet()
        try:
            yield
        finally:
            del quiet
        return
    _HANDLER.silence()
    try:
        yield
    finally:
        _HANDLER.restore()


class _Handler:
    """`silenced` without the compiled core: the first call replaces the handler."""

    def __init__(self) -> None:
        self._threads: set[int] = set()
        self._theirs = None

    def silence(self) -> None:
        """Silence MuJoCo for the call that this thread starts."""
        self._threads.add(threading.get_ident())
        present = mujoco.get_mju_user_warning()
        if present is not _ignore:
            self._theirs = present
            mujoco.set_mju_user_warning(_ignore)

    def restore(self) -> None:
        """Restore the user's handler, unless another thread still needs silence."""
        self._threads.discard(threading.get_ident())
        if self._threads:  # a thread may have died within a call
            self._threads &= {thread.ident or 0 for thread in threading.enumerate()}
        if not self._threads:
            mujoco.set_mju_user_warning(self._theirs)
            if self._threads:  # another call has started meanwhile
                mujoco.set_mju_user_warning(_ignore)

    def forked(self) -> None:
        """Forget the calls of threads that a forked child does not have."""
        self._threads.clear()
        if mujoco.get_mju_user_warning() is _ignore:
            mujoco.set_mju_user_warning(self._theirs)


def _ignore(message: str) -> None:
    del message


_HANDLER = _Handler()
if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_HANDLER.forked)
