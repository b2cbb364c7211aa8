"""The README's Python runs, from top to bottom, and says what it claims."""

import importlib.util
import re
import subprocess
import sys

import pytest
from tests.docs.pages import ROOT, blocks, run_python

from simstate import EntityData

README = ROOT / "README.md"


def test_code_blocks_run_in_order(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a block saves a file
    printed = run_python(README, capsys)
    assert "centre of mass root link m/s (num_envs, 3)" in printed
    assert "Did you mean 'FL_hip'" in printed


def test_number_of_quantities():
    (claimed,) = re.findall(r"has (\d+) quantities", README.read_text())
    assert int(claimed) == len(EntityData.quantities)


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright is in the extra dev"
)
def test_the_code_has_types_without_casts(tmp_path):
    code = tmp_path / "readme.py"
    code.write_text("\n".join(blocks(README, "python")))
    assert "cast(" not in code.read_text()
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "0 errors" in done.stdout, done.stdout + done.stderr
