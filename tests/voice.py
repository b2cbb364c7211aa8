"""Check the language of docstrings and pages: `python -m tests.voice`, of `make check`.

A docstring starts with what the object is or does: a noun phrase, or a verb in the
imperative. Relative clauses ("What …", "Whether …") read as translated, as do some
words, which the pages of the docs and the README avoid outside of code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "simstate"
FIRST_WORDS = re.compile(r"\s*(What|Whether|How|Where|Let)\b")
IDIOMS = re.compile(
    r"\b(told|anew|nobody|somebody|beside|its begin|so many|so much|goes on|"
    r"of (?:its|their|your|our) own(?! [a-z]))\b",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|<!--.*?-->|`[^`\n]*`", re.DOTALL)


def texts(code: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, with their lines; also those of attributes."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def findings() -> Iterator[str]:
    """Yield the docstrings that start with one of these words, with their places."""
    for file in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(file.read_text(encoding="utf-8")):
            if FIRST_WORDS.match(text):
                first = text.strip().partition("\n")[0]
                yield f"{file.relative_to(SOURCE.parent.parent)}:{line}: {first}"


def page_findings() -> Iterator[str]:
    """Yield the lines of pages with one of the idioms, outside of code."""
    for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"):
        text = page.read_text(encoding="utf-8")
        prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
        for number, line in enumerate(prose.splitlines(), 1):
            if idiom := IDIOMS.search(line):
                yield f"{page.relative_to(ROOT)}:{number}: {idiom[0]}"


if __name__ == "__main__":
    found = [*findings(), *page_findings()]
    print("\n".join(found) if found else "Docstrings and pages are in order.")
    sys.exit(1 if found else 0)
