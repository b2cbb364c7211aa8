"""Markdown tables, for the generated pages."""

from __future__ import annotations

from collections.abc import Sequence


def note(text: str) -> str:
    """The second line of a cell, below a name."""
    return f' <span class="note">{text}</span>' if text else ""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
