"""Weak stochastic schemes for Stratonovich equations with any noise."""

from __future__ import annotations

from collections.abc import Sequence

from simstate.step.stochastic.sde_tableau import Row, StochasticTableau
from simstate.step.stochastic.stochastic import Stochastic


def _rs(name: str, alpha: Row, a0: Sequence[Row]) -> StochasticTableau:
    """Rößler's form for Stratonovich equations, with RS1's and RS2's noise stages."""
    other = ((), (), (1 / 4, 3 / 4), (1 / 4, 3 / 4))
    return StochasticTableau(
        name=name,
        variables="stratonovich",
        conditions="RS",
        order=2,
        alpha=alpha,
        a0=a0,
        b0={"I": ((), (), (1 / 4, 3 / 4), ())},
        a1=((), (), (1.0,), (1.0,)),
        b1={"I": ((), (2 / 3,), (1 / 12, 1 / 4), (-5 / 4, 1 / 4, 2.0))},
        b1_other={"I": other},
        beta={"I": (1 / 8, 3 / 8, 3 / 8, 1 / 8)},
        b2_other={"IJ": ((), (1.0,), (-1.0,), ())},
        mixed={"root_h": (0.0, -1 / 4, 1 / 4, 0.0)},
    )


class RS1(Stochastic):
    """Rößler's RS1 (Stratonovich), for any noise: weak order 2.

    Deterministic order 2. Two evaluations of f; of g four with one source, else 1 + 5
    for each. Three-point increments, and signs for pairs with the indices for which it
    has order 2; with those of StochasticDiffEq.jl two sources that mix have order 1.
    Choose it for expectations of Stratonovich equations.
    """

    name = "RS1"
    calculus = "Stratonovich"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _rs("RS1", (0.0, 0.0, 1 / 2, 1 / 2), ((), (), (1.0,), ()))


class RS2(Stochastic):
    """Rößler's RS2 (Stratonovich), for any noise: weak order 2.

    RS1 with deterministic order 3: three evaluations of f. Choose it over RS1 where the
    noise is small beside the drift.
    """

    name = "RS2"
    calculus = "Stratonovich"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _rs("RS2", (1 / 4, 1 / 4, 1 / 2, 0.0), ((), (2 / 3,), (1 / 6, 1 / 2), ()))
