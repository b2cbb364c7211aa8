"""Every page: its Python runs, its commands run, its links lead somewhere."""

import contextlib
import functools
import io
import re
import shutil
import sys

import pytest
from tests.docs.pages import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    commands,
    files,
    links,
    prose,
    run_python,
)
from tests.foreign_models import FOREIGN

from simstate.cli import main
from simstate.scene import models

pytestmark = pytest.mark.long

TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
CURRENT = [*TEXTS[:-1], ROOT / "SECURITY.md"]
"""Pages that name what there is now; the changelog names what there was, too."""
CORE = ROOT / "src/simstate/engine/core"
FOLDERS = (ROOT, ROOT / "src/simstate", CORE, CORE / "include")
COMMANDS = {page: commands(page) for page in PAGES if commands(page)}


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A folder to write into, with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    shutil.copy(models.path("finger"), tmp_path / "my_robot.xml")
    shutil.copy(FOREIGN["gymnasium/ant"], tmp_path / "ant.xml")
    for page in PAGES:
        for name, text in files(page).items():
            (tmp_path / name).write_text(text)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_runs_in_order_and_prints_what_it_says(page, capsys):
    run_python(page, capsys)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("page", COMMANDS, ids=lambda page: page.stem)
def test_commands_run_in_order_as_pasted(page, capsys):
    for line in COMMANDS[page]:
        try:
            code = main(line)
        except SystemExit as stop:  # of --help
            code = stop.code
        assert code == 0, f"simstate {' '.join(line)}: {capsys.readouterr().err}"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in links(page):
        if link.startswith(("http:", "https:")):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {link}"


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: page.stem)
def test_files_named_with_their_folder_exist(page):
    for name in re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|c|h))\b", page.read_text()):
        assert any((folder / name).exists() for folder in FOLDERS), name


@functools.cache
def help_of(command):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return said.getvalue()


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: page.stem)
def test_commands_in_a_line_of_text_have_their_options(page):
    """Those of ```bash blocks run; these have names of files that do not exist."""
    for command, rest in re.findall(r"`simstate ([a-z][a-z-]+)([^`\n]*)`", prose(page)):
        for option in re.findall(r" --(?!env\.|train\.)[a-z][\w-]*", rest):
            known = re.search(rf"{option}\b(?!-)", help_of(command))
            assert known, f"simstate {command}{rest}"


def test_every_page_is_in_the_menu_and_none_is_missing():
    menu = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).as_posix() for page in docs.rglob("*.md")]
    assert sorted(menu) == sorted(pages)


def test_there_are_things_to_run():
    assert sum(len(blocks(page, "python")) for page in PAGES) > 30
    assert sum(len(lines) for lines in COMMANDS.values()) > 10
