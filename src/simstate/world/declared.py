"""Declared: every value that can be read, with its contract and its computation.

A declaration is a class attribute with a docstring below it. Reading it brings the
stage that it needs up to date, and computes it once for each state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, overload

from torch import Tensor

from simstate.base.attribute_docs import attribute_docs
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine import OneTorchThread, Stage, lasting
from simstate.world.freshness import ReadOwner
from simstate.world.worlds import Worlds

LAST_EVALUATION = "last dynamics evaluation"
EVALUATED = "dynamics of the present state, evaluated when read"

T = TypeVar("T")
R = TypeVar("R", bound="Reader")


class Memo(NamedTuple):
    """A computed value and the state that it belongs to."""

    token: int
    """The token of freshness that the value was computed for."""
    value: Any
    version: int | None
    """Torch's count of writes then; None: live memory, whose writes are watched."""


class Declared:
    """A value that is declared once: its contract, and how it is computed.

    Args:
        compute: returns the value; called with what its reader reads from.
        unit: the unit of its components.
        shape: its shape after num_envs, in words and numbers.
        stage: the stage at which it is current.
        refusal: the error for a write, with {label} and {entity}.
        when: the instant that it describes, in words.
        evaluates: True if reading it evaluates the dynamics, so that all inputs count.
        is_view: True if, where it is live memory, it is the same view in every state.
        needs: the stage that reading it brings up to date; None: `stage`.
    """

    name: str
    owner: type

    def __init__(
        self,
        compute: Callable[[Any], Tensor],
        *,
        unit: str,
        shape: tuple[str | int, ...],
        stage: Stage,
        refusal: str,
        when: str = "now",
        evaluates: bool = False,
        is_view: bool = False,
        needs: Stage | None = None,
    ) -> None:
        self.compute = compute
        self.unit = unit
        self.shape = shape
        self.stage = stage
        self.when = when
        self.evaluates = evaluates
        self.is_view = is_view
        self._refusal = refusal
        self.needs = stage if needs is None else needs
        """The stage that reading it brings up to date."""
        self.follows = Stage.STATE if evaluates else stage
        """The stage whose token changes when the value may."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.owner = owner

    @property
    def doc(self) -> str:
        """The docstring below the declaration; "" if it cannot be read."""
        return attribute_docs(self.owner).get(self.name, "")

    @property
    def shape_text(self) -> str:
        """The symbolic shape, in words."""
        sizes = ", ".join(str(size) for size in ("num_envs", *self.shape))
        return f"({sizes},)" if not self.shape else f"({sizes})"

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: DeclaredSet[Any], kind: type) -> Tensor: ...
    def __get__(self, owner: DeclaredSet[Any] | None, kind: type) -> Self | Tensor:
        return self if owner is None else self.read(owner._reader)  # pyright: ignore[reportPrivateUsage]

    def __set__(self, owner: DeclaredSet[Any], value: object) -> None:
        reader = owner._reader  # pyright: ignore[reportPrivateUsage]
        memo = reader.memo.get(self.name)
        if memo is None or memo.version is not None or memo.value is not value:
            raise self.written(reader)
        # `data.joint_pos += 1` has already written in place.

    def read(self, reader: Reader) -> Tensor:
        """Return the value at the current state, as fresh as the mode demands."""
        reader.fresh.ensure(self.needs, reader, self.name)
        return self.current(reader)

    def current(self, reader: Reader) -> Tensor:
        """Return the value; the caller has brought the stage up to date."""
        token = reader.fresh.tokens[self.follows]
        memo = reader.memo.get(self.name)
        if memo is not None:
            known, value, version = memo
            if version is None:
                if known == token or (self.is_view and not value.requires_grad):
                    return value
            elif value._version != version:
                raise self.written(reader)
            elif known == token:
                return value
            del reader.memo[self.name], memo, value  # its memory may be used again
        return reader.compute(self, token)

    def written(self, reader: Reader) -> InvalidInputError:
        """Return the error for a write to the value, and forget what was written."""
        reader.memo.clear()  # others may be views of the same memory
        label = reader.label_of(self.name)
        text = self._refusal.format(label=label, entity=reader.name)
        return InvalidInputError(text, name=self.name)


class Reader(ReadOwner):
    """The computation of an object's declared values, and their memo.

    Args:
        worlds: the components that values are read from.
        name: the name of the object in error messages.
    """

    def __init__(self, worlds: Worlds, name: str) -> None:
        self.worlds = worlds
        self.fresh = worlds.fresh
        self.name = name
        self.memo: dict[str, Memo] = {}

    def label_of(self, name: str) -> str:
        """Return the name of a value in error messages."""
        return f"{self.name}.{name}"

    @abstractmethod
    def compute(self, declared: Declared, token: int) -> Tensor:
        """Compute a value for the state of a token, and memoise it.

        Not in inference mode: a memo outlives the caller's, in which it could not be
        used.
        """

    def compute_array(self, declared: Declared) -> Any:
        """Return a value in new memory as an array; None: `compute` has to do it."""
        del declared
        return None

    def memoise(self, name: str, token: int, value: Tensor) -> Tensor:
        """Memoise a value for the state of a token, and return it."""
        version = None if self.fresh.is_live(value) else value._version
        self.memo[name] = Memo(token, value, version)
        return value

    def shared(self, name: str, stage: Stage, compute: Callable[[], T]) -> T:
        """Return an intermediate value of several computations, once for each state."""
        token = self.fresh.tokens[stage]
        memo = self.memo.get(name)
        if memo is None or memo.token != token:
            memo = self.memo[name] = Memo(token, compute(), None)
        return memo.value


class DeclaredSet(Generic[R]):
    """An object whose declared values are attributes."""

    _reader: R


class Reading(Declared):
    """A declared value of a sensor or of dynamics.

    Args:
        compute: returns the value; called with the object that it is an attribute of.
        unit: the unit of its components.
        shape: its shape after num_envs, in words and numbers.
        stage: the stage at which it is current.
        point: the point that it belongs to, in words.
        axes: the axes that its components are along, in words.
        when: the instant that it describes, in words.
        live: True if it is memory of the ledger, which may be written in place.
        evaluates: True if reading it evaluates the dynamics, so that all inputs count.
        refusal: the error for a write, with {label}; "": the usual one.
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
        refusal: str = "",
    ) -> None:
        usual = (
            "{label} cannot be replaced; write into it: {label}[:] = …"
            if live
            else "{label} was written to, but it is computed from the state. "
            "Work on a copy, such as {label}.clone()."
        )
        super().__init__(
            compute, unit=unit, shape=shape, stage=stage, refusal=refusal or usual,
            when=when, evaluates=evaluates, is_view=live,
        )  # fmt: skip
        self.point = point
        self.axes = axes
        self.live = live

    def to_dict(self) -> dict[str, object]:
        """Return the contract, for JSON."""
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


class ReadingReader(Reader):
    """The computation of the readings of one object."""

    def __init__(self, worlds: Worlds, label: str, source: Readings) -> None:
        super().__init__(worlds, label)
        self._source = source

    def compute(self, declared: Declared, token: int) -> Tensor:
        """Compute a reading for the state of a token, and memoise it."""
        with lasting(), OneTorchThread():
            value = declared.compute(self._source)
        return self.memoise(declared.name, token, value)


class Readings(DeclaredSet["ReadingReader"]):
    """The readings of one object as attributes."""

    readings: ClassVar[dict[str, Reading]] = {}
    """The contract of every reading, by name."""

    def __init_subclass__(cls) -> None:
        own = {n: r for n, r in vars(cls).items() if isinstance(r, Reading)}
        cls.readings = {**cls.readings, **own}

    def __init__(self, worlds: Worlds, label: str) -> None:
        self._reader = ReadingReader(worlds, label, self)

    def read(self, name: str) -> Tensor:
        """Return a reading by name."""
        if name not in self.readings:
            label = self._reader.name
            raise unknown_name(f"reading of {label}", name, self.readings)
        return self.readings[name].read(self._reader)
