"""Docstrings below attribute declarations, which Python itself discards."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any


@cache
def attribute_docs(owner: type) -> dict[str, str]:
    """Return the string below each assignment in a class body, by attribute name."""
    docs: dict[str, str] = {}
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):  # a class defined at a prompt has no file
        return docs
    tree: Any = ast.parse(textwrap.dedent(source)).body[0]
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(statement, ast.Assign | ast.AnnAssign)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            is_plain = isinstance(statement, ast.Assign)
            target: Any = statement.targets[0] if is_plain else statement.target
            docs[target.id] = inspect.cleandoc(str(following.value.value))
    return docs
