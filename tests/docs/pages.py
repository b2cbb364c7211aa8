"""What the tests take from a page: its Python, its commands, its links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LONG = "<!-- takes long -->"
"""Stands before a ```bash block that the tests do not run."""


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def run_python(page: Path, capsys) -> str:
    """Run a page's Python from top to bottom; what it printed, as one line.

    A line that is a comment, at the left margin, says what the lines above it print:
    this is checked here, in order. What follows ": " after a list is a remark.
    """
    code = blocks(page, "python")
    if not code:
        return ""
    exec(compile("\n".join(code), page.name, "exec"), {"__name__": page.stem})
    printed = " ".join(capsys.readouterr().out.split())
    place = 0
    for line in re.findall(r"^# (.*)$", "\n".join(code), flags=re.MULTILINE):
        said = " ".join((line.split(": ")[0] if line[0] == "[" else line).split())
        found = printed.find(said, place)
        assert found >= 0, (
            f"{page.name} does not print {said!r} after {place}: {printed}"
        )
        place = found + len(said)
    return printed


def commands(page: Path) -> list[list[str]]:
    """The arguments of each `simstate …` line of ```bash blocks, long ones left out."""
    text = re.sub(rf"{LONG}\n+```bash\n.*?```", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    lines = "".join(found).replace("\\\n", " ").splitlines()
    return [
        shlex.split(line, comments=True)[1:]
        for line in lines
        if line.startswith("simstate ")
    ]


def files(page: Path) -> dict[str, str]:
    """The files that a page has the reader write: blocks ```python title="name"."""
    found = re.findall(
        r'```python title="(.*?)"\n(.*?)```', page.read_text(), flags=re.DOTALL
    )
    return dict(found)


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def links(page: Path) -> list[str]:
    """The targets of links and images."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors that the site makes of the page's headings."""
    from markdown.extensions.toc import slugify

    titles = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {slugify(re.sub(r"[`*]", "", title), "-") for title in titles}
