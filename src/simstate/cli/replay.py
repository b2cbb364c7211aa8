"""`simstate replay`: re-run a recording and compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from simstate.cli.answer import Answer
from simstate.cli.console import progress, verdict
from simstate.cli.options import AnswerCommand
from simstate.cli.picture_options import PictureOptions


@dataclass
class ReplayCommand(AnswerCommand):
    """Re-run a recording and compare; exit code 1 if a value differs.

    Example: simstate run cartpole --record run.simrec && simstate replay run.simrec
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A recording."""
    tolerance: float | None = None
    """Allowed |new − recorded| / (1 + |recorded|); by default 0, which compares bits,
    and 1e-3 on a different engine or in another simulator."""
    engine: Literal["native", "warp"] | None = None
    """Engine of the replay; by default that of the recording."""
    physics: Annotated[
        str | None,
        tyro.conf.arg(
            name="in",
            help="Another simulator to run the steps in, given the same inputs: "
            "drake, mjx, newton or newton-featherstone.",
        ),
    ] = None
    threads: int | None = None
    """Threads of the native engine; the bits do not depend on them."""
    task: str | None = None
    """A task to replay the recording in, with its current settings: the recorded task
    if its file has moved, or another version of it; differing settings are listed. By
    default the task that the recording names, with the recorded settings."""
    made_by: str | None = None
    """A function that creates the Simulation or Env, as file.py:function; needed if it
    has force models, sensors or an integrator."""
    pictures: Annotated[PictureOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=PictureOptions
    )

    def execute(self) -> Answer:
        """Run the command; return the differences."""
        from simstate.data.replay import made_by, replay

        self.pictures.check()
        found = replay(
            self.file,
            None if self.made_by is None else made_by(self.made_by),
            tolerance=self.tolerance,
            engine=self.engine,
            threads=self.threads,
            task=self.task,
            simulator=self.physics,
        )
        first, *others = str(found).split("\n")
        drawn, finished = self._drawn()
        shown = [verdict(first, found.is_same), *others, *drawn]
        code = 0 if found.is_same else 1
        return Answer(found.to_dict(), shown, code if finished else 130)

    def _drawn(self) -> tuple[list[str], bool]:
        """Draw the recording, if a film or a picture is requested.

        Return the files that were written, and False after Ctrl-C.
        """
        from simstate.data.replay import made_by
        from simstate.data.replay.recorded_course import RecordedCourse
        from simstate.train.interrupt import StopRequest

        if self.pictures.film is None and self.pictures.picture is None:
            return [], True
        worlds = None if self.made_by is None else made_by(self.made_by)
        with RecordedCourse.open(self.file, worlds, task=self.task) as course:
            assert course.timeline is not None
            steps, elapsed = course.timeline.num_steps, 0.0
            total = steps * course.step_dt
            with (
                self.pictures.draw(course, total) as drawings,
                StopRequest() as stop,
                progress("drawing") as advance,
            ):
                for step in range(steps):
                    if stop.is_made:
                        break
                    course.advance()
                    elapsed += course.step_dt
                    drawings.add(elapsed)
                    advance((step + 1) / steps, f"{elapsed:.2f} s")
        return drawings.lines, not stop.is_made
