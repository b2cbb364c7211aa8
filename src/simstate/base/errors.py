"""Errors of simstate; each states what was given, what is allowed and what to do."""

from __future__ import annotations

import contextlib
import difflib
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

_E = TypeVar("_E", bound=Exception)

_PACKAGE = str(Path(__file__).parents[1])
_INNER = (_PACKAGE, contextlib.__file__)
"""Files whose frames are skipped when a warning is attributed to a caller."""


class SimStateError(Exception):
    """Base class of all errors that simstate raises deliberately.

    In addition to its message, an error may carry data: the `name` that it refers
    to, the `known` names, the given `shape` and the affected `worlds`.
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

    def __reduce__(self) -> tuple[Any, ...]:
        fields = vars(self) | {"name": self.name}  # AttributeError's own member
        return _made, (type(self), self.args, fields)

    def with_message(self, message: str, name: str = "") -> Self:
        """Return an error of the same class and fields with another message.

        Args:
            message: its text.
            name: its name, if it has none yet.
        """
        fields = vars(self) | {"name": self.name or name}
        return _made(type(self), (message,), fields)


def _made(kind: type[_E], args: tuple[object, ...], fields: Mapping[str, object]) -> _E:
    """Return an error without calling its constructor, whose arguments may differ."""
    error = kind.__new__(kind, *args)
    error.args = args  # OSError leaves it to its constructor
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class InvalidInputError(SimStateError, ValueError):
    """An invalid value: NaN, a wrong dtype or device, an id out of range."""


class ShapeError(InvalidInputError):
    """An array whose shape does not match its destination."""


class ConventionError(InvalidInputError):
    """States of different conventions in one operation, or mislabelled states."""


class ModelError(SimStateError, ValueError):
    """A model or a scene that cannot be built from its description."""


class SceneMismatchError(ModelError):
    """A compiled scene that differs from a model's file without being asked to.

    `name` is MuJoCo's array or option, `element` the kind and name of the
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
    """A task that cannot be found, loaded or built."""


class SnapshotError(SimStateError, ValueError):
    """A snapshot that is damaged, of another model, or not a snapshot."""


class RecordingError(SimStateError, ValueError):
    """A recording that is damaged, not a recording, or cannot be replayed."""


class FileError(SimStateError, OSError):
    """A file that cannot be written or read.

    The disk is full or read-only, a folder is missing, or permission is denied.
    """


class UnknownNameError(SimStateError, KeyError, AttributeError):
    """A name that the model, the entity or the engine does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show it in quotes


class StaleReadError(SimStateError, RuntimeError):
    """A read of a stale quantity under `freshness="strict"`."""


class ThreadError(SimStateError, RuntimeError):
    """A simulation used by two threads at the same time, or after a fork."""


class DivergenceError(SimStateError, RuntimeError):
    """Worlds whose state became NaN, infinite or huge, or that MuJoCo would have reset.

    `env_ids` lists them in ascending order. They keep the state that they had before
    the call; the other worlds have advanced.
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
    """Return the error for copying or pickling an object in an engine's memory."""
    return InvalidInputError(
        f"{what} cannot be copied or pickled: its worlds are in an engine's memory. "
        f"Create another one, other = {made}, and copy the state: "
        f"other.restore({name}.snapshot()). A Snapshot can be saved and pickled.",
        name=name,
    )


def unknown_name(
    kind: str, name: object, known: Iterable[str], hint: str = ""
) -> UnknownNameError:
    """Return the error for a name that is not among `known`, with the nearest names.

    Args:
        kind: the noun for the named object.
        name: the unknown name.
        known: all names.
        hint: a sentence to show instead of the nearest names.
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
    """Return the closest names as a sentence; "" if none is similar.

    A name with the same last part, as in "tool/grip" and "grip", is similar.
    """
    names = list(known)
    last = str(name).rpartition("/")[2]
    close = [known for known in names if str(known).rpartition("/")[2] == last]
    close += difflib.get_close_matches(str(name), names, n=3, cutoff=0.6)
    close = list(dict.fromkeys(close))[:3]
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def with_article(noun: str) -> str:
    """Return a noun, or the name of a class, with "a" or "an"."""
    vowel = noun.startswith(tuple("AEIOUaeiou")) and noun[:3].lower() != "uni"
    return f"{'an' if vowel or noun.startswith('Mj') else 'a'} {noun}"


def listed(names: Iterable[object], most: int = 20) -> str:
    """Return the names on one line, at most `most` of them; 'none' if empty."""
    names = [str(name) for name in names]
    if not names:
        return "none"
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning attributed to the caller's line outside simstate."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
