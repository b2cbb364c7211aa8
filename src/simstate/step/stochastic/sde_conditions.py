"""The order conditions of stochastic Runge-Kutta schemes, as published.

A condition is the order from which it is required, its text, its value and the value
that it must have. e is the vector of ones, and products of vectors are element-wise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError, unknown_name

if TYPE_CHECKING:
    from simstate.step.stochastic.sde_tableau import StochasticTableau

Array = NDArray[np.float64]
Condition = tuple[float, str, Array | float, float]

_TOLERANCE = 1e-12


def check_order(tableau: StochasticTableau) -> None:
    """Raise unless the tableau meets the conditions of its order."""
    if tableau.conditions not in _CONDITIONS:
        raise unknown_name("order conditions", tableau.conditions, _CONDITIONS)
    for needed, text, found, wanted in _CONDITIONS[tableau.conditions](tableau):
        value = float(found)
        scale = max(1.0, abs(wanted))
        if needed <= tableau.order and not abs(value - wanted) <= _TOLERANCE * scale:
            raise InvalidInputError(
                f"Stochastic tableau {tableau.name!r} is not of order "
                f"{tableau.order:g} ({tableau.conditions}): {text} is {value:.12g} and "
                f"must be {wanted:.12g}.",
                name="order",
            )


class _Weights:
    """The arrays of a tableau under their names in the literature."""

    def __init__(self, tableau: StochasticTableau) -> None:
        self._tableau = tableau
        self.e = np.ones(tableau.num_stages)
        self.alpha = np.array(tableau.alpha, dtype=float)
        self.a0, self.a1 = tableau.matrix(tableau.a0), tableau.matrix(tableau.a1)

    def b(self, group: str, variable: str) -> Array:
        """Return the matrix of a variable; zero if it has none."""
        return self._tableau.matrix(getattr(self._tableau, group).get(variable, ()))

    def beta(self, variable: str, group: str = "beta") -> Array:
        """Return the weights of a variable; zero if it has none."""
        rows = getattr(self._tableau, group)
        return np.array(rows.get(variable, np.zeros(len(self.e))), dtype=float)

    @property
    def c1(self) -> Array:
        """Times of the noise stages, as fractions of the step."""
        return np.array(self._tableau.c1)


def _sri(tableau: StochasticTableau) -> list[Condition]:
    """Return conditions of strong order 1.5 for diagonal noise; Rößler (2010)."""
    w = _Weights(tableau)
    e, alpha = w.e, w.alpha
    betas = [w.beta(name) for name in ("I", "II", "I0", "III")]
    b1 = w.b("b1", "root_h")
    a0e, a1e, b0e, b1e = w.a0 @ e, w.a1 @ e, w.b("b0", "I0") @ e, b1 @ e
    result: list[Condition] = [(0.5, "α e", alpha @ e, 1)]
    forms = [
        (0.5, "e", e, (1, 0, 0, 0)),
        (1.0, "B1 e", b1e, (0, 1, 0, 0)),
        (1.5, "A1 e", a1e, (1, 0, -1, 0)),
        (1.5, "(B1 e)²", b1e**2, (1, 0, -1, 2)),
        (1.5, "B1 (B1 e)", b1 @ b1e, (0, 0, 0, 1)),
    ]
    for order, text, vector, wanted in forms:
        for n, (beta, value) in enumerate(zip(betas, wanted, strict=True), 1):
            result.append((order, f"β{n} {text}", beta @ vector, value))
    mixed = betas[0] @ w.a1 @ b0e / 2 + betas[2] @ w.a1 @ b0e / 3
    return [
        *result,
        (1.5, "α A0 e", alpha @ a0e, 1 / 2),
        (1.5, "α B0 e", alpha @ b0e, 1),
        (1.5, "α (B0 e)²", alpha @ b0e**2, 3 / 2),
        (1.5, "½ β1 A1 (B0 e) + ⅓ β3 A1 (B0 e)", mixed, 0),
    ]


def _sra(tableau: StochasticTableau) -> list[Condition]:
    """Return the conditions of strong order 1.5 for additive noise; Rößler (2010)."""
    w = _Weights(tableau)
    e, alpha, b0e = w.e, w.alpha, w.b("b0", "I0") @ w.e
    beta1, beta2 = w.beta("I"), w.beta("I0")
    return [
        (1.0, "α e", alpha @ e, 1),
        (1.0, "β1 e", beta1 @ e, 1),
        (1.0, "β2 e", beta2 @ e, 0),
        (1.5, "β1 c1", beta1 @ w.c1, 1),
        (1.5, "β2 c1", beta2 @ w.c1, -1),
        (1.5, "α A0 e", alpha @ w.a0 @ e, 1 / 2),
        (1.5, "α B0 e", alpha @ b0e, 1),
        (1.5, "α (B0 e)²", alpha @ b0e**2, 3 / 2),
    ]


def _ri(tableau: StochasticTableau) -> list[Condition]:
    """Return the conditions of weak order 2 for Itô equations; Rößler (2009).

    Conditions that vanish with A2 = 0 are omitted, as are those of mixed stages if the
    tableau has none.
    """
    w = _Weights(tableau)
    e, alpha, a1 = w.e, w.alpha, w.a1
    b0, b1, b2 = w.b("b0", "I"), w.b("b1", "root_h"), w.b("b2", "root_h")
    beta1, beta2 = w.beta("I"), w.beta("II")
    a0e, a1e, b0e, b1e, b2e = w.a0 @ e, a1 @ e, b0 @ e, b1 @ e, b2 @ e
    sign = beta1 @ e
    own: list[Condition] = [
        (1, "α e", alpha @ e, 1),
        (1, "(β1 e)²", sign**2, 1),
        (1, "β2 e", beta2 @ e, 0),
        (1, "β1 B1 e", beta1 @ b1e, 0),
        (2, "α A0 e", alpha @ a0e, 1 / 2),
        (2, "α (B0 e)²", alpha @ b0e**2, 1 / 2),
        (2, "(β1 e) α B0 e", sign * (alpha @ b0e), 1 / 2),
        (2, "(β1 e) β1 A1 e", sign * (beta1 @ a1e), 1 / 2),
        (2, "β2 B1 e", beta2 @ b1e, 1),
        (2, "(β1 e) β1 (B1 e)²", sign * (beta1 @ b1e**2), 1 / 2),
        (2, "β1 B1 (B1 e)", beta1 @ b1 @ b1e, 0),
        (2, "β1 A1 (B0 e)", beta1 @ a1 @ b0e, 0),
        (2, "α B0 (B1 e)", alpha @ b0 @ b1e, 0),
        (2, "β2 A1 e", beta2 @ a1e, 0),
        (2, "β1 ((A1 e) (B1 e))", beta1 @ (a1e * b1e), 0),
        (2, "β2 A1 (B0 e)", beta2 @ a1 @ b0e, 0),
        (2, "β2 A1 (B0 e)²", beta2 @ a1 @ b0e**2, 0),
        (2, "β1 B1 (A1 e)", beta1 @ b1 @ a1e, 0),
        (2, "β2 (B1 e)²", beta2 @ b1e**2, 0),
        (2, "β2 B1 (B1 e)", beta2 @ b1 @ b1e, 0),
        (2, "β1 (B1 e)³", beta1 @ b1e**3, 0),
        (2, "β1 B1 (B1 e)²", beta1 @ b1 @ b1e**2, 0),
        (2, "α ((B0 e) B0 (B1 e))", alpha @ (b0e * (b0 @ b1e)), 0),
        (2, "β1 (A1 (B0 e) (B1 e))", beta1 @ ((a1 @ b0e) * b1e), 0),
        (2, "β1 A1 (B0 (B1 e))", beta1 @ a1 @ b0 @ b1e, 0),
        (2, "β1 B1 (A1 (B0 e))", beta1 @ b1 @ a1 @ b0e, 0),
        (2, "β1 ((B1 e) B1 (B1 e))", beta1 @ (b1e * (b1 @ b1e)), 0),
        (2, "β1 B1 (B1 (B1 e))", beta1 @ b1 @ b1 @ b1e, 0),
    ]
    if not tableau.has_mixed:
        return own
    beta3, beta4 = w.beta("I", "mixed_other"), w.beta("IJ", "mixed_other")
    return [
        *own,
        (1, "β3 e", beta3 @ e, 0),
        (1, "β4 e", beta4 @ e, 0),
        (1, "β3 B2 e", beta3 @ b2e, 0),
        (1, "β4 (B2 e)²", beta4 @ b2e**2, 0),
        (2, "β4 B2 e", beta4 @ b2e, 1),
        (2, "(β1 e) β3 (B2 e)²", sign * (beta3 @ b2e**2), 1 / 2),
        (2, "β3 B2 (B1 e)", beta3 @ b2 @ b1e, 0),
        (2, "β3 B2 (B1 (B1 e))", beta3 @ b2 @ b1 @ b1e, 0),
        (2, "β3 B2 (A1 e)", beta3 @ b2 @ a1e, 0),
        (2, "β4 B2 (B1 e)", beta4 @ b2 @ b1e, 0),
        (2, "β3 (B2 e)³", beta3 @ b2e**3, 0),
        (2, "β3 B2 (B1 e)²", beta3 @ b2 @ b1e**2, 0),
        (2, "β4 (B2 e)⁴", beta4 @ b2e**4, 0),
        (2, "β4 (B2 (B1 e))²", beta4 @ (b2 @ b1e) ** 2, 0),
        (2, "β4 ((B2 e) B2 (B1 e))", beta4 @ (b2e * (b2 @ b1e)), 0),
        (2, "β4 ((B2 e) B2 (A1 e))", beta4 @ (b2e * (b2 @ a1e)), 0),
        (2, "β3 B2 (A1 (B0 e))", beta3 @ b2 @ a1 @ b0e, 0),
        (2, "β3 ((B2 e) B2 (B1 e))", beta3 @ (b2e * (b2 @ b1e)), 0),
        (2, "β4 ((B2 e) B2 (B1 e)²)", beta4 @ (b2e * (b2 @ b1e**2)), 0),
        (2, "β4 ((B2 e) B2 (B1 (B1 e)))", beta4 @ (b2e * (b2 @ b1 @ b1e)), 0),
    ]


def _rs(tableau: StochasticTableau) -> list[Condition]:
    """Return the conditions of weak order 2 for Stratonovich equations with A2 = 0.

    From Rößler (2007).
    """
    w = _Weights(tableau)
    e, alpha, a1 = w.e, w.alpha, w.a1
    b0, b1, b3 = w.b("b0", "I"), w.b("b1", "I"), w.b("b1_other", "I")
    b2 = w.b("b2_other", "IJ")
    beta1, beta2 = w.beta("I"), w.beta("root_h", "mixed")
    a0e, a1e, b0e, b1e = w.a0 @ e, a1 @ e, b0 @ e, b1 @ e
    b2e, b3e, sign = b2 @ e, b3 @ e, beta1 @ e
    own: list[Condition] = [
        (1, "α e", alpha @ e, 1),
        (1, "(β1 e)²", sign**2, 1),
        (1, "β1 B1 e", beta1 @ b1e, 1 / 2),
        (2, "α A0 e", alpha @ a0e, 1 / 2),
        (2, "α B0 (B1 e)", alpha @ b0 @ b1e, 1 / 4),
        (2, "α (B0 e)²", alpha @ b0e**2, 1 / 2),
        (2, "(β1 e) α B0 e", sign * (alpha @ b0e), 1 / 2),
        (2, "(β1 e) β1 A1 e", sign * (beta1 @ a1e), 1 / 2),
        (2, "β1 B1 (A1 e)", beta1 @ b1 @ a1e, 1 / 4),
        (2, "β1 ((B1 e) (A1 e))", beta1 @ (b1e * a1e), 1 / 4),
        (2, "(β1 e) β1 (B1 e)²", sign * (beta1 @ b1e**2), 1 / 3),
        (2, "β1 (B1 e)³", beta1 @ b1e**3, 1 / 4),
        (2, "β1 B1 (B1 e)²", beta1 @ b1 @ b1e**2, 1 / 12),
        (2, "β1 A1 (B0 e)", beta1 @ a1 @ b0e, 0),
        (2, "β1 B1 (B1 (B1 e))", beta1 @ b1 @ b1 @ b1e, 1 / 24),
        (2, "(β1 e) β1 B1 (B1 e)", sign * (beta1 @ b1 @ b1e), 1 / 6),
        (2, "β1 ((B1 e) B1 (B1 e))", beta1 @ (b1e * (b1 @ b1e)), 1 / 8),
    ]
    return [
        *own,
        (1, "β2 e", beta2 @ e, 0),
        (1, "β2 (B2 e)²", beta2 @ b2e**2, 0),
        (2, "β1 B3 e", beta1 @ b3e, 1 / 2),
        (2, "(β1 e) β1 (B3 e)²", sign * (beta1 @ b3e**2), 1 / 2),
        (2, "β1 B3 (B3 e)", beta1 @ b3 @ b3e, 0),
        (2, "(β2 B2 e)²", (beta2 @ b2e) ** 2, 1 / 4),
        (2, "β1 B1 (B3 e)²", beta1 @ b1 @ b3e**2, 1 / 4),
        (2, "β2 (B2 e)⁴", beta2 @ b2e**4, 0),
        (2, "β2 (B2 (B1 e))²", beta2 @ (b2 @ b1e) ** 2, 0),
        (2, "β2 (B2 (B3 e))²", beta2 @ (b2 @ b3e) ** 2, 0),
        (2, "β1 ((B1 e) (B3 e)²)", beta1 @ (b1e * b3e**2), 1 / 4),
        (2, "β1 B1 (B3 (B1 e))", beta1 @ b1 @ b3 @ b1e, 1 / 8),
        (2, "β1 B3 (B3 (B3 e))", beta1 @ b3 @ b3 @ b3e, 0),
        (2, "β1 B3 (B1 (B3 e))", beta1 @ b3 @ b1 @ b3e, 0),
        (2, "(β1 e) β1 ((B3 e) (B1 e))", sign * (beta1 @ (b3e * b1e)), 1 / 4),
        (2, "(β1 e) β1 B3 (B1 e)", sign * (beta1 @ b3 @ b1e), 1 / 4),
        (2, "(β1 e) β1 B1 (B3 e)", sign * (beta1 @ b1 @ b3e), 1 / 4),
        (2, "β1 ((B1 e) B3 (B1 e))", beta1 @ (b1e * (b3 @ b1e)), 1 / 8),
        (2, "β1 ((B3 e) B1 (B3 e))", beta1 @ (b3e * (b1 @ b3e)), 1 / 4),
        (2, "β1 ((B3 e) B3 (B3 e))", beta1 @ (b3e * (b3 @ b3e)), 0),
        (2, "β1 B3 ((B3 e) (B1 e))", beta1 @ b3 @ (b3e * b1e), 0),
        (2, "β2 ((B2 e) B2 (A1 e))", beta2 @ (b2e * (b2 @ a1e)), 0),
        (2, "β2 ((B2 e) B2 (B1 e))", beta2 @ (b2e * (b2 @ b1e)), 0),
        (2, "β2 ((B2 e) B2 (B3 e))", beta2 @ (b2e * (b2 @ b3e)), 0),
        (2, "β2 ((B2 e) B2 (B1 e)²)", beta2 @ (b2e * (b2 @ b1e**2)), 0),
        (2, "β2 ((B2 e) B2 (B3 e)²)", beta2 @ (b2e * (b2 @ b3e**2)), 0),
        (2, "β2 ((B2 e) B2 ((B1 e) (B3 e)))", beta2 @ (b2e * (b2 @ (b1e * b3e))), 0),
        (2, "β2 ((B2 e) B2 (B1 (B1 e)))", beta2 @ (b2e * (b2 @ b1 @ b1e)), 0),
        (2, "β2 ((B2 e) B2 (B3 (B1 e)))", beta2 @ (b2e * (b2 @ b3 @ b1e)), 0),
        (2, "β2 ((B2 e) B2 (B3 (B3 e)))", beta2 @ (b2e * (b2 @ b3 @ b3e)), 0),
        (2, "β2 ((B2 e) B2 (B1 (B3 e)))", beta2 @ (b2e * (b2 @ b1 @ b3e)), 0),
    ]


def _w2ito(tableau: StochasticTableau) -> list[Condition]:
    """Return conditions of weak order 2 with Tang and Xiao's variables: moments."""
    w = _Weights(tableau)
    e, alpha = w.e, w.alpha
    b0e, b1, b2 = w.b("b0", "I") @ e, w.b("b1", "xi"), w.b("b1_other", "IJ")
    beta0, beta1 = w.beta("I"), w.beta("II")
    b1e, b2e = b1 @ e, b2 @ e
    return [
        (1, "α e", alpha @ e, 1),
        (1, "β0 e", beta0 @ e, 1),
        (1, "β1 e", beta1 @ e, 0),
        (1, "β0 B1 e", beta0 @ b1e, 0),
        (2, "α A0 e", alpha @ w.a0 @ e, 1 / 2),
        (2, "α B0 e", alpha @ b0e, 1 / 2),
        (2, "α (B0 e)²", alpha @ b0e**2, 1 / 2),
        (2, "β0 A1 e", beta0 @ w.a1 @ e, 1 / 2),
        (2, "β0 A1 (B0 e)", beta0 @ w.a1 @ b0e, 0),
        (2, "β0 (B1 e)²", beta0 @ b1e**2, 1 / 2),
        (2, "β0 B1 (B1 e)", beta0 @ b1 @ b1e, 0),
        (2, "β1 B1 e", beta1 @ b1e, 1),
        (2, "β0 B2 e", beta0 @ b2e, 1),
        (2, "β0 (B2 e)²", beta0 @ b2e**2, 1),
        (2, "β0 B2 (B2 e)", beta0 @ b2 @ b2e, 0),
        (2, "β1 B2 e", beta1 @ b2e, 0),
    ]


