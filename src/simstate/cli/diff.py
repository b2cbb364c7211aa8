"""`simstate diff`: compare two snapshots, or the states of two simulators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from simstate.base.errors import SnapshotError
from simstate.cli.answer import Answer
from simstate.cli.console import verdict
from simstate.cli.options import AnswerCommand

if TYPE_CHECKING:
    from simstate.state import Snapshot
    from simstate.state.difference import Diff as Differences

File = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


@dataclass
class DiffCommand(AnswerCommand):
    """Compare two snapshots of one model, or the unified states of two simulators.

    Exit code 1 if they differ.

    Example: simstate run cube --envs 2 --save a.npz && simstate diff a.npz a.npz
    """

    left: File
    """A snapshot, written by `simstate run --save` or Snapshot.save; or states, written
    by simulators.save_states."""
    right: File
    """The file to compare with, of the same kind."""
    tolerance: float = 0.0
    """Largest difference to ignore, in each quantity's unit."""
    rows: int = 20
    """Number of rows to show, the largest differences first; 0: all."""

    def execute(self) -> Answer:
        """Run the command; return the differences."""
        from simstate.base.checks import number, whole_number
        from simstate.simulators.state_file import holds_states
        from simstate.state import Snapshot, diff

        number("--tolerance", self.tolerance, at_least=0)
        whole_number("--rows", self.rows, 0)
        if holds_states(self.left) and holds_states(self.right):
            found, notes = self._states()
        else:
            left, right = Snapshot.load(self.left), Snapshot.load(self.right)
            models = self._models(left, right)
            notes = [*models, *_headers(left, right)]
            found = diff(left, right, self.tolerance)
        shown = [*(f"Note: {note}" for note in notes), self._table(found)]
        return Answer(self._to_dict(found, notes), shown, code=1 if len(found) else 0)

    def _states(self) -> tuple[Differences, list[str]]:
        """Return the differences of two files of unified states."""
        from simstate.simulators.state_file import load_states
        from simstate.state import diff

        (left, one), (right, two) = load_states(self.left), load_states(self.right)
        notes = [
            f"From {one or 'unknown'} on the left, {two or 'unknown'} on the right."
        ]
        return diff(left, right, self.tolerance), notes

    def _models(self, left: Snapshot, right: Snapshot) -> list[str]:
        """Return how the models' values differ; raise if their structures do."""
        from simstate.state.fingerprint import differences

        ours, theirs = left.header["model"], right.header["model"]
        found = differences(ours, theirs)
        if ours["sizes"] != theirs["sizes"] or ours["names"] != theirs["names"]:
            raise SnapshotError(
                f"{str(self.left)!r} and {str(self.right)!r} are of different models. "
                f"Differences, with {str(self.left)!r} as 'here': {'; '.join(found)}."
            )
        return [f"The models differ in {text}." for text in found]

    def _table(self, found: Differences) -> Text | Table:
        if not len(found):
            worlds = found.num_envs
            text = f"No differences above {self.tolerance:g} in {worlds} worlds."
            return verdict(text, passed=True)
        return found.table(self.rows or None)

    def _to_dict(self, found: Differences, notes: list[str]) -> dict[str, Any]:
        """Return the differences as JSON values; an undefined error is null."""
        lines = found.lines()
        return {
            "equal": not len(found),
            "tolerance": self.tolerance,
            "num_envs": found.num_envs,
            "num_differences": len(found),
            "max_error": found.max_error,
            "notes": notes,
            "differences": [
                {
                    "entity": worst.entity,
                    "quantity": worst.quantity,
                    "element": worst.element,
                    "error": worst.error,
                    "unit": worst.unit,
                    "reason": worst.what,
                    "world": worst.world,
                    "worlds": count,
                }
                for worst, count in (lines[: self.rows] if self.rows else lines)
            ],
        }


def _headers(left: Snapshot, right: Snapshot) -> list[str]:
    """Return the differences of the two headers."""
    return [
        f"{key} is {left.header[key]} on the left, {right.header[key]} on the right."
        for key in ("engine", "dtype", "mujoco", "timestep")
        if left.header[key] != right.header[key]
    ]
