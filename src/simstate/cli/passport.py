"""`simstate passport`: print the contract of a policy, or compare a log with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.markup import escape
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.log_options import LogOptions
from simstate.cli.missing_extra import needs
from simstate.cli.options import AnswerCommand

if TYPE_CHECKING:
    from simstate.train.policy_passport import Passport, PassportColumn, PassportPolicy


@dataclass
class PassportCommand(AnswerCommand):
    """Print the contract of an exported policy, or compare it with a robot's log.

    Columns of the log are named as signals (joint_pos, root_link_quat_w, action), which
    `simstate passport POLICY` lists. The exit code is 1 if the log has a fault.

    Example: simstate passport runs/walk/policy.onnx --log robot.csv
    """

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """An .onnx file that `simstate train` exported, or the folder of a run."""
    log: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A log to compare: .simrec, .mcap, .csv, .hdf5, or a LeRobot folder."""
    part: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=LogOptions
    )

    def execute(self) -> Answer:
        """Run the command; return the passport, or the faults of the log."""
        with needs("play"):
            from simstate.train.policy_passport import PassportPolicy

            is_run = self.policy.is_dir()
            policy = PassportPolicy(
                self.policy / "policy.onnx" if is_run else self.policy
            )
        passport, error = policy.passport, policy.proof_error()
        if self.log is not None:
            return self._compared(policy, self.log)
        facts = passport.to_json()
        steps = len(passport.proof["actions"])
        facts["proof"] = {"steps": steps, "error": error}
        versions = ", ".join(f"{name} {v}" for name, v in passport.versions.items())
        lines = [
            f"{passport.task}, seed {passport.seed}, {passport.iterations} updates on "
            f"{passport.engine}; acts at {passport.rate:g} Hz",
            f"Versions: {versions}",
            *(
                f"Joints of {name}, in the order of the model: {', '.join(joints)}"
                for name, joints in passport.joints.items()
            ),
            *(
                f"Image {name}: {' × '.join(map(str, shape))}"
                for name, shape in passport.pictures.items()
            ),
            f"Signals: {_signals(passport)}",
            f"Proof: {steps} steps reproduced to {error:.1g}",
        ]
        tables = [
            _table(
                f"Observations (ranges: {passport.ranges_from})", passport.observations
            ),
            _table("Actions", passport.actions),
        ]
        return Answer(facts, [*lines, *tables])

    def _compared(self, policy: PassportPolicy, path: Path) -> Answer:
        """Return the faults of a log."""
        from simstate.train.passport_check import compare_log

        report = compare_log(policy, self.part.read(path))
        title = escape(f"{self.policy.name}: {path.name}")
        columns = ("fault", "column", "description", "evidence (misfit → repaired)")
        table = new_table(title, *columns)
        for one in report.faults:
            cells = (one.kind, ", ".join(one.columns), one.detail, one.evidence)
            table.add_row(*map(escape, cells))
        shown = [table] if report.faults else [f"{path.name} matches the passport."]
        notes = [f"Not compared: {note}" for note in report.notes]
        code = 1 if report.faults else 0
        return Answer(dataclasses.asdict(report), [*shown, *notes], code)


def _signals(passport: Passport) -> str:
    """Return the signals that the policy reads, with their numbers of components."""
    parts: dict[str, set[str]] = {}
    for one in passport.observations:
        parts.setdefault(one.source, set()).add(one.component)
    return ", ".join(f"{name} ({len(found)})" for name, found in parts.items())


def _table(title: str, columns: Sequence[PassportColumn]) -> Table:
    """Return a table with one row for each column of the policy."""
    table = new_table(
        title, ">#", "column", "unit", "axes", "point", "positive", ">scale",
        ">offset", ">delay", ">minimum", ">maximum",
    )  # fmt: skip
    table.columns[1].no_wrap = True
    for k, one in enumerate(columns):
        low, high = one.delay
        delay = f"{low}" if low == high else f"{low} … {high}"
        numbers = (f"{x:.4g}" for x in (one.scale, one.offset))
        table.add_row(
            str(k), one.name, one.unit, one.axes, one.point, one.sign,
            *numbers, delay, f"{one.low:.4g}", f"{one.high:.4g}",
        )  # fmt: skip
    return table
