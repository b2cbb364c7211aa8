"""A quantity: one declared value of an entity, with its whole contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from torch import Tensor

from simstate.base.errors import ModelError, unknown_name
from simstate.base.notebook import html_summary
from simstate.engine import FIELDS, Engine, Stage
from simstate.world.declared import Declared, DeclaredSet

if TYPE_CHECKING:
    from simstate.engine.core.reads import Read
    from simstate.entity.reader import EntityReader

Axes = Literal["w", "b", ""]
"""World, root link, or none that is common to the components."""

Size: TypeAlias = "str | int"

Compute: TypeAlias = "Callable[[EntityReader], Tensor]"

Compile: TypeAlias = "Callable[[EntityReader], Read | None]"
"""Computation in the compiled core where all worlds have the same parameters; None: the
formula is cheaper."""

AXES_TEXT: dict[Axes, str] = {"w": "world", "b": "root link", "": "–"}


class Quantity(Declared):
    """A declared quantity: reads as a tensor, and carries its contract as data.

    Reading one brings the stage that it needs up to date, computes it once for each
    state, and shares the result among all its readers until the state moves on. One
    that reads parameters of the model only is computed again after a write to one.
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
        is_view: bool = False,
        is_local: bool = False,
    ) -> None:
        computed = "it is computed from the state and has no writer"
        written = f"use {{entity}}.{writer}(…)" if writer else computed
        self.remedy = remedy or written
        """Alternative to assigning to it."""
        is_constant = bool(parameters) and not reads
        follows_others = not Engine.all_constants.isdisjoint(parameters)
        super().__init__(
            compute,
            unit=unit,
            shape=shape,
            stage=Stage.CONSTANT if is_constant else _stage_of(reads),
            refusal=f"{{label}} cannot be written this way: {self.remedy}.",
            when=when,
            evaluates=evaluates,
            is_view=is_view,
            needs=Stage.STATE if is_constant and not follows_others else None,
        )
        self.compiled = compiled
        """The same by the compiled core; None: it has no such formula."""
        self.is_local = is_local
        """True if it depends on no joint or mocap pose of another kinematic tree."""
        self.kind = kind
        self.subject = subject
        self.point = point
        self.axes: Axes = axes
        self.point_text = point_text
        """The point that it belongs to, in words."""
        self.axes_text = axes_text or AXES_TEXT[axes]
        """The axes that its components are along, in words."""
        self.reads = reads
        self.parameters = parameters
        """Model parameters that it depends on; live if they were expanded."""
        self.writer = writer
        """The method of Entity that writes it; "" if it is not state."""
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
        """Return the contract, for JSON."""
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

    def check_read_of(self, other: Quantity) -> None:
        """Raise if its computation reads a quantity that `reads` does not cover."""
        if other.evaluates and not self.evaluates:
            raise ModelError(
                f"Quantity {self.name!r} read {other.name!r}, which evaluates the "
                "dynamics: declare it with evaluates=True.",
                name=self.name,
            )
        if other.reads:
            self.check_read(other.name, other.stage)

    def check_read(self, name: str, stage: Stage) -> None:
        """Raise if its computation reads a value that `reads` does not cover."""
        if stage > self.stage or (self.stage == Stage.CONSTANT and not self.evaluates):
            raise ModelError(
                f"Quantity {self.name!r} read {name!r}, which is computed at the stage "
                f"{stage.name.lower()}, but its own reads={self.reads} come no further "
                f"than {self.stage.name.lower()}, so that it could be stale. Add the "
                "raw fields that it depends on to `reads`.",
                name=self.name,
            )


class QuantitySet(DeclaredSet["EntityReader"]):
    """The quantities of one entity as attributes, and nothing else."""

    quantities: ClassVar[dict[str, Quantity]] = {}
    """The contract of every quantity, by name."""

    def __init_subclass__(cls) -> None:
        own = {n: q for n, q in vars(cls).items() if isinstance(q, Quantity)}
        cls.quantities = {**cls.quantities, **own}

    def __init__(self, reader: EntityReader) -> None:
        self._reader = reader
        reader.quantities = self.quantities

    def __repr__(self) -> str:
        count = len(self.quantities)
        return f"{type(self).__name__}({self._reader.name!r}, {count} quantities)"

    def _repr_html_(self) -> str:
        head = ("name", "shape", "unit", "point", "axes", "")
        rows = [
            (q.name, "×".join(map(str, ("num_envs", *q.shape))), q.unit, q.point_text,
             q.axes_text, q.doc)
            for q in self.quantities.values()
        ]  # fmt: skip
        return html_summary(repr(self), head, rows)

    def __dir__(self) -> list[str]:
        return sorted(self.quantities)

    def __setattr__(self, name: str, value: object) -> None:
        if name != "_reader" and name not in self.quantities:
            raise unknown_name("quantity", name, self.quantities)
        object.__setattr__(self, name, value)

    def read(self, name: str) -> Tensor:
        """Return a quantity by name."""
        return self._reader.quantity(name).read(self._reader)


def read_stage(name: str) -> Stage:
    """Return the stage at which a raw field is current: a state field always is."""
    field = FIELDS.get(name)
    if field is None:
        raise unknown_name("raw field", name, FIELDS)
    return Stage.STATE if field.is_state else field.stage


def _stage_of(reads: tuple[str, ...]) -> Stage:
    return max((read_stage(name) for name in reads), default=Stage.STATE)
