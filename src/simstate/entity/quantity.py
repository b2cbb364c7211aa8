"""A quantity: one number of an entity, declared once with its whole contract."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, overload

from torch import Tensor

from simstate.attribute_docs import Declared
from simstate.engine import FIELDS, Stage
from simstate.errors import InvalidInputError, ModelError, unknown_name

if TYPE_CHECKING:
    from simstate.engine.core.reads import Read
    from simstate.entity.reader import EntityReader

Axes = Literal["w", "b", ""]
"""World, root link, or none that is common to the components."""

Size: TypeAlias = "str | int"

Compute: TypeAlias = "Callable[[EntityReader], Tensor]"

Compile: TypeAlias = "Callable[[EntityReader], Read | None]"
"""What the compiled core is to compute, where all worlds have the same parameters;
None: nothing, the formula is cheaper."""

AXES_TEXT: dict[Axes, str] = {"w": "world", "b": "root link", "": "–"}


class Quantity(Declared):
    """A declared quantity: reads as a tensor, and carries its contract as data.

    Reading one brings the stage that it needs up to date, computes it once for each
    state, and shares the result among all its readers until the state moves on.
    """

    def __init__(
        self,
        compute: Compute,
        *,
        kind: str,
        unit: str,
        shape: tuple[Size, ...],
        reads: tuple[str, ...],
        subject: str = "",
        point: str = "",
        axes: Axes = "",
        axes_in_name: bool = True,
        point_text: str = "–",
        axes_text: str = "",
        parameters: tuple[str, ...] = (),
        writer: str = "",
        remedy: str = "",
        when: str = "now",
        evaluates: bool = False,
        compiled: Compile | None = None,
    ) -> None:
        self.compute = compute
        self.compiled = compiled
        """The same by the compiled core; None: it has no such formula."""
        self.kind = kind
        self.subject = subject
        self.point = point
        self.axes: Axes = axes
        self.point_text = point_text
        """The point that it belongs to, in words."""
        self.axes_text = axes_text or AXES_TEXT[axes]
        """The axes that its components are along, in words."""
        self.unit = unit
        self.shape = shape
        self.reads = reads
        self.parameters = parameters
        """Model parameters that it depends on; live if they were expanded."""
        self.writer = writer
        """The method of Entity that writes it; "" if it is not state."""
        computed = "it is computed from the state and has no writer of its own"
        written = f"use {{entity}}.{writer}(…)" if writer else computed
        self.remedy = remedy or written
        """What to do instead of assigning to it."""
        self.when = when
        """The instant that it describes, in words."""
        self.evaluates = evaluates
        """Whether reading it evaluates the dynamics, so that all inputs count."""
        self.stage = max((read_stage(name) for name in reads), default=Stage.STATE)
        suffix = axes if axes_in_name else ""
        parts = (subject, point, kind, suffix)
        self.expected_name = "_".join(part for part in parts if part)

    def __set_name__(self, owner: type, name: str) -> None:
        if name != self.expected_name:
            raise ModelError(
                f"Quantity {name!r} is declared as {self.expected_name!r}: the name "
                "and the contract disagree."
            )
        super().__set_name__(owner, name)

    def to_dict(self) -> dict[str, object]:
        """The contract, for JSON."""
        return {
            "name": self.name,
            "subject": self.subject,
            "point": self.point_text,
            "axes": self.axes_text,
            "unit": self.unit,
            "shape": ["num_envs", *self.shape],
            "stage": self.stage.name.lower(),
            "when": self.when,
            "reads": list(self.reads),
            "parameters": list(self.parameters),
            "writer": self.writer,
            "doc": self.doc,
        }

    @overload
    def __get__(self, data: None, owner: type) -> Quantity: ...
    @overload
    def __get__(self, data: QuantitySet, owner: type) -> Tensor: ...
    def __get__(self, data: QuantitySet | None, owner: type) -> Quantity | Tensor:
        return self if data is None else self.read(data._reader)  # pyright: ignore[reportPrivateUsage]

    def read(self, reader: EntityReader) -> Tensor:
        """Its value in the present state, as fresh as the simulation's rule says."""
        if reader.computed is not None:
            reader.forget_interrupted()
        if reader.computed is not None:  # which has seen to what it reads
            reader.computed.check_reads(self.name, self.stage, self.evaluates)
            token = reader.fresh.tokens[self.stage]
        else:
            token = reader.fresh.ensure(self.stage, f"{reader.name}.data.{self.name}")
        if self.evaluates:
            token = reader.fresh.tokens[Stage.STATE]
        memo = reader.memo.get(self.name)
        if memo is not None:
            if not memo.is_live and memo.value._version != memo.version:
                del reader.memo[self.name]
                raise InvalidInputError(self._written_message(reader))
            if memo.token == token:
                return memo.value
        if reader.computed is not None:
            return reader.compute(self, token)
        try:
            reader.begin(self, sys._getframe())  # pyright: ignore[reportPrivateUsage]
            return reader.compute(self, token)
        finally:
            reader.computed = None

    def check_reads(self, name: str, stage: Stage, evaluates: bool = False) -> None:
        """Raise if computing this one reads what its declaration does not cover."""
        if evaluates and not self.evaluates:
            raise ModelError(
                f"Quantity {self.name!r} read {name!r}, which evaluates the dynamics: "
                "declare it with evaluates=True."
            )
        if stage > self.stage:
            raise ModelError(
                f"Quantity {self.name!r} read {name!r}, which is computed at the stage "
                f"{stage.name.lower()}, but its own reads={self.reads} come no further "
                f"than {self.stage.name.lower()}, so that it could be stale. Add the "
                "raw fields that it depends on to `reads`."
            )

    def __set__(self, data: QuantitySet, value: object) -> None:
        reader = data._reader  # pyright: ignore[reportPrivateUsage]
        memo = reader.memo.get(self.name)
        if memo is not None and memo.is_live and value is memo.value:
            return  # `data.joint_pos += 1` has already written in place
        reader.memo.pop(self.name, None)
        raise InvalidInputError(self._written_message(reader))

    def _written_message(self, reader: EntityReader) -> str:
        return (
            f"{reader.name}.data.{self.name} cannot be written this way: "
            f"{self.remedy.format(entity=reader.name)}."
        )


class QuantitySet:
    """The quantities of one entity as attributes, and nothing else."""

    quantities: ClassVar[dict[str, Quantity]] = {}
    """The contract of every quantity, by name."""

    def __init_subclass__(cls) -> None:
        own = {n: q for n, q in vars(cls).items() if isinstance(q, Quantity)}
        cls.quantities = {**cls.quantities, **own}

    def __init__(self, reader: EntityReader) -> None:
        self._reader = reader
        reader.quantities = self.quantities

    def __dir__(self) -> list[str]:
        return sorted(self.quantities)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "_reader" and name not in self.quantities:
            raise unknown_name("quantity", name, self.quantities)
        object.__setattr__(self, name, value)

    def read(self, name: str) -> Tensor:
        """A quantity by name."""
        return self._reader.read(name)


def read_stage(name: str) -> Stage:
    """When a raw field is current: a state field always is."""
    field = FIELDS.get(name)
    if field is None:
        raise unknown_name("raw field", name, FIELDS)
    return Stage.STATE if field.is_state else field.stage
