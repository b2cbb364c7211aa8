"""The table of slips names places that are there: `make mutants` puts them in."""

import pytest
from tests.mutants import ROOT, SLIPS_OF_PEOPLE


@pytest.mark.parametrize("mutant", SLIPS_OF_PEOPLE, ids=lambda mutant: mutant.file)
def test_each_slip_has_one_place_and_its_test(mutant):
    text = (ROOT / "src" / "simstate" / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    file, _, test = mutant.tests.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text()
