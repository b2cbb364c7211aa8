"""HTML for notebooks: a caption, a picture and a table, as `_repr_html_` returns."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

_MOST_ROWS = 60
_CELL = "padding:2px 12px 2px 0;text-align:left;white-space:nowrap"


def html_summary(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    png: bytes | None = None,
) -> str:
    """Return a caption, an optional picture and a table as HTML; all text is escaped.

    Args:
        caption: the one-line `repr` of the object.
        head: the titles of the columns.
        rows: the cells of each row; a long table is truncated with a note.
        png: a PNG file to show above the table.
    """
    cells = [[escape(str(cell)) for cell in row] for row in rows]
    parts = [f"<div><code>{escape(caption)}</code>"]
    if png is not None:
        data = base64.b64encode(png).decode()
        parts.append(f'<br><img alt="" src="data:image/png;base64,{data}">')
    parts.append("<table><thead>" + _row(map(escape, head), "th") + "</thead><tbody>")
    parts += [_row(row, "td") for row in cells[:_MOST_ROWS]]
    parts.append("</tbody></table>")
    if len(cells) > _MOST_ROWS:
        parts.append(f"<small>… {len(cells) - _MOST_ROWS} more rows</small>")
    return "".join([*parts, "</div>"])


def _row(cells: Iterable[str], tag: str) -> str:
    return (
        "<tr>"
        + "".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in cells)
        + "</tr>"
    )
