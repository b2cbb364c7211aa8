"""Check the first words of docstrings: `python -m tests.voice`, run by `make check`.

A docstring starts with what the object is or does: a noun phrase, or a verb in the
imperative. Relative clauses ("What …", "Whether …") read as translated.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "simstate"
FIRST_WORDS = re.compile(r"\s*(What|Whether|How|Where|Let)\b")


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


if __name__ == "__main__":
    found = list(findings())
    print("\n".join(found) if found else "The first words of docstrings are in order.")
    sys.exit(1 if found else 0)
