"""Check the language of the project: `python -m tests.voice`, run by `make check`.

A docstring of the package starts with what the object is or does: a noun phrase, or a
verb in the imperative. Relative clauses ("What …", "Whether …") read as translated.
Words with a plain equivalent are kept out of the package, its documentation, and the
comments, docstrings and names of the tests.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "simstate"
FIRST_WORDS = re.compile(r"\s*(What|Whether|How|Where|Let)\b")
REPLACED = {
    "told": "reported, called with, declared",
    "anew": "again, reset, re-created",
    "nobody": "unused, no caller",
    "beside": "next to, in addition to",
}
"""Words that read as translated, and what to write instead."""
# Not within --beside, an earlier option whose use is reported with the present name.
WORDS = re.compile(rf"(?i)(?<![a-z-])({'|'.join(REPLACED)})(?![a-z])")


def texts(code: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, with their lines; also those of attributes."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def prose(code: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, comments and function names of a module, with lines."""
    yield from texts(code)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, node.name
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def first_words() -> Iterator[str]:
    """Yield the docstrings that start with one of these words, with their places."""
    for file in sorted(SOURCE.rglob("*.py")):
        for line, text in texts(file.read_text(encoding="utf-8")):
            if FIRST_WORDS.match(text):
                first = text.strip().partition("\n")[0]
                yield f"{file.relative_to(ROOT)}:{line}: {first}"


def replaced_words() -> Iterator[str]:
    """Yield the lines with words to replace: all of the package, prose elsewhere."""
    files = [f for e in ("py", "c", "h") for f in SOURCE.rglob(f"*.{e}")]
    files += [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for file in sorted(files):
        lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        yield from _with_words(file, lines)
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if file != Path(__file__):
            yield from _with_words(file, prose(file.read_text(encoding="utf-8")))


def _with_words(file: Path, lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for line, text in lines:
        for found in WORDS.finditer(text):
            instead = REPLACED[found[1].lower()]
            yield f"{file.relative_to(ROOT)}:{line}: {found[1]!r}; write {instead}"


if __name__ == "__main__":
    found = [*first_words(), *replaced_words()]
    print("\n".join(found) if found else "The language of the project is in order.")
    sys.exit(1 if found else 0)
