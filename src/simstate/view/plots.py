"""Plots: quantities of the selected world over time, with names and units."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import viser

from simstate.base.errors import SimStateError
from simstate.view.plot_sources import Source

MOST_CURVES = 12
MOST_SAMPLES = 400
MOST_OF_HISTORY = 1000
"""Maximum number of samples of a recording to draw; of more, every n-th is drawn."""
_INKS = (
    "#e6553c", "#3cb44b", "#326ee6", "#f5961e", "#a046c8", "#00a0a0", "#c8a000",
    "#787878", "#8b4513", "#ff69b4", "#556b2f", "#000080",
)  # fmt: skip


class Plot:
    """One source over the time of a world, up to a dozen of its components."""

    def __init__(
        self, server: viser.ViserServer, sources: dict[str, Source], first: str
    ) -> None:
        self._server = server
        self._sources = sources
        names = list(sources)
        self.source = server.gui.add_dropdown("source", names, initial_value=first)
        self.part = server.gui.add_text(
            "only", "", hint="Only components whose name contains this."
        )
        self.about = server.gui.add_markdown("")
        self._chart: Any = None
        self._folder: Any = server.gui.add_folder("curves")
        self._world: int = -1
        self._columns: list[int] = []
        self._rows: deque[np.ndarray] = deque(maxlen=MOST_SAMPLES)
        self._past: np.ndarray | None = None
        """The complete history of a recorded source; (samples, 1 + curves)."""
        self._now = self._drawn = float("nan")
        self._shown = ("", "")

    @property
    def curves(self) -> list[str]:
        """The names of the components that are drawn."""
        names = self._sources[self.source.value].names
        return [names[k] for k in self._columns]

    @property
    def data(self) -> np.ndarray:
        """Drawn data: time [s], then each curve; (samples, 1 + curves)."""
        if self._past is not None:
            return self._past
        return np.array(list(self._rows)).reshape(
            len(self._rows), 1 + len(self._columns)
        )

    def sample(self, world: int, now: float) -> None:
        """Add the current values of a world, at its time [s]."""
        chosen = (self.source.value, self.part.value)
        if chosen != self._shown or world != self._world:
            self._shown, self._world = chosen, world
            self._begin()
        self._now = now
        if self._sources[self._shown[0]].history is not None:
            return
        if self._rows and now < self._rows[-1][0]:  # a reset, or a step back
            self._rows.clear()
        if not self._rows or now > self._rows[-1][0]:
            try:
                values = self._sources[self._shown[0]].read(world)[self._columns]
            except SimStateError as error:  # such as one that was never written
                self.about.content = str(error)
                return
            self._rows.append(np.concatenate([[now], values]))

    def draw(self) -> None:
        """Update the chart."""
        table = self.data
        if self._chart is None or len(table) < 2 or self._now == self._drawn:
            return
        self._drawn = self._now
        columns = list(table.T)
        if self._past is not None:
            columns = _with_line(table, self._now)
        self._chart.data = tuple(np.ascontiguousarray(column) for column in columns)

    def _begin(self) -> None:
        """Restart with the chosen source."""
        source = self._sources[self._shown[0]]
        wanted = self._shown[1].strip().lower()
        named = [k for k, name in enumerate(source.names) if wanted in name.lower()]
        self._columns = named[:MOST_CURVES]
        self._rows.clear()
        self._drawn = float("nan")
        left_out = len(named) - len(self._columns)
        text = f"{source.about}; [{source.unit}]" if source.about else source.unit
        if left_out:
            text += f"; {left_out} more components: select some with “only”"
        if self._chart is not None:
            self._chart.remove()
            self._chart = None
        text += self._look_back(source)
        self.about.content = text
        if not self._columns:
            return
        curves = [
            {"label": source.names[k], "stroke": ink, "width": 2}
            for k, ink in zip(self._columns, _INKS, strict=False)
        ]
        if self._past is not None:
            curves.append({"label": "now", "stroke": "#202020", "width": 1})
        series: Any = ({"label": "t [s]"}, *curves)
        axes: Any = ({"label": "t [s]"}, {"label": source.unit})
        with self._folder:
            self._chart = self._server.gui.add_uplot(
                tuple(np.zeros(2) for _ in series),
                series,
                scales={"x": {"time": False}},
                axes=axes,
                aspect=1.4,
            )

    def _look_back(self, source: Source) -> str:
        """Read the history of a source, if there is one; return a note on it."""
        self._past = None
        if source.history is None:
            return ""
        try:
            whole = source.history(self._world)
        except SimStateError as error:
            self._columns = []
            return f"; {error}"
        stride = math.ceil(len(whole) / MOST_OF_HISTORY)
        chosen = np.concatenate([[0], np.array(self._columns, dtype=int) + 1])
        self._past = whole[::stride, chosen]
        return f"; 1 of {stride} samples is drawn" if stride > 1 else ""


def _with_line(table: np.ndarray, now: float) -> list[np.ndarray]:
    """Return the columns of a table and one more, which has a peak at a time.

    uPlot accepts no gaps in an array: a NaN would leave its axis without labels.
    """
    times, curves = table[:, 0], table[:, 1:]
    finite = curves[np.isfinite(curves)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    at = int(np.searchsorted(times, now))
    thrice: Any = [np.interp([now] * 3, times, column) for column in table.T]
    table = np.insert(table, [at], np.stack(thrice, axis=1), axis=0)
    line = np.full(len(table), low)
    line[at + 1] = high
    return [*table.T, line]
