"""The plot of a conservation report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simstate.base.figures import new_figure, save_figure

if TYPE_CHECKING:
    from simstate.step.conservation import ConservationReport


def draw(report: ConservationReport, path: Path) -> None:
    """Draw the drift of each quantity over time, on logarithmic axes."""
    figure = new_figure(7.0, 4.5)
    axes = figure.add_subplot()
    change = {
        "energy [J]": np.abs(report.energy - report.energy[0]),
        "linear momentum, world axes [kg·m/s]": _change(report.linear_momentum),
        "angular momentum about the origin [kg·m²/s]": _change(report.angular_momentum),
        "quaternion length [1]": report.quaternion_norm,
    }
    for name, values in change.items():
        # Zero has no place on a logarithmic axis; the smallest rounding has.
        axes.semilogy(report.time[1:], np.maximum(values[1:], 1e-18), label=name)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("change since the start")
    axes.set_title(f"{report.scheme}, time step {report.timestep:g} s")
    axes.grid(visible=True, alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    save_figure(figure, path)


def _change(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors - vectors[0], axis=1)
