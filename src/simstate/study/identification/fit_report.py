"""A fit as one HTML page: estimates, curves and undetermined parameters."""

# Matplotlib's types are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.checks import as_path
from simstate.base.files import write_atomically
from simstate.base.samples import new_figure
from simstate.study.identification.fit import Fit

MOST_COMPONENTS = 12
"""Number of components of a column that are drawn."""
_STYLE = (
    "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "td,th{padding:.2em .8em;text-align:right}td:first-child{text-align:left}"
    "tr:nth-child(even){background:#f3f3f3}img{max-width:100%}"
)


def write_report(fit: Fit, path: str | Path, title: str = "Identification") -> None:
    """Write a fit as a self-contained HTML page."""
    share = f"{100 * fit.confidence:g} %"
    estimates = [
        (one.name, f"{one.nominal:.5g}", f"{one.value:.5g}", f"{one.low:.5g}",
         f"{one.high:.5g}", one.unit, "" if one.is_determined else "not determined")
        for one in fit.estimates
    ]  # fmt: skip
    misfits = [
        (a.column, f"{a.nominal:.3g}", f"{a.fitted:.3g}", f"{b.nominal:.3g}",
         f"{b.fitted:.3g}", a.unit)
        for a, b in zip(fit.fitted, fit.held_out, strict=True)
    ]  # fmt: skip
    heads = ("parameter", "model", "estimate", f"{share} from", "to", "unit", "")
    parts = [
        f"<h1>{escape(title)}</h1>",
        _table(heads, estimates),
        _list("This log cannot determine", fit.undetermined),
        _list("Warnings", fit.warnings),
        "<h2>Error (rms)</h2>",
        _table(
            ("column", "fitted part, model", "fit", "held out, model", "fit", "unit"),
            misfits,
        ),
        "<h2>Held-out part</h2>",
        f'<img alt="log and predictions" src="data:image/png;base64,{_curves(fit)}">',
        "<h2>Changes of the model</h2>",
        f"<pre>{escape(chr(10).join(fit.mjcf_changes()))}</pre>",
        _list("Assumptions", fit.notes),
    ]
    page = (
        f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>{''.join(parts)}"
    )
    write_atomically(as_path("path", path), page.encode())


def draw_curves(fit: Fit) -> Any:
    """Return a figure of the held-out part: log, and predictions before and after."""
    names = list(fit.curves)
    figure = new_figure(8.0, 2.4 * len(names))
    grid = figure.subplots(len(names), 1, squeeze=False)[:, 0]
    for axes, name in zip(grid, names, strict=True):
        time, log, before, after = fit.curves[name]
        order = np.argsort(time, kind="stable")
        for k in range(min(log.shape[1], MOST_COMPONENTS)):
            colour = f"C{k % 10}"
            axes.plot(time[order], log[order, k], ".", color=colour, markersize=3)
            axes.plot(time[order], before[order, k], ":", color=colour, linewidth=1)
            axes.plot(time[order], after[order, k], "-", color=colour, linewidth=1)
        axes.set_title(f"{name}: log (dots), model (dotted), fit (line)", loc="left")
        axes.grid(visible=True, alpha=0.3)
    grid[-1].set_xlabel("time [s]")
    return figure


def _curves(fit: Fit) -> str:
    data = io.BytesIO()
    draw_curves(fit).savefig(data, format="png", dpi=110)
    return base64.b64encode(data.getvalue()).decode()


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _list(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<h2>{escape(title)}</h2><ul>{items}</ul>"
