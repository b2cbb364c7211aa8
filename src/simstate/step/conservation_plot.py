"""The plot of a conservation report: a panel for each conserved quantity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simstate.base.figures import new_figure, save_figure

if TYPE_CHECKING:
    from simstate.step.conservation import ConservationReport


def draw(report: ConservationReport, path: Path) -> None:
    """Draw the drift of each quantity over time, on logarithmic axes."""
    figure = new_figure(8.0, 5.0)
    grid = figure.subplots(2, 2, sharex=True)
    for axes, draw_panel in zip(grid.flat, panels(report), strict=True):
        draw_panel(axes)
    figure.supxlabel("time [s]", fontsize="small")
    figure.suptitle(
        f"{report.scheme}, time step {report.timestep:g} s: change since the start",
        fontsize="medium",
    )
    save_figure(figure, path)


def panels(report: ConservationReport, prefix: str = "") -> list[Callable[[Any], None]]:
    """Return functions that draw the drift of one quantity each on axes."""
    changes = {
        "energy [J]": np.abs(report.energy - report.energy[0]),
        "linear momentum, world axes [kg·m/s]": _change(report.linear_momentum),
        "angular momentum, origin [kg·m²/s]": _change(report.angular_momentum),
        "quaternion length [1]": report.quaternion_norm,
    }
    return [
        partial(_draw_panel, report.time, values, prefix + name)
        for name, values in changes.items()
    ]


def _draw_panel(time: np.ndarray, values: np.ndarray, title: str, axes: Any) -> None:
    # A logarithmic axis has no zero: the smallest rounding is drawn instead.
    axes.semilogy(time[1:], np.maximum(values[1:], 1e-18), color="C0", linewidth=1.1)
    axes.set_title(title, loc="left", fontsize="small")
    axes.grid(visible=True, alpha=0.3)


def _change(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors - vectors[0], axis=1)
