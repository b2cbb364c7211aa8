"""`simstate render`: pictures and films with overlays, without a browser."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.console import console, progress
from simstate.cli.missing_extra import needs
from simstate.cli.named_worlds import Viewed, What
from simstate.cli.options import Debug, Device, Engine, Seconds, Seed, check_writable

if TYPE_CHECKING:
    import numpy as np

    from simstate.view import Course

PICTURE = ".png"
MOST_WORLDS = 16
"""How many are drawn side by side at most."""


@dataclass
class RenderCommand:
    """Draw a model, a recording, a task or a policy: a picture or film with overlays.

    Example: simstate render quadruped --output stand.png --overlays contacts
    """

    what: What
    output: Path
    """A .png file for the state after --seconds, or a .gif or .mp4 file for a film of
    them."""
    seconds: Seconds = 2.0
    overlays: tuple[str, ...] = ()
    """What else is drawn, as the viewer lists it: contacts, "link frames", "COM
    velocities", joints, …"""
    values: bool = True
    """Whether the values of forces are written at their arrows."""
    camera: Literal["corner", "front", "side", "above"] = "corner"
    """From where it is seen."""
    size: tuple[int, int] = (640, 480)
    """Width and height [px]; even numbers for an .mp4."""
    fps: float = 25.0
    """Pictures per second of a film."""
    snapshot: Annotated[Path | None, tyro.conf.arg(name="snapshot")] = None
    """Begin with the worlds of this file."""
    policy: Path | None = None
    """Let this policy act in the task."""
    envs: int | None = None
    """Number of worlds, by default 1; up to 16 are drawn side by side."""
    noise: float = 0.0
    """Spread of random joint velocities at the start of a model [rad/s or m/s]."""
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.base.checks import number

        number("--seconds", self.seconds, more_than=0)
        check_writable("--output", self.output)
        is_film = self.output.suffix.lower() != PICTURE
        if is_film:
            with needs("play"):
                from simstate.train.video import check_video
            check_video(self.output, self.fps)
        envs = self.envs
        if envs is None and not self.what.endswith(".simrec"):
            envs = 1
        viewed = Viewed(
            self.what, self.snapshot, self.policy, envs, self.noise, self.seed,
            self.engine, self.device,
        )  # fmt: skip
        with ExitStack() as stack:
            self._draw(viewed.course(stack), is_film)
        console().print(f"{self.output}", markup=False)
        return 0

    def _draw(self, course: Course, is_film: bool) -> None:
        """Play the course, and write the picture or the film of it."""
        from simstate.view import start_offscreen

        worlds = range(min(course.worlds.num_envs, MOST_WORLDS))
        drawing = start_offscreen(
            course, worlds, self.overlays, self.size, self.camera, values=self.values
        )
        frames: list[np.ndarray] = []
        with progress(console(), "drawing") as advance:
            steps = max(1, round(self.seconds / course.step_dt))
            if course.timeline is not None:
                steps = max(1, course.timeline.step_at(self.seconds))
            elapsed = 0.0
            for step in range(steps):
                elapsed += course.step_dt
                course.advance()
                due = math.ceil(elapsed * self.fps - 1e-6)
                if is_film and due > len(frames):
                    frames += [drawing.picture()] * (due - len(frames))
                advance((step + 1) / steps, f"{elapsed:.2f} s")
        if is_film:
            self._write_film(frames)
        else:
            self._write_picture(drawing.picture())

    def _write_picture(self, picture: np.ndarray) -> None:
        from PIL import Image

        Image.fromarray(picture).save(self.output)

    def _write_film(self, frames: list[np.ndarray]) -> None:
        from simstate.train.video import write_video

        if not frames:
            raise InvalidInputError(
                f"--seconds {self.seconds:g} is too short for a film: at --fps "
                f"{self.fps:g} a picture takes {1 / self.fps:g} s."
            )
        with needs("play"):
            write_video(self.output, frames, self.fps)
