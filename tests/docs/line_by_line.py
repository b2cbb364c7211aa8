"""Columns of code: another library's on the left, the same in simstate on the right.

Without imports of simstate: the left columns run in the other library's environment.
"""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def columns(page: str) -> dict[str, tuple[str, str]]:
    """The code of both columns under each heading "…, line by line", tab after tab."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found: dict[str, tuple[str, str]] = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        if "line by line" in heading:
            found[heading] = (code(section, simstate=False), code(section))
    return found


def code(section: str, simstate: bool = True) -> str:
    """The blocks of one column, joined."""
    fences = re.findall(r'^ *```py title="(.*?)"\n(.*?)```', section, re.DOTALL | re.M)
    return "".join(
        textwrap.dedent(lines)
        for title, lines in fences
        if (title == "simstate") is simstate
    )


def statements(text: str) -> list[str]:
    """The statements of some code, each as text."""
    return [ast.get_source_segment(text, node) or "" for node in ast.parse(text).body]


def run(text: str, where: str) -> dict:
    """The names that code defines, run statement by statement."""
    names: dict = {"__name__": "page"}
    for line in statements(text):
        try:
            exec(compile(line, f"{where}: {line}", "exec"), names)
        except Exception as error:
            raise AssertionError(f"{where}: {line!r} fails: {error!r}") from error
    return names
