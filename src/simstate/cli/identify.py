"""`simstate identify`: estimate parameters of a model from a log, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.log_options import LogOptions
from simstate.cli.model_scene import ENTITY, scene_of
from simstate.cli.options import AnswerCommand, Model, check_writable

if TYPE_CHECKING:
    from simstate.study.identification import Fit


@dataclass
class IdentifyCommand(AnswerCommand):
    """Fit parameters of a model to a log, and state what the log does not determine.

    Columns of the log are named as quantities (robot.joint_pos), raw fields (qpos) or
    sensors; the column ctrl holds commands. Part of the log is held out for validation.

    Example: simstate identify cartpole --log motion.csv --free "robot joints: damping"
    """

    model: Model
    log: Annotated[Path, tyro.conf.arg(metavar="FILE")]
    """A recording (.simrec), .mcap, .csv, .hdf5, or a LeRobot folder."""
    free: str
    """Parameters to fit, such as "robot joints: damping, armature; robot body base:
    mass, com; delay"; bounds are optional: "mass 1 .. 9"."""
    out: Path | None = None
    """Write the fit as JSON, for --parameters of train and dispersions."""
    report: Path | None = None
    """Write a report with estimates and curves (.html)."""
    mjcf: Path | None = None
    """Write the model with the estimated values (.xml)."""
    outputs: tuple[str, ...] = ()
    """Columns to predict; by default positions, velocities and sensors."""
    window: float | None = None
    """Length of a window [s]; by default an eighth of the log, at most 1 s."""
    held_out: float = 0.25
    """Fraction of the log that is predicted, not fitted."""
    confidence: float = 0.95
    """Confidence level of each interval."""
    part: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=LogOptions
    )

    def execute(self) -> Answer:
        """Run the command; return the estimates."""
        from simstate.study.identification import identify
        from simstate.study.identification.fit_report import write_report

        for option in ("out", "report", "mjcf"):
            check_writable(f"--{option}", getattr(self, option))
        fit = identify(
            scene_of(self.model), self.part.read(self.log), self.free,
            outputs=self.outputs or None, held_out=self.held_out, window=self.window,
            confidence=self.confidence,
        )  # fmt: skip
        if self.out is not None:
            fit.save(self.out)
        if self.report is not None:
            write_report(fit, self.report, f"{self.model}: {self.log.name}")
        if self.mjcf is not None:
            from simstate.base.files import write_atomically
            from simstate.scene.load import load_spec

            spec = load_spec(scene_of(self.model).entities[ENTITY].model)
            fit.change_spec(spec)
            spec.compile()
            write_atomically(self.mjcf, spec.to_xml().encode())
        written = [str(x) for x in (self.out, self.report, self.mjcf) if x is not None]
        lines = [f"Not determined: {text}" for text in fit.undetermined]
        lines += [f"Assumed: {text}" for text in fit.notes]
        lines += [f"Written: {', '.join(written)}"] if written else []
        return Answer(fit.to_json(), [self._estimates(fit), self._misfits(fit), *lines])

    def _estimates(self, fit: Fit) -> Table:
        start = f">{100 * fit.confidence:g} % from"
        columns = ("parameter", ">model", ">estimate", start, ">to", "unit")
        table = new_table(f"{self.model}: {self.log.name}", *columns)
        for one in fit.estimates:
            cells = (one.nominal, one.value, one.low, one.high)
            table.add_row(one.name, *(f"{x:.5g}" for x in cells), one.unit)
        return table

    def _misfits(self, fit: Fit) -> Table:
        columns = ("column", ">fitted part", ">→", ">held out", ">→ ", "unit")
        table = new_table("Error (rms) before and after", *columns)
        for inside, outside in zip(fit.fitted, fit.held_out, strict=True):
            cells = (inside.nominal, inside.fitted, outside.nominal, outside.fitted)
            table.add_row(inside.column, *(f"{x:.3g}" for x in cells), inside.unit)
        return table
