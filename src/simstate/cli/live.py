"""Display during training: reward terms, ends of episodes, speed, time."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.console import PlainConsole

if TYPE_CHECKING:
    from simstate.train.training_logs import Progress, Report

EVERY_S = 2.0
"""Time between two printed lines without a terminal [s]."""


@contextmanager
def live_progress(out: PlainConsole, title: str, total: int) -> Generator[Report]:
    """Context manager that updates a table; without a terminal, it prints lines."""
    start, first = time.monotonic(), None

    def left(now: Progress) -> str:
        nonlocal first
        first = now.iteration - 1 if first is None else first
        each = (time.monotonic() - start) / (now.iteration - first)
        return duration(each * (total - now.iteration))

    if out.is_terminal:
        with Live(console=out, refresh_per_second=4) as live:
            yield lambda now: live.update(progress_table(now, title, total, left(now)))
        return
    last = time.monotonic()

    def report(now: Progress) -> None:
        nonlocal last
        remaining = left(now)
        if time.monotonic() - last > EVERY_S or now.iteration >= total:
            last = time.monotonic()
            share = f"{100 * now.iteration / total:.0f} %"
            out.print_line(f"{title}: {share} {progress_note(now)}, {remaining} left")
            out.file.flush()  # for readers that follow a log file

    yield report


def progress_table(now: Progress, title: str, total: int, left: str) -> Table:
    """Return one update: totals, reward by term, and why episodes ended."""
    title = f"{title}: update {now.iteration} of {total}"
    table = new_table(title, "quantity", ">value")
    if now.reward is not None and now.episode_length_s is not None:
        table.add_row("reward of an episode", f"{now.reward:.2f}")
        table.add_row("length of an episode", f"{now.episode_length_s:.1f} s")
    table.add_row("speed", f"{now.steps_per_second:,.0f} steps/s")
    table.add_row("time left", left)
    for section, label in (
        ("Episode_Reward", "reward"),
        ("Episode_Termination", "ended by"),
        ("Metrics", "metric"),
        ("Curriculum", "curriculum"),
    ):
        for k, (name, value) in enumerate(now.of(section).items()):
            if k == 0:
                table.add_section()
            table.add_row(f"{label} {name}", f"{value:.3f}")
    return table


def progress_note(now: Progress) -> str:
    """Return reward, episode length, most frequent end and speed, in one line."""
    speed = f"{now.steps_per_second:,.0f} steps/s"
    if now.reward is None or now.episode_length_s is None:
        return f"update {now.iteration}, no episode has ended yet, {speed}"
    ends = now.of("Episode_Termination")
    most = max(ends, key=lambda name: ends[name]) if ends else None
    reason = f", most end by {most}" if most else ""
    return (
        f"update {now.iteration}, reward {now.reward:.2f}, episode "
        f"{now.episode_length_s:.1f} s{reason}, {speed}"
    )


def duration(seconds: float) -> str:
    """Return a duration as text, in s, min or h."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 90.0 else f"{minutes / 60.0:.1f} h"
