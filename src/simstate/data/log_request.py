"""LogRequest: the part of a file to read as a log, and the source of its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.checks import whole_number
from simstate.base.contract import UNDECLARED
from simstate.base.errors import InvalidInputError

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
"""Units of time columns, in seconds."""
_TIMES = ("time", "t", "timestamp", "stamp", "elapsed")
"""Names of time columns, optionally followed by "_ms" or another unit."""
_INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied")
"""Recorded fields that a user writes before a step."""


@dataclass(frozen=True)
class LogRequest:
    """The part of a file to read."""

    path: Path
    world: int | None
    episode: int | None
    rate: float | None
    time_unit: str | None

    def choose(self, episodes: Sequence[Any]) -> Any:
        """Return the requested episode, or the only one."""
        label, count = repr(str(self.path)), len(episodes)
        if not count:
            raise InvalidInputError(f"{label} has no episodes.")
        if self.episode is None:
            if count > 1:
                raise InvalidInputError(
                    f"{label} has {count} episodes, but a log is a single one: choose "
                    f"episode=0 … {count - 1}.",
                    name="episode",
                )
            return episodes[0]
        return episodes[whole_number("episode", self.episode, 0, count - 1)]

    def seconds(self, name: str, unit: str, notes: list[str]) -> float:
        """Return a time column's unit in seconds, from its heading or its name."""
        ending = name.lower().rpartition("_")[2]
        if self.time_unit is None and unit not in ("", UNDECLARED, *SECONDS):
            raise InvalidInputError(
                f"The time column {name!r} of {str(self.path)!r} is in {unit!r}, which "
                f"is not one of {', '.join(SECONDS)}: convert it, or state its unit "
                "(time_unit=…).",
                name=name,
            )
        declared = unit if unit in SECONDS else ending if ending in SECONDS else ""
        declared = self.time_unit or declared
        if not declared:
            notes.append(f"{name}: unit of time not declared; assumed to be s.")
        return SECONDS[declared or "s"]

    def times(self, samples: int, names: Sequence[str]) -> np.ndarray:
        """Return the times of samples without a time column, from the rate [s]."""
        if self.rate is None:
            raise InvalidInputError(
                f"{str(self.path)!r} has no time column (one of {', '.join(_TIMES)}), "
                f"only {', '.join(names)}: rename one, or state the samples per second "
                "(rate=50.0).",
                name="rate",
            )
        return np.arange(samples) / self.rate


def is_time(name: str) -> bool:
    """Return True if a column of this name holds time."""
    base, _, unit = name.lower().rpartition("_")
    return name.lower() in _TIMES or (base in _TIMES and unit in SECONDS)


def is_input(source: str) -> bool:
    """Return True if a recorded quantity or field acts in the step before a sample."""
    return source in _INPUTS or source.endswith("_target")
