"""Rules for the tests themselves: public interfaces, and errors by their fields."""

import ast
import builtins
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("*.py"))
INSIDE = TESTS / "inside.py"
"""The only file that knows internals of simstate."""

OTHERS = {
    "os._exit", "atexit._run_exitfuncs", "zipfile._ZipWriteFile", "_repr_html_",
    "_version", "_address", "_generate_data", "_step_limit", "_setconst_outputs",
    "_mujoco_model", "obs_normalizer._mean", "obs_normalizer._var",
    "obs_normalizer._std",
}  # fmt: skip
"""Names with an underscore of other libraries: of modules, or of any object."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


def own_names(tree: ast.Module) -> set[str]:
    """Return the names that a file defines: functions, classes, attributes of self."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def private_names(path: Path) -> list[str]:
    """Return the private names of other modules that a file uses, with lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own, found = own_names(tree), []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                continue
            case ast.Attribute(value=value, attr=name):
                owner = ast.unparse(value).rpartition(".")[2]
                if name in OTHERS or f"{owner}.{name}" in OTHERS:
                    continue
            case ast.ImportFrom(module=str(module), names=names):
                if not module.startswith(("simstate", "tests")):
                    continue
                name = next((n.name for n in names if is_private(n.name)), "")
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_]) if ast.unparse(
                node.func
            ).endswith(("setattr", "getattr", "patch.object")):
                pass
            case ast.Constant(value=str(text)) if text.startswith("simstate."):
                name = text.rpartition(".")[2]
            case _:
                continue
        if is_private(name) and name not in own:
            found.append(f"{path.relative_to(TESTS)}:{node.lineno}: {name}")
    return found


def test_only_one_file_knows_internals():
    found = [use for path in FILES if path != INSIDE for use in private_names(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("viewer._server.stop()", ["_server"]),
        ("x._a._b", ["_b", "_a"]),
        ("self._mine\ncls._mine\nsuper()._mine\nx.__dict__\nos._exit(1)", []),
        ("def _mine(): ...\nmodule._mine", []),
        ("class A:\n    def f(self):\n        self._x = 1\nA()._x", []),
        ("class A:\n    def f(self):\n        return self._x\nA()._x", ["_x"]),
        ("from simstate.cli.sweep import main, _spread", ["_spread"]),
        ("from zipfile import _Something", []),
        ("monkeypatch.setattr(opengl, '_contexts', [])", ["_contexts"]),
        ("monkeypatch.setattr('simstate.view.opengl._contexts', [])", ["_contexts"]),
        ("getattr(sim, '_worlds', None)", ["_worlds"]),
    ],
)
def test_private_names_are_found(tmp_path, monkeypatch, text, uses):
    path = tmp_path / "test_it.py"
    path.write_text(text)
    monkeypatch.setitem(globals(), "TESTS", tmp_path)
    assert [use.rpartition(" ")[2] for use in private_names(path)] == uses


TEXTS = "test_error_texts.py"
"""The file of a package that tests the wording of errors."""


def worded_errors(text: str) -> list[int]:
    """Return the lines in which an error of simstate is expected by its wording.

    Errors of Python and of other libraries have no fields, nor have warnings.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(attr="raises"), args=[error, *_]):
                is_worded = any(keyword.arg == "match" for keyword in node.keywords)
                name = ast.unparse(error)
                if is_worded and not hasattr(builtins, name) and "pytest." not in name:
                    found.append(node.lineno)
    return sorted(found)


def test_the_wording_of_errors_is_tested_in_one_file_of_a_package():
    """Elsewhere `tests.raised.raises` checks what an error is about."""
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in FILES
        if path.name != TEXTS
        for line in worded_errors(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("with pytest.raises(InvalidInputError, match='x'): ...", [1]),
        ("\nwith pytest.raises((ShapeError, ValueError), match='x'): ...", [2]),
        ("with pytest.raises(error, match=text): ...", [1]),
        ("with pytest.raises(ValueError, match='x'): ...", []),
        ("with pytest.raises(pytest.skip.Exception, match='x'): ...", []),
        ("with pytest.warns(UserWarning, match='x'): ...", []),
        ("with raises(InvalidInputError, name='x'): ...", []),
    ],
)
def test_worded_errors_are_found(text, lines):
    assert worded_errors(text) == lines
