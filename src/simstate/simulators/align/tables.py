"""An alignment as tables for a terminal, and its runs as a plot."""

# Matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simstate.base.samples import new_figure, save_figure
from simstate.base.table_style import as_plain_text, new_table
from simstate.simulators.align.findings import (
    Alignment,
    Comparison,
    RunGap,
    SimulatorAlignment,
)

BOUNDS = (1e-3, 1e-2, 1e-1)
"""Distances [m] whose horizons reports give."""


def as_text(alignment: Alignment, width: int = 120) -> str:
    """Format the report as plain text."""
    return as_plain_text(as_tables(alignment), width)


def as_tables(alignment: Alignment) -> RenderableType:
    """Return the report: for each simulator gaps, differences and causes."""
    parts: list[RenderableType] = []
    for simulator in alignment.simulators:
        parts += [_heading(alignment.model, simulator), *_simulator(simulator), ""]
    for name, reason in alignment.skipped.items():
        parts.append(_plain(f"{name}: not compared. {reason}"))
    return Group(*parts)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def _heading(model: str, simulator: SimulatorAlignment) -> str:
    return _plain(f"{model}: MuJoCo and {simulator.title}")


def _simulator(simulator: SimulatorAlignment) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if simulator.missing:
        lines = [
            f"  {feature} ({_some(missing.elements)}): {missing.why}"
            for feature, missing in simulator.missing.items()
        ]
        parts.append(_plain("Declared as unsupported\n" + "\n".join(lines)))
    if simulator.parameters:
        parts.append(_parameter_table(simulator))
    parts.append(_comparison_table(simulator))
    for cause in simulator.causes.values():
        parts.append(_plain(f"  cause: {cause.text}"))
    for comparison in simulator.unexplained:
        parts.append(
            _plain(
                f"  UNEXPLAINED: {comparison.quantity} differs by "
                f"{comparison.difference:.2g} {comparison.unit}"
            )
        )
    if simulator.trajectory is not None:
        parts.append(_trajectory_lines(simulator))
    if simulator.notes:
        more = len(simulator.notes) - 1
        tail = f" … and {more} more, in --json" if more else ""
        parts.append(_plain(f"Its message on the model: {simulator.notes[0]}{tail}"))
    return parts


def _some(names: tuple[str, ...], most: int = 3) -> str:
    more = f", … {len(names)} in all" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _parameter_table(simulator: SimulatorAlignment, most: int = 20) -> Table:
    columns = ("parameter", "element", "MuJoCo", simulator.title, "unit")
    table = new_table("Parameters that differ", *columns)
    for difference in simulator.parameters[:most]:
        table.add_row(
            difference.kind, difference.element, *difference.texts, difference.unit
        )
    more = len(simulator.parameters) - most
    if more > 0:
        table.add_row(f"… and {more} more", "", "", "", "")
    return table


def _comparison_table(simulator: SimulatorAlignment) -> Table:
    columns = ("quantity", ">size", ">difference", ">remainder", ">allowed", "verdict")
    table = new_table("The same states in both", *columns)
    for comparison in simulator.comparisons:
        table.add_row(comparison.quantity, *_figures(comparison), _verdict(comparison))
    return table


def _figures(comparison: Comparison) -> tuple[str, str, str, str]:
    if comparison.verdict in ("not reported", "not applicable"):
        return ("", "", "", "")
    return (
        f"{comparison.scale:.2g}",
        f"{comparison.difference:.1e}",
        f"{comparison.remainder:.1e}",
        f"{comparison.allowed:.0e}",
    )


_STYLES = {"agrees": "green", "explained": "green", "unexplained": "bold red"}
"""Colours of verdicts on a terminal."""


def _verdict(comparison: Comparison) -> Text:
    text = comparison.verdict
    if comparison.verdict == "explained":
        text = "explained: " + ", ".join(cause.what for cause in comparison.causes)
    return Text(text, style=_STYLES.get(comparison.verdict, ""))


def _trajectory_lines(simulator: SimulatorAlignment) -> str:
    lines: list[str] = []
    for label, run in (
        ("original", simulator.trajectory),
        ("matched", simulator.matched),
    ):
        if run is not None:
            lines.append(f"  {label:8s} {trajectory_line(run)}")
    return _plain("A run from the initial state\n" + "\n".join(lines))


def trajectory_line(run: RunGap) -> str:
    """Format a run: differences at its end, and when a body exceeded each bound."""
    horizons = ", ".join(
        f"{bound:g} m " + (f"after {at:.3g} s" if at is not None else "never")
        for bound, at in ((bound, run.horizon(bound)) for bound in BOUNDS)
    )
    end = (
        f"after {run.time[-1]:.3g} s bodies {run.bodies[-1]:.1e} m, joints "
        f"{run.joints[-1]:.1e}, energy {run.energy[-1]:.4g} and "
        f"{run.their_energy[-1]:.4g} J"
    )
    stopped = f"; it ended: {run.ended}" if run.ended else ""
    return f"{end}; a body off by {horizons}{stopped}"


def draw(alignment: Alignment, path: Path) -> None:
    """Plot differences of bodies and energies over time, for each simulator."""
    figure = new_figure(9.0, 4.0)
    apart, energy = figure.subplots(1, 2)
    for k, simulator in enumerate(alignment.simulators):
        for run, style, label in (
            (simulator.trajectory, "-", simulator.title),
            (simulator.matched, ":", f"{simulator.title}, parameters matched"),
        ):
            if run is None:
                continue
            gaps = np.array(run.bodies), np.subtract(run.their_energy, run.energy)
            for axes, gap in zip((apart, energy), gaps, strict=True):
                size = np.maximum(np.abs(gap[1:]), 1e-18)  # the axis is logarithmic
                axes.semilogy(run.time[1:], size, style, color=f"C{k}", label=label)
    for axes in (apart, energy):
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    apart.set_ylabel("largest distance of a body [m]")
    energy.set_ylabel("difference in energy [J]")
    figure.suptitle(f"{alignment.model}: runs from one state, compared with MuJoCo's")
    handles, labels = apart.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2, fontsize="small"
    )
    save_figure(figure, path)
