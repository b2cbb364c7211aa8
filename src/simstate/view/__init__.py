"""A viewer in the browser: worlds, their values, and controls that act on them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.view.course import Course, Input
from simstate.view.course_comparison import ComparedCourse
from simstate.view.eye import Orbit
from simstate.view.plot_sources import Source

if TYPE_CHECKING:
    from simstate.view.offscreen import Offscreen
    from simstate.view.viewer import Viewer

__all__ = [
    "ComparedCourse",
    "Course",
    "Input",
    "Orbit",
    "Source",
    "start_offscreen",
    "start_viewer",
    "thumbnail",
]

MANY = 16
"""Default number of worlds shown."""


def start_viewer(
    course: Course,
    host: str,
    port: int,
    token: str | None,
    worlds: int | None,
    playing: bool,
    controls: bool = True,
) -> Viewer:
    """Return a viewer of a course; see `Simulation.view` and `Viewer`."""
    with _needs_view():
        from simstate.view.viewer import Viewer
    return Viewer(
        course, host=host, port=port, token=token, worlds=worlds or MANY,
        playing=playing, controls=controls,
    )  # fmt: skip


def start_offscreen(
    course: Course, worlds: Sequence[int], **settings: Any
) -> Offscreen:
    """Draw pictures of a course without a browser; see `Offscreen` and `PictureCfg`."""
    with _needs_view():
        from simstate.view.offscreen import Offscreen, PictureCfg
    return Offscreen(course, worlds, PictureCfg(**settings))


def thumbnail(render: Callable[..., np.ndarray]) -> bytes | None:
    """Return a small picture of world 0 as a PNG file; None without the extra `view`.

    Args:
        render: `sim.render`.
    """
    try:
        picture = render(width=320, height=240)
        from PIL import Image
    except (ImportError, SimStateError):
        return None
    file = BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


@contextmanager
def _needs_view() -> Generator[None]:
    """Context manager in which a failed import names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "simstate":
            raise
        raise InvalidInputError(
            f"The viewer needs {error.name!r}, which is not installed. Install it: "
            "pip install 'simstate[view]'.",
            name="view",
        ) from error
