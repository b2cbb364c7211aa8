"""Optional libraries, imported on first use."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError


def library_folder(name: str, extra: str, what: str) -> Path:
    """Return the folder of an installed package without importing it."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise InvalidInputError(
            f"{what} need {name}: pip install 'simstate[{extra}]'.", name=name
        )
    return Path(found.origin).parent


def library(name: str, extra: str, what: str, package: str | None = None) -> Any:
    """Import and return an optional module; the error states how to install it.

    Args:
        name: the module.
        extra: the extra of simstate that installs it.
        what: the features that need it, in the plural, for the message.
        package: its name on the package index; None: the module's top-level name.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = package or name.partition(".")[0]
        raise InvalidInputError(
            f"{what} need {package}: pip install 'simstate[{extra}]'.", name=package
        ) from error
