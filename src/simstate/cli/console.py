"""Output of the commands: tables, progress and errors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table

from simstate.base.errors import SimStateError
from simstate.base.places import Place
from simstate.base.printable import printable
from simstate.cli.name_guess import meant

if TYPE_CHECKING:
    from simstate.study.oracles import Report


class Advance(Protocol):
    """Update of the progress display, from 0 to 1."""

    def __call__(self, fraction: float, note: str = "") -> None:
        """Show the completed fraction and a note."""
        ...


class PlainConsole(Console):
    """A console that prints no control characters of texts, which files may have."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of what is printed, with printable texts."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def console() -> Console:
    """Return standard output; without a terminal, wide plain text."""
    return PlainConsole() if sys.stdout.isatty() else PlainConsole(width=120)


def escaped(text: str) -> str:
    """Text with brackets in it, which a table would take for markup."""
    return text.replace("[", r"\[")


def report_error(error: Exception, place: Place | None = None) -> None:
    """Print an error as one message on standard error, with the user's line.

    What others than simstate raise is said with its kind.
    """
    said = str(error)
    if isinstance(error, SyntaxError):
        said = f"SyntaxError: {error.msg}"
    elif not isinstance(error, SimStateError | OSError):
        said = f"{type(error).__name__}: {said}{meant(error)}"
    lines = f"error: {said}"
    if place is not None:
        lines = f"error: {place}: {said}\n    {place.text}"
    PlainConsole(stderr=True).print(
        lines, markup=False, highlight=False, soft_wrap=True
    )


@contextmanager
def plain_warnings() -> Generator[None]:
    """While it is entered, a warning is a message on standard error, each said once."""
    said: set[str] = set()

    def show(message: Warning | str, *_: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            PlainConsole(stderr=True).print(
                f"warning: {message}", markup=False, highlight=False, soft_wrap=True
            )

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def progress(out: Console, title: str) -> Generator[Advance]:
    """A progress bar on a terminal; nothing elsewhere."""
    if out.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=out) as bar:
            task = bar.add_task(title, total=1.0, note="")

            def draw(fraction: float, note: str = "") -> None:
                bar.update(task, completed=fraction, note=note)

            yield draw
        return
    yield lambda fraction, note="": None


def verdict_table(report: Report, title: str) -> Table:
    """The worst check of each law."""
    table = Table(title=title, title_justify="left")
    table.add_column("law")
    table.add_column("worst quantity")
    table.add_column("error", justify="right")
    table.add_column("allowed", justify="right")
    table.add_column("verdict")
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
