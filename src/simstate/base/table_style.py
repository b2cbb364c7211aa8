"""The one style of printed tables."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table


def new_table(title: str = "", **options: Any) -> Table:
    """Return an empty table with one rule, below its head."""
    return Table(
        title=title or None, title_justify="left", box=box.SIMPLE_HEAD,
        show_edge=False, pad_edge=False, **options,
    )  # fmt: skip
