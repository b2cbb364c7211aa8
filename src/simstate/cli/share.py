"""`simstate share`: write a recording as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from simstate.cli.answer import Answer
from simstate.cli.console import progress
from simstate.cli.missing_extra import needs
from simstate.cli.options import AnswerCommand, check_writable


@dataclass
class ShareCommand(AnswerCommand):
    """Write a recording as one HTML page: scene, timeline, plots and provenance.

    The page needs no server and no network. Its scene comes from a re-run of the
    recorded steps, as by `simstate replay`.

    Example: simstate share run.simrec --out run.html
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A recording."""
    out: Path | None = None
    """The .html file to write; by default next to the recording."""
    worlds: tuple[int, ...] = ()
    """The recorded worlds to show; by default the first four."""
    fps: float = 30.0
    """Frames of the scene per second of simulated time."""
    made_by: str | None = None
    """A function that creates the Simulation or Env, as file.py:function; needed if it
    has force models, sensors or an integrator."""

    def execute(self) -> Answer:
        """Run the command; return the page's name and size."""
        check_writable("--out", self.out)
        with needs("view"):
            from simstate.data.replay.recording_page import share_recording
        from simstate.data.replay import made_by
        from simstate.record import Recording

        made = None if self.made_by is None else made_by(self.made_by)
        with Recording(self.file) as recording, progress("sharing") as advance:
            out = self.out or self.file.with_suffix(".html")
            size = share_recording(
                recording, out, worlds=self.worlds or None, played_in=made,
                fps=self.fps, on_progress=advance,
            )  # fmt: skip
        line = f"{out}: {size / 1e6:.1f} MB, opens in any browser."
        return Answer({"out": str(out), "bytes": size}, [line])
