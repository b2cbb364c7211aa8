"""Texts from files, made safe to print: without terminal control characters."""

from __future__ import annotations

import unicodedata
from typing import Any, cast

_KEPT = "\n\t"
_SHOWN = "\N{REPLACEMENT CHARACTER}"
_CATEGORIES = ("Cc", "Cs")
"""Control characters, including escape, and unpaired surrogates."""
_TURNING = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
"""Characters that change the direction of the text after them."""


def printable(text: str) -> str:
    """Return a text with each control character replaced by a visible mark."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_shown(character) else _SHOWN for character in text)


def printable_values(value: Any) -> Any:
    """Return a JSON value with all texts, including keys, made printable.

    Raise ValueError if two keys would become equal.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        made = {printable(key): printable_values(item) for key, item in items}
        if len(made) < len(items):
            raise ValueError("names that differ only by control characters")
        return made
    if isinstance(value, list):
        return [printable_values(item) for item in cast("list[Any]", value)]
    return value


def _is_shown(character: str) -> bool:
    if character in _KEPT:
        return True
    is_control = unicodedata.category(character) in _CATEGORIES
    return not is_control and character not in _TURNING
