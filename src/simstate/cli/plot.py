"""`simstate plot`: plot columns of a recording over time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from simstate.cli.answer import Answer
from simstate.cli.options import AnswerCommand, check_plot


@dataclass
class PlotCommand(AnswerCommand):
    """Plot columns of a recording over time.

    Example: simstate plot run.simrec joint_pos --out joints.png
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A recording."""
    columns: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Columns to plot, with or without their entity; by default all of them."""
    out: Path | None = None
    """Figure to write: .png, .svg or .pdf; by default next to the recording, as
    .png."""
    worlds: tuple[int, ...] = ()
    """The worlds to plot; by default the first sixteen."""

    def execute(self) -> Answer:
        """Run the command; return the figure's name."""
        check_plot("--out", self.out)
        from simstate.record import Recording

        with Recording(self.file) as recording:
            out = self.out or self.file.with_suffix(".png")
            recording.plot(out, self.columns or None, self.worlds or None)
        return Answer({"plot": str(out)}, [f"Plot: {out}"])
