"""Libraries of extras, loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from simstate.base.errors import InvalidInputError


def library(name: str, extra: str, what: str) -> Any:
    """A module of another library; where it is missing, how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise InvalidInputError(
            f"{what} need {package}: pip install 'simstate[{extra}]'."
        ) from error
