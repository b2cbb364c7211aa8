"""Stochastic tableaus: what building one refuses, and what a step then evaluates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.raised import raises
from tests.step.stochastic_problems import Given, make

from simstate import integrate
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.integrate import SRA1, SRIW1, StochasticTableau

SCHEMES = integrate.STOCHASTIC_SCHEMES
DEMANDING = sorted(n for n, s in SCHEMES.items() if s.tableau.order >= 1.5)
ROWS = ("a0", "a1")
GROUPS_OF_ROWS = ("b0", "b1", "b1_other", "b2", "b2_other")
GROUPS = ("beta", "mixed", "mixed_other")


def nudged(values, *place):
    """A copy of nested sequences with one number made larger by a hundredth."""
    if not place:
        return values + 0.01
    copy = dict(values) if isinstance(values, dict) else list(values)
    copy[place[0]] = nudged(copy[place[0]], *place[1:])
    return copy


def slips(tableau):
    """Every tableau with one weight that is a hundredth off, by the weight's name."""
    for i in range(tableau.num_stages):
        yield f"alpha[{i}]", {"alpha": nudged(tableau.alpha, i)}
    places = [(name,) for name in ROWS]
    places += [(g, v) for g in GROUPS_OF_ROWS for v in getattr(tableau, g)]
    for name, *variable in places:
        rows = getattr(tableau, name)
        for i, row in enumerate(rows[variable[0]] if variable else rows):
            for j, weight in enumerate(row):
                if weight:
                    place = (*variable, i, j)
                    yield f"{name}{place}", {name: nudged(rows, *place)}
    for name in GROUPS:
        group = getattr(tableau, name)
        for variable, row in group.items():
            for i, weight in enumerate(row):
                if weight:
                    yield f"{name} {variable} {i}", {name: nudged(group, variable, i)}


@pytest.mark.parametrize("name", DEMANDING)
def test_a_slip_in_any_weight_is_refused(name):
    tableau = SCHEMES[name].tableau
    unnoticed = []
    for what, change in slips(tableau):
        try:
            replace(tableau, **change)
        except InvalidInputError:
            continue
        unnoticed.append(what)
    assert unnoticed == []


def test_the_error_says_which_condition_fails():
    beta = {**SRIW1.tableau.beta, "I": (-1.0, 4 / 3, 2 / 3, 0.5)}
    with raises(InvalidInputError, name="order"):
        replace(SRIW1.tableau, beta=beta)


@pytest.mark.parametrize(
    ("change", "error", "name"),
    [
        ({"a0": ((), (3 / 4,))}, InvalidInputError, "a0"),
        ({"a1": ((), (1.0, 2.0), (), ())}, InvalidInputError, "a1"),
        ({"alpha": (1.0,)}, InvalidInputError, "a0"),
        ({"beta": {"I": (1.0, 0.0)}}, InvalidInputError, "beta['I']"),
        ({"b0": {"J": ((), (), (), ())}}, UnknownNameError, "J"),
        ({"beta": {"J": (1.0,) * 4}}, UnknownNameError, "J"),
        ({"beta": {"xi": (1.0,) * 4}}, UnknownNameError, "xi"),
        ({"variables": "normal"}, UnknownNameError, "normal"),
        ({"conditions": "SRK"}, UnknownNameError, "SRK"),
        ({"a1": ((), (np.nan,), (), ())}, InvalidInputError, "weights"),
        ({"c1_given": (0.0,)}, InvalidInputError, "c1_given"),
    ],
)
def test_weights_that_do_not_fit_are_refused(change, error, name):
    with raises(error, name=name):
        replace(SRIW1.tableau, **change)


def test_a_scheme_of_your_own_is_a_tableau():
    """The midpoint for the drift, Milstein's term for the noise."""

    class Mine(integrate.Stochastic):
        name = "Mine"
        noise = "diagonal"
        strong_order = 1.0
        weak_order = 1.0
        deterministic_order = 2
        tableau = StochasticTableau(
            name="Mine",
            variables="gaussian",
            conditions="SRI",
            order=1,
            alpha=(0.0, 1.0),
            a0=((), (1 / 2,)),
            a1=((), ()),
            b1={"root_h": ((), (1.0,))},
            beta={"I": (1.0, 0.0), "II": (-1.0, 1.0)},
        )

    process = Given([[1.0], [2.0]], lambda t, x: -x, lambda t, x: 0 * x[:, None], 1)
    make(Mine(), 0.1, 2, process).step()
    midpoint = 1 - 0.1 + 0.1**2 / 2
    np.testing.assert_allclose(process.value[:, 0], [midpoint, 2 * midpoint])


COSTS = {
    "eulermaruyama": (1, lambda m: 1),
    "eulerheun": (2, lambda m: 2),
    "rkmilstein": (1, lambda m: 1 + m),
    "sra1": (2, lambda m: 2),
    "sosra": (3, lambda m: 3),
    "sriw1": (2, lambda m: 1 + 3 * m),
    "sosri": (4, lambda m: 1 + 3 * m),
    "rdi1wm": (2, lambda m: 1),
    "dri1nm": (3, lambda m: 1 + 2 * m),
    **dict.fromkeys(["platenweak2", "ri6"], (2, lambda m: 3 if m == 1 else 1 + 4 * m)),
    **dict.fromkeys(
        ["dri1", "ri1", "ri3", "ri5"], (3, lambda m: 3 if m == 1 else 1 + 4 * m)
    ),
    "rs1": (2, lambda m: 4 if m == 1 else 1 + 5 * m),
    "rs2": (3, lambda m: 4 if m == 1 else 1 + 5 * m),
    "w2ito1": (3, lambda m: 1 + 2 * m),
    "w2ito2": (4, lambda m: 1 + 2 * m),
    **dict.fromkeys(["siea", "smea", "sieb", "smeb"], (2, lambda m: 1 + 2 * m)),
}
"""Evaluations of f, and of g by the number of sources, as the docstrings say."""


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_step_evaluates_what_the_docstring_says(name, m):
    """Diagonal noise, which every scheme is made for or warns of in its first step."""
    calls = {"f": 0, "g": 0}

    def f(t, x):
        calls["f"] += 1
        return -x

    def g(t, x):
        calls["g"] += 1
        return np.broadcast_to(np.eye(m), (len(x), m, m)) * 0.3

    sim = make(SCHEMES[name](), 0.1, 2, Given([1.0] * m, f, g, m))
    sim.step()  # its check of the noise is done then
    calls.update(f=0, g=0)
    before = sim.integration.statistics.evaluations.clone()
    sim.step()
    of_f, of_g = COSTS[name]
    assert (calls["f"], calls["g"]) == (of_f, of_g(m))
    assert SCHEMES[name].tableau.num_evaluations(m) == (of_f, of_g(m))
    done = sim.integration.statistics.evaluations - before
    assert done.tolist() == [of_f, of_f]


@pytest.mark.parametrize("scheme", [SRIW1, SRA1])
def test_a_step_counts_no_evaluations_of_its_check(scheme):
    sim = make(scheme(), 0.1, 2, Given([1.0, 2.0], lambda t, x: x, _constant, 2))
    sim.step()
    assert sim.integration.statistics.evaluations.tolist() == [2, 2]


def _constant(t, x):
    return np.broadcast_to(np.eye(2), (len(x), 2, 2)) * 0.3


def test_schemes_are_found_under_the_names_that_they_have():
    assert len(SCHEMES) == 23
    for name, scheme in SCHEMES.items():
        assert name == scheme.name.lower()
        assert scheme is getattr(integrate, scheme.name)
        assert scheme.tableau.name == scheme.name
