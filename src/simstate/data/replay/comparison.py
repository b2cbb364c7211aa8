"""Result of a replay: identical, or the first difference."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from simstate.base.contract import UNDECLARED


@dataclass(frozen=True)
class ReplayDifference:
    """One number that is other than it was recorded."""

    step: int
    """Number of steps taken before."""
    world: int
    time: float
    """The world's simulation time [s]."""
    column: str
    """The quantity, field, or slot of a snapshot."""
    element: str
    """Which component: a joint, a body and an axis; "": it has no name."""
    recorded: float
    replayed: float
    unit: str = ""

    def __str__(self) -> str:
        element = f" of {self.element}" if self.element else ""
        unit = "" if self.unit in ("", "1", UNDECLARED) else f" {self.unit}"
        return (
            f"world {self.world}, t = {self.time:g} s (after {self.step} steps), "
            f"{self.column}{element}: {self.recorded!r} was recorded, "
            f"{self.replayed!r} came now{unit}"
        )


@dataclass
class Replay:
    """Result of re-running recorded steps."""

    engine: str
    tolerance: float
    """0: bit for bit; else what |now − then| / (1 + |then|) may be."""
    steps: int = 0
    """Steps that were taken."""
    samples: int = 0
    """Samples that were compared."""
    snapshots: int = 0
    """Snapshots, of all that the worlds are, that were compared."""
    columns: list[str] = field(default_factory=list[str])
    """Compared columns."""
    left_out: list[str] = field(default_factory=list[str])
    """Columns that only the code of then can compute."""
    model: list[str] = field(default_factory=list[str])
    """Differences of the model from the recorded one."""
    settings: list[str] = field(default_factory=list[str])
    """The task's settings that differ, whether or not a value does."""
    first: ReplayDifference | None = None
    """The first difference beyond the tolerance; None: there is none."""
    largest: dict[str, float] = field(default_factory=dict[str, float])
    """The largest |now − then| of each column."""
    time: list[float] = field(default_factory=list[float])
    """When the samples were taken, since the begin of the recording [s]."""
    over_time: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """The largest |now − then| of each column at each of these, in any world."""

    @property
    def is_same(self) -> bool:
        """True if values, model and settings are those of the recording."""
        return self.first is None and not self.model and not self.settings

    def horizon(self, column: str, bound: float) -> float | None:
        """When a column was first off by more than a bound [s]; None: it never was."""
        gaps = self.over_time[column]
        return next(
            (t for t, gap in zip(self.time, gaps, strict=True) if gap > bound), None
        )

    def course(self, rows: int = 6) -> list[str]:
        """Lines of how far each column was off as time went on, in its own unit."""
        if not self.time:
            return []
        last = len(self.time) - 1
        chosen = sorted({round(k * last / max(rows - 1, 1)) for k in range(rows)})
        return [
            f"off by at most, after {self.time[k]:.3g} s: "
            + ", ".join(
                f"{name} {gaps[k]:.3g}" for name, gaps in self.over_time.items()
            )
            for k in chosen
        ]

    def to_dict(self) -> dict[str, Any]:
        """The findings, for JSON."""
        return {**dataclasses.asdict(self), "is_same": self.is_same}

    def __str__(self) -> str:
        how = "bit for bit" if self.tolerance == 0 else f"within {self.tolerance:g}"
        counts = (
            f"{self.steps} steps on {self.engine}: {self.samples} samples of "
            f"{len(self.columns)} columns and {self.snapshots} snapshots "
        )
        lines = [f"The model differs: {what}." for what in self.model]
        lines += [f"The task differs: {what}." for what in self.settings]
        if self.first is None:
            lines.insert(0, f"{counts}are the same, {how}.")
        else:
            lines.insert(0, f"{counts}were compared, {how}.")
            lines.append(f"First difference: {self.first}.")
        if self.first is not None and self.tolerance > 0:
            lines += self.course()
        if self.left_out:
            lines.append(f"Not compared: {', '.join(self.left_out)}.")
        return "\n".join(lines)
