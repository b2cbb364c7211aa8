"""Calls of mujoco.batch: quiet, by one thread at a time, in the process that made it.

A forked child has none of its parent's threads but the one that forked. A batch would
wait for its own for ever there, and bring the child down when it is collected.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from types import FrameType, TracebackType

import torch
from mujoco import batch

from simstate.engine.core import CoreBatch
from simstate.engine.threads import is_running
from simstate.errors import ModelError, ThreadError
from simstate.mujoco_warnings import MUJOCO_WARNINGS

_forks = 0
"""How many forks lie between this process and the first that loaded simstate."""
_with_threads: weakref.WeakSet[batch.Batch | CoreBatch] = weakref.WeakSet()


def _in_child() -> None:
    """What a forked child does first.

    Torch's threads are gone as well: with one it works, with more it would wait.
    """
    global _forks
    _forks += 1
    torch.set_num_threads(1)
    for one in list(_with_threads):  # never collected from here on
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_in_child)


class NativeCalls:
    """The context of every call of one batch; its errors become ours."""

    def __init__(self, called: batch.Batch | CoreBatch) -> None:
        self._has_threads = called.nthread > 1
        if self._has_threads:
            _with_threads.add(called)
        self._forks = _forks
        self._callers: dict[None, tuple[int, FrameType]] = {}
        """The thread and the function that call just now, at most one of them."""

    def __enter__(self) -> None:
        if self._forks != _forks and self._has_threads:
            raise ThreadError(
                "This simulation was made before a fork, and its threads are in the "
                "parent process: make it in the child, or start the child by "
                'multiprocessing.get_context("spawn"). With '
                "engine=NativeCfg(num_threads=1) a simulation goes on in a fork."
            )
        # No lock: an interruption may come between its release and its end.
        here = (threading.get_ident(), sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        caller = self._callers.setdefault(None, here)
        if caller is not here:
            if is_running(*caller):
                raise ThreadError(
                    "This simulation is computing in another thread. It belongs to one "
                    "thread at a time: wait for it, or use one Simulation for each."
                )
            self._callers[None] = here
        MUJOCO_WARNINGS.silence()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        MUJOCO_WARNINGS.restore()
        self._callers.clear()
        if isinstance(error, batch.SimulationError):
            enough = "memory" not in str(error)
            hint = "" if enough else ' Give the model more: <size memory="…"/>.'
            raise ModelError(f"{str(error).rstrip('.')}.{hint}") from error
