"""Runs on disk: what they were, how far they came, and how they compare."""

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
"""Updates at the end that a run's figures are means over."""


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
        """Updates that were done."""
        return int(self.progress[-1]["iteration"]) if self.progress else 0

    @property
    def wanted(self) -> int | None:
        """Number of updates requested at first."""
        return self.facts.get("settings", {}).get("train.iterations")

    @property
    def seconds(self) -> float:
        """Time that gathering and learning took [s]."""
        names = ("Perf/collection_time", "Perf/learning_time")
        return sum(line.get(name, 0.0) for line in self.progress for name in names)

    def settings(self) -> dict[str, Any]:
        """Task, seed, engine, device and every setting, by name."""
        plain = {k: self.facts.get(k) for k in ("task", "seed", "engine", "device")}
        return {**plain, **self.facts.get("settings", {})}

    def final(self, name: str) -> float | None:
        """The mean of a logged number over the last updates; None: it has none."""
        values = [line[name] for line in self.progress[-LAST:] if name in line]
        return statistics.mean(values) if values else None

    def curve(self, name: str) -> tuple[list[float], list[float]]:
        """Updates, and a logged number at each of them."""
        lines = [line for line in self.progress if name in line]
        return [line["iteration"] for line in lines], [line[name] for line in lines]


def find_runs(folders: Iterable[Path]) -> list[RunRecord]:
    """The runs in folders, or in folders of these, by name."""
    found: dict[Path, RunRecord] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInputError(f"There is no folder {str(folder)!r}.")
        for file in sorted(folder.rglob(PROGRESS)):
            found[file.parent] = read_run(file.parent)
    return list(found.values())


def read_run(folder: Path) -> RunRecord:
    """The run of a folder."""
    path = folder / FILE
    facts: dict[str, Any] = {}
    if path.is_file():
        facts = json.loads(path.read_text(encoding="utf-8"))
    return RunRecord(folder, read_progress(folder), facts)


def differences(runs: Sequence[RunRecord]) -> list[str]:
    """The settings that are not the same in all runs of a task, by name.

    Runs of several tasks differ in "task"; what other settings another task has says
    nothing of how a run was made.
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
    """Draw a logged number over updates: a colour for each group, its mean on top."""
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
    """The mean over runs at the updates that all of them have."""
    tables = [dict(zip(*curve, strict=True)) for curve in curves]
    common = sorted(set(tables[0]).intersection(*tables[1:]))
    return common, [statistics.mean(table[at] for table in tables) for at in common]
