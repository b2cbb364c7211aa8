"""Plots: quantities of the world shown over time, with names and units."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import viser

from simstate.errors import SimStateError
from simstate.view.sources import Source

MOST_CURVES = 12
MOST_SAMPLES = 400
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
        self.source = server.gui.add_dropdown("what", names, initial_value=first)
        self.part = server.gui.add_text(
            "only", "", hint="Only components whose name contains this."
        )
        self.about = server.gui.add_markdown("")
        self._chart: Any = None
        self._folder: Any = server.gui.add_folder("curves")
        self._world = -1
        self._columns: list[int] = []
        self._rows: deque[np.ndarray] = deque(maxlen=MOST_SAMPLES)
        self._shown = ("", "")

    @property
    def curves(self) -> list[str]:
        """The names of the components that are drawn."""
        names = self._sources[self.source.value].names
        return [names[k] for k in self._columns]

    @property
    def data(self) -> np.ndarray:
        """What is drawn: time [s], then each curve; (samples, 1 + curves)."""
        return np.array(list(self._rows)).reshape(len(self._rows), -1)

    def sample(self, world: int, now: float) -> None:
        """Take the present values of a world, at its time [s]."""
        asked = (self.source.value, self.part.value)
        if asked != self._shown or world != self._world:
            self._shown, self._world = asked, world
            self._begin()
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
        """Bring the chart up to date."""
        if self._chart is None or len(self._rows) < 2:
            return
        columns = np.array(list(self._rows)).T
        self._chart.data = tuple(np.ascontiguousarray(column) for column in columns)

    def _begin(self) -> None:
        """Begin anew with what was chosen."""
        source = self._sources[self._shown[0]]
        wanted = self._shown[1].strip().lower()
        named = [k for k, name in enumerate(source.names) if wanted in name.lower()]
        self._columns = named[:MOST_CURVES]
        self._rows.clear()
        left_out = len(named) - len(self._columns)
        text = f"{source.about}; [{source.unit}]" if source.about else source.unit
        if left_out:
            text += f"; {left_out} more components: say which with “only”"
        self.about.content = text
        if self._chart is not None:
            self._chart.remove()
            self._chart = None
        if not self._columns:
            return
        curves = [
            {"label": source.names[k], "stroke": ink, "width": 2}
            for k, ink in zip(self._columns, _INKS, strict=False)
        ]
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
