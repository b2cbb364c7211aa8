"""Results of an alignment as data."""

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
    """A cause of a difference, proven by matching it."""

    what: str
    """A kind of parameter, or an effect that is solved in another way."""
    elements: tuple[str, ...]
    """The elements concerned; empty for an effect."""
    text: str
    """One line of text."""
    left: float
    """Difference with all causes but this one matched."""


@dataclass(frozen=True)
class Comparison:
    """A quantity evaluated in MuJoCo and in another simulator."""

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
    """Tolerance from the precision of the values."""


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
    """Error that ended the simulator's run early; empty if none."""

    def horizon(self, bound: float) -> float | None:
        """Return when a body is first off by more than `bound` [m]; None: never."""
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
    """With unchanged parameters."""
    matched: RunGap | None
    """With MuJoCo's parameters changed to the simulator's."""
    notes: tuple[str, ...] = ()
    """Messages of the simulator's parser."""

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
        """Return the comparison of a quantity."""
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
    """Simulators that reject the scene, with their reasons."""

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
        """Return all data as numbers, strings, lists and dictionaries, for JSON."""
        return _plain(dataclasses.asdict(self))

    def __str__(self) -> str:
        from simstate.simulators.align.tables import as_text

        return as_text(self)


def _plain(value: Any) -> Any:
    """Replace values that are not finite by strings, for JSON."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {str(key): _plain(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value
