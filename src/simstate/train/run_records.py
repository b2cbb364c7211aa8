"""Runs on disk: their settings, their progress and a comparison."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError
from simstate.base.samples import new_figure, save_figure
from simstate.train.run_file import FILE
from simstate.train.training_logs import PROGRESS, read_progress

REWARD = "Train/mean_reward"
LENGTH = "Train/mean_episode_length"
LAST = 10
"""Number of last updates for the means of a run."""


@dataclass(frozen=True)
class RunRecord:
    """A run, read from its folder."""

    folder: Path
    progress: list[dict[str, float]]
    """Logged values of each update, oldest first."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """Contents of run.json."""

    @property
    def iteration(self) -> int:
        """Number of updates."""
        return int(self.progress[-1]["iteration"]) if self.progress else 0

    @property
    def wanted(self) -> int | None:
        """Number of updates that were requested initially."""
        return self.facts.get("settings", {}).get("train.iterations")

    @property
    def seconds(self) -> float:
        """Time of collecting experience and learning [s]."""
        names = ("Perf/collection_time", "Perf/learning_time")
        return sum(line.get(name, 0.0) for line in self.progress for name in names)

    def settings(self) -> dict[str, Any]:
        """Return task, seed, engine, device and every setting, by name."""
        plain = {k: self.facts.get(k) for k in ("task", "seed", "engine", "device")}
        return {**plain, **self.facts.get("settings", {})}

    def final(self, name: str) -> float | None:
        """Return the mean of a logged value over the last updates, or None."""
        values = [line[name] for line in self.progress[-LAST:] if name in line]
        return statistics.mean(values) if values else None

    def curve(self, name: str) -> tuple[list[float], list[float]]:
        """Return updates, and a logged value at each of them."""
        lines = [line for line in self.progress if name in line]
        return [line["iteration"] for line in lines], [line[name] for line in lines]


def find_runs(folders: Iterable[Path]) -> list[RunRecord]:
    """Return the runs in folders and their subfolders, by name."""
    found: dict[Path, RunRecord] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInputError(f"There is no folder {str(folder)!r}.")
        for file in sorted(folder.rglob(PROGRESS)):
            found[file.parent] = read_run(file.parent)
    return list(found.values())


def read_run(folder: Path) -> RunRecord:
    """Return the run of a folder."""
    path = folder / FILE
    facts: dict[str, Any] = {}
    if path.is_file():
        facts = json.loads(path.read_text(encoding="utf-8"))
    return RunRecord(folder, read_progress(folder), facts)


def differences(runs: Sequence[RunRecord]) -> list[str]:
    """Return the names of settings that differ between runs of the same task.

    Runs of several tasks also differ in "task"; their other settings are not compared.
    """
    by_task: dict[Any, list[dict[str, Any]]] = {}
    for run in runs:
        by_task.setdefault(run.facts.get("task"), []).append(run.settings())
    names = dict.fromkeys(n for each in by_task.values() for one in each for n in one)
    return [
        name
        for name in names
        if any(
            one.get(name) != each[0].get(name)
            for each in by_task.values()
            for one in each
        )
        or (name == "task" and len(by_task) > 1)
    ]


def draw_curves(
    path: Path, groups: Mapping[str, Sequence[RunRecord]], metric: str = REWARD
) -> None:
    """Plot a logged value over updates: a colour for each group, and its mean."""
    figure = new_figure(width=7.0, height=4.0)
    axes = figure.subplots()
    for k, (label, runs) in enumerate(groups.items()):
        curves = [run.curve(metric) for run in runs]
        for updates, values in curves:
            alone = len(runs) == 1
            axes.plot(
                updates,
                values,
                color=f"C{k % 10}",
                alpha=1.0 if alone else 0.35,
                label=label if alone else None,
            )
        if len(runs) > 1:
            axes.plot(*_mean_curve(curves), color=f"C{k % 10}", label=f"{label}, mean")
    axes.set_xlabel("updates")
    axes.set_ylabel(metric)
    axes.legend(fontsize="small")
    save_figure(figure, path)


def _mean_curve(
    curves: Sequence[tuple[list[float], list[float]]],
) -> tuple[list[float], list[float]]:
    """Return the mean over runs at the updates that all of them have."""
    tables = [dict(zip(*curve, strict=True)) for curve in curves]
    common = sorted(set(tables[0]).intersection(*tables[1:]))
    return common, [statistics.mean(table[at] for table in tables) for at in common]
