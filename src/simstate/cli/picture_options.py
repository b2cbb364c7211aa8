"""Options of commands that write pictures and films, and the writing of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError
from simstate.cli.console import console, progress
from simstate.cli.missing_extra import needs
from simstate.cli.options import check_writable

if TYPE_CHECKING:
    import numpy as np

    from simstate.view import Course
    from simstate.view.offscreen import Offscreen

PICTURE = ".png"
MOST_WORLDS = 16
"""Number of worlds that are drawn side by side at most."""
MOST_IN_SHEET = 100


@dataclass
class PictureOptions:
    """Settings of pictures and films."""

    size: tuple[int, int] = (640, 480)
    """Width and height [px]; even numbers for an .mp4. Of each world with --sheet."""
    fps: float = 25.0
    """Frames per second of a film."""
    camera: str = "corner"
    """Camera: corner, front, side, above, or the name of a camera of the model."""
    orbit: tuple[float, float] | None = None
    """Azimuth and elevation of the camera [deg], as in MuJoCo, instead of --camera."""
    turn: float = 0.0
    """Rate at which the camera orbits [deg/s]."""
    overlays: tuple[str, ...] = ()
    """Overlays, as the viewer lists them: contacts, "link frames", trail, …"""
    values: bool = True
    """Write the values of forces at their arrows."""
    renderer: Literal["auto", "opengl", "software"] = "auto"
    """MuJoCo's own renderer (opengl), ours (software), or the first that works."""
    transparent: bool = False
    """Leave out floor and sky: a .png with an alpha channel."""
    supersampling: int = 1
    """Samples per pixel: 1, 4, 9 or 16."""
    sheet: bool = False
    """Draw each world in a separate picture, in rows, up to 100 of them."""

    def check(self, out: Path, option: str) -> None:
        """Raise, before anything runs, unless a picture or film can be written."""
        if out.suffix.lower() == PICTURE:
            check_writable(option, out)
        else:
            self.check_film(out, option)

    def check_film(self, out: Path, option: str) -> None:
        """Raise, before anything runs, unless a film can be written."""
        check_writable(option, out)
        with needs("play"):
            from simstate.train.video import check_video
        check_video(out, self.fps)
        if self.transparent:
            raise InvalidInputError(
                f"Films have no alpha channel: --transparent needs a {PICTURE} file, "
                f"got {out.name!r}."
            )

    def drawing(self, course: Course, most: int = MOST_WORLDS) -> Offscreen:
        """Prepare to draw the first worlds of a course, as many in a row as `most`."""
        from simstate.view import Orbit, start_offscreen

        camera: Any = self.camera
        if self.orbit is not None or self.turn:
            azimuth, elevation = self.orbit or (135.0, -20.0)
            camera = Orbit(azimuth, elevation, turn=self.turn)
        most = MOST_IN_SHEET if self.sheet else most
        return start_offscreen(
            course, range(min(course.worlds.num_envs, most)), overlays=self.overlays,
            size=self.size, camera=camera, values=self.values, renderer=self.renderer,
            transparent=self.transparent, supersampling=self.supersampling,
            sheet=self.sheet,
        )  # fmt: skip

    def film(self, course: Course, out: Path, most: int = MOST_WORLDS) -> FilmWriter:
        """Start a film of the first worlds of a course."""
        return FilmWriter(self.drawing(course, most).picture, out, self.fps)

    def write(self, course: Course, out: Path, seconds: float) -> None:
        """Play a course for a time [s], and write its end or a film of it."""
        if out.suffix.lower() == PICTURE:
            drawing = self.drawing(course)
            for _ in _played(course, seconds):
                pass
            write_picture(out, drawing.picture())
            return
        if seconds * self.fps < 1.0 - 1e-6:
            raise InvalidInputError(
                f"{seconds:g} s is too short for a film: at --fps {self.fps:g} a "
                f"picture takes {1 / self.fps:g} s."
            )
        with self.film(course, out) as film:
            for elapsed in _played(course, seconds):
                film.add(elapsed)


class FilmWriter(Closing):
    """A film that is drawn while worlds are simulated.

    Args:
        draw: gives the picture of the present state.
        out: an .mp4 or .gif file.
        fps: frames per second of simulated time.
    """

    def __init__(self, draw: Callable[[], np.ndarray], out: Path, fps: float) -> None:
        with needs("play"):
            from simstate.train.video import VideoFile
        self._draw, self._fps = draw, fps
        self._file = VideoFile(out, fps)
        self._count = 0

    def add(self, elapsed: float) -> None:
        """Draw the present state if frames are due after a time [s]."""
        due = math.ceil(elapsed * self._fps - 1e-6) - self._count
        if due > 0:
            picture = self._draw()
            for _ in range(due):
                self._file.add(picture)
            self._count += due

    def close(self) -> None:
        """End the file."""
        self._file.close()


def write_picture(out: Path, picture: np.ndarray) -> None:
    """Write a picture as a PNG file."""
    from PIL import Image

    Image.fromarray(picture).save(out)


def _played(course: Course, seconds: float) -> Iterator[float]:
    """Play a course for a time [s]; the time after each step [s]."""
    steps = max(1, round(seconds / course.step_dt))
    if course.timeline is not None:
        steps = max(1, course.timeline.step_at(seconds))
    elapsed = 0.0
    with progress(console(), "drawing") as advance:
        for step in range(steps):
            elapsed += course.step_dt
            course.advance()
            yield elapsed
            advance((step + 1) / steps, f"{elapsed:.2f} s")
