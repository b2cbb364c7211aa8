"""`simstate export`: a recording in the format of another program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.options import AnswerCommand, check_folder, check_writable


@dataclass
class ExportCommand(AnswerCommand):
    """Write a recording as a data set of another program.

    Example: simstate export run.simrec --to foxglove --out run.mcap
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Recordings; several of the same task make one data set."""
    to: Literal["hdf5", "lerobot", "foxglove"]
    """Isaac Lab's and robomimic's file, LeRobot's folder, or a log for Foxglove."""
    out: Path
    """The file or folder to write."""
    success: str | None = None
    """The termination term that counts as success, such as time_out: other episodes are
    omitted from a LeRobot data set, and marked as failures in an HDF5 file."""
    worlds: tuple[int, ...] = ()
    """Worlds to write to a log for Foxglove; by default the first."""

    def execute(self) -> Answer:
        """Run the command; return what it wrote."""
        check = check_folder if self.to == "lerobot" else check_writable
        check("--out", self.out)
        from simstate.data import datasets
        from simstate.data.datasets.recorded_episodes import success_of

        if not self.files:
            raise InvalidInputError("Name a recording to export.")
        if self.worlds and self.to != "foxglove":
            raise InvalidInputError(
                f"--worlds is for --to foxglove; --to {self.to} has all worlds."
            )
        if self.to == "foxglove":
            if self.success is not None:
                raise InvalidInputError("--success is for --to hdf5 and lerobot.")
            first, *others = self.files
            if others:
                raise InvalidInputError(
                    f"A log for Foxglove holds one recording, got {len(self.files)}: "
                    "export one at a time."
                )
            count = datasets.write_foxglove(first, self.out, worlds=self.worlds or None)
            what = "messages"
        elif self.to == "hdf5":
            count = datasets.write_hdf5(self.files, self.out, success=self.success)
            what = "episodes"
        else:
            kept = self.success
            keep = None if kept is None else success_of(self.files, kept)
            count = datasets.write_lerobot(self.files, self.out, keep=keep)
            what = "episodes"
        return Answer(
            {"out": str(self.out), what: count}, [f"{self.out}: {count} {what}."]
        )
