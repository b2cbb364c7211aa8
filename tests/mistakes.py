"""Random mistakes in a Python or C file: each of them is one `Mutant`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate


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

    def is_within(self, part: range) -> bool:
        """Return True if it changes only characters of a part of the file."""
        return part.start <= self.place and self.place + len(self.old) <= part.stop


def mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield every mistake of the usual kinds that can be made in a file.

    Those in a place where `pointless` says that no test should look are left out.
    """
    if file.endswith(".py"):
        found = python_mistakes(file, source, tests)
        left_out = pointless(source)
        yield from (one for one in found if not any(map(one.is_within, left_out)))
    else:
        yield from c_mistakes(file, source, tests)


_Part = ast.expr | ast.stmt | ast.keyword


def _span(node: _Part, lines: list[str], starts: list[int]) -> tuple[int, int]:
    """Return the indices of a node's first character and after its last."""

    def index(line: int, column: int) -> int:
        # The columns of `ast` count bytes.
        text = lines[line - 1]
        in_line = column if text.isascii() else len(text.encode()[:column].decode())
        return starts[line - 1] + in_line

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = index(node.lineno, node.col_offset)
    return start, index(node.end_lineno, node.end_col_offset)


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


_TURNED: dict[type[ast.AST], str] = {
    ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<=",
}  # fmt: skip
"""Instead of "<=" for "<", where a tolerance is compared, which nothing equals."""


def _is_tolerance(side: ast.expr) -> bool:
    """Return True for an expression with a small number or a name of one."""
    for node in ast.walk(side):
        value = getattr(node, "value", None)
        name = getattr(node, "id", getattr(node, "attr", ""))
        if isinstance(value, float) and 0.0 < abs(value) < 1e-2:
            return True
        if re.search(r"(?i)tolerance|\beps|tiny|_least$", name):
            return True
    return False


_LOST = ("clone", "copy", "clamp", "abs", "sort")
"""Methods whose call is forgotten."""


