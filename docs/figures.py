"""Draws the figures of docs/conventions.md from the runs in docs/pitfalls.py.

    make docs        # or, with matplotlib, python docs/figures.py

The same runs give the same files: there is no date in them and no random id.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pitfalls
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pitfalls import Run

FOLDER = Path(__file__).parent / "figures"
COLOURS = ("#b3452c", "#2c7a4b", "#2f5d9b")
STYLE = {
    "svg.hashsalt": "simstate",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
}
UNITS = {
    "angular_velocity_axes": "1",
    "force_axes": "m/s",
    "torque_axes": "rad/s",
    "velocity_point": "m/s",
    "angle_units": "yaw [deg]",
    "stale_matrix": "rad",
}


def draw_curves(axes: Axes, times: np.ndarray, curve: np.ndarray) -> None:
    """One line for each component, named at its end."""
    columns = curve.reshape(len(times), -1)
    for k, values in enumerate(columns.T):
        colour = COLOURS[k % 3] if columns.shape[1] > 1 else COLOURS[2]
        axes.plot(times, values, color=colour, linewidth=1.6)
        if columns.shape[1] > 1:
            axes.annotate(
                "xyz"[k],
                (times[-1], values[-1]),
                color=colour,
                xytext=(4, (k - 1) * 5),
                textcoords="offset points",
                va="center",
            )
    axes.set_xlabel("time [s]")


def draw_vectors(axes: Axes, vectors: dict[str, np.ndarray], unit: str) -> None:
    """The components of each vector as bars, side by side."""
    for k, (name, values) in enumerate(vectors.items()):
        count = len(values)
        places = k + (np.arange(count) - (count - 1) / 2) * 0.24
        colours = [COLOURS[i % 3] if count > 1 else COLOURS[2] for i in range(count)]
        axes.bar(places, values, width=0.2, color=colours)
        for i, (place, value) in enumerate(zip(places, values, strict=True)):
            label = "xyz"[i] if count == 3 else f"{value:.4f}"
            axes.annotate(
                label, (place, value), xytext=(0, 3 if value > -1e-9 else -10),
                textcoords="offset points", ha="center",
            )  # fmt: skip
        axes.annotate(name, (k, 0), xycoords=("data", "axes fraction"), ha="center",
                      xytext=(0, -14), textcoords="offset points")  # fmt: skip
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set_xticks([])
    axes.margins(y=0.2)
    axes.set_ylabel(unit or "component")


def draw(name: str, run: Run) -> None:
    """The figure of one run, as an SVG file."""
    count = max(1, len(run.curves))
    figure, grid = plt.subplots(
        1, count, figsize=(3.1 * count + 1.2, 2.2), squeeze=False
    )
    unit = UNITS.get(name, "")
    if run.curves:
        for axes, (title, curve) in zip(grid[0], run.curves.items(), strict=True):
            draw_curves(axes, run.times, curve)
            axes.set_title(title)
            axes.set_ylabel(unit)
    else:
        shown = {k: v for k, v in run.vectors.items() if k != "quat"}
        draw_vectors(grid[0][0], shown, unit)
    save(figure, name)


def save(figure: Figure, name: str) -> None:
    """Write a figure as an SVG file that says nothing of when it was made."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    print(f"docs/figures/{name}.svg")


def main() -> None:
    """Draw all of them."""
    matplotlib.use("svg")
    FOLDER.mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        for name, run in pitfalls.RUNS.items():
            draw(name, run("native"))


if __name__ == "__main__":
    main()
