"""Source lines in a user's files, to which errors refer."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_INSTALLED = tuple(
    sysconfig.get_path(name) + os.sep
    for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
)


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    @property
    def text(self) -> str:
        """The line itself, without indentation."""
        return linecache.getline(self.path, self.line).strip()

    def __str__(self) -> str:
        return f"{_shown(self.path)}, line {self.line}"


def calling_place() -> Place | None:
    """Return the line of the nearest caller outside simstate and other libraries."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if _is_own(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


@contextmanager
def written_at(place: Place | None) -> Generator[None]:
    """Attach the user's line to errors that the block raises."""
    try:
        yield
    except Exception as error:
        remember_place(error, place)
        raise


def remember_place(error: Exception, place: Place | None) -> None:
    """Attach to an error the user's line that raised it.

    That is the user's line that was being executed, if any, else `place`.
    """
    if not hasattr(error, "place"):
        ran = _ran(error)
        error.place = ran[-1] if ran else place  # pyright: ignore[reportAttributeAccessIssue]


def place_of_function(function: object) -> Place | None:
    """Return the first line of a user's function; None if it is not a user's."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or not _is_own(code.co_filename):
        return None
    return Place(code.co_filename, code.co_firstlineno)


def place_of(error: BaseException) -> Place | None:
    """Return the user's line that an error refers to; None if there is none."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(error.filename, error.lineno) if _is_own(error.filename) else None
    place: Place | None = getattr(error, "place", None)
    ran = _ran(error)
    return place or (ran[-1] if ran else None)


def _ran(error: BaseException) -> list[Place]:
    """Return the lines of a user's files in the traceback, the innermost last."""
    return [
        Place(frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno is not None and _is_own(frame.filename)
    ]


def _is_own(path: str) -> bool:
    """Return True if a file is a user's: not a library's, simstate's or generated."""
    if path.startswith("<") or path.startswith(_PACKAGE):
        return False
    return not path.startswith(_INSTALLED)


def _shown(path: str) -> str:
    """Return the path, relative if it is below the working directory."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative
