"""LogRequest: the part of a file that a log is read from, and how its time is known."""

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
"""Names of time columns, perhaps followed by "_ms" or another unit."""


@dataclass(frozen=True)
class LogRequest:
    """The part of a file that is read."""

    path: Path
    world: int | None
    episode: int | None
    rate: float | None
    time_unit: str | None

    def choose(self, episodes: Sequence[Any]) -> Any:
        """Return the requested episode, or the only one."""
        label, count = repr(str(self.path)), len(episodes)
        if not count:
            raise InvalidInputError(f"{label} has no episode.")
        if self.episode is None:
            if count > 1:
                raise InvalidInputError(
                    f"{label} has {count} episodes, and a log is one of them: choose "
                    f"episode=0 … {count - 1}.",
                    name="episode",
                )
            return episodes[0]
        return episodes[whole_number("episode", self.episode, 0, count - 1)]

    def seconds(self, name: str, unit: str, notes: list[str]) -> float:
        """Return how many seconds a time column's unit is, of its heading or name."""
        ending = name.lower().rpartition("_")[2]
        if self.time_unit is None and unit not in ("", UNDECLARED, *SECONDS):
            raise InvalidInputError(
                f"The time column {name!r} of {str(self.path)!r} is in {unit!r}, which "
                f"is not one of {', '.join(SECONDS)}: convert it, or state its unit "
                "(time_unit=…).",
                name=name,
            )
        said = unit if unit in SECONDS else ending if ending in SECONDS else ""
        said = self.time_unit or said
        if not said:
            notes.append(f"{name}: unit of time not declared; taken for s.")
        return SECONDS[said or "s"]

    def times(self, samples: int, names: Sequence[str]) -> np.ndarray:
        """Return the times of a file without a time column, by the given rate."""
        if self.rate is None:
            raise InvalidInputError(
                f"{str(self.path)!r} has no time column (one of {', '.join(_TIMES)}), "
                f"only {', '.join(names)}: rename one, or state the samples per second "
                "(rate=50.0).",
                name="rate",
            )
        return np.arange(samples) / self.rate


def is_time(name: str) -> bool:
    """Return True if a column of this name is time."""
    base, _, unit = name.lower().rpartition("_")
    return name.lower() in _TIMES or (base in _TIMES and unit in SECONDS)
