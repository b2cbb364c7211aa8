"""Reading: a number of a sensor, declared once with its contract.

What quantities are to an entity, readings are to contact sensors, rays and dynamics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, overload

from torch import Tensor

from simstate.attribute_docs import Declared
from simstate.engine import OneTorchThread, Stage, lasting
from simstate.errors import InvalidInputError, unknown_name
from simstate.world.worlds import Worlds

LAST_EVALUATION = "last dynamics evaluation"
EVALUATED = "dynamics of the present state, evaluated when read"


class _Kept(NamedTuple):
    """A computed value, the state that it belongs to, and its version then."""

    token: int
    value: Tensor
    version: int


class Reading(Declared):
    """A declared number: reads as a tensor, and carries its contract as data.

    Reading one brings the stage that it needs up to date, and computes it once for each
    state. What is `live` lies in the ledger and is not computed.

    Args:
        compute: gives the value, called with the object that it is an attribute of.
        unit: of its components.
        shape: after num_envs, in words and numbers.
        stage: what must be fresh for it.
        point: the point that it belongs to, in words.
        axes: the axes that its components are along, in words.
        when: the instant that it describes, in words.
        live: whether it is memory of the ledger, that may be written in place.
        evaluates: whether reading it evaluates the dynamics, so that all inputs count.
    """

    def __init__(
        self,
        compute: Callable[[Any], Tensor],
        *,
        unit: str,
        shape: tuple[str | int, ...],
        stage: Stage,
        point: str = "–",
        axes: str = "–",
        when: str = "now",
        live: bool = False,
        evaluates: bool = False,
    ) -> None:
        self.compute = compute
        self.unit = unit
        self.shape = shape
        self.stage = stage
        self.point = point
        self.axes = axes
        self.when = when
        self.live = live
        self.evaluates = evaluates

    def to_dict(self) -> dict[str, object]:
        """The contract, for JSON."""
        return {
            "name": self.name,
            "point": self.point,
            "axes": self.axes,
            "unit": self.unit,
            "shape": ["num_envs", *self.shape],
            "stage": self.stage.name.lower(),
            "when": self.when,
            "doc": self.doc,
        }

    @overload
    def __get__(self, readings: None, owner: type) -> Reading: ...
    @overload
    def __get__(self, readings: Readings, owner: type) -> Tensor: ...
    def __get__(self, readings: Readings | None, owner: type) -> Reading | Tensor:
        if readings is None:
            return self
        inner = readings._reading
        token = inner.ensure(self.stage, self.name)
        if self.live:
            return self.compute(readings)
        if self.evaluates:
            token = inner.worlds.fresh.tokens[Stage.STATE]
        return inner.keep(self.name, token, lambda: self.compute(readings))

    def __set__(self, readings: Readings, value: object) -> None:
        inner = readings._reading
        if self.live:
            if value is self.compute(readings):
                return  # `sensor.air_time += 1` has already written in place
            raise InvalidInputError(
                f"{inner.label}.{self.name} cannot be replaced; write into it: "
                f"{inner.label}.{self.name}[:] = …"
            )
        raise InvalidInputError(inner.written(self.name))


class Readings:
    """The readings of one thing as attributes; what is computed is kept for a state."""

    readings: ClassVar[dict[str, Reading]] = {}
    """The contract of every reading, by name."""

    def __init_subclass__(cls) -> None:
        own = {n: r for n, r in vars(cls).items() if isinstance(r, Reading)}
        cls.readings = {**cls.readings, **own}

    def __init__(self, worlds: Worlds, label: str) -> None:
        self._reading = ReadingParts(worlds, label)

    def read(self, name: str) -> Tensor:
        """A reading by name."""
        if name not in self.readings:
            label = self._reading.label
            raise unknown_name(f"reading of {label}", name, self.readings)
        return getattr(self, name)


class ReadingParts:
    """What readings are computed from, and what they have computed for a state."""

    def __init__(self, worlds: Worlds, label: str) -> None:
        self.worlds = worlds
        self.label = label
        """How the thing is called in messages."""
        self._kept: dict[str, _Kept] = {}

    def ensure(self, stage: Stage, name: str) -> int:
        """Bring a stage up to date for a reading; returns the stage's token."""
        return self.worlds.fresh.ensure(stage, f"{self.label}.{name}")

    def keep(self, name: str, token: int, compute: Callable[[], Tensor]) -> Tensor:
        """What was computed for the state that `token` stands for, or is now."""
        kept = self._kept.get(name)
        if kept is not None:
            if kept.value._version != kept.version:
                del self._kept[name]
                raise InvalidInputError(self.written(name))
            if kept.token == token:
                return kept.value
        with lasting(), OneTorchThread():
            value = compute()
        self._kept[name] = _Kept(token, value, value._version)
        return value

    def written(self, name: str) -> str:
        """What is said of a write to something computed."""
        return (
            f"{self.label}.{name} was written to, but it is computed from the state. "
            f"Work on a copy, such as {self.label}.{name}.clone()."
        )
