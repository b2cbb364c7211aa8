"""Result of a command: data for programs, tables and lines for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rich.console import RenderableType
from rich.text import Text

from simstate.base.printable import printable
from simstate.cli.console import console


@dataclass(frozen=True)
class Answer:
    """Result of a command; `present` prints it."""

    facts: Any
    """Output of --json: dictionaries, lists, text and numbers."""
    shown: Sequence[RenderableType]
    """Output otherwise, in order; text is printed unchanged."""
    code: int = 0
    """The exit code."""


def present(answer: Answer, as_json: bool) -> int:
    """Print an answer on standard output; return the exit code."""
    if as_json:
        is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        text = json.dumps(_plain(answer.facts), indent=2, ensure_ascii=not is_utf8)
        print(printable(text))
        return answer.code
    out = console()
    for k, part in enumerate(answer.shown):
        if isinstance(part, str | Text):
            out.print(part, markup=False, highlight=False, soft_wrap=True)
            continue
        if k:
            out.print()
        out.print(part, highlight=False)
    return answer.code


def _plain(facts: Any) -> Any:
    """Return the facts with None for values that JSON cannot hold: NaN, infinity."""
    if isinstance(facts, Mapping):
        found = cast("Mapping[str, Any]", facts)
        return {name: _plain(value) for name, value in found.items()}
    if isinstance(facts, list | tuple):
        return [_plain(value) for value in cast("Sequence[Any]", facts)]
    if isinstance(facts, float) and not math.isfinite(facts):
        return None
    return facts
