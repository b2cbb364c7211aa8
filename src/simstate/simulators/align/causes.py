"""Causes of a difference: the parameters that must be matched for it to disappear.

With all causes matched, the difference is within rounding; with all but any one of
them, it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco

from simstate.base.errors import ModelError
from simstate.simulators.align.findings import Cause
from simstate.simulators.mechanics import MujocoMechanics
from simstate.simulators.parameters import ParameterDifference, overwritten

Difference = Callable[[MujocoMechanics], float]
"""Function that returns the distance of a simulator's answers from a MuJoCo model's."""


@dataclass(frozen=True)
class Attribution:
    """The causes of a difference, and the difference that remains with them matched."""

    causes: tuple[Cause, ...]
    remainder: float


class Matcher:
    """Creates models of MuJoCo with some of another simulator's parameters."""

    def __init__(
        self, model: mujoco.MjModel, differences: Sequence[ParameterDifference]
    ) -> None:
        self.model = model
        self._by_kind: dict[str, list[ParameterDifference]] = {}
        for difference in differences:
            self._by_kind.setdefault(difference.kind, []).append(difference)
        self._made: dict[frozenset[str], MujocoMechanics | None] = {}

    @property
    def kinds(self) -> list[str]:
        """The kinds of parameters that differ."""
        return list(self._by_kind)

    def matched(self, kinds: frozenset[str]) -> MujocoMechanics | None:
        """Return MuJoCo with these kinds matched; None if it rejects them together."""
        if kinds not in self._made:
            chosen = [
                difference
                for kind, differing in self._by_kind.items()
                if kind in kinds
                for difference in differing
            ]
            try:
                model = overwritten(self.model, chosen) if chosen else self.model
                numbers = [d.theirs[0] for d in chosen if d.kind == "integrator"]
                integrator = numbers[0] if numbers else None
                self._made[kinds] = MujocoMechanics(model, integrator)
            except ModelError:
                self._made[kinds] = None
        return self._made[kinds]

    def explain(self, difference: Difference, allowed: float) -> Attribution:
        """Return a minimal set of kinds with which the difference is within `allowed`.

        If there is none, there are no causes, and the remainder is above `allowed`.
        """
        needed = self._sufficient(difference, allowed)
        remainder = self._left(difference, needed)
        if not remainder <= allowed:
            return Attribution((), remainder)
        for kind in [kind for kind in self.kinds if kind in needed]:
            left = self._left(difference, needed - {kind})
            if left <= allowed:
                needed.remove(kind)
                remainder = left
        causes = [
            self._cause(kind, self._left(difference, needed - {kind}))
            for kind in self.kinds
            if kind in needed
        ]
        return Attribution(tuple(causes), remainder)

    def _sufficient(self, difference: Difference, allowed: float) -> set[str]:
        """Return kinds with which the difference is within `allowed`, or nearest to it.

        All kinds if they suffice. Otherwise a greedy search adds the most effective
        kind, one at a time.
        """
        everything = set(self.kinds)
        if self._left(difference, everything) <= allowed:
            return everything
        chosen: set[str] = set()
        left = self._left(difference, chosen)
        while not left <= allowed and len(chosen) < len(everything):
            tried = {
                kind: self._left(difference, chosen | {kind})
                for kind in self.kinds
                if kind not in chosen
            }
            best = min(tried, key=lambda kind: tried[kind])
            if not tried[best] < left:
                break
            chosen.add(best)
            left = tried[best]
        return chosen

    def _left(self, difference: Difference, kinds: set[str]) -> float:
        mechanics = self.matched(frozenset(kinds))
        return float("inf") if mechanics is None else difference(mechanics)

    def _cause(self, kind: str, left: float) -> Cause:
        differing = self._by_kind[kind]
        first = str(differing[0])
        more = len(differing) - 1
        text = first if not more else f"{first}; and {more} more"
        return Cause(kind, tuple(d.element for d in differing), text, left)
