"""A stochastic Runge-Kutta scheme as data: its tableau, checked when it is created."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.step.stochastic.sde_conditions import check_order

Row = Sequence[float]
Rows = Sequence[Row]

Variables = Literal["gaussian", "platen", "three-point", "stratonovich", "tang-xiao"]
"""The random variables of a scheme, which `sde_variables` defines."""

Conditions = Literal["SRI", "SRA", "RI", "RS", "W2Itô", "SIE"]
"""The order conditions that a tableau meets, which `sde_conditions` defines."""

_GAUSSIAN = ("root_h", "I", "II", "I0", "III", "I^2", "I^3")
NAMES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "gaussian": (_GAUSSIAN, ("I",)),
    "platen": (_GAUSSIAN, ("I", "IJ")),
    "three-point": (("root_h", "I", "II"), ("I", "IJ")),
    "stratonovich": (("root_h", "I"), ("I", "IJ")),
    "tang-xiao": (("I", "II", "xi"), ("I", "IJ")),
}
"""The names of the variables of each kind: those of a source, and those of a pair."""


def _no_rows() -> dict[str, Rows]:
    return {}


def _no_weights() -> dict[str, Row]:
    return {}


@dataclass(frozen=True)
class StochasticTableau:
    """An explicit stochastic Runge-Kutta scheme for any number of noise sources.

    A source k has random variables V_k, and V_kl with each other source l [√s]. A
    tableau has weights for them by name. With sums over the earlier stages j and over
    the named variables V:

    - drift:  H⁰_i = x + h a0_ij f(H⁰_j) + Σ_k V_k b0[V]_ij g_k(Hᵏ_j)
    - noise:  Hᵏ_i = x + h a1_ij f(H⁰_j) + V_k b1[V]_ij g_k(Hᵏ_j)
      + Σ_{l≠k} V_kl b1_other[V]_ij g_l(Hˡ_j)
    - mixed:  Ĥᵏ_i = x + V_k b2[V]_ij g_k(Hᵏ_j) + Σ_{l≠k} V_kl b2_other[V]_ij g_l(Hˡ_j)
    - the step:  x + h alpha_i f(H⁰_i) + Σ_k V_k beta[V]_i g_k(Hᵏ_i)
      + Σ_k V_k mixed[V]_i g_k(Ĥᵏ_i) + Σ_{l≠k} V_kl mixed_other[V]_i g_l(Ĥᵏ_i)

    Mixed stages follow all others, have the time of the step's start, and are omitted
    with a single source. The constructor checks that the tableau is explicit and that
    it meets the conditions of its order.
    """

    name: str
    variables: Variables
    conditions: Conditions
    order: float
    """The order whose conditions it meets: strong for SRI and SRA, weak for others."""
    alpha: Row
    a0: Rows
    a1: Rows
    beta: Mapping[str, Row]
    b0: Mapping[str, Rows] = field(default_factory=_no_rows)
    b1: Mapping[str, Rows] = field(default_factory=_no_rows)
    b1_other: Mapping[str, Rows] = field(default_factory=_no_rows)
    b2: Mapping[str, Rows] = field(default_factory=_no_rows)
    b2_other: Mapping[str, Rows] = field(default_factory=_no_rows)
    mixed: Mapping[str, Row] = field(default_factory=_no_weights)
    mixed_other: Mapping[str, Row] = field(default_factory=_no_weights)
    c1_given: Row | None = None
    """Times of the noise stages, as fractions of the step; None: row sums of a1."""

    def __post_init__(self) -> None:
        _check_shape(self)
        check_order(self)

    @property
    def num_stages(self) -> int:
        """The number of stages."""
        return len(self.alpha)

    @cached_property
    def c0(self) -> tuple[float, ...]:
        """Times of the drift stages, as fractions of the step."""
        return tuple(math.fsum(row) for row in self.a0)

    @cached_property
    def c1(self) -> tuple[float, ...]:
        """Times of the noise stages, as fractions of the step."""
        if self.c1_given is not None:
            return tuple(self.c1_given)
        return tuple(math.fsum(row) for row in self.a1)

    @cached_property
    def has_mixed(self) -> bool:
        """True if there are mixed stages."""
        return bool(self.mixed or self.mixed_other)

    def matrix(self, rows: Rows) -> NDArray[np.float64]:
        """Return rows as a square matrix; shape (stages, stages)."""
        result = np.zeros((self.num_stages, self.num_stages))
        for i, row in enumerate(rows):
            result[i, : len(row)] = row
        return result

    @cached_property
    def needed(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """Masks of the drift and noise stages that the step uses; (stages,) each."""
        a0, a1 = self.matrix(self.a0) != 0, self.matrix(self.a1) != 0
        b0 = self._any(self.b0)
        b1 = self._any(self.b1) | self._any(self.b1_other)
        mixed = self._any(self.b2) | self._any(self.b2_other)
        drift = np.array(self.alpha) != 0
        noise: NDArray[np.bool_] = np.array(mixed.any(axis=0))
        for row in self.beta.values():
            noise |= np.array(row) != 0
        for i in reversed(range(self.num_stages)):
            noise[i] |= bool((b0[:, i] & drift).any() or (b1[:, i] & noise).any())
            drift[i] |= bool((a0[:, i] & drift).any() or (a1[:, i] & noise).any())
        return tuple(drift.tolist()), tuple(noise.tolist())

    def _any(self, rows: Mapping[str, Rows]) -> NDArray[np.bool_]:
        result = np.zeros((self.num_stages, self.num_stages), dtype=bool)
        for each in rows.values():
            result |= self.matrix(each) != 0
        return result

    def repeats_first(self, i: int) -> bool:
        """Return True if drift stage i has the state and time of the first."""
        moves = any(self.a0[i]) or any(any(rows[i]) for rows in self.b0.values())
        return i > 0 and not moves and self.c0[i] == self.c0[0]

    def num_evaluations(self, num_sources: int) -> tuple[int, int]:
        """Return the numbers of evaluations of f and of all of g in one step."""
        stages = range(self.num_stages)
        drift, noise = self.needed
        of_f = sum(drift[i] and not self.repeats_first(i) for i in stages)
        of_g = sum(1 if self.is_shared(i) else num_sources for i in stages if noise[i])
        if self.has_mixed and num_sources > 1:
            moves = self._any(self.b2) | self._any(self.b2_other)
            of_g += num_sources * int(moves.any(axis=1).sum())
        return of_f, of_g

    def is_shared(self, i: int) -> bool:
        """Return True if noise stage i has the same state for all sources."""
        own = {name: tuple(rows[i]) for name, rows in self.b1.items() if any(rows[i])}
        other = {
            name: tuple(rows[i]) for name, rows in self.b1_other.items() if any(rows[i])
        }
        return own == other  # of "I", which both have: a pair's is the source's


def _check_shape(tableau: StochasticTableau) -> None:
    """Raise unless the weights define an explicit scheme of known variables."""
    one_of("kind of random variables", tableau.variables, NAMES)
    start, stages = f"Stochastic tableau {tableau.name!r}: ", len(tableau.alpha)
    matrices = [("a0", tableau.a0, True), ("a1", tableau.a1, True)]
    for name in ("b0", "b1", "b1_other", "b2", "b2_other"):
        for variable, rows in _named(tableau, name).items():
            label = f"{name}[{variable!r}]"
            matrices.append((label, rows, not name.startswith("b2")))
    for name, rows, explicit in matrices:
        most = [i if explicit else stages for i in range(stages)]
        lengths = [len(row) for row in rows]
        if len(rows) != stages or any(map(int.__gt__, lengths, most)):
            raise InvalidInputError(
                f"{start}{name} must have {stages} rows, with at most "
                f"{'i' if explicit else stages} weights in row i; got rows of "
                f"{lengths} weights.",
                name=name,
            )
    vectors: list[tuple[str, Row]] = [("alpha", tableau.alpha)]
    for name in ("beta", "mixed", "mixed_other"):
        for variable, row in _named(tableau, name).items():
            vectors.append((f"{name}[{variable!r}]", row))
    if tableau.c1_given is not None:
        vectors.append(("c1_given", tableau.c1_given))
    for name, row in vectors:
        if not stages or len(row) != stages:
            raise InvalidInputError(
                f"{start}{name} must have {stages} weights, one per stage, got "
                f"{len(row)}.",
                name=name,
            )
    numbers = [x for _, row in vectors for x in row]
    numbers += [x for _, rows, _ in matrices for row in rows for x in row]
    if not all(math.isfinite(x) for x in numbers):
        raise InvalidInputError(f"{start}a weight is not finite.", name="weights")


def _named(tableau: StochasticTableau, group: str) -> Mapping[str, Any]:
    """Return a group of weights by variable; raise if a variable is unknown."""
    known = NAMES[tableau.variables][group.endswith("_other")]
    weights: Mapping[str, Any] = getattr(tableau, group)
    for variable in weights:
        if variable not in known:
            raise unknown_name(
                f"random variable in {group} of {tableau.name!r}", variable, known
            )
    return weights
