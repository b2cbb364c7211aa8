"""Windows: a log cut into parts of equal length, each with its start and samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.record import LogColumn
from simstate.study.identification.signals import Signals

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_NEAR = 1e-6
"""Distance, in time steps, below which a sample is at a time step."""
_LEAST_SAMPLES = 4
"""Minimum number of samples of a window: its initial state alone explains fewer."""


@dataclass(frozen=True)
class WindowSamples:
    """The samples of one output in all windows, as flat arrays."""

    window: Indices
    """Window of each sample."""
    step: Indices
    """Time step of the window before or at the sample."""
    part: Array
    """Position of the sample within the next time step, 0 to 1."""
    values: Array
    """Measured values; shape (samples, components)."""


@dataclass(frozen=True)
class Windows:
    """Parts of logs, each with an initial state."""

    signals: tuple[Signals, ...]
    """Signals of each log; outputs have the same names in all of them."""
    log: tuple[int, ...]
    """Log of each window."""
    start: Array
    """Time in its log at which each window starts [s]."""
    steps: int
    """Time steps of a window."""
    timestep: float

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_continued(self) -> NDArray[np.bool_]:
        """True for windows whose end is the start of the next one."""
        span = self.steps * self.timestep
        logs = np.array(self.log)
        same = logs[1:] == logs[:-1]
        near = np.abs(self.start[1:] - self.start[:-1] - span) < _NEAR * self.timestep
        return np.append(same & near, False)

    def select(self, chosen: slice) -> Windows:
        """Return some of the windows."""
        return Windows(
            self.signals, self.log[chosen], self.start[chosen], self.steps,
            self.timestep,
        )  # fmt: skip

    @cached_property
    def samples(self) -> tuple[WindowSamples, ...]:
        """WindowSamples of each output."""
        count = len(self.signals[0].outputs)
        return tuple(self._samples(k) for k in range(count))

    def _samples(self, output: int) -> WindowSamples:
        found: list[WindowSamples] = []
        span = self.steps * self.timestep
        for w, (log, start) in enumerate(zip(self.log, self.start, strict=True)):
            column = self.signals[log].outputs[output].column
            offset = column.time - start
            first = -_NEAR if w == 0 or self.log[w - 1] != log else _NEAR
            inside = (offset > first * self.timestep) & (
                offset <= span + _NEAR * self.timestep
            )
            place = np.clip(offset[inside] / self.timestep, 0.0, self.steps)
            step = np.floor(place + _NEAR).astype(np.intp)
            part = place - step
            part[np.abs(part) < 2 * _NEAR] = 0.0
            window = np.full(len(step), w, np.intp)
            found.append(WindowSamples(window, step, part, column.values[inside]))
        return WindowSamples(
            np.concatenate([one.window for one in found]),
            np.concatenate([one.step for one in found]),
            np.concatenate([one.part for one in found]),
            np.concatenate([one.values for one in found]),
        )

    def times(self, samples: WindowSamples) -> Array:
        """Return the times of samples in their logs [s]; shape (samples,)."""
        within = (samples.step + samples.part) * self.timestep
        return self.start[samples.window] + within

    def controls(self, delay: float) -> Array:
        """Return the commands of each time step; shape (windows, steps, actuators).

        A command holds until the next one. Each value is the mean over its time step,
        so that delays need not be whole time steps.
        """
        first = self.signals[0].control
        if first is None:
            return np.zeros((len(self), self.steps, 0))
        edges = np.arange(self.steps + 1) * self.timestep
        found = np.empty((len(self), self.steps, first.width))
        logs = np.array(self.log)
        for k, signals in enumerate(self.signals):
            column = signals.control
            assert column is not None
            mine = logs == k
            found[mine] = _means(column, self.start[mine, None] - delay + edges)
        return found


def cut_windows(
    signals: tuple[Signals, ...], timestep: float, seconds: float | None
) -> Windows:
    """Cut logs into windows of the given length [s]; None: eight or more of each."""
    spans = [_span(one) for one in signals]
    shortest = min(end - start for start, end in spans)
    rate = min(one.column.rate for part in signals for one in part.outputs)
    if seconds is None:
        seconds = max(min(shortest / 8, 1.0), _LEAST_SAMPLES / rate)
    steps = round(seconds / timestep)
    if steps < 1 or steps * timestep > shortest / 2 + timestep:
        raise InvalidInputError(
            f"A window of {seconds:g} s does not fit twice into the log, whose columns "
            f"have {shortest:g} s in common: one window is fitted, and one is held "
            "out. Use shorter windows (window=…) or a longer log.",
            name="window",
        )
    if seconds * rate < _LEAST_SAMPLES - _NEAR:
        raise InvalidInputError(
            f"A window of {seconds:g} s has fewer than {_LEAST_SAMPLES} samples at "
            f"{rate:g} Hz, which its initial state alone would explain: use longer "
            "windows (window=…).",
            name="window",
        )
    logs: list[int] = []
    starts: list[float] = []
    for k, (start, end) in enumerate(spans):
        count = int((end - start) / (steps * timestep) + _NEAR)
        logs += [k] * count
        starts += [start + i * steps * timestep for i in range(count)]
    return Windows(signals, tuple(logs), np.array(starts), steps, timestep)


def _span(signals: Signals) -> tuple[float, float]:
    """Return the start and the end of the time common to all columns [s]."""
    times = [one.column.time for one in signals.outputs]
    start = max(time[0] for time in times)
    end = min(time[-1] for time in times)
    if signals.control is not None:
        start = max(start, signals.control.time[0])
        interval = 1.0 / signals.control.rate  # the last command holds as long
        end = min(end, signals.control.time[-1] + interval)
    if end <= start:
        raise InvalidInputError(
            "The columns of the log have no time in common: check their time units."
        )
    return float(start), float(end)


def _means(column: LogColumn, edges: Array) -> Array:
    """Return the means of held values between times; shape (…, edges − 1, width)."""
    time = column.time
    widths = np.diff(time, append=2 * time[-1] - time[-2])
    area = np.concatenate(
        [np.zeros((1, column.width)), np.cumsum(column.values * widths[:, None], 0)]
    )
    knots = np.append(time, time[-1] + widths[-1])
    place = np.clip(edges, knots[0], knots[-1])
    at = np.clip(np.searchsorted(knots, place, "right") - 1, 0, len(time) - 1)
    integral = area[at] + column.values[at] * (place - knots[at])[..., None]
    # Outside, the first and the last command hold.
    integral += column.values[0] * np.minimum(edges - knots[0], 0.0)[..., None]
    integral += column.values[-1] * np.maximum(edges - knots[-1], 0.0)[..., None]
    return np.diff(integral, axis=-2) / np.diff(edges)[..., None]
