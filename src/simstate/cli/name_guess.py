"""Suggestions for a name that Python does not know."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable
from inspect import signature
from types import FrameType, TracebackType

from simstate.base.errors import close_to

_KEYWORD = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword.* '(\w+)'")
_IMPORTED = re.compile(r"cannot import name '(\w+)'")


def meant(error: BaseException) -> str:
    """Return a suggestion for an unknown name; "" for errors of other kinds."""
    try:
        name, known = _unknown(error)
        close = close_to(name, known) if name else ""
    except Exception:  # raised by a user's object; it must not hide the first error
        return ""
    return f".{close}" if close else ""


def _unknown(error: BaseException) -> tuple[str, Iterable[str]]:
    """Return the name that an error is about, and the names that exist."""
    text = str(error)
    frame = _frame(error.__traceback__)
    if isinstance(error, AttributeError):
        return error.name or "", _attributes(error.obj)
    if isinstance(error, NameError):
        return error.name or "", _variables(frame)
    if isinstance(error, ImportError) and (found := _IMPORTED.match(text)):
        return found[1], _attributes(sys.modules.get(error.name or ""))
    if isinstance(error, TypeError) and (found := _KEYWORD.match(text)):
        called = {**frame.f_globals, **frame.f_locals}.get(found[1]) if frame else None
        return found[2], signature(called).parameters if callable(called) else ()
    return "", ()


def _frame(trace: TracebackType | None) -> FrameType | None:
    """Return the frame in which an error was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def _attributes(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def _variables(frame: FrameType | None) -> list[str]:
    """Return the names that are visible in a frame."""
    if frame is None:
        return []
    return [*frame.f_locals, *frame.f_globals, *vars(builtins)]
