"""The README's Python runs, from top to bottom, and says what it claims."""

import re

from tests.docs.pages import ROOT, run_python

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
