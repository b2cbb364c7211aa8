"""Progress of a training run, and its reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """State of a run after an update."""

    iteration: int
    """Updates that are done."""
    reward: float | None
    """Mean sum of rewards of the last hundred episodes; None: none has ended."""
    episode_length_s: float | None
    """Their mean length [s]."""
    steps_per_second: float
    """Environment steps of all worlds, learning included."""
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    """All that is logged of the update, by name: losses, speeds, and of the episodes
    that ended in it "Episode_Reward/…", "Episode_Termination/…" and "Metrics/…"."""

    def of(self, section: str) -> dict[str, float]:
        """The values whose names begin with "section/", by the rest of the name."""
        start = f"{section}/"
        return {
            name.removeprefix(start): value
            for name, value in self.values.items()
            if name.startswith(start)
        }


Report = Callable[[Progress], None]


def no_report(progress: Progress) -> None:
    """Ignore the progress."""
    del progress
