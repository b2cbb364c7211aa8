"""Rows of a table of call costs: by hand, by simstate, and a target.

A row is a function, registered under its label by `row`, that measures when it is
called; `main` measures the selected rows and prints the table.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import torch
from rich.console import Console
from rich.table import Table

from timing import Timing, interleaved

Call = Callable[[], object]
COLUMNS = ("row", "by hand (µs)", "simstate (µs)", "compared", "target")


@dataclass(frozen=True)
class Result:
    """The cells of a row, and its numbers."""

    ours: str
    hand: str = "–"
    compared: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Timed:
    """A call to time: `loops` calls in each repeat, after `prepare`, not timed.

    The time is reported per step of a call that takes several `steps`.
    """

    call: Call
    prepare: Call = lambda: None
    loops: int = 1
    steps: int = 1

    def run(self) -> None:
        """Call `loops` times."""
        call = self.call
        for _ in range(self.loops):
            call()


Row = Callable[[], Result]
ROWS: dict[str, tuple[str, Row]] = {}
"""The target and the function of each row, by label."""


def row(label: str, target: str) -> Callable[[Row], Row]:
    """Register a function under a label, with the target of its row."""

    def register(function: Row) -> Row:
        ROWS[label] = (target, function)
        return function

    return register


def measure(repeats: int = 31, **calls: Timed) -> dict[str, Timing]:
    """Return the CPU time per step of each call, from interleaved repeats."""
    runs = {name: timed.run for name, timed in calls.items()}
    prepare = {name: timed.prepare for name, timed in calls.items()}
    for timed in calls.values():
        timed.prepare()
    times = interleaved(runs, repeats, prepare, time.process_time)
    counts = {name: timed.loops * timed.steps for name, timed in calls.items()}
    return {name: time.per(counts[name]) for name, time in times.items()}


def alone(repeats: int = 31, **calls: Timed) -> Result:
    """Return a row without a counterpart by hand; several calls share a cell."""
    times = measure(repeats, **calls)
    return Result(" / ".join(map(_cell, times.values())), figures=_figures(times))


def difference(repeats: int = 31, **calls: Timed) -> Result:
    """Return a row for the calls `ours` and `hand`, compared by the difference."""
    times = measure(repeats, **calls)
    ours, hand = times["ours"], times["hand"]
    compared = f"{(ours.median - hand.median) * 1e6:+,.1f} µs"
    return Result(_cell(ours), _cell(hand), compared, _figures(times))


def ratio(repeats: int = 31, **calls: Timed) -> Result:
    """Return a row for the calls `ours` and `hand`, compared by the ratio."""
    times = measure(repeats, **calls)
    ours, hand = times["ours"], times["hand"]
    compared = f"{ours.median / hand.median:.2f} ×"
    return Result(_cell(ours), _cell(hand), compared, _figures(times))


def _cell(timing: Timing) -> str:
    """The median and, in parentheses, the minimum; three digits or more [µs]."""
    median, least = timing.median * 1e6, timing.least * 1e6
    digits = 2 if median < 1 else 1 if median < 100 else 0
    return f"{median:,.{digits}f} ({least:,.{digits}f})"


def _figures(times: dict[str, Timing]) -> dict[str, float]:
    return {
        f"{name}, {kind} [us]": value * 1e6
        for name, timing in times.items()
        for kind, value in (("median", timing.median), ("minimum", timing.least))
    }


def main(description: str | None) -> None:
    """Measure the selected rows, print the table and optionally write JSON."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", metavar="TEXT", help="only rows whose label has TEXT")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write rows here"
    )
    args = parser.parse_args()
    chosen = {label: ROWS[label] for label in ROWS if (args.rows or "") in label}
    if not chosen:
        parser.error(f"no row contains {args.rows!r}; the rows are: {', '.join(ROWS)}")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # CPU time counts the threads that wait
    facts: dict[str, Any] = {
        "load": round(os.getloadavg()[0], 1),
        "mujoco": mujoco.__version__,
        "torch": torch.__version__,
    }
    begun = time.monotonic()
    results = {label: function() for label, (_, function) in chosen.items()}
    facts["seconds"] = round(time.monotonic() - begun)
    table = Table(
        title="CPU time, median (minimum) of interleaved repeats; load "
        f"{facts['load']} before the run, MuJoCo {facts['mujoco']}, "
        f"{facts['seconds']} s"
    )
    for column in COLUMNS:
        table.add_column(column)
    for label, result in results.items():
        cells = (result.hand, result.ours, result.compared)
        table.add_row(label, *cells, chosen[label][0])
    Console(width=165, markup=False).print(table)
    if args.json:
        rows = {
            label: asdict(result) | {"target": chosen[label][0]}
            for label, result in results.items()
        }
        content = {"machine": facts, "rows": rows}
        args.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
