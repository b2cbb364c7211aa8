"""The site: its menu, pictures and figures; it loads nothing from elsewhere."""

import json
import re
import statistics

import pytest
from tests.docs.pages import PAGES, ROOT, run_python

from docs import gallery, generate, reference_pages, reference_subjects, robot_pages
from simstate.env import tasks

MOST = 8
TABS = ["Home", "Learn", "Robots & RL", "Flight & space", "Data", "Reference"]


def levels():
    """The titles of the menu's entries by the path of their section."""
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    found, path = {}, []
    for indent, title in re.findall(r"^( +)- \"?(.*?)\"?:(?: \S+\.md)?$", text, re.M):
        del path[(len(indent) - 2) // 4 :]
        found.setdefault(tuple(path), []).append(title)
        path.append(title)
    return found


def test_the_tabs_are_few_and_no_level_has_more_than_eight_entries():
    found = levels()
    assert found[()] == TABS
    for path, titles in found.items():
        assert 2 <= len(titles) <= MOST, path
    assert sum(map(len, found.values())) > 80


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_mark_of_the_tests_is_visible(page):
    visible = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    assert "takes long" not in visible.replace("takes longer", "")


def test_the_gallery_has_twelve_small_pictures_with_their_code():
    front = (ROOT / "docs" / "index.md").read_text()
    sections = gallery.sections()
    assert len(sections) == 12
    for name, code in sections.items():
        assert "picture = " in code, name
        assert 4_000 < (gallery.FOLDER / f"{name}.jpg").stat().st_size < 150_000
        assert f"](figures/gallery/{name}.jpg)" in front
        assert f"](gallery.md#{name})" in front


def test_the_figure_of_throughput_shows_the_values_of_the_table():
    page = (ROOT / "docs" / "performance.md").read_text()
    figure = (ROOT / "docs" / "figures" / "throughput.svg").read_text()
    drawn = re.findall(r">(\d+\.\d)</text>", figure)
    for model in ("quadruped", "humanoid"):
        rates = generate.throughput(model)
        assert len(rates) > 4
        for count, rate in rates.items():
            plural = "s" if count > 1 else ""
            row = (
                f"| {model}, {count} world{plural} | {rate / 1e3:.1f} k world-steps/s |"
            )
            assert row in page
            assert f"{rate / 1e3:.1f}" in drawn, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_results_of_tasks_are_those_that_simstate_tasks_prints(page):
    text = page.read_text()
    assert text == generate.with_results(text), "run `make docs`"
    if page.name in ("terrain.md", "pixels.md", "tour.md"):
        assert "<!-- results of " in text


def test_the_five_seeds_agree_with_the_tasks_line():
    """The text of the task gives the extremes and the median of the page's table."""
    text = (ROOT / "docs" / "rl-cpu.md").read_text()
    text = text.partition("### Results of five seeds")[2]
    rows = re.findall(r"^\| \d \| (\d+) \| (\d+) \| ([\d.]+) \|", text, re.MULTILINE)
    seconds, falls, errors = zip(*[map(float, row) for row in rows], strict=True)
    assert len(rows) == 5
    task = tasks.find("Quadruped-Velocity")
    assert f"{min(falls):.0f} to {max(falls):.0f} of 64 fell" in task.trained
    assert f"{min(errors):.3f} to {max(errors):.3f} m/s off" in task.trained
    assert task.core_seconds == statistics.median(seconds)


def test_the_page_of_robots_is_current_and_lists_what_was_measured():
    page = (ROOT / "docs" / "robots.md").read_text()
    assert page == robot_pages.robots_page(), "run `make docs`"
    kept = json.loads(robot_pages.ROBOTS.read_text())
    assert kept["date"] in page
    robots = [robot for group in kept["robots"].values() for robot in group.items()]
    assert len(robots) > 30
    for name, found in robots:
        assert f'\n| {name} <span class="note">`{found["wheel"]}`</span> |' in page
    assert not any(
        kind in found["counts"]
        for found in kept["wheels"].values()
        for kind in ("DIFFERS", "CRASHED")
    )


@pytest.mark.parametrize("module", reference_subjects.SUBJECTS)
def test_every_name_of_a_module_has_one_subject(module):
    listed = [
        name for names in reference_subjects.SUBJECTS[module].values() for name in names
    ]
    outer = (
        set() if module == "simstate" else set(reference_pages.public_names("simstate"))
    )
    wanted = set(reference_pages.public_names(module)) - (outer - {"get_include"})
    assert sorted(listed) == sorted(wanted)


@pytest.mark.parametrize("module", reference_pages.MODULES)
def test_no_name_is_on_a_page_twice(module):
    shown = re.findall(r"^::: (\S+)", reference_pages.page(module), re.MULTILINE)
    assert len(shown) == len(set(shown)) > 0


@pytest.mark.parametrize("module", reference_subjects.EXAMPLES)
def test_the_examples_of_the_reference_run(module, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "reference" / reference_pages.file_of(module)
    assert run_python(page, capsys)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is in the extra docs")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is in the extra docs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


ASSETS = r"""<(?:script|img|source|video|iframe|embed|link)\b[^>]*?
             \b(?:src|href|poster)=["']?(?:https?:)?//"""


@pytest.mark.site
def test_the_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        loaded = re.findall(ASSETS, page.read_text(), flags=re.VERBOSE)
        loaded = [tag for tag in loaded if 'rel="canonical"' not in tag]
        assert not loaded, f"{page.name}: {loaded}"
    for sheet in site.rglob("*.css"):
        assert not re.findall(
            r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()
        )


@pytest.mark.site
def test_names_in_tables_of_the_site_do_not_break(site):
    """Names of the reference have a note below them, and their cells do not wrap."""
    sheet = (site / "assets" / "site.css").read_text()
    (rule,) = re.findall(r"table:has\(\.note\) code \{(.*?)\}", sheet, re.DOTALL)
    assert "white-space: nowrap" in rule
    for name in ("quantities", "fields", "terms"):
        page = (site / f"{name}.html").read_text()
        assert len(re.findall(r'</code> <span class="note">', page)) > 50, name
