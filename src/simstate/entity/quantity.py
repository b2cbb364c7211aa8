"""A quantity: one number of an entity, declared once with its whole contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from torch import Tensor

from simstate.attribute_docs import attribute_docs
from simstate.engine import FIELDS, Stage
from simstate.errors import InvalidInputError, ModelError, unknown_name

if TYPE_CHECKING:
    from simstate.entity.reader import EntityReader

Axes = Literal["w", "b", ""]
"""World, root link, or none that is common to the components."""

Size: TypeAlias = "str | int"

Compute: TypeAlias = "Callable[[EntityReader], Tensor]"

AXES_TEXT: dict[Axes, str] = {"w": "world", "b": "root link", "": "–"}


class Quantity:
    """A declared quantity: reads as a tensor, and carries its contract as data.

    Reading one brings the stage that it needs up to date, computes it once for each
    state, and shares the result among all its readers until the state moves on.
    """

    name: str
    owner: type

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
    ) -> None:
        self.compute = compute
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
        self.name = name
        self.owner = owner

    @property
    def doc(self) -> str:
        """The docstring below the declaration; "" if there is none to be read."""
        return attribute_docs(self.owner).get(self.name, "")

    @property
    def shape_text(self) -> str:
        """The symbolic shape, in words."""
        sizes = ", ".join(str(size) for size in ("num_envs", *self.shape))
        return f"({sizes},)" if not self.shape else f"({sizes})"

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
    def __get__(self, data: EntityReader, owner: type) -> Tensor: ...
    def __get__(self, data: EntityReader | None, owner: type) -> Quantity | Tensor:
        if data is None:
            return self
        if data.computed is not None:  # which has seen to what it reads
            data.computed.check_reads(self.name, self.stage, self.evaluates)
            token = data.fresh.tokens[self.stage]
        else:
            token = data.fresh.ensure(self.stage, f"{data.name}.data.{self.name}")
        if self.evaluates:
            token = data.fresh.tokens[Stage.STATE]
        memo = data.memo.get(self.name)
        if memo is not None:
            if not memo.is_live and memo.value._version != memo.version:
                del data.memo[self.name]
                raise InvalidInputError(self._written_message(data))
            if memo.token == token:
                return memo.value
        if data.computed is not None:
            return data.remember(self.name, token, self.compute(data))
        with data.computing(self):
            return data.remember(self.name, token, self.compute(data))

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

    def __set__(self, data: EntityReader, value: object) -> None:
        memo = data.memo.get(self.name)
        if memo is not None and memo.is_live and value is memo.value:
            return  # `data.joint_pos += 1` has already written in place
        data.memo.pop(self.name, None)
        raise InvalidInputError(self._written_message(data))

    def _written_message(self, data: EntityReader) -> str:
        return (
            f"{data.name}.data.{self.name} cannot be written this way: "
            f"{self.remedy.format(entity=data.name)}."
        )


def read_stage(name: str) -> Stage:
    """When a raw field is current: a state field always is."""
    field = FIELDS.get(name)
    if field is None:
        raise unknown_name("raw field", name, FIELDS)
    return Stage.STATE if field.is_state else field.stage
