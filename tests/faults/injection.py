"""Injection: brings the faults of one run into the process that runs a job."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import os
import queue
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tests import inside, tracer
from tests.faults.history import Counts, Fault

OPERATIONS = ("write", "sync", "open", "rename", "allocate", "disk")
"""What shim.c counts, in its order."""
_FAIL, _SHORT, _TORN, _KILL = 1, 2, 3, 4
_ALWAYS = 1 << 60
PATIENCE = 20
"""Longest time that a forked child may take to end [s]."""


class Shim:
    """The functions of shim.c, which the process was started with."""

    def __init__(self) -> None:
        self._library: Any = ctypes.CDLL(None)
        self._library.shim_count.restype = ctypes.c_long
        self._library.shim_fired.restype = ctypes.c_long

    def begin(self, folder: Path) -> None:
        """Count operations below a folder, from 0, without any fault."""
        self._library.shim_begin(os.fsencode(folder))

    def pause(self, paused: bool) -> None:
        """Leave operations alone and do not count them, or go on."""
        self._library.shim_pause(int(paused))

    def add(
        self, operation: str, action: int, error: int, first: int,
        many: int = 1, part: float = 0.0,
    ) -> None:  # fmt: skip
        """Make some operations fail, from the first on."""
        self._library.shim_add(
            OPERATIONS.index(operation), action, error, ctypes.c_long(first),
            ctypes.c_long(many), ctypes.c_double(part),
        )  # fmt: skip

    def count(self, operation: str) -> int:
        """Return the number of operations so far."""
        return self._library.shim_count(OPERATIONS.index(operation))

    @property
    def fired(self) -> int:
        """Number of operations that met a fault."""
        return self._library.shim_fired()


class Clock:
    """Clocks that move by a millisecond whenever one is read, and may jump.

    The wall clock jumps forwards or backwards; the others only forwards, as when a
    machine was suspended.
    """

    def __init__(self) -> None:
        self.reads = 0
        self.jumps: dict[int, float] = {}
        """Seconds to jump by, by the number of the read."""
        self._wall, self._steady = 1.7e9, 1e5

    def install(self) -> None:
        """Take the place of Python's clocks, in this process."""
        time.time = self._read_wall
        time.time_ns = lambda: max(0, int(self._read_wall() * 1e6) * 1000)
        time.monotonic = time.perf_counter = self._read_steady

    def _read_wall(self) -> float:
        self._move()
        return self._wall

    def _read_steady(self) -> float:
        self._move()
        return self._steady

    def _move(self) -> None:
        jump = self.jumps.get(self.reads, 0.0)
        self._wall += 1e-3 + jump
        self._steady += 1e-3 + max(jump, 0.0)
        self.reads += 1


class Turns:
    """The turns of a recorder's thread, which a seed decides.

    The thread runs only while the recording program waits for it, so that the same seed
    gives the same order of all operations. It may be left waiting, as by a slow disk.
    """

    chance = random.Random(0)
    blocks = 0
    """Number of blocks that were written completely."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self._turn: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait(self) -> None:
        """Wait in the thread for its next turn."""
        self._idle.put(None)
        self._turn.get()

    def wait_until_idle(self) -> None:
        """Wait for the thread until it wants its next turn, or has ended."""
        while self.thread is not None and self.thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._idle.get(timeout=0.01)
                return

    def give(self) -> None:
        """Let the thread run until it wants its next turn."""
        if self.thread is not None and self.thread.is_alive():
            self._turn.put(None)
            self.wait_until_idle()

    @classmethod
    def install(cls, schedule: int) -> None:
        """Take turns in all recordings of this process."""
        cls.chance, cls.blocks = random.Random(schedule), 0
        current = [cls()]

        class Wake:
            """The queue that wakes a recorder's thread."""

            def __init__(self) -> None:
                self._turns = current[0] = cls()

            def put(self, item: None) -> None:
                del item
                if self._turns.chance.random() < 0.6:
                    self._turns.give()

            def get(self, timeout: float) -> None:
                del timeout
                self._turns.wait()

        class Thread(threading.Thread):
            """A thread that stands at its first turn when it has started."""

            def start(self) -> None:
                current[0].thread = self
                super().start()
                current[0].wait_until_idle()

        def sleep(seconds: float) -> None:
            del seconds
            current[0].give()

        def count(name: str) -> None:
            cls.blocks += name == "block"

        inside.take_recorder_turns(Wake, Thread, sleep, count)


