"""A viewer in the browser: worlds, their numbers, and controls that act on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simstate.errors import InvalidInputError
from simstate.view.course import Course, Input
from simstate.view.sources import Source

if TYPE_CHECKING:
    from simstate.view.viewer import Viewer

__all__ = ["Course", "Input", "Source", "start_viewer"]

MANY = 16
"""How many worlds are shown where nobody says how many."""


def start_viewer(
    course: Course,
    host: str,
    port: int,
    token: str | None,
    worlds: int | None,
    playing: bool,
    controls: bool = True,
) -> Viewer:
    """A viewer of a course; see `Simulation.view` and `Viewer`."""
    try:
        from simstate.view.viewer import Viewer
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"The viewer needs {error.name!r}, which is not installed: "
            "pip install 'simstate[view]' brings it."
        ) from error
    return Viewer(
        course, host=host, port=port, token=token, worlds=worlds or MANY,
        playing=playing, controls=controls,
    )  # fmt: skip
