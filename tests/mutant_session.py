"""Tests that are collected once and run in forks, each with a mistake in its memory.

Importing the package and collecting tests take longer than most mistakes need to be
noticed. Here both are done once. A fork replaces the code of the functions that a
mistake changes, runs the chosen tests until one fails, and ends. What runs on import
keeps its old code: whoever finds that no test fails has to run a few in a new process.
"""

from __future__ import annotations

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

    def first_failure(
        self, change: Callable[[], None], tests: list[str], seconds: float
    ) -> str:
        """Return the test that fails after a call that changes code, "" if none does.

        A test that fails in a fork without the change, too, does not count.
        """
        while True:
            chosen = [t for t in tests if t in self._items and t not in self._unusable]
            found = self._run(chosen, seconds, change)
            if found in self._usable or found not in self._items:
                return found
            if self._run([found], seconds, lambda: None):
                self._unusable.add(found)
            else:
                self._usable.add(found)
                return found

    def _run(self, tests: list[str], seconds: float, first: Callable[[], None]) -> str:
        """Run tests in a fork until one fails, after a call."""
        if not tests:
            return ""
        note = self._folder / "failed"
        note.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            self._be_child(tests, first, note)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                known = note.read_text() if note.exists() else ""
                return known or ("" if status == 0 else f"exit {status}")
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "time"

    def _be_child(
        self, tests: list[str], first: Callable[[], None], note: Path
    ) -> None:
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
                hook = item.config.hook
                hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    break
        except BaseException as error:
            self._failed = self._failed or f"{type(error).__name__}"
        if self._failed:
            note.write_text(self._failed)
        os._exit(0)


def replace(path: Path, good: str, altered: str) -> None:
    """Give the functions of a loaded module the code of another text of it."""
    old, new = (compile(text, str(path), "exec") for text in (good, altered))
    codes = {_key(one): other for one, other in _pairs(old, new) if one != other}
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
