"""Errors of commands whose optional dependencies are not installed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from simstate.base.errors import SimStateError
from simstate.base.places import place_of


class MissingExtraError(SimStateError, ImportError):
    """A library is not installed; the message names the extra that installs it."""


@contextmanager
def needs(extra: str) -> Generator[None]:
    """Context manager in which a failed import names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        is_ours = (error.name or "").startswith("simstate")
        if is_ours or place_of(error) is not None:  # what a user's task imports
            raise
        raise MissingExtraError(
            f"The library {error.name!r} is not installed. Install it: "
            f"pip install 'simstate[{extra}]'."
        ) from error
