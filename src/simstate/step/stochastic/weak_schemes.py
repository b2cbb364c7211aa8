"""Weak stochastic schemes: Itô with one source or diagonal noise, and Stratonovich."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from simstate.step.stochastic.sde_tableau import Row, StochasticTableau
from simstate.step.stochastic.stochastic import Stochastic


def _sie(name: str, midpoint: bool, variant: str) -> StochasticTableau:
    """Return Tocino and Vigo-Aguiar's improved or modified Euler, noise A or B."""
    if midpoint:
        late, first, third = 1 / 2, (2 - sqrt(6)) / 4, sqrt(6) / 12
    else:
        late, first, third = 1.0, 1.0, 0.0
    if variant == "A":
        noise_late, side, b1 = 1.0, 1.0, "root_h"
        beta = {
            "I": (1 / 2, 1 / 4, 1 / 4),
            "root_h": (0.0, -1 / 4, 1 / 4),
            "I^2": (0.0, 1 / 4, -1 / 4),
        }
    else:
        noise_late, side, b1 = 5 / 12, -1 / 6, "I^2"
        beta = {
            "I": (-1 / 5, 3 / 5, 3 / 5),
            "root_h": (0.0, 3 / 2, -3 / 2),
            "I^2": (0.0, -1 / 2, 1 / 2),
        }
    return StochasticTableau(
        name=name,
        variables="gaussian",
        conditions="SIE",
        order=2 if variant == "A" else 1,
        alpha=(0.0, 1.0, 0.0) if midpoint else (1 / 2, 1 / 2, 0.0),
        a0=((), (late,), ()),
        b0={"I": ((), (first,), ()), "I^3": ((), (third,), ())},
        a1=((), (noise_late,), (noise_late,)),
        b1={b1: ((), (side,), (-side,))},
        beta=beta,
    )


class SIEA(Stochastic):
    """Tocino and Vigo-Aguiar's SIEA (Itô), one source or diagonal noise: weak order 2.

    Stochastic improved Euler; strong order 1, as it has Milstein's term. Two
    evaluations of f, 1 + 2 of g for each source. Normal increments. Choose it for both
    paths and expectations with multiplicative noise.
    """

    noise = "diagonal"
    strong_order = 1.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _sie("SIEA", midpoint=False, variant="A")


class SMEA(Stochastic):
    """Tocino and Vigo-Aguiar's SMEA (Itô), one source or diagonal noise: weak order 2.

    Stochastic modified Euler: SIEA with the midpoint scheme for the drift. Strong
    order 1. Two evaluations of f, 1 + 2 of g for each source. Normal increments. Which
    of the two has the smaller error depends on the problem.
    """

    noise = "diagonal"
    strong_order = 1.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _sie("SMEA", midpoint=True, variant="A")


class SIEB(Stochastic):
    """Tocino and Vigo-Aguiar's SIEB (Itô), one source or diagonal noise: weak order 1.

    Published with weak order 2, which the means of linear equations have. In general
    its double integral has a variance of 7/6 h² where order 2 needs 1/2 h², so second
    moments have order 1, and the strong order is 0.5. Two evaluations of f, 1 + 2 of g
    for each source. Normal increments. Choose SIEA, except to compare results.
    """

    noise = "diagonal"
    strong_order = 0.5
    weak_order = 1.0
    deterministic_order = 2
    tableau = _sie("SIEB", midpoint=False, variant="B")


class SMEB(Stochastic):
    """Tocino and Vigo-Aguiar's SMEB (Itô), one source or diagonal noise: weak order 1.

    SIEB with the midpoint scheme for the drift; orders and evaluations are the same.
    Choose SMEA, except to compare results.
    """

    noise = "diagonal"
    strong_order = 0.5
    weak_order = 1.0
    deterministic_order = 2
    tableau = _sie("SMEB", midpoint=True, variant="B")


def _rs(name: str, alpha: Row, a0: Sequence[Row]) -> StochasticTableau:
    """Return Rößler's Stratonovich form with the noise stages of RS1 and RS2."""
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
    for each. Three-point increments, and signs for pairs whose indices give order 2;
    with those of StochasticDiffEq.jl two sources that mix have order 1. Choose it for
    expectations of Stratonovich equations.
    """

    calculus = "Stratonovich"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _rs("RS1", (0.0, 0.0, 1 / 2, 1 / 2), ((), (), (1.0,), ()))


class RS2(Stochastic):
    """Rößler's RS2 (Stratonovich), for any noise: weak order 2.

    RS1 with deterministic order 3: three evaluations of f. Choose it over RS1 if the
    noise is small compared with the drift.
    """

    calculus = "Stratonovich"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _rs("RS2", (1 / 4, 1 / 4, 1 / 2, 0.0), ((), (2 / 3,), (1 / 6, 1 / 2), ()))
