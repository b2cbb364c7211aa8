"""`simstate dispersions`: a Monte Carlo study, its statistics and its worst world."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.options import AnswerCommand, check_folder
from simstate.cli.ray_option import Ray, workers

if TYPE_CHECKING:
    from simstate.study.dispersions.outcome import Row


@dataclass
class DispersionsCommand(AnswerCommand):
    """Run a Monte Carlo study on thousands of worlds; print confidence bounds.

    The file defines study(), which returns a simstate.study.dispersions.Study. World k
    draws the same values in any batch.

    Example: simstate dispersions drop.py --envs 2000 --out drop
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A Python file with a function study()."""
    envs: int = 1000
    """Number of worlds."""
    batch: int = 256
    """Number of worlds that run at once; results do not depend on it."""
    seed: int = 0
    """Seed of all draws and of the worlds' noise."""
    confidence: float = 0.95
    """Probability with which the bounds hold."""
    parameters: Path | None = None
    """A fit.json of `simstate identify`: each world also draws its parameters."""
    out: Path | None = None
    """A folder for worlds.csv, envelopes.png and worst.npz, a snapshot to replay."""
    ray: Ray = None

    def execute(self) -> Answer:
        """Run the command; return the statistics."""
        from simstate.base.checks import number
        from simstate.study.dispersions import load_study

        check_folder("--out", self.out)
        number("--confidence", self.confidence, more_than=0, less_than=1)
        study = load_study(self.file)
        if self.parameters is not None:
            from simstate.study.identification import FittedParameters

            study = FittedParameters.load(self.parameters).scatter(study)
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
        with workers(self.ray) as over:
            outcome = study.run(self.envs, self.batch, self.seed, over)
        rows = outcome.table(self.confidence)
        if self.out is not None:
            outcome.save_csv(self.out / "worlds.csv")
            if outcome.histories:
                outcome.plot(self.out / "envelopes.png")
            worst = study.snapshot(outcome.worst_world, self.seed)
            worst.save(self.out / "worst.npz")
        facts = {
            "worlds": self.envs, "seed": self.seed,
            "confidence": self.confidence, "worst_world": outcome.worst_world,
            "table": [asdict(row) for row in rows],
        }  # fmt: skip
        worst = f"Worst by {outcome.worst_by}: world {outcome.worst_world}"
        written = [] if self.out is None else [f"Files: {self.out}"]
        return Answer(facts, [self._table(rows), worst, *written])

    def _table(self, rows: list[Row]) -> Table:
        share = f"{100 * self.confidence:g} %"
        title = f"{self.file.name}: {self.envs} worlds, seed {self.seed}"
        columns = ("result", "statistic", ">value", f">{share} from", ">to")
        table = new_table(title, *columns)
        for row in rows:
            name = f"{row.result} \\[{row.unit}]" if row.unit else row.result
            cells = ("" if math.isnan(x) else f"{x:.6g}" for x in (row.low, row.high))
            table.add_row(name, row.statistic, f"{row.value:.6g}", *cells)
        return table
