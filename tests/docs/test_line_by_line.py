"""Each line of ours in the tables of other libraries' lines runs, in order."""

import numpy as np
from scipy.spatial.transform import Rotation
from tests.docs.line_by_line import run, tables

PAGES = {page: tables(page) for page in ("from-basilisk", "from-ptera")}


def ours(page, heading):
    return run([right for _, right in PAGES[page][heading] if right], page)


def test_there_are_lines_on_both_sides():
    for page, found in PAGES.items():
        for heading, rows in found.items():
            for side in (0, 1):
                assert sum(bool(row[side]) for row in rows) > 8, f"{page}: {heading}"
    assert sum(len(rows) for found in PAGES.values() for rows in found.values()) > 80


def test_an_orbit_of_basilisks():
    """It ends where it did in Basilisk itself; `make test-peers` runs both."""
    names = ours("from-basilisk", "An orbit, line by line")
    np.testing.assert_allclose(names["times"][-1], 3000.0)
    assert len(names["times"]) == 51
    apart = names["place"].norm() - 6778e3
    assert abs(float(apart)) < 2e4


def test_an_mjscene_of_basilisks():
    """A body that tumbles freely keeps its angular momentum, and goes straight on."""
    names = ours("from-basilisk", "An MJScene, line by line")
    np.testing.assert_allclose(names["place"], [2.0, 2.0, 1.0], atol=1e-9)
    turn = Rotation.from_quat(names["quat"].numpy(), scalar_first=True)
    inertia = np.array([1.0, 2.0, 3.0])
    momentum = turn.apply(inertia * names["rate"].numpy())
    np.testing.assert_allclose(momentum, inertia * [0.1, 3.0, 0.1], atol=5e-3)


def test_a_free_flight_of_pteras():
    """Theirs on our class with their calls, ours on FreeFlight; `make test-ptera` runs
    theirs on theirs.
    """
    rows = PAGES["from-ptera"]["A free flight, line by line"]
    there = "pterasoftware._mujoco_model"
    left = [line.replace(there, "simstate.interop.ptera") for line, _ in rows if line]
    theirs = run(left, "from-ptera")
    names = ours("from-ptera", "A free flight, line by line")
    for name in ("place", "speed", "spin", "turn", "now"):
        np.testing.assert_allclose(names[name], theirs[name], rtol=1e-12, atol=1e-13)
    assert abs(float(names["now"]) - 0.5) < 1e-12
    assert float(names["place"][0]) > 5
