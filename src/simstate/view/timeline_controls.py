"""The controls of a timeline: a slider for its position, and a list of its marks."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simstate.view.recorded_timeline import SIGNS, Mark, RecordedTimeline

MOST_MARKS = 24
"""Maximum number of drawn marks of a world."""
MOST_LISTED = 8


class TimelineControls:
    """A slider over the steps with the marks of the world shown, and a list of them.

    Args:
        gui: the panel that shows them.
        timeline: the steps.
        ask: submits a request to the thread of the simulation.
        go_to: goes to a step.
    """

    def __init__(
        self,
        gui: Any,
        timeline: RecordedTimeline,
        ask: Callable[[Callable[[], None]], None],
        go_to: Callable[[int], None],
    ) -> None:
        self._gui, self._timeline = gui, timeline
        self._ask, self._go_to = ask, go_to
        self._folder = gui.add_folder("timeline")
        self._world = 0
        self._wanted: int | None = None
        """Position of the slider that the worlds have not reached yet."""
        with self._folder:
            self.slider: Any = self._make_slider(0)
            self.list: Any = gui.add_markdown("")

    def show(self, world: int, step: int) -> None:
        """Set the controls to a step and a world."""
        if world != self._world:
            self._world = world
            self.slider.remove()
            with self._folder:
                self.slider = self._make_slider(step)
        elif self._wanted is None and self.slider.value != step:
            self.slider.value = step
        text = self._text(step)
        if self.list.content != text:
            self.list.content = text

    def _make_slider(self, step: int) -> Any:
        marks = self._timeline.of_world(self._world)
        marks = [mark for mark in marks if mark.kind != "write"] or marks
        drawn = marks[:: -(-len(marks) // MOST_MARKS) or 1]
        signs = {mark.step: SIGNS[mark.kind] for mark in drawn}
        slider = self._gui.add_slider(
            "at step", 0, self._timeline.num_steps, 1, step, marks=tuple(signs.items()),
            order=0.0, hint="Step: ↺ reset, ✖ divergence, ◆ event, ✎ write.",
        )  # fmt: skip

        async def moved(event: Any) -> None:
            if event.client is not None:
                self._wanted = int(event.target.value)
                self._ask(self._follow)

        slider.on_update(moved)
        return slider

    def _follow(self) -> None:
        """Go to the slider's current step; the steps that it passed are skipped."""
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            self._go_to(wanted)

    def _text(self, step: int) -> str:
        """Return the marks around a step, with the past ones in bold."""
        marks = self._timeline.of_world(self._world)
        if not marks:
            return f"World {self._world} has no marks."
        passed = sum(mark.step <= step for mark in marks)
        first = max(0, min(passed - MOST_LISTED // 2, len(marks) - MOST_LISTED))
        shown = marks[first : first + MOST_LISTED]
        lines = [self._line(mark, mark.step <= step) for mark in shown]
        if len(marks) > len(shown):
            lines.append(f"- … of {len(marks)} in world {self._world}")
        return "\n".join(lines)

    def _line(self, mark: Mark, passed: bool) -> str:
        time = float(self._timeline.times[mark.step])
        text = f"{SIGNS[mark.kind]} {time:.3f} s: {mark.kind}"
        return f"- {f'**{text}**' if passed else text}, {mark.text}"
