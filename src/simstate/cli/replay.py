"""`simstate replay`: recorded steps taken again and compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from simstate.cli.answer import Answer
from simstate.cli.options import Debug, Json


@dataclass
class ReplayCommand:
    """Take the steps of a recording again; the exit code is 1 where they differ.

    Example: simstate record cartpole --out run.simrec && simstate replay run.simrec
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A recording."""
    tolerance: float | None = None
    """Maximum of |now − then| / (1 + |then|); by default 0, which compares bits, and
    1e-3 on another engine than the recording's or in another simulator."""
    engine: Literal["native", "warp"] | None = None
    """Engine of the replay; by default that of the recording."""
    physics: Annotated[
        str | None,
        tyro.conf.arg(
            name="in",
            help="Another simulator to take the steps in, given the same inputs: "
            "drake, mjx, newton or newton-featherstone.",
        ),
    ] = None
    threads: int | None = None
    """Threads of the native engine; the bits do not depend on them."""
    task: str | None = None
    """A task to play the recording in, with its own settings: the recording's task
    where it has moved, or another version of it. Settings that differ are listed. By
    default the task that the recording names, with the recorded settings."""
    made_by: str | None = None
    """A function that makes the Simulation or Env, as file.py:function, for one with
    force models, sensors or an integrator."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; what it found."""
        from simstate.data.replay import made_by, replay

        found = replay(
            self.file,
            None if self.made_by is None else made_by(self.made_by),
            tolerance=self.tolerance,
            engine=self.engine,
            threads=self.threads,
            task=self.task,
            simulator=self.physics,
        )
        return Answer(found.to_dict(), [str(found)], code=0 if found.is_same else 1)
