"""The common style of printed tables."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table


def new_table(title: str = "", *columns: str, **options: Any) -> Table:
    """Return an empty table with a single rule, below its header.

    A column whose header starts with ">" is aligned to the right.
    """
    table = Table(
        title=title or None, title_justify="left", box=box.SIMPLE_HEAD,
        show_edge=False, pad_edge=False, **options,
    )  # fmt: skip
    for header in columns:
        side = "right" if header.startswith(">") else "left"
        table.add_column(escape(header.removeprefix(">")), justify=side)
    return table


def as_plain_text(content: RenderableType, width: int = 120) -> str:
    """Return the printed form as text without colours."""
    console = Console(width=width)
    with console.capture() as captured:
        console.print(content, highlight=False)
    return captured.get().rstrip()
