"""Forked processes, which have only the thread of the parent that forked.

In a child, a batch with threads would wait for them forever, and abort the process when
it is garbage-collected.
"""

from __future__ import annotations

import ctypes
import os
import weakref

import torch

from simstate.base import compiled_core
from simstate.base.errors import ThreadError

_num_forks = 0
_with_threads: weakref.WeakSet[object] = weakref.WeakSet()


def num_forks() -> int:
    """Return the number of forks since the first process that loaded simstate."""
    return _num_forks


def keep_in_child(batch: object) -> None:
    """Prevent the garbage collection of a batch with threads in a forked child."""
    _with_threads.add(batch)


def refusal(why: str) -> ThreadError:
    """Return the error for a batch that cannot compute.

    Args:
        why: "busy": another thread computes. "fork": its threads are in the parent
            process. "cut off": another thread was computing at the time of the fork.
    """
    if why == "cut off":
        return ThreadError(
            "This simulation was computing in another thread when the process forked, "
            "but that thread is in the parent process: create the simulation in the "
            "child, or fork between two calls."
        )
    if why == "fork":
        return ThreadError(
            "This simulation was created before a fork, but its threads are in the "
            "parent process: create it in the child, or start the child by "
            'multiprocessing.get_context("spawn"). With '
            "engine=NativeCfg(num_threads=1) a simulation continues in a fork."
        )
    return ThreadError(
        "This simulation is computing in another thread. Only one thread at a time "
        "may use it: wait for that thread, or use one Simulation per thread."
    )


def _in_child() -> None:
    """Prepare a forked child; torch works there with a single thread only."""
    global _num_forks
    _num_forks += 1
    torch.set_num_threads(1)
    if compiled_core.is_available():
        compiled_core.module().forked()
    for batch in list(_with_threads):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(batch))


if compiled_core.is_available():
    compiled_core.module().refuse_by(refusal)
if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_in_child)
