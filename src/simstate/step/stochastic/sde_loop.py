"""The stages of a stochastic Runge-Kutta step: one loop for every tableau."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from simstate.step.stochastic.sde_tableau import Row, Rows, StochasticTableau
from simstate.step.stochastic.sde_variables import RandomVariables

Vector = list[Tensor]
"""A displacement of the state: one tensor per block, shape (num_envs, width)."""


class StochasticDynamics(Protocol):
    """The equation dx = f dt + Σ_k g_k dW_k, relative to the start of a step."""

    @property
    def num_sources(self) -> int:
        """The number of noise sources."""
        ...

    def zero(self) -> Vector:
        """Return a displacement of zero."""
        ...

    def drift(self, at: Vector, c: float) -> Vector:
        """Return f at a displaced state, at fraction c of the step."""
        ...

    def diffusion(self, at: Vector, c: float) -> list[Vector]:
        """Return g_k there for each source k."""
        ...


class StochasticStep:
    """One step of a scheme: its displacement, by the formulas of its tableau.

    Args:
        tableau: the scheme; `StochasticTableau` has the formulas.
        h: the step [s].
        variables: the random variables of this step.
        dynamics: the functions f and g.
    """

    def __init__(
        self,
        tableau: StochasticTableau,
        h: float,
        variables: RandomVariables,
        dynamics: StochasticDynamics,
    ) -> None:
        self._tableau, self._h, self._dynamics = tableau, h, dynamics
        self._sources = range(dynamics.num_sources)
        self._own = [
            {name: value[:, k] for name, value in variables.own.items()}
            for k in self._sources
        ]
        self._variables = variables
        self._drifts: list[Vector] = []
        self._noises: list[list[Vector]] = []  # by source and stage

    def displacement(self) -> Vector:
        """Evaluate the stages, and return the displacement of the step."""
        tableau = self._tableau
        needs_drift, needs_noise = tableau.needed
        self._drifts, self._noises = [], [[] for _ in self._sources]
        zero = self._dynamics.zero()
        for i in range(tableau.num_stages):
            drift = self._drift_stage(i) if needs_drift[i] else zero
            noise = (
                self._noise_stage(i)
                if needs_noise[i]
                else [zero for _ in self._sources]
            )
            self._drifts.append(drift)
            for k in self._sources:
                self._noises[k].append(noise[k])
        move = self._of_drifts(tableau.alpha)
        for k in self._sources:
            _add(move, tableau.beta, self._own[k], self._noises[k])
        if tableau.has_mixed and len(self._sources) > 1:
            self._add_mixed(move)
        return move

    def _pair(self, k: int, other: int) -> dict[str, Tensor]:
        """Return the variables of sources k and `other`; shape (num_envs,) each."""
        pair = self._variables.pair
        return {name: value[:, k, other] for name, value in pair.items()}

    def _of_drifts(self, row: Row) -> Vector:
        """Return h Σ_j row_j f(H⁰_j)."""
        total = self._dynamics.zero()
        for weight, drift in zip(row, self._drifts, strict=False):
            if weight:
                for x, y in zip(total, drift, strict=True):
                    x.add_(y, alpha=weight * self._h)
        return total

    def _drift_stage(self, i: int) -> Vector:
        """Return f at stage i; that of the first stage if their states are equal."""
        tableau = self._tableau
        if tableau.repeats_first(i):
            return self._drifts[0]
        at = self._of_drifts(tableau.a0[i])
        for k in self._sources:
            _add(at, _row(tableau.b0, i), self._own[k], self._noises[k])
        return self._dynamics.drift(at, tableau.c0[i])

    def _noise_stage(self, i: int) -> list[Vector]:
        """Return g_k at stage i for each source k, at its own position if any."""
        tableau, result = self._tableau, list[Vector]()
        is_shared = tableau.is_shared(i)
        for k in self._sources:
            at = self._of_drifts(tableau.a1[i])
            self._add_noises(at, k, tableau.b1, tableau.b1_other, i)
            found = self._dynamics.diffusion(at, tableau.c1[i])
            if is_shared:
                return found
            result.append(found[k])
        return result

    def _add_mixed(self, move: Vector) -> None:
        """Add the mixed stages, each at a separate state for every source."""
        tableau = self._tableau
        for i in range(tableau.num_stages):
            own = {name: row[i : i + 1] for name, row in tableau.mixed.items()}
            pair = {name: row[i : i + 1] for name, row in tableau.mixed_other.items()}
            if not any(row[0] for row in (*own.values(), *pair.values())):
                continue
            for k in self._sources:
                found = self._mixed_stage(i, k)
                for other in self._sources:
                    if other == k:
                        _add(move, own, self._own[k], [found[k]])
                    else:
                        _add(move, pair, self._pair(k, other), [found[other]])

    def _mixed_stage(self, i: int, k: int) -> list[Vector]:
        """Return g at mixed stage i, at the state of source k."""
        tableau = self._tableau
        moves = _moves(tableau.b2, i) or _moves(tableau.b2_other, i)
        if not moves and tableau.c1[0] == 0 and tableau.needed[1][0]:
            return [stages[0] for stages in self._noises]  # at the step's start
        at = self._dynamics.zero()
        self._add_noises(at, k, tableau.b2, tableau.b2_other, i)
        return self._dynamics.diffusion(at, 0.0)

    def _add_noises(
        self,
        at: Vector,
        k: int,
        own: Mapping[str, Rows],
        pair: Mapping[str, Rows],
        i: int,
    ) -> None:
        """Displace the state of source k by its own noise and by that of others."""
        _add(at, _row(own, i), self._own[k], self._noises[k])
        for other in self._sources if _moves(pair, i) else ():
            if other != k:
                _add(at, _row(pair, i), self._pair(k, other), self._noises[other])


def _row(group: Mapping[str, Rows], i: int) -> dict[str, Row]:
    """Return row i of each variable's matrix."""
    return {name: rows[i] for name, rows in group.items()}


def _moves(group: Mapping[str, Rows], i: int) -> bool:
    """Return True if any weight of row i is not 0."""
    return any(any(rows[i]) for rows in group.values())


def _add(
    total: Vector,
    rows: Mapping[str, Row],
    variables: Mapping[str, Tensor],
    stages: Sequence[Vector],
) -> None:
    """Add Σ_j (Σ_V row[V]_j V) · stage_j to total, with V by world; (num_envs,)."""
    for j, stage in enumerate(stages):
        parts = [
            row[j] * variables[name]
            for name, row in rows.items()
            if j < len(row) and row[j]
        ]
        if parts:
            weight = torch.stack(parts).sum(dim=0)[:, None]
            for x, y in zip(total, stage, strict=True):
                x.addcmul_(y, weight.to(x.dtype))
