"""One version, said in one place and nowhere else differently."""

import re
import tomllib
from pathlib import Path

import simstate

ROOT = Path(__file__).parent.parent


def test_the_package_takes_its_version_from_the_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    dynamic = project["tool"]["setuptools"]["dynamic"]
    assert dynamic["version"] == {"attr": "simstate.__version__"}


def test_the_citation_has_the_same():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [simstate.__version__]


def test_the_changelog_begins_with_it():
    text = (ROOT / "CHANGELOG.md").read_text()
    first = re.search(r"^## (\S+)", text, re.MULTILINE)
    assert first is not None
    assert first[1] == simstate.__version__
