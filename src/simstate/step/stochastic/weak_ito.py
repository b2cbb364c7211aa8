"""Weak stochastic schemes for Itô equations: they converge in distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from simstate.step.stochastic.sde_tableau import Row, StochasticTableau, Variables
from simstate.step.stochastic.stochastic import Stochastic


def _ri(
    name: str,
    alpha: Row,
    a0: Sequence[Row],
    b0: Sequence[Row],
    late: float,
    side: float,
    betas: tuple[Row, Row],
    mixed: tuple[Row, Row] | None,
    mixed_row: Row = (1.0,),
    variables: Variables = "three-point",
) -> StochasticTableau:
    """Return Rößler's form: noise stages at x and x + `late` f h ± `side` g √h.

    `betas` are the weights of I and II. Mixed stages are at x and x ± `mixed_row` of
    the noise stages times √h, with weights `mixed` of I and IJ; None: no mixed stages.
    """
    return StochasticTableau(
        name=name,
        variables=variables,
        conditions="RI",
        order=2,
        alpha=alpha,
        a0=a0,
        b0={"I": b0},
        a1=((), (late,), (late,)),
        b1={"root_h": ((), (side,), (-side,))},
        beta=dict(zip(("I", "II"), betas, strict=True)),
        b2={}
        if mixed is None
        else {"root_h": ((), mixed_row, tuple(-x for x in mixed_row))},
        mixed_other={} if mixed is None else dict(zip(("I", "IJ"), mixed, strict=True)),
    )


_PLATEN_BETAS = (1 / 2, 1 / 4, 1 / 4), (0.0, 1 / 2, -1 / 2)
_PLATEN_MIXED = (-1 / 2, 1 / 4, 1 / 4), (0.0, 1 / 2, -1 / 2)


class PlatenWeak2(Stochastic):
    """Platen's explicit scheme (Itô), for any noise: weak order 2, strong order 0.5.

    Kloeden and Platen (1992), section 15.1, in the form for several sources: the
    tableau of `RI6`, with normal instead of three-point increments, and with a
    two-point variable for each pair of sources. Two evaluations of f; of g three with
    one source, else 1 + 4 for each. Stages have the same times as in RI6, so
    time-dependent coefficients have order 2 too; the related PL1WM of
    StochasticDiffEq.jl has three-point increments and all stages at the step's start.
    The variables of pairs are random even if noise is prescribed. Choose it for
    expectations along a given path; else DRI1.
    """

    strong_order = 0.5
    weak_order = 2.0
    deterministic_order = 2
    tableau = _ri(
        "PlatenWeak2",
        alpha=(1 / 2, 1 / 2, 0.0),
        a0=((), (1.0,), ()),
        b0=((), (1.0,), ()),
        late=1.0,
        side=1.0,
        betas=_PLATEN_BETAS,
        mixed=_PLATEN_MIXED,
        variables="platen",
    )


class RDI1WM(Stochastic):
    """Debrabant and Rößler's RDI1WM (Itô), for any noise: weak order 1.

    Deterministic order 2. Two evaluations of f, one of g. Three-point increments.
    Choose it for cheap expectations where the noise is small compared with the drift.
    """

    strong_order = 0.0
    weak_order = 1.0
    deterministic_order = 2
    tableau = StochasticTableau(
        name="RDI1WM",
        variables="three-point",
        conditions="RI",
        order=1,
        alpha=(1 / 4, 3 / 4),
        a0=((), (2 / 3,)),
        b0={"I": ((), (2 / 3,))},
        a1=((), ()),
        beta={"I": (1.0, 0.0)},
    )


_DRI1_BETAS = (
    (193 / 684, 491 / 1368, 491 / 1368),
    (0.0, sqrt(491 / 38) / 6, -sqrt(491 / 38) / 6),
)


class DRI1(Stochastic):
    """Debrabant and Rößler's DRI1 (Itô), for two sources or diagonal noise: weak 2.

    Deterministic order 3, with the smallest error constants of its family. Three
    evaluations of f; of g three with one source, else 1 + 4 for each. Three-point
    increments, and for pairs the sign of the first source, as in StochasticDiffEq.jl;
    if three or more sources mix, pairs share signs, and second moments have order 1.
    The usual choice for expectations; for three or more sources that mix, use W2Ito1.
    """

    noise = "paired"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _ri(
        "DRI1",
        alpha=(1 / 6, 2 / 3, 1 / 6),
        a0=((), (1 / 2,), (-1.0, 2.0)),
        b0=((), ((6 - sqrt(6)) / 10,), ((3 + 2 * sqrt(6)) / 5,)),
        late=342 / 491,
        side=3 * sqrt(38 / 491),
        betas=_DRI1_BETAS,
        mixed=(
            (-4955 / 7072, 4955 / 14144, 4955 / 14144),
            (0.0, -sqrt(4955 / 221) / 8, sqrt(4955 / 221) / 8),
        ),
        mixed_row=(
            -214 / 513 * sqrt(1105 / 991),
            -491 / 513 * sqrt(221 / 4955),
            -491 / 513 * sqrt(221 / 4955),
        ),
    )


class DRI1NM(Stochastic):
    """DRI1 for sources that do not mix (Itô), one source or diagonal noise: weak 2.

    DRI1 without the mixed stages, which such noise does not need: three evaluations of
    f, 1 + 2 of g for each source. Deterministic order 3. Choose it for many sources,
    each with a separate state.
    """

    noise = "diagonal"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _ri(
        "DRI1NM",
        alpha=(1 / 6, 2 / 3, 1 / 6),
        a0=((), (1 / 2,), (-1.0, 2.0)),
        b0=((), ((6 - sqrt(6)) / 10,), ((3 + 2 * sqrt(6)) / 5,)),
        late=342 / 491,
        side=3 * sqrt(38 / 491),
        betas=_DRI1_BETAS,
        mixed=None,
    )


class RI1(Stochastic):
    """Rößler's RI1 (Itô), for two sources or diagonal noise: weak order 2.

    Deterministic order 3. Evaluations, random variables and limits are those of `DRI1`:
    choose that, except to compare results with RI1's.
    """

    noise = "paired"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _ri(
        "RI1",
        alpha=(1 / 4, 1 / 2, 1 / 4),
        a0=((), (2 / 3,), (-1 / 3, 1.0)),
        b0=((), (1.0,), (0.0,)),
        late=1.0,
        side=1.0,
        betas=_PLATEN_BETAS,
        mixed=_PLATEN_MIXED,
    )


class RI3(Stochastic):
    """Rößler's RI3 (Itô), for two sources or diagonal noise: weak order 2.

    Deterministic order 3. Evaluations, random variables and limits are those of `DRI1`:
    choose that, except to compare results with RI3's.
    """

    noise = "paired"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _ri(
        "RI3",
        alpha=(1 / 6, 1 / 6, 2 / 3),
        a0=((), (1.0,), (1 / 4, 1 / 4)),
        b0=((), ((3 - 2 * sqrt(6)) / 5,), ((6 + sqrt(6)) / 10,)),
        late=1.0,
        side=1.0,
        betas=_PLATEN_BETAS,
        mixed=_PLATEN_MIXED,
    )


class RI5(Stochastic):
    """Rößler's RI5 (Itô), for two sources or diagonal noise: weak order 2.

    Deterministic order 3. Evaluations, random variables and limits are those of `DRI1`:
    choose that, except to compare results with RI5's. The increments enter with the
    opposite sign, which does not change expectations.
    """

    noise = "paired"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = _ri(
        "RI5",
        alpha=(1 / 10, 3 / 14, 24 / 35),
        a0=((), (1.0,), (25 / 144, 35 / 144)),
        b0=((), (1 / 3,), (-5 / 6,)),
        late=1 / 4,
        side=1 / 2,
        betas=((1.0, -1.0, -1.0), (0.0, 1.0, -1.0)),
        mixed=((1 / 2, -1 / 4, -1 / 4), (0.0, 1 / 2, -1 / 2)),
    )


class RI6(Stochastic):
    """Rößler's RI6 (Itô), for two sources or diagonal noise: weak order 2.

    Deterministic order 2, with two evaluations of f; else as `DRI1`. Choose it over
    DRI1 if f is expensive.
    """

    noise = "paired"
    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 2
    tableau = _ri(
        "RI6",
        alpha=(1 / 2, 1 / 2, 0.0),
        a0=((), (1.0,), ()),
        b0=((), (1.0,), ()),
        late=1.0,
        side=1.0,
        betas=_PLATEN_BETAS,
        mixed=_PLATEN_MIXED,
    )


class W2Ito1(Stochastic):
    """Tang and Xiao's W2Itô1 (Itô), for any noise: weak order 2.

    Deterministic order 3. Three evaluations of f, 1 + 2 of g for each source.
    Three-point increments, and two signs for any number of sources. The times of the
    stages are the row sums of the tableau, so time-dependent coefficients have order 2
    too (in StochasticDiffEq.jl all stages are at the step's start). Choose it for
    expectations with sources that mix.
    """

    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 3
    tableau = StochasticTableau(
        name="W2Ito1",
        variables="tang-xiao",
        conditions="W2Itô",
        order=2,
        alpha=(1 / 6, 2 / 3, 1 / 6),
        a0=((), (1 / 2,), (-1.0, 2.0)),
        b0={"I": ((), ((6 - sqrt(6)) / 10,), ((3 + 2 * sqrt(6)) / 5,))},
        a1=((), (1 / 4,), (1 / 4,)),
        b1={"xi": ((), (1 / 2,), (-1 / 2,))},
        b1_other={"IJ": ((), (1.0,), ())},
        beta={"I": (-1.0, 1.0, 1.0), "II": (2.0, 0.0, -2.0)},
    )


class W2Ito2(Stochastic):
    """Tang and Xiao's W2Itô2 (Itô), for any noise: weak order 2.

    W2Itô1 with the classical Runge-Kutta scheme for the drift: deterministic order 4,
    four evaluations of f, 1 + 2 of g for each source. Choose it if the noise is small
    compared with the drift.
    """

    strong_order = 0.0
    weak_order = 2.0
    deterministic_order = 4
    tableau = StochasticTableau(
        name="W2Ito2",
        variables="tang-xiao",
        conditions="W2Itô",
        order=2,
        alpha=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
        a0=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
        b0={"I": ((), (), (0.0, 1.0), (0.0, 1.0))},
        a1=((), (1 / 2,), (1 / 2,), (1 / 2,)),
        b1={"xi": ((), (), (0.0, 1 / 2), (0.0, -1 / 2))},
        b1_other={"IJ": ((), (), (0.0, 1.0), ())},
        beta={"I": (0.0, -1.0, 1.0, 1.0), "II": (0.0, 2.0, 0.0, -2.0)},
    )
