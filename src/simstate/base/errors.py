"""The errors that simstate raises: what was given, what is allowed, what to do."""

from __future__ import annotations

import contextlib
import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
_INNER = (_PACKAGE, contextlib.__file__)
"""Files whose frames are between a warning and the line that it is about."""


class SimStateError(Exception):
    """The parent of every error that simstate raises on purpose.

    In addition to its text it may have data: the `name` that it is about, the
    names that are `known`, the `shape` that was given, the `worlds` concerned.
    """

    def __init__(
        self,
        *args: object,
        name: str = "",
        known: Iterable[str] = (),
        shape: Iterable[int] | None = None,
        worlds: Iterable[int] = (),
    ) -> None:
        super().__init__(*args)
        self.name = name
        self.known = tuple(known)
        self.shape = None if shape is None else tuple(shape)
        self.worlds = tuple(worlds)


class InvalidInputError(SimStateError, ValueError):
    """A value that cannot be used: NaN, a wrong dtype or device, a bad id."""


class ShapeError(InvalidInputError):
    """An array whose shape does not fit what it is written to."""


class ConventionError(InvalidInputError):
    """States of two conventions in one operation, or one that is not what it says."""


class ModelError(SimStateError, ValueError):
    """A model or a scene that cannot be built as it was described."""


class SceneMismatchError(ModelError):
    """A compiled scene that differs from a model's file where nothing requests it.

    `name` is the array or option of MuJoCo's, `element` the kind and name of the
    element, `in_file` and `in_scene` are the two values.
    """

    def __init__(
        self,
        message: str,
        name: str = "",
        element: str = "",
        in_file: str = "",
        in_scene: str = "",
    ) -> None:
        super().__init__(message, name=name)
        self.element = element
        self.in_file = in_file
        self.in_scene = in_scene


class TaskError(SimStateError, ValueError):
    """A task that cannot be found, loaded or made as it was written."""


class SnapshotError(SimStateError, ValueError):
    """A snapshot that is damaged, of another model or of another kind."""


class RecordingError(SimStateError, ValueError):
    """A recording that is damaged, of another kind, or cannot be replayed."""


class FileError(SimStateError, OSError):
    """A file that cannot be written or read.

    The disk is full or read-only, a folder is missing, or permission is denied.
    """


class UnknownNameError(SimStateError, KeyError, AttributeError):
    """A name that the model, the entity or the engine does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show it in quotes


class StaleReadError(SimStateError, RuntimeError):
    """A read, under `freshness="strict"`, of a quantity that a write left behind."""


class ThreadError(SimStateError, RuntimeError):
    """A simulation that is used by two threads at once, or after a fork."""


class DivergenceError(SimStateError, RuntimeError):
    """Worlds that went NaN, infinite or huge, or that MuJoCo would have reset.

    `env_ids` lists them in rising order. They hold the state that they had before
    the call; the others have advanced.
    """

    def __init__(
        self, message: str, env_ids: Sequence[int] = (), name: str = ""
    ) -> None:
        super().__init__(message, worlds=env_ids, name=name)
        self.env_ids = list(env_ids)


class IntegrationError(DivergenceError):
    """An adaptive integrator cannot meet its tolerance in these worlds."""


class CouplingError(DivergenceError):
    """The loads of a strongly coupled step do not converge in these worlds."""


def not_copied(what: str, made: str, name: str) -> InvalidInputError:
    """Return the error for copying or pickling what lives in an engine's memory."""
    return InvalidInputError(
        f"{what} cannot be copied or pickled: its worlds are in an engine's memory. "
        f"Make another one, other = {made}, and bring it to the same state: "
        f"other.restore({name}.snapshot()). A Snapshot can be saved and pickled.",
        name=name,
    )


def unknown_name(
    kind: str, name: object, known: Iterable[str], hint: str = ""
) -> UnknownNameError:
    """Return the error for a name that is not among `known`, with the nearest names.

    Args:
        kind: the kind of thing that is named.
        name: the unknown name.
        known: all names.
        hint: a sentence that replaces the nearest names.
    """
    names = list(known)
    meant = f"{hint} Known: {listed(names)}." if hint else suggestion(name, names)
    message = f"Unknown {kind} {str(name)[:80]!r}.{meant}"
    return UnknownNameError(message, name=str(name), known=names)


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the closest names and all known names, as two sentences."""
    names = list(known)
    return f"{close_to(name, names)} Known: {listed(names)}."


def close_to(name: object, known: Iterable[str]) -> str:
    """Return the closest names as a sentence; "" if none is similar."""
    close = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def listed(names: Iterable[object], most: int = 20) -> str:
    """The names in one line, cut after `most` of them; 'none' if there are none."""
    names = [str(name) for name in names]
    if not names:
        return "none"
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Give a warning that points to the caller's own line, outside simstate."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
