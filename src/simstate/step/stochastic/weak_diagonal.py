"""Weak stochastic schemes for Itô equations with one source or diagonal noise."""

from __future__ import annotations

from math import sqrt

from simstate.step.stochastic.sde_tableau import StochasticTableau
from simstate.step.stochastic.stochastic import Stochastic


def _sie(name: str, midpoint: bool, variant: str) -> StochasticTableau:
    """Tocino and Vigo-Aguiar's form: improved or modified Euler, noise A or B."""
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

    name = "SIEA"
    noise = "diagonal"
    strong_order = 1.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _sie("SIEA", midpoint=False, variant="A")


class SMEA(Stochastic):
    """Tocino and Vigo-Aguiar's SMEA (Itô), one source or diagonal noise: weak order 2.

    Stochastic modified Euler: SIEA with the midpoint scheme for the drift. Strong
    order 1. Two evaluations of f, 1 + 2 of g for each source. Normal increments. Choose
    between the two by trying both.
    """

    name = "SMEA"
    noise = "diagonal"
    strong_order = 1.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _sie("SMEA", midpoint=True, variant="A")


class SIEB(Stochastic):
    """Tocino and Vigo-Aguiar's SIEB (Itô), one source or diagonal noise: weak order 1.

    Published for weak order 2, which the means of linear equations have. In general its
    double integral has a variance of 7/6 h² where order 2 needs 1/2, so second moments
    have order 1, and the strong order is 0.5. Two evaluations of f, 1 + 2 of g for each
    source. Normal increments. Choose SIEA, unless results are to be compared.
    """

    name = "SIEB"
    noise = "diagonal"
    strong_order = 0.5
    weak_order = 1.0
    deterministic_order = 2
    tableau = _sie("SIEB", midpoint=False, variant="B")


class SMEB(Stochastic):
    """Tocino and Vigo-Aguiar's SMEB (Itô), one source or diagonal noise: weak order 1.

    SIEB with the midpoint scheme for the drift; orders and evaluations are the same.
    Choose SMEA, unless results are to be compared.
    """

    name = "SMEB"
    noise = "diagonal"
    strong_order = 0.5
    weak_order = 1.0
    deterministic_order = 2
    tableau = _sie("SMEB", midpoint=True, variant="B")
