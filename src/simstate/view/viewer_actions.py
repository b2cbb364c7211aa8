"""Acting: the actions of a viewer's controls, in the thread of the simulation."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.errors import InvalidInputError
from simstate.entity import Entity, Quantity
from simstate.entity.explanation import FIELDS, Explanation
from simstate.view.answer_label import element_label
from simstate.view.course import Input
from simstate.view.course_comparison import ComparedCourse
from simstate.view.demonstration import NAME, HandDemonstration
from simstate.view.explain_view import element_text
from simstate.view.picture import NOTHING, Picture
from simstate.view.plot_sources import quantity_names
from simstate.view.session import Session

_TWO_ARGUMENTS = "write_external_wrench_to_sim"
MOST_VALUES = 200
"""Quantities with more values than this cannot be written by hand."""
_PICTURE_WAIT = 120.0
_GONE = "No {} was saved: the page that requested it has closed or does not respond."


class Acting:
    """Actions on a session and a picture.

    Args:
        session: the session that is played.
        picture: the picture that is drawn.
        demonstration: the demonstration by hand.
        explanation: the meanings of the elements of fields.
        tell: shows a text as the answer to a question.
        fill: shows values that can be changed and written.
        reload: reloads the model; None: there is no file.
    """

    def __init__(
        self,
        session: Session,
        picture: Picture,
        demonstration: HandDemonstration,
        explanation: Explanation,
        tell: Callable[[str], None],
        fill: Callable[[str], None],
        reload: Callable[[], None] | None,
    ) -> None:
        self._session, self._picture = session, picture
        self._demonstration = demonstration
        self._explanation, self._tell, self._fill = explanation, tell, fill
        self._reload = reload

    # Playing.

    def play(self, playing: bool) -> None:
        """Continue or pause; at the end of a timeline, continue from its start."""
        if playing and self._session.is_at_end:
            self.go_to(0)
        self._session.play(playing)

    def step(self) -> None:
        """Take one step."""
        self._session.step()

    def back(self) -> None:
        """Go back to before the steps that were played last."""
        self._session.back()
        self._mark_diverged()

    def go_to(self, step: int) -> None:
        """Go to a step of the timeline."""
        self._session.go_to(step)
        self._mark_diverged()

    def go_to_mark(self, ahead: bool) -> None:
        """Go to the next or previous mark of the selected world, and pause."""
        course, world = self._session.course, self._picture.world
        if course.timeline is None:
            raise InvalidInputError(f"A {course.name} has no marks.")
        mark = course.timeline.next_mark(course.at, world, ahead)
        self._session.playing = False
        if mark is None:
            raise InvalidInputError(
                f"World {world} has no mark {'after' if ahead else 'before'} this step."
            )
        self.go_to(mark.step)

    def reset(self, everything: bool) -> None:
        """Reset the selected world, or all worlds."""
        count = self._session.course.worlds.num_envs
        env_ids = list(range(count)) if everything else [self._picture.world]
        self._session.reset(env_ids)
        self._picture.marks.forget(env_ids)

    def scale_speed(self, factor: float) -> None:
        """Multiply the playback speed, in simulated seconds per second."""
        self._session.speed = min(max(factor * self._session.speed, 1 / 64), 64.0)

    def reload(self) -> None:
        """Reload the model's file and restart."""
        if self._reload is None:
            raise InvalidInputError("The model has no file to reload.")
        self._reload()

    def _mark_diverged(self) -> None:
        """Mark the worlds that have diverged at this step of a timeline."""
        course = self._session.course
        self._picture.marks.forget()
        if course.timeline is not None:
            self._picture.marks.elements |= course.timeline.diverged(course.at)

    # Looking.

    def look_at(self, world: int) -> None:
        """Select the world of overlays, plots and inputs."""
        last = self._session.course.worlds.num_envs - 1
        self._picture.look_at(min(max(int(world), 0), last))

    def show_worlds(self, count: int, spacing: float) -> None:
        """Show this many worlds at a spacing [m]."""
        self._picture.count = max(count, 1)
        self._picture.spacing = max(spacing, 0.0)
        self._picture.place_worlds()

    def follow(self, body: str) -> None:
        """Keep a body at its position on the screen."""
        model = self._session.course.worlds.model
        self._picture.follow(None if body == NOTHING else model.body(body).id)

    def look_from(self, direction: str) -> None:
        """Look at everything from a direction."""
        self._picture.look_from(direction)

    def show_overlay(self, name: str, shown: bool) -> None:
        """Show or hide an overlay."""
        self._picture.show_overlay(name, shown)

    def draw_everywhere(self, everywhere: bool) -> None:
        """Draw overlays in every world shown, or only in the selected one."""
        self._picture.everywhere = everywhere

    def set_dark(self, dark: bool) -> None:
        """Show everything in dark mode, or in light mode."""
        self._picture.set_dark(dark)

    def set_scale(self, scale: float) -> None:
        """Set the scale of arrows."""
        self._picture.scale = scale

    def write_values(self, written: bool) -> None:
        """Label forces with their values, or not."""
        self._picture.values = written

    def show_group(self, group: int, is_site: bool, shown: bool) -> None:
        """Show or hide a group of geoms or sites."""
        self._picture.show_group(group, is_site, shown)

    def lay_over(self, over: bool) -> None:
        """Draw the companion over the worlds, or next to them."""
        self._picture.over = over

    # Values.

    def write(self, one: Input, value: float) -> None:
        """Set an input of the selected world."""
        one.write(self._picture.world, value)

    def join(self) -> None:
        """Set the companion to the state of the worlds."""
        self._compared().join()

    def tell_differences(self) -> None:
        """List the differences of the selected world's states."""
        self._tell(self._compared().differences(self._picture.world))

    def _compared(self) -> ComparedCourse:
        course = self._session.course
        if not isinstance(course, ComparedCourse):
            raise InvalidInputError("There is no other course to compare with.")
        return course

    def explain(self, name: str) -> None:
        """Explain an element such as qvel[4]."""
        self._tell(element_text(self._picture.seen(), self._explanation, name))
        field = name.split("[")[0].strip().removeprefix("data.")
        known = element_label(self._explanation, name) if field in FIELDS else None
        self._picture.asked.about(known)

    def read_quantity(self, name: str) -> None:
        """Show the values of a quantity in the text field, for editing."""
        entity, quantity = self._quantity(name)
        values = self._picture.seen().quantity(entity.name, quantity.name)
        rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
        self._fill("\n".join(" ".join(f"{x:.6g}" for x in row) for row in rows))

    def write_quantity(self, name: str, text: str) -> None:
        """Write a quantity of the selected world by its writer."""
        entity, quantity = self._quantity(name)
        now = self._picture.seen().quantity(entity.name, quantity.name)
        values = parse_numbers(text, now.size).reshape(1, *now.shape)
        writer = getattr(entity, quantity.writer)
        parts = [values]
        if quantity.writer == _TWO_ARGUMENTS:
            parts = [values[..., :3], values[..., 3:]]
        writer(*parts, env_ids=[self._picture.world])

    def _quantity(self, name: str) -> tuple[Entity, Quantity]:
        scene = self._session.course.worlds.scene
        for entity in scene.values():
            for quantity in writable_quantities(entity):
                if name == f"{entity.name}.{quantity.name}":
                    return entity, quantity
        raise InvalidInputError(f"There is no quantity {name!r} that can be written.")

    # A demonstration in the selected world.

    def nudge(self, drive: int, sign: int) -> None:
        """Move a drive up or down."""
        self._demonstration.nudge(drive, sign, self._picture.world)

    def centre_drives(self) -> None:
        """Move all drives to the middle of their ranges."""
        self._demonstration.centre(self._picture.world)

    def start_demonstration(self) -> None:
        """Reset the selected world, record it and play."""
        self._demonstration.start(self._picture.world)
        self._session.play()

    def stop_demonstration(self, client: Any) -> None:
        """Pause, and send the recording to a client as a download."""
        self._session.playing = False
        content = self._demonstration.stop()
        if self._picture.is_seen_by(client):
            client.send_file_download(NAME, content)
        else:
            self._session.report(_GONE.format("demonstration"))

    # Files for clients to download; none is stored on this machine.

    def save_snapshot(self, client: Any) -> None:
        """Send a snapshot of all worlds to a client as a download."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "worlds.npz"
            self._session.course.snapshot().save(path)
            content = path.read_bytes()
        if self._picture.is_seen_by(client):
            client.send_file_download("worlds.npz", content)
        else:
            self._session.report(_GONE.format("snapshot"))

    def save_picture(self, client: Any) -> None:
        """Send a client its view as a download, without blocking the simulation."""

        def work() -> None:
            from PIL import Image

            camera = client.camera
            try:
                pixels: np.ndarray = client.get_render(
                    camera.image_height, camera.image_width, timeout=_PICTURE_WAIT
                )
            except (RuntimeError, TimeoutError, UserWarning):
                problem = _GONE.format("picture")
                self._session.ask(lambda: self._session.report(problem))
                return
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, format="PNG")
            client.send_file_download("picture.png", file.getvalue())

        if not self._picture.is_seen_by(client):
            self._session.report(_GONE.format("picture"))
            return
        threading.Thread(target=work, daemon=True).start()


def writable_quantities(entity: Entity) -> list[Quantity]:
    """Return an entity's quantities with a writer and at most `MOST_VALUES` values."""
    found: list[Quantity] = []
    for quantity in type(entity.data).quantities.values():
        names = quantity_names(entity, quantity)
        is_part = quantity.writer == _TWO_ARGUMENTS and quantity.shape[-1] != 6
        if quantity.writer and 0 < len(names) <= MOST_VALUES and not is_part:
            found.append(quantity)
    return found


def parse_numbers(text: str, count: int) -> np.ndarray:
    """Parse finite numbers, separated by spaces or commas, as float64; (count,)."""
    words: Sequence[str] = text.replace(",", " ").split()
    try:
        values = np.array([float(word) for word in words])
    except ValueError as error:
        raise InvalidInputError(f"Not a number: {error}.") from error
    if values.size != count:
        raise InvalidInputError(f"Expected {count} numbers, got {values.size}.")
    if not np.isfinite(values).all():
        raise InvalidInputError("The numbers must be finite.")
    return values
