"""Random mistakes in a Python or C file: each of them is one `Mutant`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One mistake: `old` becomes `new` in a file of the package."""

    file: str
    old: str
    new: str
    tests: str
    """Arguments of pytest."""
    place: int = -1
    """Index of `old` in the file; −1: it occurs only once."""

    def applied(self, source: str) -> str:
        """Return a file's text with the mistake in it."""
        if self.place < 0:
            assert source.count(self.old) == 1, f"{self.file}: no single {self.old!r}"
            return source.replace(self.old, self.new)
        end = self.place + len(self.old)
        assert source[self.place : end] == self.old, self
        return source[: self.place] + self.new + source[end:]


def mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield every mistake of the usual kinds that can be made in a file."""
    if file.endswith(".py"):
        found = python_mistakes(file, source, tests)
        yield from (one for one in found if not in_prose(one, source))
    else:
        yield from c_mistakes(file, source, tests)


_SWAPS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Lt: "<=",
    ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is",
    ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


_LOST = ("clone", "copy", "clamp", "abs", "sort")
"""Methods whose call is forgotten."""


def python_mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield the mistakes that can be made in a Python module.

    A sign or comparison is another, a number is off by one, a copy is missing, a check
    or a statement is removed, a condition is negated.
    """
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            at(node.lineno, node.col_offset),
            at(node.end_lineno, node.end_col_offset),
        )

    def change(start: int, stop: int, new: str) -> Mutant:
        return Mutant(file, source[start:stop], new, tests, start)

    for node in ast.walk(ast.parse(source)):
        pairs: list[tuple[ast.expr, type[ast.AST], ast.expr]] = []
        if isinstance(node, ast.BinOp):
            pairs = [(node.left, type(node.op), node.right)]
        elif isinstance(node, ast.Compare):
            lefts = [node.left, *node.comparators]
            pairs = [
                (lefts[k], type(op), lefts[k + 1]) for k, op in enumerate(node.ops)
            ]
        elif isinstance(node, ast.BoolOp):
            pairs = [
                (a, type(node.op), b)
                for a, b in zip(node.values, node.values[1:], strict=False)
            ]
        for left, kind, right in pairs:
            start, stop = span(left)[1], span(right)[0]
            if kind in _SWAPS and _SIGNS[kind] in source[start:stop]:
                new = source[start:stop].replace(_SIGNS[kind], _SWAPS[kind], 1)
                yield change(start, stop, new)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield change(*span(node), repr(node.value + 1))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield change(span(node)[0], span(node.operand)[0], "")
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in _LOST:
            assert isinstance(node, ast.Call)
            yield change(*span(node), source[slice(*span(method.value))])
        if isinstance(node, ast.If):
            yield change(*span(node.test), f"not ({source[slice(*span(node.test))]})")
        if isinstance(node, ast.Raise | ast.AugAssign):
            yield change(*span(node), "pass")


def in_prose(mutant: Mutant, source: str) -> bool:
    """Return True for one in an error's text or a type, which no test should pin."""
    line = source[source.rfind("\n", 0, mutant.place) + 1 :].split("\n", 1)[0].strip()
    return line.startswith(('f"', '"', "f'", "@", "from ", "import ")) or (
        "TypeAlias" in line or '"""' in line
    )


_C_SIGNS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=",
    ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+=": "-=",
    "-=": "+=", "*=": "/=",
}  # fmt: skip
_SKIPPED = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
"""Comments, strings, characters and lines of the preprocessor."""
_SIGN = re.compile(r"(?<=\s)(?:[-+*]=|[<>=!]=|&&|\|\||[-+*/<>])(?=\s)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w.])")
_LENGTH = re.compile(r"\b(?!return\b|else\b|case\b)\w+ \*?\w+((?:\[[^]\n]*\])+)")
"""Declaration of an array, whose length a longer one can replace."""


def c_mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield the mistakes that can be made in a C file.

    An operator is another, a number is off by one, a condition is negated.
    """
    code = _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    lengths = [found.span(1) for found in _LENGTH.finditer(code)]
    for found in _SIGN.finditer(code):
        yield Mutant(file, found[0], _C_SIGNS[found[0]], tests, found.start())
    for found in _NUMBER.finditer(code):
        if not any(start < found.start() < stop for start, stop in lengths):
            number = float(found[0]) if re.search(r"[.e]", found[0]) else int(found[0])
            yield Mutant(file, found[0], repr(number + 1), tests, found.start())
    for found in re.finditer(r"\bif (?=\()", code):
        start = found.end()
        stop = _closing(code, start)
        condition = source[start:stop]
        yield Mutant(file, condition, f"(!{condition})", tests, start)


def _closing(code: str, start: int) -> int:
    """Return the index after the parenthesis that closes the one at `start`."""
    depth = 0
    for index in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if depth == 0:
            return index + 1
    raise ValueError(f"no parenthesis closes the one at {start}")
