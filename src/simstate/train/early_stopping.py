"""EarlyStopping: the best mean return of a run, and the end without improvement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class EarlyStopping:
    """Best mean return of ended episodes, and the update after which it was reached."""

    patience: int | None
    """Updates without improvement after which a run ends; None: no limit."""
    best: float | None = None
    """Highest mean return; None if no episode has ended."""
    iteration: int = 0
    """Number of updates when it was reached."""

    def improve(self, iteration: int, mean_return: float | None) -> bool:
        """Record the return after an update; return True if it is the best so far."""
        if self.patience is None or mean_return is None:
            return False
        if self.best is not None and mean_return <= self.best:
            return False
        self.best, self.iteration = mean_return, iteration
        return True

    def is_over(self, iteration: int) -> bool:
        """Return True if the run should end after this many updates."""
        if self.patience is None or self.best is None:
            return False
        return iteration - self.iteration >= self.patience

    def save(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"best": self.best, "iteration": self.iteration}

    def load(self, saved: dict[str, Any]) -> None:
        """Continue from the result of `save`."""
        self.best, self.iteration = saved["best"], saved["iteration"]
