"""`simstate passport`: the contract of an exported policy, and logs that it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.missing_extra import needs
from simstate.cli.options import Debug, Json

if TYPE_CHECKING:
    from simstate.train.policy_passport import Passport, PassportColumn


@dataclass
class PassportCommand:
    """Print the contract of an exported policy: columns, units, ranges, origin.

    Example: simstate passport runs/walk/policy.onnx
    """

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """An .onnx file that `simstate train` exported."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; the passport."""
        with needs("play"):
            from simstate.train.policy_passport import PassportPolicy

            policy = PassportPolicy(self.policy)
        passport, error = policy.passport, policy.proof_error()
        facts = passport.to_json()
        steps = len(passport.proof["actions"])
        facts["proof"] = {"steps": steps, "error": error}
        versions = ", ".join(f"{name} {v}" for name, v in passport.versions.items())
        lines = [
            f"{passport.task}, seed {passport.seed}, {passport.iterations} updates on "
            f"{passport.engine}; acts at {passport.rate:g} Hz",
            f"Versions: {versions}",
            *(
                f"Joints of {name}, in the order of its file: {', '.join(joints)}"
                for name, joints in passport.joints.items()
            ),
            *(
                f"Picture {name}: {' × '.join(map(str, shape))}"
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


def _signals(passport: Passport) -> str:
    """Return the signals that the policy reads, with their numbers of components."""
    parts: dict[str, set[str]] = {}
    for one in passport.observations:
        parts.setdefault(one.source, set()).add(one.component)
    return ", ".join(f"{name} ({len(found)})" for name, found in parts.items())


def _table(title: str, columns: Sequence[PassportColumn]) -> Table:
    """Return columns as a table, one in a row."""
    table = new_table(title)
    heads = ("#", "column", "unit", "axes", "point", "positive", "scale", "offset",
             "delay", "least", "largest")  # fmt: skip
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
