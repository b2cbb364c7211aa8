"""Several runs in one command: seeds and grids, with a summary table and a plot."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.console import PlainConsole

if TYPE_CHECKING:
    from simstate.cli.train import TrainCommand
    from simstate.train.run_records import RunRecord
    from simstate.train.sweep_cells import Cell
    from simstate.train.training_run import TrainingRun

PLOT = "summary.png"


def sweep(command: TrainCommand, out: PlainConsole) -> int:
    """Train the runs one after the other, compare them; return the exit code."""
    from simstate.cli.train import new_folder
    from simstate.train.sweep_cells import grid_cells

    if command.seeds and command.seed is not None:
        raise InvalidInputError("--seed is for one run, --seeds for several.")
    base = command.run_cfg()
    cells = grid_cells(base, command.seeds, command.grid)
    folder = command.run_dir
    if folder is None:
        if command.resume:
            raise InvalidInputError("--resume of a sweep needs its folder, --run-dir.")
        folder = new_folder(base, "sweep_")
    runs_begun = _check_folders(folder, cells, command.resume)
    for k, cell in enumerate(cells):
        out.print_line(f"Run {k + 1} of {len(cells)}: {cell.name}")
        run = _run(folder / cell.name, cell, cell.name in runs_begun)
        if code := command.train(run, out):
            return code
    _summarise(folder, cells, out)
    return 0


def _check_folders(folder: Path, cells: list[Cell], resume: bool) -> set[str]:
    """Return the runs that have a checkpoint; raise if there are any to overwrite."""
    from simstate.train.checkpoint import check_unused, has_checkpoint

    begun = {c.name for c in cells if has_checkpoint(folder / c.name)}
    if not resume:
        for cell in cells:
            check_unused(folder / cell.name)
    return begun


def _run(folder: Path, cell: Cell, begun: bool) -> TrainingRun:
    from simstate.train.training_run import TrainingRun

    return (
        TrainingRun.resume(folder, cell.cfg.task)
        if begun
        else TrainingRun(cell.cfg, folder)
    )


def _summarise(folder: Path, cells: list[Cell], out: PlainConsole) -> None:
    """Print a row for each group of seeds, and draw their curves."""
    from simstate.train.run_records import draw_curves, read_run

    groups: dict[str, list[RunRecord]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(read_run(folder / cell.name))
    out.print(_table(groups))
    try:
        draw_curves(folder / PLOT, groups)
    except InvalidInputError as error:  # without matplotlib
        out.print_line(f"No plot: {error}")
    else:
        out.print_line(f"Curves: {folder / PLOT}")


def _table(groups: dict[str, list[RunRecord]]) -> Table:
    from simstate.train.run_records import LENGTH, REWARD

    table = new_table(
        "Means over runs, ± standard deviation", "settings", ">runs",
        ">reward of an episode", ">steps of an episode", ">best reward",
    )  # fmt: skip
    for group, runs in groups.items():
        rewards = [v for run in runs if (v := run.final(REWARD)) is not None]
        steps = [v for run in runs if (v := run.final(LENGTH)) is not None]
        best = f"{max(rewards):.2f}" if rewards else "–"
        table.add_row(group, str(len(runs)), _spread(rewards), _spread(steps), best)
    return table


def _spread(values: list[float]) -> str:
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
