"""`simstate runs`: compare training runs, in a table and as curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.live import duration
from simstate.cli.missing_extra import needs
from simstate.cli.options import AnswerCommand, check_plot

if TYPE_CHECKING:
    from simstate.train.run_records import RunRecord

MOST_SETTINGS = 6
"""Maximum number of columns of differing settings; --json has all of them."""


@dataclass
class RunsCommand(AnswerCommand):
    """Compare training runs: reward, length, time, and the settings that differ.

    Example: simstate runs runs/walk runs/sweep --plot curves.png
    """

    folders: Annotated[
        tuple[Path, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FOLDER", help="Folders of runs, at any depth."),
    ] = (Path("runs"),)
    plot: Path | None = None
    """Write the curves to this image file."""
    metric: str = "Train/mean_reward"
    """Metric of the curves: a name in progress.jsonl, as in TensorBoard."""

    def execute(self) -> Answer:
        """Run the command; return the runs."""
        check_plot("--plot", self.plot)
        with needs("train"):
            from simstate.train.run_records import differences, draw_curves, find_runs
        runs = find_runs(self.folders)
        if not runs:
            shown = ", ".join(map(str, self.folders))
            raise InvalidInputError(
                f"No run with a progress.jsonl in {shown}: name folders of runs."
            )
        differing = differences(runs)
        if self.plot is not None:
            self._check_metric(runs)
            draw_curves(self.plot, {_name(run): [run] for run in runs}, self.metric)
        drawn = [] if self.plot is None else [f"Curves: {self.plot}"]
        facts = [_facts(run, differing) for run in runs]
        return Answer(facts, [_table(runs, differing), *drawn])

    def _check_metric(self, runs: list[RunRecord]) -> None:
        from simstate.base.errors import unknown_name

        known = dict.fromkeys(k for run in runs for line in run.progress for k in line)
        if self.metric not in known:
            raise unknown_name("metric", self.metric, known)


def _name(run: RunRecord) -> str:
    return str(run.folder)


def _facts(run: RunRecord, differing: list[str]) -> dict[str, Any]:
    from simstate.train.run_records import LENGTH, REWARD

    settings = run.settings()
    return {
        "folder": str(run.folder),
        "updates": run.iteration,
        "updates_wanted": run.wanted,
        "reward": run.final(REWARD),
        "episode_steps": run.final(LENGTH),
        "seconds": run.seconds,
        "settings": {name: settings.get(name) for name in differing},
    }


def _table(runs: list[RunRecord], differing: list[str]) -> Table:
    shown = differing[:MOST_SETTINGS]
    more = len(differing) - len(shown)
    columns = ("folder", ">updates", ">reward", ">steps of an episode", ">time")
    table = new_table("Runs", *columns)
    if more:
        table.caption = f"{more} more settings differ: --json has them all."
    for name in shown:
        table.add_column(escaped(name), overflow="fold")
    for run in runs:
        facts = _facts(run, differing)
        done = f"{facts['updates']}"
        if facts["updates_wanted"] not in (None, facts["updates"]):
            done += f" of {facts['updates_wanted']}"
        table.add_row(
            _name(run),
            done,
            _number(facts["reward"]),
            _number(facts["episode_steps"]),
            duration(facts["seconds"]),
            *(escaped(_value(name, facts["settings"][name])) for name in shown),
        )
    return table


def _value(name: str, value: object) -> str:
    """Return a setting as text; a task by its short name."""
    from simstate.env.task import label_of

    if value is None:
        return "–"
    return label_of(str(value)) if name == "task" else str(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
