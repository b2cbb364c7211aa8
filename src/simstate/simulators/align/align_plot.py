"""The plot of an alignment's runs."""

# Matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path

import numpy as np

from simstate.base.samples import new_figure, save_figure
from simstate.simulators.align.findings import Alignment


def draw(alignment: Alignment, path: Path) -> None:
    """Draw how far bodies and energies part over time, for each simulator."""
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
                # Zero has no place on a logarithmic axis; the smallest rounding has.
                far = np.maximum(np.abs(gap[1:]), 1e-18)
                axes.semilogy(run.time[1:], far, style, color=f"C{k}", label=label)
    for axes in (apart, energy):
        axes.set_xlabel("time [s]")
        axes.grid(visible=True, alpha=0.3)
    apart.set_ylabel("greatest distance of a body [m]")
    energy.set_ylabel("difference in energy [J]")
    figure.suptitle(f"{alignment.model}: runs from one state, compared with MuJoCo's")
    handles, labels = apart.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2, fontsize="small"
    )
    save_figure(figure, path)
