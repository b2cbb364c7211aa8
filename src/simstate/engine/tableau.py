"""A Runge-Kutta scheme as data: its Butcher tableau, checked when it is created."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from simstate.base.checks import all_of, number
from simstate.base.errors import InvalidInputError

_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta scheme.

    Stage i is evaluated at `y + h Σ_j a[i][j] k_j`, and the step ends at
    `y + h Σ_j b[j] k_j`. The constructor checks that the scheme is explicit, that its
    shapes agree, and that it meets the order conditions: all of them up to order four,
    those of quadrature beyond.
    """

    name: str
    a: Sequence[Sequence[float]]
    """Row i has the weights of the i stages before it; the first row is empty."""
    b: Sequence[float]
    """The weights of the solution that is accepted: the one of higher order."""
    order: int
    """The order of that solution."""
    b_error: Sequence[float] | None = None
    """b minus the weights of the embedded solution: the weights of the error."""
    error_order: int = 0
    """The order of the embedded solution."""
    b_error_low: Sequence[float] | None = None
    """A second, coarser estimate that damps the first, as in DOP853."""

    def __post_init__(self) -> None:
        rows = all_of(f"a of tableau {self.name!r}", self.a, object)
        object.__setattr__(self, "a", tuple(self._weights("a", row) for row in rows))
        for name in ("b", "b_error", "b_error_low"):
            weights: Sequence[float] | None = getattr(self, name)
            if weights is not None:
                object.__setattr__(self, name, self._weights(name, weights))
        _check_shape(self)
        _check_order(self)

    def _weights(self, name: str, row: object) -> tuple[float, ...]:
        what = f"{name} of tableau {self.name!r}"
        return tuple(number(what, weight) for weight in all_of(what, row, object))

    @property
    def num_stages(self) -> int:
        """The number of evaluations of one step."""
        return len(self.b)

    @cached_property
    def c(self) -> tuple[float, ...]:
        """Times of the stages, as fractions of the step."""
        return tuple(math.fsum(row) for row in self.a)

    @property
    def control_order(self) -> int:
        """The order of the error estimate that sets the step."""
        return self.error_order if self.b_error_low is None else self.order - 1

    @cached_property
    def is_first_same_as_last(self) -> bool:
        """True if the last stage is at the new state, where the next step starts."""
        return (*self.a[-1], 0.0) == tuple(self.b)


def _check_shape(tableau: Tableau) -> None:
    """Raise unless the coefficients define an explicit scheme."""
    stages = len(tableau.b)
    lengths = [len(row) for row in tableau.a]
    if not stages or lengths != list(range(stages)):
        raise InvalidInputError(
            f"Tableau {tableau.name!r}: row i of a must have i weights, since the "
            f"scheme is explicit, and b as many as there are rows. Got rows of "
            f"{lengths} weights and {stages} in b.",
            name="a",
        )
    for name in ("b_error", "b_error_low"):
        weights = getattr(tableau, name)
        if weights is not None and len(weights) != stages:
            raise InvalidInputError(
                f"Tableau {tableau.name!r}: {name} must have {stages} weights, one per "
                f"stage, got {len(weights)}.",
                name=name,
            )
    if tableau.b_error is not None and not any(tableau.b_error):
        raise InvalidInputError(
            f"Tableau {tableau.name!r}: b_error is zero, so every step would pass.",
            name="b_error",
        )
    if tableau.b_error is not None and not 1 <= tableau.error_order < tableau.order:
        raise InvalidInputError(
            f"Tableau {tableau.name!r}: with b_error the embedded solution's "
            f"error_order must be from 1 to below the order {tableau.order}, got "
            f"{tableau.error_order}.",
            name="error_order",
        )


def _check_order(tableau: Tableau) -> None:
    """Raise unless the weights meet the conditions of the stated order."""
    stages = tableau.num_stages
    # An explicit scheme needs as many stages as its order, and more from order five.
    if not 1 <= tableau.order <= (stages if stages < 5 else stages - 1):
        raise InvalidInputError(
            f"Tableau {tableau.name!r}: no explicit scheme of {stages} stages has "
            f"order {tableau.order}.",
            name="order",
        )
    _require(tableau, "b", tableau.b, tableau.order)
    if tableau.b_error is not None:
        embedded = [x - y for x, y in zip(tableau.b, tableau.b_error, strict=True)]
        _require(tableau, "b - b_error", embedded, tableau.error_order)


def _require(tableau: Tableau, name: str, b: Sequence[float], order: int) -> None:
    for needed, text, weights, value in _conditions(tableau):
        total = math.fsum(x * y for x, y in zip(b, weights, strict=True))
        if needed <= order and abs(total - value) > _TOLERANCE:
            raise InvalidInputError(
                f"Tableau {tableau.name!r} is not of order {order}: with {name} as b, "
                f"{text} is {total:.12g} and must be {value:.12g}.",
                name="order",
            )


def _conditions(
    tableau: Tableau,
) -> list[tuple[int, str, Sequence[float], float]]:
    """Return the conditions Σ b_i w_i = value, as (order, text, w, value)."""
    c = tableau.c

    def weighted_by_a(values: Sequence[float]) -> list[float]:
        return [
            math.fsum(x * y for x, y in zip(row, values, strict=False))
            for row in tableau.a
        ]

    def per_stage(function: Callable[[float], float]) -> list[float]:
        return [function(x) for x in c]

    squares = per_stage(lambda x: x * x)
    ac = weighted_by_a(c)
    return [
        (1, "Σ b", [1.0] * len(c), 1.0),
        (2, "Σ b c", c, 1 / 2),
        (3, "Σ b c²", squares, 1 / 3),
        (3, "Σ b a c", ac, 1 / 6),
        (4, "Σ b c³", per_stage(lambda x: x**3), 1 / 4),
        (4, "Σ b c a c", [x * y for x, y in zip(c, ac, strict=True)], 1 / 8),
        (4, "Σ b a c²", weighted_by_a(squares), 1 / 12),
        (4, "Σ b a a c", weighted_by_a(ac), 1 / 24),
        *(
            (k, f"Σ b c^{k - 1}", per_stage(lambda x, k=k: x ** (k - 1)), 1 / k)
            for k in range(5, 9)
        ),
    ]
