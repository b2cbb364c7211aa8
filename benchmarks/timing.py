"""Timing: medians of interleaved repeats, so that a noisy machine hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

SPINNING = 0.08
"""For so long after a call MuJoCo's threads take cores from what comes next [s]."""


def rest() -> None:
    """Wait until MuJoCo's threads have gone to sleep."""
    time.sleep(SPINNING)


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median, the quartiles around it, and the minimum."""

    median: float
    low: float
    high: float
    least: float

    def per(self, count: int) -> Timing:
        """Return the timing of one of `count` equal calls that were timed together."""
        values = (self.median, self.low, self.high, self.least)
        return Timing(*(value / count for value in values))

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, relative to the median."""
        return (self.high - self.low) / (2 * self.median)

    @property
    def spread_text(self) -> str:
        """The spread as it stands in a table."""
        return f"± {100 * self.spread:.0f} %"


def interleaved(
    calls: dict[str, Callable[[], object]],
    repeats: int,
    prepare: dict[str, Callable[[], object]] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time each call in turn, `repeats` times over, after one round to warm up.

    What `prepare` has for a call runs before it and is not timed. With
    `time.process_time` as the clock it is the CPU's time, of all threads.
    """
    prepare = prepare or {}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for round_ in range(repeats):
        names = list(calls) if round_ % 2 else list(calls)[::-1]
        for name in names:
            prepare.get(name, lambda: None)()
            start = clock()
            calls[name]()
            times[name].append(clock() - start)
    return {name: _timing(values) for name, values in times.items()}


def _timing(values: list[float]) -> Timing:
    low, median, high = statistics.quantiles(values, n=4)
    return Timing(median, low, high, min(values))
