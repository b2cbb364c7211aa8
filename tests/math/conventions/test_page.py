"""The tables and answers of docs/conventions.md; its Python runs in tests/docs."""

import re
from pathlib import Path

import pytest

import simstate
from simstate.cli import main
from simstate.math import conventions

pytestmark = pytest.mark.fast

PAGE = (Path(__file__).parents[3] / "docs" / "conventions.md").read_text()


def test_the_answer_on_the_page_is_the_commands(capsys):
    main(["inspect", "humanoid", "qvel[4]"])
    answer = capsys.readouterr().out
    shown = re.search(r'"qvel\[4\]"\n(.*?)```', PAGE, flags=re.DOTALL)
    assert " ".join(shown[1].split()) == " ".join(answer.split())


def test_every_preset_is_in_the_table():
    for name in conventions.PRESETS:
        assert f"| `{name}` |" in PAGE
    assert simstate.math.conventions is conventions
