"""Statistics of training: returns and lengths of episodes, ranges of columns."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from simstate.base.checks import has_shape

LAST = 100
"""Number of latest episodes for means."""


class EpisodeStatistics:
    """Sums the rewards of each world, and keeps the returns of ended episodes."""

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._sum = torch.zeros(num_envs, device=device)
        self._steps = torch.zeros(num_envs, device=device)
        self._returns: deque[float] = deque(maxlen=LAST)
        self._lengths: deque[float] = deque(maxlen=LAST)
        self._logs: list[dict[str, Any]] = []

    def add(self, reward: Tensor, done: Tensor, log: dict[str, Any]) -> None:
        """Record one step of all worlds."""
        self._sum += reward
        self._steps += 1
        if log:
            self._logs.append(log)
        (ended,) = done.nonzero(as_tuple=True)
        if ended.numel():
            self._returns.extend(map(float, self._sum[ended].cpu()))
            self._lengths.extend(map(float, self._steps[ended].cpu()))
            self._sum[ended] = 0.0
            self._steps[ended] = 0.0

    def clear(self) -> None:
        """Discard the ended episodes."""
        self._returns.clear()
        self._lengths.clear()

    @property
    def mean_return(self) -> float | None:
        """Mean return of the last episodes; None if none has ended."""
        return statistics.mean(self._returns) if self._returns else None

    @property
    def mean_steps(self) -> float | None:
        """Mean environment steps of the last episodes; None if none has ended."""
        return statistics.mean(self._lengths) if self._lengths else None

    def logged(self) -> dict[str, float]:
        """Return means of the values that were logged since the last call, by name."""
        sums: dict[str, list[float]] = {}
        for log in self._logs:
            for name, value in log.items():
                sums.setdefault(name, []).append(float(value))
        self._logs.clear()
        return {name: statistics.mean(values) for name, values in sums.items()}

    def save(self) -> dict[str, Any]:
        """Return the state for a checkpoint, between two updates."""
        return {
            "sum": self._sum.clone(),
            "steps": self._steps.clone(),
            "returns": list(self._returns),
            "lengths": list(self._lengths),
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Continue from the result of `save`."""
        for there, name in ((self._sum, "sum"), (self._steps, "steps")):
            has_shape(name, saved[name], (len(there),))
            there.copy_(saved[name])
        for kept, name in ((self._returns, "returns"), (self._lengths, "lengths")):
            kept.clear()
            kept.extend(map(float, saved[name]))


class SeenRanges:
    """Minimum and maximum values of observations and actions, by name."""

    def __init__(self) -> None:
        self.ranges: dict[str, Tensor] = {}
        """Rows of minimum and maximum values; shape (2, columns)."""

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Extend the ranges by values of shape (n, columns); others are skipped."""
        for name, each in values.items():
            if each.ndim != 2:
                continue
            new = torch.stack(torch.aminmax(each, dim=0))
            old = self.ranges.get(name)
            if old is not None:
                new[0].clamp_(max=old[0])
                new[1].clamp_(min=old[1])
            self.ranges[name] = new
