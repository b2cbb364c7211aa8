"""Modules import only from those above them in CONTRIBUTING's table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "simstate"
TOP = ("__init__", "__main__", "integrate")
"""Public names, the start of the command line, and the public name of `step`."""


def layers() -> list[str]:
    """The modules and packages of the table, from the first to the last."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"\| in `src/simstate` \|[^\n]*\n(.*?)\n\n", text, re.DOTALL)
    firsts = [line.split("|")[1] for line in table.splitlines()[1:]]
    names = [name for cell in firsts for name in re.findall(r"`([^`]+)`", cell)]
    return [name.removesuffix("/").removesuffix(".py") for name in names]


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """The parts of simstate that a file imports anywhere, with the line.

    Within functions and under TYPE_CHECKING, too.
    """
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            module = node.module or ""
            whole = module == "simstate"
            found = [f"{module}.{x.name}" if whole else module for x in node.names]
        else:
            continue
        for name in found:
            first, _, rest = name.partition(".")
            if first == "simstate" and rest:
                yield rest.split(".")[0], node.lineno


def graph() -> dict[str, dict[str, str]]:
    """Of each part, the parts that it imports, each with one place where it does."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        part = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for other, line in imports(file):
            if other != part:
                place = f"{file.relative_to(ROOT)}:{line}"
                found.setdefault(part, {}).setdefault(other, place)
    return found


def upward(order: list[str], edges: dict[str, dict[str, str]]) -> list[str]:
    """The imports that go against the order."""
    place = {name: k for k, name in enumerate(order)}
    return [
        f"{where}: {part} imports {other}, which comes after it"
        for part, others in edges.items()
        for other, where in others.items()
        if part in place and other in place and place[other] > place[part]
    ]


def cycle(edges: dict[str, dict[str, str]]) -> list[str]:
    """The parts that remain when those are taken away that import nothing."""
    left = {part: set(others) for part, others in edges.items()}
    while True:
        bottom = {part for part, others in left.items() if not others & left.keys()}
        if not bottom:
            return sorted(left)
        left = {part: others for part, others in left.items() if part not in bottom}


def test_the_table_names_what_there_is():
    there = {
        path.name.removesuffix(".py")
        for path in SOURCE.iterdir()
        if path.name not in ("__pycache__", "py.typed")
    }
    assert sorted(layers()) == sorted(there - set(TOP))
    assert len(there) <= 23 + 1  # `integrate` has no code of its own


def test_no_file_name_occurs_twice():
    """A name says which file is meant, without its package."""
    names = [file.name for file in SOURCE.rglob("[!_]*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_class_name_occurs_twice():
    names = [
        node.name
        for file in SOURCE.rglob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_module_imports_one_below_it():
    assert upward(layers(), graph()) == []


def test_there_is_no_circle():
    """Also of what is not in the table."""
    edges = {part: others for part, others in graph().items() if part not in TOP}
    assert cycle(edges) == []


def test_only_engines_and_those_who_choose_one_name_them():
    """What differs between engines is a property that the class Engine declares."""
    named = re.compile(
        r"engine_name\s*[!=]=|engine\.name\s*[!=]=|NativeEngine|WarpEngine"
    )
    places = [
        f"{file.relative_to(SOURCE)}:{k}"
        for file in sorted(SOURCE.rglob("*.py"))
        if file.relative_to(SOURCE).parts[0] not in ("engine", "simulators", "cli")
        for k, line in enumerate(file.read_text().splitlines(), 1)
        if named.search(line)
    ]
    assert places == []


# The test itself.


@pytest.mark.parametrize(
    "text",
    [
        "from simstate.env import Env",
        "import simstate.env.env as e",
        "from simstate import env",
        "def f():\n    from simstate.env import Env",
        "if TYPE_CHECKING:\n    from simstate.env.env_cfg import EnvCfg",
    ],
)
def test_imports_of_every_kind_are_seen(tmp_path, text):
    (tmp_path / "it.py").write_text(text)
    assert [name for name, _ in imports(tmp_path / "it.py")] == ["env"]


def test_wrong_imports_are_found():
    edges = {"a": {"b": "a.py:1"}, "b": {"c": "b.py:2"}}
    assert upward(["a", "b", "c"], edges) == [
        "a.py:1: a imports b, which comes after it",
        "b.py:2: b imports c, which comes after it",
    ]
    assert upward(["c", "b", "a"], edges) == []
    assert cycle(edges) == []
    assert cycle({**edges, "c": {"a": "c.py:3"}}) == ["a", "b", "c"]
