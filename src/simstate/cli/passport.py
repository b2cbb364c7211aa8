"""`simstate passport`: print the contract of a policy, or compare a log with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.markup import escape
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.missing_extra import needs
from simstate.cli.options import Debug, Json

if TYPE_CHECKING:
    from simstate.train.policy_passport import Passport, PassportColumn, PassportPolicy


@dataclass
class PassportCommand:
    """Print the contract of an exported policy, or compare it with a robot's log.

    Columns of the log are named as signals (joint_pos, root_link_quat_w, action), which
    `simstate passport POLICY` lists. The exit code is 1 if the log has a fault.

    Example: simstate passport runs/walk/policy.onnx --log robot.csv
    """

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """An .onnx file that `simstate train` exported."""
    log: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A log to compare: .simrec, .mcap, .csv, .hdf5, or a LeRobot folder."""
    rename: tuple[str, ...] = ()
    """Columns of the log to rename, as OLD=NEW, such as q=joint_pos."""
    world: int | None = None
    """World of a recording; by default the first."""
    episode: int | None = None
    """Episode of a recording or data set."""
    start: float | None = None
    """Start of the part of the log to compare [s]."""
    end: float | None = None
    """End of the part of the log to compare [s]."""
    rate: float | None = None
    """Samples per second of a log without time [Hz]."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; return the passport, or the faults of the log."""
        with needs("play"):
            from simstate.train.policy_passport import PassportPolicy

            policy = PassportPolicy(self.policy)
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
        from simstate.base.errors import InvalidInputError
        from simstate.data.logs import read_log
        from simstate.train.passport_check import compare_log

        log = read_log(
            path, world=self.world, episode=self.episode, start=self.start,
            end=self.end, rate=self.rate,
        )  # fmt: skip
        for pair in self.rename:
            old, equals, new = pair.partition("=")
            if not equals:
                raise InvalidInputError(f"--rename {pair!r} must be OLD=NEW.")
            log = log.declare(old, name=new)
        report = compare_log(policy, log)
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
    table = new_table(title)
    heads = ("#", "column", "unit", "axes", "point", "positive", "scale", "offset",
             "delay", "minimum", "maximum")  # fmt: skip
    for head in heads:
        side = "left" if head in heads[1:6] else "right"
        table.add_column(head, justify=side, no_wrap=head == "column")
    for k, one in enumerate(columns):
        low, high = one.delay
        delay = f"{low}" if low == high else f"{low} … {high}"
        numbers = (f"{x:.4g}" for x in (one.scale, one.offset))
        table.add_row(
            str(k), one.name, one.unit, one.axes, one.point, one.sign,
            *numbers, delay, f"{one.low:.4g}", f"{one.high:.4g}",
        )  # fmt: skip
    return table
