"""The one style of printed tables."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table


def new_table(title: str = "", *columns: str, **options: Any) -> Table:
    """Return an empty table with one rule, below its head.

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
