"""Slot: one tensor of a world, and its contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import Index, Selection
from simstate.engine import Stage

Kind = Literal["state", "input", "parameter", "setting", "memory"]
"""State that moves with the physics; inputs from outside (controls, forces, mocap
poses, targets); expanded model fields; defaults and biases; and all other memory of a
world (clocks, sums, histories, commands, random streams, a user's own)."""

Owner = Literal["sim", "env"]

Trees: TypeAlias = "frozenset[int] | None"
"""Kinematic trees by the ids of their root bodies; None: any."""

Reset: TypeAlias = (
    "float | Tensor | Sequence[float] | Callable[[Tensor], Tensor] | None"
)
"""Values that a reset writes: a number, one row or one for each world; a function of
the ids of the worlds that are reset; None: the value is kept."""


@dataclass(eq=False, kw_only=True)
class Slot:
    """One tensor of the ledger, and its contract."""

    name: str
    kind: Kind
    tensor: Tensor
    """The live values; never replaced. Shape (num_envs, …), or any if shared."""
    owner: Owner = "sim"
    shared: bool = False
    """True if all worlds share it: curricula, weights, a global counter."""
    stage: Stage | None = None
    """From where on a write makes derived values stale; None: nothing reads it."""
    moves: bool = False
    """True if a step changes it."""
    initial: Tensor | None = None
    """The value at the start; shape (1 or num_envs, …), or that of a shared one."""
    reset: Literal["initial", "keep"] | Callable[[Tensor], Tensor] = "keep"
    """Effect of a reset of some worlds."""
    users_own: bool = False
    """True if a user's code created it with `memory`."""
    from_snapshot: bool = False
    """True if a snapshot created it and its owner has not requested it yet."""
    optional: bool = False
    """True if a snapshot may lack it, which then means `initial`."""
    unit: str = ""
    axes: str = ""
    companion: Slot | None = None
    """A slot that follows what a user writes; see `follow_write`."""
    check: Callable[[Tensor, Selection | None, Index | None], None] | None = None
    """Raises at values that no world may have, whoever writes them; shape (n, …), of
    these worlds, None: of all."""
    computed: bool = False
    """True if the engine computes it from parameters unless it is written."""

    def follow_write(self, companion: Slot, rows: Selection | None, late: bool) -> None:
        """Record in the companion that a user wrote to some worlds; None: any.

        A companion of booleans marks them. Another one gets the values, unless `late`:
        those of an action within a step are not what a reset restores.
        """
        index = slice(None) if rows is None else rows.index
        if companion.tensor.dtype == torch.bool:
            companion.tensor.data[index] = True
        elif not late:
            companion.tensor.data[index] = self.tensor[index]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one world's values, or of the whole if it is shared."""
        return tuple(self.tensor.shape if self.shared else self.tensor.shape[1:])

    @cached_property
    def is_parameter(self) -> bool:
        """True for a parameter or a setting: quantities may depend on nothing else."""
        return self.kind in ("parameter", "setting")

    @cached_property
    def array(self) -> np.ndarray[Any, Any] | None:
        """Memory of the live values, whose writes are not counted; None on a device.

        NumPy's calls cost less than torch's, which tells for few worlds.
        """
        memory = self.tensor.data
        return memory.numpy() if memory.device.type == "cpu" else None

    @cached_property
    def label(self) -> str:
        """Name in messages: the expression by which a user accesses it."""
        group, _, rest = self.name.partition("/")
        if not rest:
            inner = "" if self.kind == "memory" else "data."
            return f"sim.{inner}{self.name}"
        if group == "model":
            return f'sim.expand("{rest}")'
        if group == "entity":
            entity, _, name = rest.rpartition("/")
            return f"{entity}.data.{name}"
        if group == "parameter":
            owner, _, name = rest.rpartition("/")
            return f"{name} of {owner}"
        if group == "process":
            return f"the value of process {rest!r}"
        return f"slot {self.name!r}"

    def initial_of(self, rows: Selection) -> Tensor | None:
        """Return the initial values of some worlds; shape (n or 1, …)."""
        initial = self.initial
        if initial is None or self.shared or initial.shape[0] == 1:
            return initial
        return initial[rows.index]

    @property
    def initial_row(self) -> Tensor:
        """The initial values of the first world; shape (…)."""
        assert self.initial is not None
        return self.initial[0]

    def describe(self) -> dict[str, Any]:
        """Return the contract, for JSON."""
        return {
            "owner": self.owner,
            "kind": self.kind,
            "shared": self.shared,
            "shape": list(self.shape),
            "dtype": str(self.tensor.dtype).removeprefix("torch."),
            "unit": self.unit,
            "axes": self.axes,
            **({"reset": self._described_reset()} if self.users_own else {}),
        }

    def _described_reset(self) -> Any:
        """Return the values that a reset writes: the row, "keep", or "function"."""
        if callable(self.reset):
            return "function"
        if self.reset == "keep" or self.initial is None:
            return "keep"
        return self.initial.cpu().numpy().tolist()


class Write(NamedTuple):
    """Values for some columns of a slot in some worlds; the rows of `values` fit."""

    name: str
    rows: Selection
    columns: Index | None
    values: Tensor


def rows_for(
    name: str,
    value: object,
    count: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Return a value for `count` worlds: a number, one row, or a row for each of them.

    `shape` is that of one world's values. The result has shape (1 or count, *shape).
    """
    try:
        exact = torch.as_tensor(value, device=device)  # pyright: ignore
        if exact.is_complex():
            raise TypeError
        given = exact.detach()
        if given.dtype != dtype:
            given = given.to(dtype)
        holds = dtype.is_floating_point or bool((given == exact).all())
        if holds and given.ndim <= len(shape):
            return given.expand(1, *shape).clone()
        if holds and given.shape[0] in (1, count):
            return given.expand(given.shape[0], *shape).clone()
    except (RuntimeError, TypeError, ValueError):
        given, holds = value, True
    if not holds:
        raise InvalidInputError(
            f"The value at reset of {name!r} is {value!r}, which its {dtype} "
            "cannot hold.",
            name=name,
        )
    got = tuple(given.shape) if isinstance(given, Tensor) else repr(value)
    raise ShapeError(
        f"The value at reset of {name!r} must be a number, or have shape {shape} or "
        f"{(count, *shape)}; got {got}.",
        name=name,
        shape=given.shape if isinstance(given, Tensor) else None,
    )
