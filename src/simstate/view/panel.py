"""Panel: the controls next to the picture; requests go to the simulation's thread.

Values from clients are treated as numbers and text; they are never executed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import viser

from simstate.view.course import Input
from simstate.view.demonstration import CENTRE, KEYS
from simstate.view.geometry import GROUPS, VISIBLE
from simstate.view.picture import NOTHING
from simstate.view.plot_sources import Source
from simstate.view.plots import Plot
from simstate.view.recorded_timeline import RecordedTimeline
from simstate.view.shapes import MOST_LABELS
from simstate.view.timeline_controls import TimelineControls

if TYPE_CHECKING:
    from simstate.view.viewer_actions import Acting

WIDEST = 1000.0
"""Maximum spacing of worlds [m], unless the default is larger."""
MOST_SLIDERS = 48
ICONS = {
    "play": "▶", "pause": "❚❚", "back": "◀❙", "step": "❙▶", "reset this world": "↺",
    "slower": "½×", "faster": "2×",
}  # fmt: skip
"""Icons of the playback controls, in order."""


class Panel:
    """The controls of a viewer, the same for all its clients.

    Args:
        server: the server that shows them.
        ask: submits a request to the thread of the simulation.
        actions: the actions that clients can request.
        drives: True if clients can play, pause, step and reset.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        ask: Callable[[Callable[[], None]], None],
        actions: Acting,
        drives: bool,
    ) -> None:
        self._server, self._ask, self._actions = server, ask, actions
        self._gui: Any = server.gui
        self.status = self._gui.add_markdown("")
        self._tabs = self._gui.add_tab_group()
        self.plots: list[Plot] = []
        self.answers: list[Any] = []
        """Elements that show answers."""
        self._sliders: list[tuple[Any, Input]] = []
        self._drives = drives
        self._keys: list[Any] = []
        self.timeline: TimelineControls | None = None
        self.world: Any = None

    # The tabs, in order.

    def add_run(
        self,
        num_envs: int,
        shown: int,
        spacing: float,
        reload: bool,
        timeline: RecordedTimeline | None,
    ) -> None:
        """Add the playback controls, and the choice of the worlds shown."""
        actions = self._actions
        with self._tabs.add_tab("Run"):
            if self._drives:
                self._add_icons(timeline is None)
                self._add_resets(num_envs, timeline)
            if num_envs > 1:
                self._add_worlds(num_envs, shown, spacing)
            if reload:
                self._button("reload the model", actions.reload)
            self._client_button("save snapshot", actions.save_snapshot)
            self._client_button("save picture", actions.save_picture)

    def _add_icons(self, resets: bool) -> None:
        """Add a row of icons: play, pause, back, step, reset and speed."""
        actions = self._actions
        does: dict[str, Callable[[], None]] = {
            ICONS["play"]: lambda: actions.play(True),
            ICONS["pause"]: lambda: actions.play(False),
            ICONS["back"]: actions.back,
            ICONS["step"]: actions.step,
            ICONS["reset this world"]: lambda: actions.reset(False),
            ICONS["slower"]: lambda: actions.scale_speed(0.5),
            ICONS["faster"]: lambda: actions.scale_speed(2.0),
        }
        if not resets:
            del does[ICONS["reset this world"]]
        self.icons = self._gui.add_button_group(
            "run", tuple(does), hint="Play, pause, one step back, one step, "
            f"{'reset this world, ' * resets}half the speed, twice the speed.",
        )  # fmt: skip

        async def pressed(event: Any) -> None:
            self._ask(does[str(event.target.value)])

        self.icons.on_click(pressed)

    def _add_resets(self, num_envs: int, timeline: RecordedTimeline | None) -> None:
        actions = self._actions
        if timeline is not None:
            self._button("to the next mark", lambda: actions.go_to_mark(True))
            self._button("to the previous mark", lambda: actions.go_to_mark(False))
            self.timeline = TimelineControls(
                self._gui, timeline, self._ask, actions.go_to
            )
            return
        if num_envs > 1:
            self._button("reset all worlds", lambda: actions.reset(True))

    def _add_worlds(self, num_envs: int, shown: int, spacing: float) -> None:
        gui, actions = self._gui, self._actions
        self.world = gui.add_number("world", 0, min=0, max=num_envs - 1, step=1)
        self._on_value(self.world, actions.look_at)
        self.count = gui.add_slider(
            "worlds shown", 1, min(num_envs, 64), 1, min(shown, num_envs)
        )
        self.spacing = gui.add_number(
            "spacing [m]", spacing, min=0.0, max=max(WIDEST, spacing)
        )

        def show() -> None:
            actions.show_worlds(int(self.count.value), float(self.spacing.value))

        self._on_value(self.count, lambda _: show())
        self._on_value(self.spacing, lambda _: show())

    def add_show(self, overlays: Mapping[str, str], bodies: Sequence[str]) -> None:
        """Add the controls of camera, overlays, and groups of geoms and sites."""
        gui, actions = self._gui, self._actions
        with self._tabs.add_tab("Show"):
            self.follow = gui.add_dropdown("follow", [NOTHING, *bodies])
            self._on_value(self.follow, actions.follow)
            self.camera = gui.add_button_group(
                "look from", ["front", "side", "above", "corner"]
            )

            async def looked(event: Any) -> None:
                direction = str(event.target.value)
                self._ask(lambda: actions.look_from(direction))

            self.camera.on_click(looked)
            self.overlays: dict[str, Any] = {}
            for name, about in overlays.items():
                box = self.overlays[name] = gui.add_checkbox(name, False, hint=about)
                self._on_value(
                    box, lambda shown, name=name: actions.show_overlay(name, shown)
                )
            self.values_written = gui.add_checkbox(
                "values of forces", True,
                hint="The largest contact forces [N] and external wrenches [N, N·m], "
                f"up to {MOST_LABELS} of each, written at their arrows.",
            )  # fmt: skip
            self._on_value(self.values_written, actions.write_values)
            everywhere = gui.add_checkbox(
                "overlays in every world", False,
                hint="Otherwise only in the selected world.",
            )  # fmt: skip
            self._on_value(everywhere, actions.draw_everywhere)
            dark = gui.add_checkbox("dark mode", False)
            self._on_value(dark, actions.set_dark)
            scale = gui.add_slider("length of arrows", 0.1, 5.0, 0.1, 1.0)
            self._on_value(scale, actions.set_scale)
            self._add_groups("groups of geoms", False)
            self._add_groups("groups of sites", True)

    def _add_groups(self, title: str, is_site: bool) -> None:
        gui, actions = self._gui, self._actions
        with gui.add_folder(title, expand_by_default=False):
            for group in range(GROUPS):
                box = gui.add_checkbox(str(group), group in VISIBLE and not is_site)
                self._on_value(
                    box,
                    lambda shown, group=group: actions.show_group(
                        group, is_site, shown
                    ),
                )

    def add_compare(self, label: str, can_join: bool) -> None:
        """Add the controls of a comparison."""
        gui, actions = self._gui, self._actions
        with self._tabs.add_tab("Compare"):
            gui.add_markdown(
                f"Next to the worlds: **{label}**. Bodies are blue if their positions "
                "agree to 1e-6 of the scene's size, red if they differ by 0.1 of it."
            )
            over = gui.add_checkbox("over each other", False)
            self._on_value(over, actions.lay_over)
            if can_join:
                self._button("put both in the same state", actions.join)
            self._button("list differences", actions.tell_differences)
            self.answers.append(gui.add_markdown(""))

    def add_inputs(self, folders: Mapping[str, Sequence[Input]]) -> None:
        """Add a slider for each input."""
        if not any(folders.values()):
            return
        with self._tabs.add_tab("Inputs"):
            for title, inputs in folders.items():
                if not inputs:
                    continue
                with self._gui.add_folder(title):
                    for one in inputs[:MOST_SLIDERS]:
                        self._slider(one)
                    left = len(inputs) - MOST_SLIDERS
                    if left > 0:
                        self._gui.add_markdown(
                            f"… and {left} more: write them in the tab “Ask”."
                        )

    def add_demonstration(self, drives: Sequence[Input]) -> None:
        """Add the recording of an episode, with sliders and keys that drive it."""
        gui, actions = self._gui, self._actions
        with self._tabs.add_tab("Demonstrate"):
            keys = [
                f"{up} and {down}: {one.name} [{one.unit}]"
                for (up, down), one in zip(KEYS, drives, strict=False)
            ]
            keys += [f"{CENTRE}: all to the middle"] * bool(drives)
            gui.add_markdown(
                "Reset and record this world, drive it by sliders"
                + (" or keys, " if drives else ", ")
                + "then download the recording.\n\n"
                + "\n".join(f"- {line}" for line in keys)
            )
            self._button("start recording", actions.start_demonstration)
            self._client_button("stop and download", actions.stop_demonstration)
            for one in drives[:MOST_SLIDERS]:
                self._slider(one)
        for k, (pair, one) in enumerate(zip(KEYS, drives, strict=False)):
            for key, sign in zip(pair, (1, -1), strict=True):
                label = f"{'raise' if sign > 0 else 'lower'} {one.name}"
                self._key(label, key, lambda k=k, s=sign: actions.nudge(k, s))
        if drives:
            self._key("drives to the middle", CENTRE, actions.centre_drives)

    def _key(self, label: str, key: str, action: Callable[[], None]) -> None:
        command = self._gui.add_command(label, hotkey=key)

        async def triggered(_: Any) -> None:
            self._ask(action)

        command.on_trigger(triggered)
        self._keys.append(command)

    def remove_keys(self) -> None:
        """Remove the keys, which viser keeps when it removes the controls."""
        for command in self._keys:
            command.remove()
        self._keys = []

    def _slider(self, one: Input) -> None:
        span = one.high - one.low
        step = 10.0 ** math.floor(math.log10(span)) / 1000.0 if span > 0.0 else 1e-3
        low, high = one.low, max(one.high, one.low + step)
        slider = self._gui.add_slider(
            f"{one.name} [{one.unit}]", low, high, step, min(max(0, low), high),
            hint=one.about,
        )  # fmt: skip
        self._on_value(slider, lambda value: self._actions.write(one, float(value)))
        self._sliders.append((slider, one))

    def add_plots(self, sources: dict[str, Source], first: Sequence[str]) -> None:
        """Add charts of sources over time."""
        with self._tabs.add_tab("Plot"):
            for k, name in enumerate(first):
                with self._gui.add_folder(f"plot {k + 1}"):
                    self.plots.append(Plot(self._server, sources, name))

    def add_ask(self, writable: Sequence[str]) -> None:
        """Add answers about clicked elements, and controls to write a quantity."""
        gui, actions = self._gui, self._actions
        with self._tabs.add_tab("Ask"):
            self.answer = gui.add_markdown(
                "Click on a body or an arrow. Pull a body: Ctrl (⌘) and drag."
            )
            self.answers.append(self.answer)
            with gui.add_folder("what is …"):
                self.question = gui.add_text("element", "", hint="Such as qvel[4].")
                self._button("explain", lambda: actions.explain(self.question.value))
            if writable:
                with gui.add_folder("write", expand_by_default=False):
                    self.quantity = gui.add_dropdown("quantity", list(writable))
                    self.values = gui.add_text("values", "", multiline=True)
                    self._button(
                        "read", lambda: actions.read_quantity(self.quantity.value)
                    )
                    self._button(
                        "write",
                        lambda: actions.write_quantity(
                            self.quantity.value, self.values.value
                        ),
                    )

    # Updates from the simulation.

    def show_state(self, text: str, world: int, step: int) -> None:
        """Update the controls from the state of the simulation."""
        self.status.content = text
        if self.world is not None and self.world.value != world:
            self.world.value = world
        if self.timeline is not None:
            self.timeline.show(world, step)
        for slider, one in self._sliders:
            value = one.read(world)
            if math.isfinite(value) and abs(slider.value - value) > slider.step:
                slider.value = min(max(value, slider.min), slider.max)

    # Requests of controls.

    def _on_value(self, handle: Any, action: Callable[[Any], None]) -> None:
        """Call an action with a value that a client chose, not with our own writes.

        The callback is a coroutine: these are called in the order of the messages.
        """

        async def changed(event: Any) -> None:
            value = event.target.value
            numeric = isinstance(value, (int, float))
            if event.client is not None and (not numeric or math.isfinite(value)):
                self._ask(lambda: action(value))

        handle.on_update(changed)

    def _button(self, label: str, action: Callable[[], None]) -> None:
        button = self._gui.add_button(label)

        async def clicked(_: Any) -> None:
            self._ask(action)

        button.on_click(clicked)

    def _client_button(self, label: str, action: Callable[[Any], None]) -> None:
        button = self._gui.add_button(label)

        async def clicked(event: Any) -> None:
            self._ask(lambda: action(event.client))

        button.on_click(clicked)
