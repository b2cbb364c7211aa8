"""Tests that are collected once and run in forks, each with a mistake in its memory.

Importing the package and collecting tests take longer than most mistakes need to be
noticed. Here both are done once. A fork replaces the code of the functions that a
mistake changes, runs the chosen tests until one fails, and ends. What runs on import
keeps its old code: whoever finds that no test fails has to run a few in a new process.

A test that runs without end is stopped by the CPU time that it uses, so that a busy
machine changes no verdict.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest


class Collected:
    """A plugin of pytest that collects tests and hands itself to a function."""

    def __init__(self, folder: Path, use: Callable[[Collected], None]) -> None:
        self._folder, self._use = folder, use
        self._items: dict[str, pytest.Item] = {}
        self._failed = ""
        self._unusable: set[str] = set()
        self._usable: set[str] = set()
        self._allowed: dict[str, float] = {}
        """CPU time of tests that ran out of it once [s]."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Call the function instead of running the tests."""
        self._items = {item.nodeid: item for item in session.items}
        self._use(self)
        return True

    def known(self, tests: list[str]) -> list[str]:
        """Return the tests that are there; a map may be older."""
        files = {item.partition("::")[0] for item in self._items}
        return [test for test in tests if test in self._items or test in files]

    def again(self, tests: list[str]) -> list[str]:
        """Return the tests to run in a new process if none failed in a fork.

        These are the tests that did not run, and a few others: what runs on import
        reaches all of them.
        """
        did_not_run = self._unusable | {t for t in tests if t not in self._items}
        return [t for k, t in enumerate(tests) if k < 8 or t in did_not_run]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that fails."""
        if report.failed:
            self._failed = report.nodeid

    def first_failure(self, change: Callable[[], None], tests: list[str]) -> str:
        """Return the test that fails after a call that changes code, "" if none does.

        A test that fails in a fork without the change, too, does not count. "time" with
        a test: it uses five times the CPU time that it takes without the change, and
        five seconds. "hung" with a test: it uses none for a minute.
        """
        chosen = [t for t in tests if t in self._items and t not in self._unusable]
        while True:
            found, seconds = self._run(chosen, change)
            kind, _, test = found.rpartition(" ")
            if kind == "time" and test not in self._allowed:
                seconds = self._run([test], lambda: None)[1]
                self._allowed[test] = 5 * seconds + 5
                chosen = chosen[chosen.index(test) :]
            elif found in self._usable or found not in self._items:
                return found
            elif self._run([found], lambda: None)[0]:
                self._unusable.add(found)
                chosen = [t for t in chosen if t != found]
            else:
                self._usable.add(found)
                return found

    def _run(self, tests: list[str], first: Callable[[], None]) -> tuple[str, float]:
        """Run tests in a fork until one fails, after a call.

        Return the verdict and the CPU time that the last test used.
        """
        if not tests:
            return "", 0.0
        for name in ("failed", "running"):
            (self._folder / name).unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            self._be_child(tests, first)
        running = self._folder / "running"
        watch = Watch(child)
        while (status := watch.status()) is None:
            test = running.read_text() if running.exists() else ""
            if verdict := watch.verdict(test, self._allowed.get(test, 20.0)):
                watch.end()
                return f"{verdict} {test or tests[0]}", watch.seconds
        note = self._folder / "failed"
        known = note.read_text() if note.exists() else ""
        return known or ("" if status == 0 else f"exit {status}"), watch.seconds

    def _be_child(self, tests: list[str], first: Callable[[], None]) -> None:
        """Run tests and end this process."""
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        output = os.open(self._folder / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            first()
            items = [self._items[test] for test in tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                _write(self._folder / "running", item.nodeid)
                hook = item.config.hook
                hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    break
        except BaseException as error:
            self._failed = self._failed or f"{type(error).__name__}"
        if self._failed:
            (self._folder / "failed").write_text(self._failed)
        os._exit(0)


def _write(path: Path, text: str) -> None:
    """Write a file that another process may read at any time."""
    (path.parent / "new").write_text(text)
    (path.parent / "new").rename(path)


class Watch:
    """The CPU time of a process that leads a session, and of all others in it."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._test = ""
        self._before = 0.0
        self._next = 0.0
        self._last = time.monotonic(), 0.0
        """When CPU time was used last, and how much there was of it."""
        self.seconds = 0.0
        """CPU time of the present test."""

    def status(self) -> int | None:
        """Wait a moment; return the exit status once the process has ended."""
        time.sleep(0.02)
        done, status = os.waitpid(self._leader, os.WNOHANG)
        return status if done else None

    def verdict(self, test: str, allowed: float) -> str:
        """Return "time" if a test uses more than it may, "hung" if it uses none."""
        if test == self._test and time.monotonic() < self._next:
            return ""
        used = session_seconds(self._leader)
        self._next = time.monotonic() + 0.3
        if test != self._test:
            self._test, self._before = test, used
        self.seconds = used - self._before
        since, known = self._last
        if used > known + 0.05:
            self._last = since, _ = time.monotonic(), used
        if self.seconds > allowed:
            return "time"
        return "hung" if time.monotonic() - since > 60 else ""

    def end(self) -> None:
        """End the process and its group."""
        os.killpg(self._leader, signal.SIGKILL)
        os.waitpid(self._leader, 0)


def session_seconds(leader: int) -> float:
    """Return the CPU time of the processes of a session and of their ended children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def replace(path: Path, good: str, altered: str) -> None:
    """Give the functions of a loaded module the code of another text of it."""
    old, new = (compile(text, str(path), "exec") for text in (good, altered))
    codes = {_key(one): other for one, other in _pairs(old, new) if one != other}
    gc.unfreeze()  # else the objects that a session of tests froze are not listed
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename == str(path):
            code = codes.get(_key(thing.__code__))
            if code is not None:
                thing.__code__ = code


def use_library(path: Path) -> None:
    """Use another compiled core."""
    from tests.inside import use_core  # which imports the package

    use_core(path)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions of two texts that correspond, outer ones first."""
    yield old, new
    within = [
        [c for c in one.co_consts if isinstance(c, CodeType)] for one in (old, new)
    ]
    if len(within[0]) == len(within[1]):
        for pair in zip(*within, strict=True):
            yield from _pairs(*pair)
