"""The README and the tour: their Python runs from top to bottom, with types."""

import importlib.util
import re
import subprocess
import sys

import pytest
from tests.docs.pages import ROOT, blocks, run_python

from simstate import EntityData

README, TOUR = ROOT / "README.md", ROOT / "docs" / "tour.md"


def test_code_blocks_run_in_order(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a block saves a file
    printed = run_python(README, capsys)
    assert "Did you mean 'FL_hip'" in printed


def test_number_of_quantities():
    for page in (README, TOUR):
        (claimed,) = re.findall(r"(\d+) quantities", page.read_text())
        assert int(claimed) == len(EntityData.quantities)


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright is in the extra dev"
)
@pytest.mark.parametrize("page", [README, TOUR], ids=lambda page: page.stem)
def test_the_code_has_types_without_casts(page, tmp_path):
    code = tmp_path / "page.py"
    code.write_text("\n".join(blocks(page, "python")))
    assert "cast(" not in code.read_text()
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "0 errors" in done.stdout, done.stdout + done.stderr