def python_mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield the mistakes that can be made in a Python module.

    A sign or comparison is another, a number is off by one, a copy is missing, a check
    or a statement is removed, a condition is negated.
    """
    lines = source.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))

    def span(node: _Part) -> tuple[int, int]:
        return _span(node, lines, starts)

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
                is_rough = _is_tolerance(left) or _is_tolerance(right)
                other = (_TURNED if is_rough else _SWAPS).get(kind, _SWAPS[kind])
                new = source[start:stop].replace(_SIGNS[kind], other, 1)
                yield change(start, stop, new)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield change(*span(node), repr(node.value + 1))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            start, stop = span(node)[0], span(node.operand)[0]
            yield change(start, stop, "(" * source[start:stop].count("("))
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in _LOST:
            assert isinstance(node, ast.Call)
            yield change(*span(node), source[slice(*span(method.value))])
        if isinstance(node, ast.If):
            yield change(*span(node.test), f"not ({source[slice(*span(node.test))]})")
        if isinstance(node, ast.Raise | ast.AugAssign):
            yield change(*span(node), "pass")


_LOOK = re.compile(
    r"((font|line|marker|stroke_)(size|width)|alpha|zorder|figsize|dpi|h?pad|[hw]space"
    r"|framealpha|colou?rs?|[A-Z_]*COLOU?RS?|RED|GREEN|BLUE|ORANGE|PURPLE|TEAL|YELLOW"
    r"|GREY|HEAT)"
)
"""Arguments and constants that only choose a look."""
CHOICE = re.compile(r"_?(MOST|LONGEST|WIDEST|MANY|FPS|SHARE|PAUSE|EVERY_S|LAST)(_\w+)?")
"""Constants that bound what is shown, kept or tried: 24 is as right as 25."""
_FREE = ("new_figure", "add_column", "lru_cache", "tight_layout", "subplots_adjust")
"""Functions whose numbers only choose a look or the time taken."""
_TUNING = ("maxsize", "flush_secs", "chunk_size", "stacklevel", "order", "digest_size")
"""Arguments that change the time taken, or the line that a warning names."""
_OVER_AXES = ("sum", "mean", "amax", "amin", "all", "any", "unbind", "max", "min")


def pointless(source: str) -> list[range]:
    """Return the parts of a module in which no mistake is made, as character indices.

    - Texts of errors and warnings, and `__repr__`: tests should not pin their wording.
    - AssertionErrors, which state that a line is not reached.
    - Annotations, decorators, `if TYPE_CHECKING` and `if __name__`.
    - Numbers that only choose a look, how much is shown, or the time taken.
    - The minus of the axis −1, which is the axis 1 of the matrices at hand.
    - The size −1 of `reshape`, for which NumPy takes any negative number.
    """
    lines = source.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=0))
    found: list[range] = []
    for node in ast.walk(ast.parse(source)):
        for part in _pointless_in(node):
            start, stop = _span(part, lines, starts)
            found.append(range(start, stop))
    return found


def _pointless_in(node: ast.AST) -> list[_Part]:
    """Return the parts of a node, without those within them, that are left alone."""
    match node:
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
            return [node]
        case ast.Raise():
            return [one for one in ast.walk(node) if isinstance(one, ast.JoinedStr)]
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return [node]
        case ast.FunctionDef() | ast.ClassDef():
            return list(node.decorator_list)
        case ast.arg(annotation=ast.expr() as annotation):
            return [annotation]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [node] if _is_free(name) else [node.annotation]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [node] if _is_free(name) else []
        case ast.If():
            text = ast.unparse(node.test)
            is_static = text.startswith(("TYPE_CHECKING", "__name__ "))
            return [node.test] if is_static else []
        case ast.Call():
            return _pointless_arguments(node)
        case _:
            return []


def _is_free(name: str) -> bool:
    return bool(_LOOK.fullmatch(name) or CHOICE.fullmatch(name))


def _pointless_arguments(call: ast.Call) -> list[_Part]:
    """Return the arguments of a call whose numbers do not matter, or whose sign."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in _FREE or name.endswith("warn"):
        return [*call.args, *call.keywords]
    axes = [one.value for one in call.keywords if one.arg in ("dim", "axis")]
    axes += call.args[:1] if name in _OVER_AXES else []
    axes += call.args if name == "reshape" else []
    looks = [
        one
        for one in call.keywords
        if one.arg in _TUNING
        or (_LOOK.fullmatch(one.arg or "") and isinstance(one.value, ast.Constant))
    ]
    return [*(axis for axis in axes if ast.unparse(axis) == "-1"), *looks]


_C_SIGNS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=",
    ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+=": "-=",
    "-=": "+=", "*=": "/=",
}  # fmt: skip
_SKIPPED = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*|\{NULL, NULL, 0, NULL\}",
    re.DOTALL | re.MULTILINE,
)
"""Comments, strings, characters, lines of the preprocessor, and the last row of a table
of methods, of which CPython reads the first entry alone."""
_SIGN = re.compile(r"(?<=\s)(?:[-+*]=|[<>=!]=|&&|\|\||[-+*/<>])(?=\s)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w.])")
_LENGTH = re.compile(r"\b(?!return\b|else\b|case\b)\w+ \*?\w+((?:\[[^]\n]*\])+)")
"""Declaration of an array, whose length a longer one can replace."""
_LENGTHS = re.compile(
    r"^[ \t]*\w+ \*?\w+(?:\[\w+\])*(?:, \*?\w+(?:\[\w+\])*)+;$", re.MULTILINE
)
"""Declaration of several variables without values."""


def c_mistakes(file: str, source: str, tests: str) -> Iterator[Mutant]:
    """Yield the mistakes that can be made in a C file.

    An operator is another, a number is off by one, a condition is negated.
    """
    code = _SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    lengths = [found.span(1) for found in _LENGTH.finditer(code)]
    lengths += [found.span() for found in _LENGTHS.finditer(code)]
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
