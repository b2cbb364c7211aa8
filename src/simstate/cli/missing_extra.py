"""Commands that need more than simstate itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from simstate.base.errors import SimStateError
from simstate.base.places import place_of


class MissingExtraError(SimStateError, ImportError):
    """A library that is not installed, and the extra of simstate that brings it."""


@contextmanager
def needs(extra: str) -> Generator[None]:
    """While it is entered, an import that fails says which extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        is_ours = (error.name or "").startswith("simstate")
        if is_ours or place_of(error) is not None:  # what a user's task imports
            raise
        raise MissingExtraError(
            f"The library {error.name!r} is not installed: "
            f"pip install 'simstate[{extra}]' brings it."
        ) from error
