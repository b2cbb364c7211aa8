"""Commands that need more than simstate itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from simstate.errors import SimStateError


class MissingExtraError(SimStateError, ImportError):
    """A library that is not installed, and the extra of simstate that brings it."""


@contextmanager
def needs(extra: str) -> Generator[None]:
    """While it is entered, an import that fails says which extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("simstate"):
            raise
        raise MissingExtraError(
            f"The library {error.name!r} is not installed: "
            f"pip install 'simstate[{extra}]' brings it."
        ) from error
