"""Outcome: the results of a study's worlds, their statistics and envelopes."""

# Torch's signature of tolist is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import as_path
from simstate.base.errors import InvalidInputError
from simstate.base.files import write_atomically
from simstate.base.samples import check_figure_file, new_figure, save_figure
from simstate.study.dispersions.bounds import (
    mean_bounds,
    proportion_bounds,
    quantile_bounds,
)

SHARES = (0.05, 0.5, 0.95)
"""Quantiles in the table, as fractions."""


@dataclass(frozen=True)
class Row:
    """One statistic of the table, with confidence bounds."""

    result: str
    unit: str
    statistic: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcome:
    """Results of the worlds of a study; tensors have a row for each world."""

    results: dict[str, Tensor]
    """Results by name; (worlds,) each."""
    draws: dict[str, Tensor]
    """Drawn values by name; (worlds, …) each."""
    units: dict[str, str]
    """Units of the results, "" where none was given."""
    times: Tensor | None
    """Times of the recorded samples [s]; (samples,)."""
    histories: dict[str, Tensor]
    """Recorded quantities, NaN after the end of a world; (samples, worlds, …)."""
    history_units: dict[str, str]
    """Units of the recorded quantities."""
    worst_by: str
    """Result by which the worst world is chosen."""
    seed: int

    @property
    def worst_world(self) -> int:
        """World whose result `worst_by` is NaN or has the largest magnitude."""
        values = self.results[self.worst_by].double().abs()
        return int(values.nan_to_num(nan=torch.inf).argmax())

    def table(self, confidence: float = 0.95) -> list[Row]:
        """Return mean, quantiles and extremes of results, or probabilities of bools."""
        rows: list[Row] = []
        for name, values in self.results.items():
            unit = self.units.get(name, "")
            if values.dtype == torch.bool:
                count, n = int(values.sum()), len(values)
                bounds = proportion_bounds(count, n, confidence)
                rows.append(Row(name, "", "probability", count / n, *bounds))
                continue
            finite = values[values.isfinite()]
            if len(finite):
                rows += _statistics(name, unit, finite, confidence)
            if len(finite) < len(values):
                lost = len(values) - len(finite)
                bounds = proportion_bounds(lost, len(values), confidence)
                rows.append(Row(name, "", "not finite", lost / len(values), *bounds))
        return rows

    def save_csv(self, path: str | Path) -> None:
        """Write the draws and results of every world, one line each."""
        columns: dict[str, Any] = {}
        for name, values in {**self.draws, **self.results}.items():
            flat = values.reshape(len(values), -1)
            for k in range(flat.shape[1]):
                key = name if values.ndim == 1 else f"{name}[{k}]"
                columns[key] = flat[:, k].tolist()
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(["world", *columns])
        for world, row in enumerate(zip(*columns.values(), strict=True)):
            writer.writerow([world, *row])
        write_atomically(as_path("path", path), text.getvalue().encode())

    def plot(self, path: str | Path) -> None:
        """Plot the recorded quantities: median, 5 to 95 %, range and worst world."""
        path = as_path("path", path)
        check_figure_file(path)
        if self.times is None:
            raise InvalidInputError(
                "Nothing was recorded that could be plotted: give the study record=…, "
                "the quantities to record.",
                name="record",
            )
        time = self.times.numpy()
        panels = [
            (name if values.ndim == 2 else f"{name}[{k}]",
             self.history_units[name], values.reshape(*values.shape[:2], -1)[..., k])
            for name, values in self.histories.items()
            for k in range(values[0, 0].numel())
        ]  # fmt: skip
        figure = new_figure(7.0, 1.0 + 2.0 * len(panels))
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, unit, values) in zip(grid, panels, strict=True):
            shares = values.new_tensor([0.0, 0.05, 0.5, 0.95, 1.0])
            low, five, half, most, high = values.nanquantile(shares, dim=1).numpy()
            axes.fill_between(time, low, high, alpha=0.15, label="all")
            axes.fill_between(time, five, most, alpha=0.35, label="5 to 95 %")
            axes.plot(time, half, label="median")
            worst = values[:, self.worst_world].numpy()
            axes.plot(time, worst, "--", label=f"world {self.worst_world}, worst")
            axes.set_ylabel(f"{name} [{unit}]" if unit else name)
            axes.grid(visible=True, alpha=0.3)
        grid[-1].set_xlabel("time [s]")
        grid[0].legend(fontsize="small", frameon=False)
        save_figure(figure, path)


def _statistics(name: str, unit: str, values: Tensor, confidence: float) -> list[Row]:
    """Return mean, deviation, quantiles and extremes of finite values."""
    none = math.nan, math.nan
    deviation = float(values.std()) if len(values) > 1 else math.nan
    quantiles = [
        Row(
            name, unit, f"{100 * share:g} %", float(values.quantile(share)),
            *quantile_bounds(values, share, confidence),
        )
        for share in SHARES
    ]  # fmt: skip
    return [
        Row(name, unit, "mean", float(values.mean()), *mean_bounds(values, confidence)),
        Row(name, unit, "deviation", deviation, *none),
        *quantiles,
        Row(name, unit, "least", float(values.min()), *none),
        Row(name, unit, "greatest", float(values.max()), *none),
    ]
