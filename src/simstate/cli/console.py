"""Output of the commands: tables, progress and errors."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from simstate.base.errors import SimStateError
from simstate.base.places import Place
from simstate.base.printable import printable
from simstate.base.table_style import new_table
from simstate.cli.name_guess import meant

if TYPE_CHECKING:
    from simstate.study.oracles import Report


AFTER_S = 2.0
"""Time after which a command shows its progress [s]."""


class Advance(Protocol):
    """Update of the progress display, from 0 to 1."""

    def __call__(self, fraction: float, note: str = "") -> None:
        """Show the completed fraction and a note."""
        ...


class PlainConsole(Console):
    """A console that escapes control characters, which texts from files may contain."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, after erasing the progress display."""
        for display in _displays:
            display.hide()
        super().print(*objects, **options)

    def print_line(self, text: object) -> None:
        """Print text unchanged, on one line."""
        self.print(str(text), markup=False, highlight=False, soft_wrap=True)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments to print, with printable text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def console() -> PlainConsole:
    """Return a console on standard output; 120 columns wide without a terminal."""
    return PlainConsole() if sys.stdout.isatty() else PlainConsole(width=120)


def escaped(text: str) -> str:
    """Return text with its brackets escaped, so that rich reads no markup in it."""
    return text.replace("[", r"\[")


def report_error(error: Exception, place: Place | None = None) -> None:
    """Print an error as one message on standard error, with the user's line and notes.

    Errors that simstate did not raise are printed with their type.
    """
    text = str(error)
    if isinstance(error, SyntaxError):
        text = f"SyntaxError: {error.msg}"
    elif not isinstance(error, SimStateError | OSError):
        text = f"{type(error).__name__}: {text}{meant(error)}"
    lines = f"error: {text}"
    if place is not None:
        lines = f"error: {place}: {text}\n    {place.text}"
    lines = "\n".join([lines, *getattr(error, "__notes__", ())])
    PlainConsole(stderr=True).print_line(lines)


@contextmanager
def plain_warnings() -> Generator[None]:
    """Context manager that prints each distinct warning once, on standard error."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            PlainConsole(stderr=True).print_line(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def verdict(text: str, passed: bool) -> Text:
    """Return a line in green if `passed`, else in red."""
    return Text(text, style="green" if passed else "bold red")


class _Display:
    """The progress display: a spinner or a bar on a terminal, after two seconds.

    Printing to the commands' console erases it, so that it never mixes with output.
    """

    def __init__(self, out: Console) -> None:
        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
            TextColumn("{task.fields[note]}"), TimeElapsedColumn(),
            TimeRemainingColumn(),
        )  # fmt: skip
        self._bar = Progress(*columns, console=out, transient=True)
        self._task = self._bar.add_task("", total=None, note="")
        self._lock = threading.Lock()
        self._is_shown = self._is_closed = False
        self._wait()

    def update(self, title: str, fraction: float | None, note: str = "") -> None:
        """Set the title, the completed fraction (None: unknown) and a note."""
        total = None if fraction is None else 1.0
        self._bar.update(
            self._task, description=title, total=total, completed=fraction or 0.0,
            note=note,
        )  # fmt: skip

    def _wait(self) -> None:
        self._timer = threading.Timer(AFTER_S, self.show)
        self._timer.daemon = True
        self._timer.start()

    def show(self) -> None:
        """Draw the display, until the next `hide`."""
        with self._lock:
            if not (self._is_shown or self._is_closed):
                self._is_shown = True
                self._bar.start()

    def hide(self) -> None:
        """Erase the display for two seconds."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._bar.stop()
                self._wait()

    def close(self) -> None:
        """Erase the display permanently."""
        self.hide()
        with self._lock:
            self._is_closed = True
            self._timer.cancel()


_displays: list[_Display] = []
"""The display of the running command, if it has one."""


@contextmanager
def working(title: str) -> Generator[None]:
    """Context manager that shows a progress display, on a terminal only."""
    out = Console(stderr=True)
    if not (out.is_terminal and sys.stdout.isatty()):
        yield
        return
    display = _Display(out)
    display.update(title, None)
    _displays.append(display)
    try:
        yield
    finally:
        _displays.remove(display)
        display.close()


@contextmanager
def progress(title: str) -> Generator[Advance]:
    """Context manager that yields a function to show the completed fraction."""

    def advance(fraction: float, note: str = "") -> None:
        for display in _displays[-1:]:
            display.update(title, fraction, note)

    yield advance
    for display in _displays[-1:]:
        display.update(title, None)


def verdict_table(report: Report, title: str) -> Table:
    """Return the worst check of each law, as a table."""
    columns = ("law", "worst quantity", ">error", ">allowed", "verdict")
    table = new_table(title, *columns)
    for check in report.worst():
        verdict = "[green]holds[/]" if check.passed else "[bold red]FAILED[/]"
        if check.note:
            verdict = "[yellow]holds, see below[/]"
        table.add_row(
            check.law,
            f"{check.entity}.{check.quantity}",
            f"{check.error:.1e}",
            "exact" if check.tolerance == 0 else f"{check.tolerance:.0e}",
            verdict,
        )
    return table
