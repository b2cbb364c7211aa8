"""The order conditions: values by reading their texts, orders and goals by a table."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.inside import order_conditions_of

from simstate import InvalidInputError
from simstate.integrate import STOCHASTIC_SCHEMES

STAGES = 4
WEIGHTS = {
    "SRI": {"β1": "I", "β2": "II", "β3": "I0", "β4": "III"},
    "SRA": {"β1": "I", "β2": "I0"},
    "RI": {"β1": "I", "β2": "II", "β3": "mixed_other I", "β4": "mixed_other IJ"},
    "RS": {"β1": "I", "β2": "mixed root_h"},
    "W2Itô": {"β0": "I", "β1": "II"},
}
MATRICES = {
    "SRI": {"B0": "b0 I0", "B1": "b1 root_h"},
    "SRA": {"B0": "b0 I0"},
    "RI": {"B0": "b0 I", "B1": "b1 root_h", "B2": "b2 root_h"},
    "RS": {"B0": "b0 I", "B1": "b1 I", "B3": "b1_other I", "B2": "b2_other IJ"},
    "W2Itô": {"B0": "b0 I", "B1": "b1 xi", "B2": "b1_other IJ"},
}
EARLY = {
    "SRI": {"α e": 0.5, "β1 e": 0.5, "β2 e": 0.5, "β3 e": 0.5, "β4 e": 0.5,
            "β1 B1 e": 1, "β2 B1 e": 1, "β3 B1 e": 1, "β4 B1 e": 1},
    "SRA": {"α e": 1, "β1 e": 1, "β2 e": 1},
    "RI": dict.fromkeys(["α e", "(β1 e)²", "β2 e", "β1 B1 e", "β3 e", "β4 e",
                         "β3 B2 e", "β4 (B2 e)²"], 1),
    "RS": dict.fromkeys(["α e", "(β1 e)²", "β1 B1 e", "β2 e", "β2 (B2 e)²"], 1),
    "W2Itô": dict.fromkeys(["α e", "β0 e", "β1 e", "β0 B1 e"], 1),
}  # fmt: skip
"""The orders below the last."""
LAST = {"SRI": 1.5, "SRA": 1.5, "RI": 2, "RS": 2, "W2Itô": 2}
GOALS = {
    "SRI": {"α e": 1, "β1 e": 1, "β2 B1 e": 1, "β1 A1 e": 1, "β3 A1 e": -1,
            "β1 (B1 e)²": 1, "β3 (B1 e)²": -1, "β4 (B1 e)²": 2, "β4 B1 (B1 e)": 1,
            "α A0 e": 1 / 2, "α B0 e": 1, "α (B0 e)²": 3 / 2},
    "SRA": {"α e": 1, "β1 e": 1, "β1 c1": 1, "β2 c1": -1, "α A0 e": 1 / 2,
            "α B0 e": 1, "α (B0 e)²": 3 / 2},
    "RI": {"α e": 1, "(β1 e)²": 1, "α A0 e": 1 / 2, "α (B0 e)²": 1 / 2,
           "(β1 e) α B0 e": 1 / 2, "(β1 e) β1 A1 e": 1 / 2, "β2 B1 e": 1,
           "(β1 e) β1 (B1 e)²": 1 / 2, "β4 B2 e": 1, "(β1 e) β3 (B2 e)²": 1 / 2},
    "RS": {"α e": 1, "(β1 e)²": 1, "β1 B1 e": 1 / 2, "α A0 e": 1 / 2,
           "α B0 (B1 e)": 1 / 4, "α (B0 e)²": 1 / 2, "(β1 e) α B0 e": 1 / 2,
           "(β1 e) β1 A1 e": 1 / 2, "β1 B1 (A1 e)": 1 / 4, "β1 ((B1 e) (A1 e))": 1 / 4,
           "(β1 e) β1 (B1 e)²": 1 / 3, "β1 (B1 e)³": 1 / 4, "β1 B1 (B1 e)²": 1 / 12,
           "β1 B1 (B1 (B1 e))": 1 / 24, "(β1 e) β1 B1 (B1 e)": 1 / 6,
           "β1 ((B1 e) B1 (B1 e))": 1 / 8, "β1 B3 e": 1 / 2,
           "(β1 e) β1 (B3 e)²": 1 / 2, "(β2 B2 e)²": 1 / 4, "β1 B1 (B3 e)²": 1 / 4,
           "β1 ((B1 e) (B3 e)²)": 1 / 4, "β1 B1 (B3 (B1 e))": 1 / 8,
           "(β1 e) β1 ((B3 e) (B1 e))": 1 / 4, "(β1 e) β1 B3 (B1 e)": 1 / 4,
           "(β1 e) β1 B1 (B3 e)": 1 / 4, "β1 ((B1 e) B3 (B1 e))": 1 / 8,
           "β1 ((B3 e) B1 (B3 e))": 1 / 4},
    "W2Itô": {"α e": 1, "β0 e": 1, "α A0 e": 1 / 2, "α B0 e": 1 / 2,
              "α (B0 e)²": 1 / 2, "β0 A1 e": 1 / 2, "β0 (B1 e)²": 1 / 2, "β1 B1 e": 1,
              "β0 B2 e": 1, "β0 (B2 e)²": 1},
}  # fmt: skip
"""Those that are not 0."""


def random_tableau(kind, seed, has_mixed=True):
    random = np.random.default_rng(seed)
    one = SimpleNamespace(
        conditions=kind, name="random", order=9.0, has_mixed=has_mixed
    )
    one.num_stages = STAGES
    one.alpha = random.normal(size=STAGES)
    one.c1 = random.normal(size=STAGES)
    one.a0, one.a1 = random.normal(size=(2, STAGES, STAGES))
    one.matrix = lambda rows: np.array(rows) if len(rows) else np.zeros((STAGES,) * 2)
    names = ("I", "II", "I0", "III", "IJ", "root_h", "xi", "I^2", "I^3")
    for group in ("b0", "b1", "b1_other", "b2", "b2_other"):
        setattr(one, group, {n: random.normal(size=(STAGES, STAGES)) for n in names})
    for group in ("beta", "mixed", "mixed_other"):
        setattr(one, group, {n: random.normal(size=STAGES) for n in names})
    return one


def names_of(tableau):
    kind = tableau.conditions
    known = {"e": np.ones(STAGES), "c1": tableau.c1, "α": tableau.alpha}
    known |= {"A0": tableau.a0, "A1": tableau.a1}
    for name, text in WEIGHTS[kind].items():
        group, _, variable = text.rpartition(" ")
        known[name] = getattr(tableau, group or "beta")[variable]
    for name, text in MATRICES[kind].items():
        group, _, variable = text.partition(" ")
        known[name] = getattr(tableau, group)[variable]
    return known


def read(text, known):
    """Return the value of a text: factors are applied from the right."""
    parts = re.findall(r"[αβABec]\d?|[()]|[²³⁴]", text)

    def sequence():
        factors = []
        while parts and parts[0] != ")":
            part = parts.pop(0)
            if part == "(":
                value = sequence()
                assert parts.pop(0) == ")"
                if parts and parts[0] in "²³⁴":
                    value = value ** (2 + "²³⁴".index(parts.pop(0)))
            else:
                value = known[part]
            factors.append((part[0], value))
        result = 1.0
        for kind, value in reversed(factors):
            is_product = kind in "(ec" or np.ndim(value) == 0
            result = value * result if is_product else value @ result
        return result

    return sequence()


@pytest.mark.parametrize("has_mixed", [True, False])
@pytest.mark.parametrize("kind", list(GOALS))
def test_values_orders_and_goals_are_those_of_the_texts(kind, has_mixed):
    tableau = random_tableau(kind, 3, has_mixed)
    known, seen = names_of(tableau), []
    for order, text, value, goal in order_conditions_of(tableau):
        if text.startswith("½"):
            first, second = (read(f"{b} A1 (B0 e)", known) for b in ("β1", "β3"))
            assert value == pytest.approx(first / 2 + second / 3)
        else:
            clear = text.replace("(A1 (B0 e) (B1 e))", "((A1 (B0 e)) (B1 e))")
            assert value == pytest.approx(read(clear, known)), text
        assert order == EARLY[kind].get(text, LAST[kind]), text
        assert goal == GOALS[kind].get(text, 0), text
        seen.append(text)
    assert len(set(seen)) == len(seen)
    count = {"SRI": 25, "SRA": 8, "RI": 48 if has_mixed else 28, "RS": 48, "W2Itô": 16}
    assert len(seen) == count[kind]


def test_conditions_of_normal_increments_are_moments():
    """The expectations by Gauss-Hermite quadrature, exact for these polynomials."""
    one = random_tableau("SIE", 5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    ones = np.ones(STAGES)
    n = nodes[:, None]
    p = one.b1["root_h"] @ ones + n**2 * (one.b1["I^2"] @ ones)
    w = one.beta["root_h"] + n * one.beta["I"] + n**2 * one.beta["I^2"]
    q = n * (one.b0["I"] @ ones) + n**3 * (one.b0["I^3"] @ ones)
    late, alpha = one.a1 @ ones, one.alpha

    def mean(values):
        return weights @ values

    n = nodes
    wished = {
        "α e": (1, alpha.sum(), 1),
        "E[N Σ w]": (1, mean(n * w.sum(1)), 1),
        "E[(Σ w)²]": (1, mean(w.sum(1) ** 2), 1),
        "E[Σ w p]": (1, mean((w * p).sum(1)), 0),
        "E[N Σ w p]": (1, mean(n * (w * p).sum(1)), 0),
        "E[Σ w p²]": (1, mean((w * p**2).sum(1)), 0),
        "E[N² Σ w p]": (2, mean(n**2 * (w * p).sum(1)), 1),
        "E[N Σ w p²]": (2, mean(n * (w * p**2).sum(1)), 1 / 2),
        "E[Σ w p³]": (2, mean((w * p**3).sum(1)), 0),
        "α A0 e": (2, alpha @ one.a0 @ ones, 1 / 2),
        "E[N Σ α q]": (2, mean(n * (alpha * q).sum(1)), 1 / 2),
        "E[Σ α q²]": (2, mean((alpha * q**2).sum(1)), 1 / 2),
        "E[N Σ w A1 e]": (2, mean(n * (w * late).sum(1)), 1 / 2),
        "E[Σ w p A1 e]": (2, mean((w * p * late).sum(1)), 0),
        "E[(Σ w p)²]": (2, mean((w * p).sum(1) ** 2), 1 / 2),
    }
    found = {text: (o, v, goal) for o, text, v, goal in order_conditions_of(one)}
    assert found.keys() == wished.keys()
    for text, parts in wished.items():
        assert found[text] == pytest.approx(parts), text


@pytest.mark.parametrize("name", sorted(STOCHASTIC_SCHEMES))
def test_the_weights_of_the_drift_add_up_to_one(name):
    tableau = getattr(STOCHASTIC_SCHEMES[name](), "tableau", None)
    if tableau is None:  # not every scheme has one
        return
    first, *rest = tableau.alpha
    replace(tableau, alpha=(first + 1e-14, *rest))
    for change in (1e-11, -1e-11):
        with pytest.raises(InvalidInputError):
            replace(tableau, alpha=(first + change, *rest))
