"""Files of users as modules: run again when they change, without bytecode."""

from __future__ import annotations

import pickle
import sys

import pytest
from tests.raised import raises

from simstate import InvalidInputError
from simstate.base.python_file import file_modules, run_file

pytestmark = pytest.mark.fast


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_file_that_changed_within_a_second_is_run_again(folder):
    file = folder / "one.py"
    file.write_text("value = 3")
    first = run_file(file)
    assert first.value == 3
    assert run_file(file) is first
    file.write_text("value = 4")  # the same size; bytecode counts seconds
    assert run_file(file).value == 4
    assert [path.name for path in folder.iterdir()] == ["one.py"]


def test_files_of_one_name_are_two_modules(folder):
    for name, text in (("a", "import next_to\nx = next_to.y"), ("b", "x = 5")):
        (folder / name).mkdir()
        (folder / name / "task.py").write_text(text)
    (folder / "a" / "next_to.py").write_text("y = 8")
    one, two = (run_file(folder / name / "task.py") for name in "ab")
    assert (one.x, two.x) == (8, 5)


def test_classes_of_a_file_find_their_module(folder):
    file = folder / "data.py"
    file.write_text(
        "from __future__ import annotations\nimport dataclasses, typing\n"
        "@dataclasses.dataclass\nclass A:\n    k: typing.ClassVar[int] = 2\n"
    )
    module = run_file(file)
    assert sys.modules[module.A.__module__] is module
    assert module.A() == module.A()


def test_a_file_that_fails_is_no_module(folder):
    file = folder / "bad.py"
    file.write_text("1 / 0")
    before = set(sys.modules)
    with pytest.raises(ZeroDivisionError):
        run_file(file)
    assert set(sys.modules) == before
    file.write_bytes(b"x = \x001")
    with raises(InvalidInputError, file="bad.py"):
        run_file(file)


def test_a_change_that_fails_leaves_the_module_as_it_was(folder):
    """Its functions can still be pickled, which looks their module up."""
    file = folder / "own.py"
    file.write_text("def add(x):\n    return x + 2\n")
    module = run_file(file)
    file.write_text("def add(x):\n    return x + 3\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        run_file(file)
    assert pickle.loads(pickle.dumps(module.add)) is module.add
    assert all(sys.modules[one.__name__] is one for one in file_modules())
    file.write_text("def add(x):\n    return x + 4\n")
    assert run_file(file).add(1) == 5
