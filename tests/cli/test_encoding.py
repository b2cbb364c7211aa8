"""Output in an encoding that lacks some of its characters."""

from __future__ import annotations

import json
import os
import subprocess
import sys

CODE = """
from simstate.__main__ import entry
from simstate.cli.answer import Answer
from simstate.cli.info import InfoCommand
InfoCommand.execute = lambda self: Answer({"unit": "m/s²", "range": "–"}, ["m/s² –"])
entry()
"""


def output(*args: str) -> str:
    """Return what a command prints in ASCII."""
    command = [sys.executable, "-c", CODE, "info", "file", *args]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_characters_that_the_encoding_lacks_are_replaced():
    assert output() == "m/s? ?\n"


def test_json_escapes_characters_that_the_encoding_lacks():
    text = output("--json")
    assert json.loads(text) == {"unit": "m/s²", "range": "–"}
