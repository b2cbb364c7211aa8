"""The README's Python runs, from top to bottom, and says what it claims."""

import re
from pathlib import Path

from simstate import EntityData

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_code_blocks_run_in_order(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a block saves a file
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "centre of mass root link m/s (num_envs, 3)" in printed
    assert "Did you mean 'FL_hip'" in printed


def test_number_of_quantities():
    (claimed,) = re.findall(r"has (\d+) quantities", README)
    assert int(claimed) == len(EntityData.quantities)
