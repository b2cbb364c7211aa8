"""Figures drawn with matplotlib, which is loaded when one is drawn."""

# Matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError, listed


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure of that size [inch], without a window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InvalidInputError(
            "Plots need matplotlib: pip install 'simstate[plot]'."
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_figure_file(path: Path) -> None:
    """Raise before the work, not after it, if no figure can be written there."""
    kinds = new_figure(1.0, 1.0).canvas.get_supported_filetypes()
    kind = path.suffix.removeprefix(".").lower()
    if kind and kind not in kinds:
        raise InvalidInputError(
            f"{str(path)!r} is not a kind of image that can be written. Known: "
            f"{listed(kinds)}."
        )


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as the kind of image that the file's name says."""
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"The plot could not be written: {error}") from error
