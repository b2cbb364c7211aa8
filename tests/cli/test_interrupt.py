"""Ctrl-C while a command is loading ends it with one line and the code 130."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

from simstate.cli import main
from simstate.cli.info import InfoCommand


@pytest.mark.parametrize("by", ["cause", "context"])
def test_an_interrupted_import_of_compiled_code_is_no_error(by, monkeypatch, capsys):
    """Modules of pybind11 raise an ImportError, one for each nested module."""

    def execute(self):
        inner, outer = ImportError("inner"), ImportError("initialization failed")
        setattr(inner, f"__{by}__", KeyboardInterrupt())
        outer.__cause__ = inner
        raise outer

    monkeypatch.setattr(InfoCommand, "execute", execute)
    assert main(["info", "file"]) == 130
    assert capsys.readouterr().err.startswith("error: interrupted")


def test_an_interrupted_import_is_no_missing_mujoco(monkeypatch, capsys):
    load = builtins.__import__

    def interrupted(name, *args):
        if name == "mujoco":
            raise ImportError("initialization failed") from KeyboardInterrupt()
        return load(name, *args)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert main(["--version"]) == 130
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: interrupted")


@pytest.mark.parametrize("module", ["tyro", "rich", "simstate.cli.answer"])
def test_an_interrupt_before_the_first_line_of_main(module):
    code = f"""
import sys

class Interrupting:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting)
sys.argv = ["simstate", "--version"]
from simstate.__main__ import entry
entry()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "error: interrupted before the command finished.\n"
