"""Values to which a client may set a control: those that its page could set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

LONGEST_TEXT = 10_000
"""Maximum length of typed text."""


def is_fitting(control: Any, value: object) -> bool:
    """Return True if a value has the control's kind, range and options."""
    now = control.value
    if isinstance(now, bool):
        return isinstance(value, bool)
    if isinstance(now, int | float):
        return _is_number(value) and _is_within(control, cast("float", value))
    if isinstance(now, str):
        options = getattr(control, "options", None)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            return False
        return options is None or value in options
    if isinstance(now, tuple):
        numbers = cast("Sequence[object]", value if isinstance(value, list) else ())
        size = len(cast("tuple[object, ...]", now))
        return len(numbers) == size and all(map(_is_number, numbers))
    return False


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(cast("float", value))


def _is_within(control: Any, value: float) -> bool:
    """Within the range, where there is one, but for what a page rounds."""
    low, high = (getattr(control, name, None) for name in ("min", "max"))
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    slack = 1e-6 * (high - low) if math.isfinite(high - low) else 0.0
    return low - slack <= value <= high + slack
