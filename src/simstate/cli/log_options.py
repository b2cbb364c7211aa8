"""Options of commands that read a log: its columns, and the part to use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simstate.base.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.record import Log


@dataclass
class LogOptions:
    """The part of a log to use, and the names of its columns."""

    rename: tuple[str, ...] = ()
    """Columns of the log to rename, as OLD=NEW, such as q=robot.joint_pos."""
    world: int | None = None
    """World of a recording; by default the first."""
    episode: int | None = None
    """Episode of a recording or data set."""
    start: float | None = None
    """Start of the part of the log to use [s]."""
    end: float | None = None
    """End of the part of the log to use [s]."""
    rate: float | None = None
    """Samples per second of a log without time [Hz]."""

    def read(self, path: Path) -> Log:
        """Return the part of a log, with renamed columns."""
        from simstate.data.logs import read_log

        log = read_log(
            path, world=self.world, episode=self.episode, start=self.start,
            end=self.end, rate=self.rate,
        )  # fmt: skip
        for pair in self.rename:
            old, equals, new = pair.partition("=")
            if not equals:
                raise InvalidInputError(f"--rename {pair!r} must be OLD=NEW.")
            log = log.declare(old, name=new)
        return log