_NORMAL_MOMENTS = (1.0, 0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0, 0.0, 945.0)


def _sie(tableau: StochasticTableau) -> list[Condition]:
    """Return conditions of weak order 2 with powers of a normal increment N √h.

    In noise stage i, p_i is the displacement along g and w_i the weight, both
    polynomials in N; q is the displacement of the second drift stage.
    """
    w = _Weights(tableau)
    e = w.e
    p = [[x, 0.0, y] for x, y in zip(*(w.b("b1", v) @ e for v in _EVEN), strict=True)]
    parts = (w.beta("root_h"), w.beta("I"), w.beta("I^2"))
    weight = [list(row) for row in zip(*parts, strict=True)]
    drift = zip(w.b("b0", "I") @ e, w.b("b0", "I^3") @ e, strict=True)
    q = [[0.0, x, 0.0, y] for x, y in drift]
    late = w.a1 @ e

    def total(*kinds: list[list[float]], power: int = 0) -> float:
        """Return E[N^power Σ_i Π polynomials of stage i]."""
        result = 0.0
        for factors in zip(*kinds, strict=True):
            product = np.array([1.0])
            for factor in factors:
                product = np.convolve(product, factor)
            result += float(
                sum(x * _NORMAL_MOMENTS[n + power] for n, x in enumerate(product))
            )
        return result

    second = np.zeros(5)
    for x, y in zip(weight, p, strict=True):
        second += np.convolve(x, y)
    squared = np.convolve(second, second)
    alphas = [[float(x)] for x in w.alpha]
    lates = [[float(x)] for x in late]
    return [
        (1, "α e", float(w.alpha @ e), 1),
        (1, "E[N Σ w]", total(weight, power=1), 1),
        (1, "E[(Σ w)²]", _square(weight), 1),
        (1, "E[Σ w p]", total(weight, p), 0),
        (1, "E[N Σ w p]", total(weight, p, power=1), 0),
        (1, "E[Σ w p²]", total(weight, p, p), 0),
        (2, "E[N² Σ w p]", total(weight, p, power=2), 1),
        (2, "E[N Σ w p²]", total(weight, p, p, power=1), 1 / 2),
        (2, "E[Σ w p³]", total(weight, p, p, p), 0),
        (2, "α A0 e", float(w.alpha @ w.a0 @ e), 1 / 2),
        (2, "E[N Σ α q]", total(alphas, q, power=1), 1 / 2),
        (2, "E[Σ α q²]", total(alphas, q, q), 1 / 2),
        (2, "E[N Σ w A1 e]", total(weight, lates, power=1), 1 / 2),
        (2, "E[Σ w p A1 e]", total(weight, p, lates), 0),
        (2, "E[(Σ w p)²]", float(squared @ _NORMAL_MOMENTS[: len(squared)]), 1 / 2),
    ]


_EVEN = ("root_h", "I^2")


def _square(polynomials: list[list[float]]) -> float:
    """Return E[(Σ_i polynomial_i)²] for a standard normal argument."""
    whole = np.sum(np.array(polynomials), axis=0)
    squared = np.convolve(whole, whole)
    return float(squared @ _NORMAL_MOMENTS[: len(squared)])


_CONDITIONS: dict[str, Callable[[StochasticTableau], list[Condition]]] = {
    "SRI": _sri,
    "SRA": _sra,
    "RI": _ri,
    "RS": _rs,
    "W2Itô": _w2ito,
    "SIE": _sie,
}
