"""Every test that SECURITY.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(
    r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text()
)


def test_it_names_tests() -> None:
    assert len(NAMED) > 25


@pytest.mark.parametrize(("file", "function"), sorted(set(NAMED)))
def test_the_test_exists(file: str, function: str) -> None:
    text = (ROOT / file).read_text()
    assert f"def {function or 'test_'}" in text


def test_every_row_names_a_test() -> None:
    rows = [
        line
        for line in (ROOT / "SECURITY.md").read_text().splitlines()
        if line.startswith("| ")
        and not line.startswith(("| a file of", "| what listens"))
    ]
    assert len(rows) > 14
    for row in rows:
        assert "tests/" in row or row.rstrip().endswith("| by nature |"), row
