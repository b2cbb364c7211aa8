"""Result of a replay: identical, or the first difference."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from simstate.base.contract import UNDECLARED


@dataclass(frozen=True)
class ReplayDifference:
    """One value that differs from the recording."""

    step: int
    """Number of steps taken before it."""
    world: int
    time: float
    """The world's simulation time [s]."""
    column: str
    """The quantity, field, or slot of a snapshot."""
    element: str
    """Name of the component: a joint, a body and an axis; "" if it has none."""
    recorded: float
    replayed: float
    unit: str = ""

    def __str__(self) -> str:
        element = f" of {self.element}" if self.element else ""
        unit = "" if self.unit in ("", "1", UNDECLARED) else f" {self.unit}"
        return (
            f"world {self.world}, t = {self.time:g} s (after {self.step} steps), "
            f"{self.column}{element}: {self.recorded!r} recorded, "
            f"{self.replayed!r} replayed{unit}"
        )


@dataclass
class Replay:
    """Result of re-running recorded steps."""

    engine: str
    tolerance: float
    """0: bit for bit; else the maximum of |new − recorded| / (1 + |recorded|)."""
    steps: int = 0
    """Number of steps taken."""
    samples: int = 0
    """Number of samples compared."""
    snapshots: int = 0
    """Number of snapshots compared."""
    columns: list[str] = field(default_factory=list[str])
    """Compared columns."""
    left_out: list[str] = field(default_factory=list[str])
    """Columns that cannot be computed here, such as those of user functions."""
    model: list[str] = field(default_factory=list[str])
    """Differences of the model from the recorded one."""
    settings: list[str] = field(default_factory=list[str])
    """Settings of the task that differ from the recorded ones."""
    first: ReplayDifference | None = None
    """The first difference beyond the tolerance, or None."""
    largest: dict[str, float] = field(default_factory=dict[str, float])
    """Largest |new − recorded| of each column."""
    time: list[float] = field(default_factory=list[float])
    """Times of the samples, since the start of the recording [s]."""
    over_time: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """Largest |new − recorded| of each column in any world, at each of these times."""

    @property
    def is_same(self) -> bool:
        """True if values, model and settings are those of the recording."""
        return self.first is None and not self.model and not self.settings

    def horizon(self, column: str, bound: float) -> float | None:
        """Return the first time at which a column's error exceeds a bound [s]."""
        gaps = self.over_time[column]
        return next(
            (t for t, gap in zip(self.time, gaps, strict=True) if gap > bound), None
        )

    def course(self, rows: int = 6) -> list[str]:
        """Return lines with the largest error of each column over time, in its unit."""
        if not self.time:
            return []
        last = len(self.time) - 1
        chosen = sorted({round(k * last / max(rows - 1, 1)) for k in range(rows)})
        return [
            f"largest errors after {self.time[k]:.3g} s: "
            + ", ".join(
                f"{name} {gaps[k]:.3g}" for name, gaps in self.over_time.items()
            )
            for k in chosen
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {**dataclasses.asdict(self), "is_same": self.is_same}

    def __str__(self) -> str:
        how = "bit for bit" if self.tolerance == 0 else f"within {self.tolerance:g}"
        snapshots = "snapshot" if self.snapshots == 1 else "snapshots"
        counts = (
            f"{self.steps} steps on {self.engine}: {self.samples} samples of "
            f"{len(self.columns)} columns and {self.snapshots} {snapshots} "
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
