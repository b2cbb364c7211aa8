"""What the docs take from the code is what the code says now."""

import json
import re

from docs import generate
from simstate import EntityData, models, oracles
from simstate.engine import FIELDS
from simstate.integrate import STOCHASTIC_SCHEMES

DO = "run `make docs` and commit what it writes"


def test_the_quantity_reference_is_current():
    assert (
        generate.DOCS / "quantities.md"
    ).read_text() == generate.quantities_page(), DO


def test_every_quantity_is_in_it_once():
    page = generate.quantities_page()
    for name in EntityData.quantities:
        assert page.count(f"\n| `{name}` |") == 1


def test_the_table_of_raw_fields_is_current():
    page = (generate.DOCS / "fields.md").read_text()
    assert page == generate.fields_page(), DO
    assert all(f"\n| `{name}` |" in page for name in FIELDS)


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


def test_the_table_of_oracles_has_every_law_and_no_failure():
    page = (generate.DOCS / "verification.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (native|warp) \| (\S+).*? \| (\S+)", page, re.M)
    for law in oracles.LAWS:
        assert any(row[0] == law.name for row in rows), law.name
    for law, engine, error, allowed in rows:
        assert float(error) <= float(allowed), (law, engine)