class Injection:
    """The faults of one run.

    Args:
        folder: where the job writes its files.
        counts: operations of a run without faults; empty: count them.
        faults: those of this run.
        by_opcode: count opcodes in the place of lines.
        schedule: seed of the recorder's turns.
        note: called with what happens.
    """

    def __init__(
        self, folder: Path, counts: Counts, faults: tuple[Fault, ...], by_opcode: bool,
        schedule: int, note: Callable[..., None],
    ) -> None:  # fmt: skip
        self.note = note
        self.shim, self.clock = Shim(), Clock()
        self._running, self._acted = False, 0
        self._remote, self._lost = 0, set[int]()
        self._by_opcode, self._counting = by_opcode, not counts
        self._tracer, self._count = tracer.compiled(), 0
        self._actions: dict[int, Any] = {}
        Turns.install(schedule)
        self.clock.install()
        self.shim.begin(folder)
        for fault in faults:
            self._arm(fault, fault.number(counts))
        self.shim.pause(True)

    def run(self, call: Callable[[], object]) -> None:
        """Make a call that the faults may meet."""
        self._running = True
        self.shim.pause(False)
        end = 0 if self._counting else 1 + max(self._actions, default=0)
        self._tracer.start(
            tracer.SIMSTATE, self._actions, self._by_opcode, self._count, end
        )
        try:
            call()
        finally:
            self._count, places = self._tracer.stop()
            self._running = False
            self.shim.pause(True)
            self._acted += len(places)
            for file, line in places:
                self.note("met", place=f"{Path(file).name}:{line}")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave a part of a call alone: what a job does to observe itself."""
        was_running, self._running = self._running, False
        self._tracer.pause(True)
        self.shim.pause(True)
        try:
            yield
        finally:
            self._running = was_running
            self.shim.pause(not was_running)
            self._tracer.pause(False)

    def counts(self) -> dict[str, int]:
        """Return the operations so far."""
        found = {name: self.shim.count(name) for name in OPERATIONS}
        return found | {
            "step": self._count, "clock": self.clock.reads, "remote": self._remote,
        }  # fmt: skip

    @property
    def fired(self) -> int:
        """Number of operations that met a fault, but for those that ended the run."""
        jumped = sum(number < self.clock.reads for number in self.clock.jumps)
        lost = sum(number < self._remote for number in self._lost)
        return self.shim.fired + self._acted + jumped + lost

    def loses_worker(self) -> bool:
        """Count a call of a remote worker; return True if the worker is lost in it."""
        self._remote += 1
        return self._remote - 1 in self._lost

    def _arm(self, fault: Fault, number: int) -> None:
        shim, size = self.shim, fault.size
        match fault.kind:
            case "ctrl-c":
                self._actions[number] = KeyboardInterrupt
            case "two ctrl-c":
                self._actions[number] = KeyboardInterrupt
                self._actions[number + 1 + int(60 * size**2)] = KeyboardInterrupt
            case "kill":
                self._actions[number] = lambda: os.kill(os.getpid(), signal.SIGKILL)
            case "fork":
                self._actions[number] = self._fork
            case "thread count":
                self._actions[number] = lambda: torch.set_num_threads(2)
            case "jumping clock":
                self.clock.jumps[number] = (size - 0.4) * 1e6
            case "lost worker":
                self._lost.add(number)
            case "kill in a file operation":
                shim.add("disk", _KILL, 0, number)
            case "full disk":
                shim.add("write", _FAIL, errno.ENOSPC, number, _ALWAYS, size)
            case "short write":
                shim.add("write", _SHORT, 0, number, 1 + int(3 * size), size)
            case "torn write":
                shim.add("write", _TORN, 0, number, 1, size)
            case "failing write":
                shim.add("write", _FAIL, errno.EIO, number)
            case "failing fsync":
                shim.add("sync", _FAIL, errno.EIO, number)
            case "failing rename":
                shim.add("rename", _FAIL, errno.EIO, number)
            case "unreadable folder":
                shim.add("open", _FAIL, errno.EACCES, number, 1 + int(8 * size))
            case "failing allocation":
                shim.add("allocate", _FAIL, errno.ENOMEM, number)
            case _:
                raise ValueError(fault.kind)

    def _fork(self) -> None:
        """Fork a child that ends at once as a Python process does."""
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            self.shim.pause(True)
            atexit._run_exitfuncs()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            self.note("failure", text=f"a forked child ended with {status}")
