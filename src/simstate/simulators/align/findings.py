"""Results of an alignment: data, as JSON and as text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from simstate.base.errors import unknown_name
from simstate.simulators.capabilities import Feature, Missing
from simstate.simulators.parameters import ParameterDifference

Verdict = Literal[
    "agrees", "explained", "unexplained", "not reported", "not applicable"
]


@dataclass(frozen=True)
class Cause:
    """Why a simulator differs, proven by matching it."""

    what: str
    """A kind of parameter, or a term that is solved in another way."""
    elements: tuple[str, ...]
    """The elements that it concerns; empty for a term."""
    text: str
    """One line for a reader."""
    left: float
    """The difference that is left when all causes but this one are matched."""


@dataclass(frozen=True)
class Comparison:
    """One question that was asked of MuJoCo and of a simulator."""

    quantity: str
    unit: str
    verdict: Verdict
    scale: float = 0.0
    """Largest value of MuJoCo."""
    difference: float = 0.0
    """Largest difference."""
    causes: tuple[Cause, ...] = ()
    """Causes that explain it; each is necessary."""
    remainder: float = 0.0
    """Largest difference with the causes matched."""
    allowed: float = 0.0
    """Difference that counts as none, from the precision of the values."""


@dataclass(frozen=True)
class RunGap:
    """Two runs from one state with the same controls."""

    time: tuple[float, ...]
    """[s]"""
    joints: tuple[float, ...]
    """Largest difference of a 1-DoF joint's position [rad or m] at each time."""
    bodies: tuple[float, ...]
    """Largest difference of a body's position [m] at each time."""
    energy: tuple[float, ...]
    """Kinetic and potential energy of MuJoCo's run [J], by MuJoCo's masses."""
    their_energy: tuple[float, ...]
    """The same of the simulator's run."""
    ended: str = ""
    """Why the simulator's run ended before its time; empty: it did not."""

    def horizon(self, bound: float) -> float | None:
        """When a body is first further off than `bound` [m]; None: never."""
        for time, error in zip(self.time, self.bodies, strict=True):
            if not error <= bound:
                return time
        return None


@dataclass(frozen=True)
class SimulatorAlignment:
    """Agreement of one simulator with MuJoCo on one scene."""

    simulator: str
    title: str
    parameters: tuple[ParameterDifference, ...]
    """Differences of the models themselves."""
    not_reported: tuple[str, ...]
    """Kinds of parameters that the simulator does not report."""
    missing: dict[Feature, Missing]
    """Features of the scene that the simulator declares as unsupported."""
    comparisons: tuple[Comparison, ...]
    trajectory: RunGap | None
    """As the two are."""
    matched: RunGap | None
    """With MuJoCo's parameters changed to the simulator's."""
    notes: tuple[str, ...] = ()
    """Messages of the simulator when it read the model."""

    @property
    def causes(self) -> dict[str, Cause]:
        """Every cause by its subject, each with its largest effect."""
        found: dict[str, Cause] = {}
        for comparison in self.comparisons:
            for cause in comparison.causes:
                if cause.what not in found or cause.left > found[cause.what].left:
                    found[cause.what] = cause
        return found

    @property
    def unexplained(self) -> list[Comparison]:
        """Differences without a proven cause."""
        return [c for c in self.comparisons if c.verdict == "unexplained"]

    def comparison(self, quantity: str) -> Comparison:
        """The comparison of a quantity."""
        found = {c.quantity: c for c in self.comparisons}
        if quantity not in found:
            raise unknown_name("quantity", quantity, found)
        return found[quantity]


@dataclass(frozen=True)
class Alignment:
    """Agreement of simulators with MuJoCo on one scene."""

    model: str
    simulators: tuple[SimulatorAlignment, ...]
    seed: int
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Simulators that do not take the scene, and what they say."""

    def __getitem__(self, simulator: str) -> SimulatorAlignment:
        found = {s.simulator: s for s in self.simulators}
        if simulator not in found:
            raise unknown_name("simulator of this alignment", simulator, found)
        return found[simulator]

    @property
    def explained(self) -> bool:
        """True if every difference has a proven cause."""
        return not any(simulator.unexplained for simulator in self.simulators)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, strings, lists and dictionaries, for JSON."""
        return _plain(dataclasses.asdict(self))

    def __str__(self) -> str:
        from simstate.simulators.align.tables import as_text

        return as_text(self)


def _plain(value: Any) -> Any:
    """Numbers that JSON knows: not finite ones become strings."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {str(key): _plain(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value
