"""What the docs take from the code is what the code says now."""

import dataclasses
import importlib
import inspect
import json
import re
import shlex

import pytest

import simstate
from docs import generate, reference_pages, term_pages, verification
from simstate import EntityData
from simstate.engine import FIELDS
from simstate.integrate import STOCHASTIC_SCHEMES
from simstate.scene import models
from simstate.study import oracles

DO = "run `make docs` and commit what it writes"


def test_the_quantity_reference_is_current():
    assert (
        generate.DOCS / "quantities.md"
    ).read_text() == generate.quantities_page(), DO


def test_every_quantity_is_in_it_once():
    page = generate.quantities_page()
    for name in EntityData.quantities:
        assert page.count(f"\n| `{name}` <") == 1


def test_the_table_of_raw_fields_is_current():
    page = (generate.DOCS / "fields.md").read_text()
    assert page == generate.fields_page(), DO
    assert all(f"\n| `{name}` <" in page for name in FIELDS)


def test_the_table_of_the_last_benchmark_is_current():
    page = (generate.DOCS / "performance.md").read_text()
    assert page == generate.performance_page(), DO
    machine = json.loads(generate.LAST_BENCH.read_text())["machine"]
    assert machine["processor"] in page


def test_the_tables_of_other_simulators_are_current():
    page = (generate.DOCS / "other-simulators.md").read_text()
    assert page == generate.other_simulators_page(), DO


def test_every_difference_of_other_simulators_has_a_proven_cause():
    kept = json.loads(generate.ALIGNMENT.read_text())["models"]
    assert set(models.NAMES) <= set(kept)
    for model, found in kept.items():
        assert {"warp", "drake", "newton", "newton-featherstone"} <= set(found)
        for name, entry in found.items():
            for quantity, row in entry.get("rows", {}).items():
                place = f"{model}, {name}, {quantity}"
                assert row["verdict"] in ("agrees", "explained"), place
                assert row["remainder"] <= max(row["allowed"], 1e-9 * row["size"]), (
                    place
                )


def test_the_table_of_stochastic_schemes_is_current():
    page = (generate.DOCS / "noise.md").read_text()
    assert page == generate.noise_page(), DO
    for scheme in STOCHASTIC_SCHEMES.values():
        assert page.count(f"\n| `{scheme.name}`") == 1


def test_the_table_of_runs_is_current():
    page = (generate.DOCS / "verification.md").read_text()
    assert verification.table() in page, DO
    assert "failed:" not in page


OUTPUTS = {
    "laws": ("== 7 passed, 1 skipped in 3.21s ==", "7 passed, 1 skipped"),
    "faults": ("9 histories, in 4 of them a fault took effect\n0 failed, 2 s",
               "9 histories, in 4 of them a fault took effect"),
    "corpus": ("a: 3 identical\nb: 2 identical, 1 rejected",
               "a: 3 identical; b: 2 identical, 1 rejected"),
    "mujoco4": ("90 passed in 5s\n8 passed, 2 deselected in 1s",
                "90 passed; 8 passed, 2 deselected"),
    "peers": ("ok  Basilisk: a\n31 comparisons, 0 beyond their limits",
              "31 comparisons, 0 beyond their limits"),
    "ptera": ("  position differs by 1e-12 m\n  rates differ by 1e-9 deg/s\nagree",
              "position differs by 1e-12 m; rates differ by 1e-9 deg/s"),
    "dynamics": ("arm: largest relative error against Pinocchio 1e-15\n4 passed in 1s",
                 "arm: largest relative error against Pinocchio 1e-15; 4 passed"),
}  # fmt: skip
"""Ends of the outputs of some rows, and the results in them."""


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_run_is_kept_by_its_result(name):
    printed, result = OUTPUTS[name]
    say = f"printf '%s\\n' {shlex.quote(printed)}; echo warning: 1 passed in 2s >&2"
    row = dataclasses.replace(verification.ROWS[name], command=say)
    assert verification.run(row) == result
    failing = dataclasses.replace(row, command=f"{say}; false")
    assert verification.run(failing) == f"failed: {result}"


@pytest.mark.parametrize("name", verification.ROWS)
def test_a_run_names_tests_and_targets_that_exist(name):
    words = verification.ROWS[name].command.split()
    for word in words:
        assert not word.startswith("tests/") or (verification.ROOT / word).exists()
    if words[0] == "make":
        targets = (verification.ROOT / "Makefile").read_text()
        assert re.search(rf"^{words[1]}:", targets, re.MULTILINE)


def test_the_table_of_oracles_has_every_law_and_no_failure():
    page = (generate.DOCS / "verification.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (native|warp) \| (\S+).*? \| (\S+)", page, re.M)
    for law in oracles.LAWS:
        assert any(row[0] == law.name for row in rows), law.name
    for law, engine, error, allowed in rows:
        assert float(error) <= float(allowed), (law, engine)


def test_the_page_of_terms_is_current_and_has_all_of_them():
    page = (generate.DOCS / "terms.md").read_text()
    assert page == term_pages.terms_page(), DO
    for module in term_pages.KINDS.values():
        for name in term_pages.terms(module):
            assert f"\n| `{name}` <" in page
    assert all(f"### {name}\n" in page for name in term_pages.configurations("Cfg")
               if name.endswith(("ActionCfg", "CommandCfg")))  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    return reference_pages.pages()


@pytest.mark.parametrize("module", reference_pages.MODULES)
def test_the_reference_is_current_and_in_the_menu(reference, module):
    file = f"reference/{reference_pages.file_of(module)}"
    assert (generate.DOCS / file).read_text() == reference[file], DO
    assert f": {file}\n" in (generate.DOCS.parent / "mkdocs.yml").read_text()


def test_every_public_name_has_a_place_in_the_reference(reference):
    shown = "".join(reference.values())
    for name in simstate.__all__:
        thing = getattr(simstate, name)
        if not inspect.ismodule(thing):
            assert f"::: simstate.{name}\n" in shown, name


def test_the_ant_of_the_tutorial_fits_a_screen_or_two():
    from tests.docs.pages import ROOT, files

    (text,) = files(ROOT / "docs" / "own-task.md").values()
    assert len(text.splitlines()) <= 84


def test_a_step_takes_the_path_of_the_architectures_figure(monkeypatch):
    monkeypatch.syspath_prepend(generate.DOCS)  # its scripts import each other
    architecture = importlib.import_module("architecture")
    architecture.check_path(architecture.traced_step())
