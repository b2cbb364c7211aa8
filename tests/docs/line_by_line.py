"""Tables of two columns of code: what another library's users type, and what here.

Without imports of simstate: the left columns run in the other library's environment.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tables(page: str) -> dict[str, list[tuple[str, str]]]:
    """The rows of each table of two columns under its heading, as lines of code."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in (ROOT / "docs" / f"{page}.md").read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        cells = re.fullmatch(r"\|(.*)\|(.*)\|", line)
        if cells and "line by line" in heading and "---" not in line:
            left, right = (code(cell) for cell in cells.groups())
            if left or right:
                found.setdefault(heading, []).append((left, right))
    return found


def code(cell: str) -> str:
    """The code in a cell, without its quotes; "" if there is none."""
    quoted = re.fullmatch(r"`(.*)`", cell.strip())
    return quoted.group(1) if quoted else ""


def run(lines: list[str], where: str) -> dict:
    """What lines of code define, run one after the other."""
    names: dict = {"__name__": "page"}
    for line in lines:
        try:
            exec(compile(line, f"{where}: {line}", "exec"), names)
        except Exception as error:
            raise AssertionError(f"{where}: {line!r} fails: {error!r}") from error
    return names
