"""Options of commands that draw pictures and films, and the writers of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError
from simstate.cli.missing_extra import needs
from simstate.cli.options import check_writable

if TYPE_CHECKING:
    import numpy as np

    from simstate.view import Course
    from simstate.view.offscreen import Offscreen

PICTURE = ".png"
MOST_WORLDS = 9
"""Maximum number of worlds in one picture without --sheet."""
MOST_IN_SHEET = 100


@dataclass
class PictureOptions:
    """Pictures and films of the worlds, drawn without a display."""

    film: Path | None = None
    """Write a film of the worlds: an .mp4 or .gif file."""
    picture: Path | None = None
    """Write a picture of the worlds at the end: a .png file."""
    size: tuple[int, int] = (640, 480)
    """Width and height [px], of each world with --sheet; even numbers for an .mp4."""
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
    """Do not label force arrows with their values."""
    renderer: Literal["auto", "opengl", "software"] = "auto"
    """MuJoCo's renderer (opengl), simstate's (software), or the first that works."""
    transparent: bool = False
    """Omit floor and sky: a .png with an alpha channel."""
    supersampling: int = 1
    """Samples per pixel: 1, 4, 9 or 16."""
    sheet: bool = False
    """Draw each world in a separate picture, in rows, up to 100 of them."""

    def check(self) -> None:
        """Raise if a film or picture cannot be written; to be called before the run."""
        check_writable("--film", self.film)
        check_writable("--picture", self.picture)
        if self.picture is not None and self.picture.suffix.lower() != PICTURE:
            raise InvalidInputError(
                f"--picture writes a {PICTURE} file, got {self.picture.name!r}; --film "
                "writes films."
            )
        if self.film is not None:
            with needs("play"):
                from simstate.train.video import check_video
            check_video(self.film, self.fps)
        if self.transparent and self.picture is None:
            raise InvalidInputError(
                "--transparent needs --picture: films have no alpha channel."
            )

    def draw(self, course: Course, seconds: float) -> Drawings:
        """Return the drawings of a course's first worlds; it runs for `seconds`."""
        if self.film is not None and seconds * self.fps < 1.0 - 1e-6:
            raise InvalidInputError(
                f"{seconds:g} s is too short for a film: at --fps {self.fps:g} a "
                f"frame takes {1 / self.fps:g} s."
            )
        return Drawings(self, course)

    def offscreen(self, course: Course) -> Offscreen:
        """Return a renderer of the first worlds of a course."""
        from simstate.view import Orbit, start_offscreen

        camera: Any = self.camera
        if self.orbit is not None or self.turn:
            azimuth, elevation = self.orbit or (135.0, -20.0)
            camera = Orbit(azimuth, elevation, turn=self.turn)
        return start_offscreen(
            course, range(self.drawn_worlds(course)), overlays=self.overlays,
            size=self.size, camera=camera, values=self.values, renderer=self.renderer,
            transparent=self.transparent, supersampling=self.supersampling,
            sheet=self.sheet,
        )  # fmt: skip

    def drawn_worlds(self, course: Course) -> int:
        """Return the number of worlds in a picture."""
        return min(course.worlds.num_envs, MOST_IN_SHEET if self.sheet else MOST_WORLDS)


class Drawings(Closing):
    """The film and the picture of one run, drawn while its worlds are simulated."""

    def __init__(self, options: PictureOptions, course: Course) -> None:
        self.lines: list[str] = []
        self._options, self._course = options, course
        self._film: FilmWriter | None = None
        self._offscreen: Offscreen | None = None
        if options.film is None and options.picture is None:
            return
        self._offscreen = options.offscreen(course)
        if options.film is not None:
            draw = self._offscreen.picture
            self._film = FilmWriter(draw, options.film, options.fps)

    def add(self, elapsed: float) -> None:
        """Draw the frames of the film that are due at a simulated time [s]."""
        if self._film is not None:
            self._film.add(elapsed)

    def close(self) -> None:
        """Finish the film and draw the picture."""
        options, count = self._options, self._options.drawn_worlds(self._course)
        worlds = "1 world" if count == 1 else f"{count} worlds"
        if self._film is not None:
            self._film.close()
            self.lines.append(f"Film of {worlds}: {options.film}")
        if self._offscreen is not None and options.picture is not None:
            write_picture(options.picture, self._offscreen.picture())
            self.lines.append(f"Picture of {worlds}: {options.picture}")


class FilmWriter(Closing):
    """A film that is drawn while worlds are simulated.

    Args:
        draw: returns a picture of the current state.
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
        """Draw the current state if frames are due at a simulated time [s]."""
        due = math.ceil(elapsed * self._fps - 1e-6) - self._count
        if due > 0:
            picture = self._draw()
            for _ in range(due):
                self._file.add(picture)
            self._count += due

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def write_picture(out: Path, picture: np.ndarray) -> None:
    """Write a picture as a PNG file."""
    from PIL import Image

    from simstate.base.files import replacing

    with replacing(out) as part:
        Image.fromarray(picture).save(part, format="PNG")
