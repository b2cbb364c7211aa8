"""What the docs take from the code is what the code says now."""

import json
import re

from docs import generate
from simstate import EntityData, oracles
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
