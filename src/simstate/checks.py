"""Checks of what a user passes; each returns the value, or raises what to do."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import torch

from simstate.errors import InvalidInputError, unknown_name


def one_of(what: str, value: object, allowed: Iterable[str]) -> None:
    """Raise unless the value is one of the allowed names."""
    known = tuple(allowed)
    if value not in known:
        raise unknown_name(what, str(value), known)


def whole_number(what: str, value: object, least: int) -> int:
    """A whole number of at least so much; a bool is none."""
    try:
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise InvalidInputError(
            f"{what} must be ≥ {least} and a whole number, got {value!r}."
        )
    return number


def as_device(device: str | torch.device) -> torch.device:
    """The device of that name."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(
            f"device must be 'cpu' or 'cuda', as torch names them, got {device!r}."
        ) from error
