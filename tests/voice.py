"""Check the language of the project: `python -m tests.voice`, run by `make check`.

A docstring of the package starts with what the object is or does: a noun phrase, or a
verb in the imperative. Relative clauses ("What …", "Whether …") read as translated, as
do some words and idioms. They are kept out of the package, out of the pages of the docs
and the README outside of code, and out of the comments, docstrings and names of tests.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "simstate"
FIRST_WORDS = re.compile(r"\s*(What|Whether|How|Where|Let)\b")
# Also within names; but --beside is an earlier option, reported with the present name.
WORDS = re.compile(r"(?i)(?<![a-z-])(told|anew|nobody|beside)(?![a-z])")
IDIOMS = re.compile(
    rf"{WORDS.pattern}|(?i:\b(somebody|its begin|so many|so much|goes on|"
    r"of (?:its|their|your|our) own(?! [a-z]))\b)"
)
CODE = re.compile(r"```.*?```|<!--.*?-->|`[^`\n]*`", re.DOTALL)
Lines = Iterable[tuple[int, str]]
Search = Callable[[str], "re.Match[str] | None"]


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


def findings() -> Iterator[str]:
    """Yield the places with words to replace."""
    for file in sorted(SOURCE.rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        yield from _found(file, FIRST_WORDS.match, texts(code))
        yield from _found(file, IDIOMS.search, prose(code))
    for file in sorted(
        f for kind in ("py", "c", "h") for f in SOURCE.rglob(f"*.{kind}")
    ):
        lines = file.read_text(encoding="utf-8").splitlines()
        yield from _found(file, WORDS.search, enumerate(lines, 1))
    for file in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"):
        text = file.read_text(encoding="utf-8")
        plain = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
        yield from _found(file, IDIOMS.search, enumerate(plain.splitlines(), 1))
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if file != Path(__file__):
            code = file.read_text(encoding="utf-8")
            yield from _found(file, WORDS.search, prose(code))


def _found(file: Path, search: Search, lines: Lines) -> Iterator[str]:
    for line, text in lines:
        if match := search(text):
            yield f"{file.relative_to(ROOT)}:{line}: {match[0].strip()}"


if __name__ == "__main__":
    found = list(dict.fromkeys(findings()))
    print("\n".join(found) if found else "The language of the project is in order.")
    sys.exit(1 if found else 0)
