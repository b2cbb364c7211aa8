"""The plot of an alignment's runs."""

# Matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path

import numpy as np

from simstate.figures import new_figure, save_figure
from simstate.simulators.align.report import Alignment


def draw(alignment: Alignment, path: Path) -> None:
    """Draw how far the bodies part over time, and the energy, for each simulator."""
    figure = new_figure(9.0, 4.0)
    apart, energy = figure.subplots(1, 2)
    ours_drawn = False
    for simulator in alignment.simulators:
        for run, style, label in (
            (simulator.trajectory, "-", simulator.title),
            (simulator.matched, ":", f"{simulator.title}, parameters matched"),
        ):
            if run is None:
                continue
            # Zero has no place on a logarithmic axis; the smallest rounding has.
            far = np.maximum(np.array(run.bodies[1:]), 1e-18)
            (line,) = apart.semilogy(run.time[1:], far, style, label=label)
            if style == "-":
                if not ours_drawn:
                    energy.plot(run.time, run.energy, "k-", label="MuJoCo")
                    ours_drawn = True
                energy.plot(run.time, run.their_energy, "--", color=line.get_color())
    apart.set_xlabel("time [s]")
    apart.set_ylabel("greatest distance of a body [m]")
    apart.grid(visible=True, alpha=0.3)
    energy.set_xlabel("time [s]")
    energy.set_ylabel("energy, by MuJoCo's masses [J]")
    energy.grid(visible=True, alpha=0.3)
    figure.suptitle(f"{alignment.model}: runs from one state")
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    save_figure(figure, path)
