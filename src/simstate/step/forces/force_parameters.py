"""Parameters of force models and processes: values by name, one for each world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from simstate.base.checks import (
    FINITE,
    Limits,
    argument,
    as_array,
    has_shape,
    report_rounding,
)
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.ids import Values
from simstate.engine import Stage
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

Numbers: TypeAlias = "Values | float"
"""A number or an array: shared by all worlds, or with a row for each world."""

OfTime: TypeAlias = Callable[[Tensor], Tensor]
"""A function of the time of each world [s], shape (num_envs,)."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its shape in one world, its unit and its range."""

    name: str
    shape: tuple[int, ...]
    unit: str = ""
    limits: Limits = FINITE

    def read(self, values: Numbers, owner: str) -> Tensor:
        """Return the checked values; float64, shape `shape` or (worlds, *shape)."""
        what = f"{self.name} of {owner}"
        tensor = numbers(values, what)
        rank = len(self.shape)
        tail = tuple(tensor.shape[tensor.ndim - rank :])
        if tensor.ndim not in (rank, rank + 1) or tail != self.shape:
            raise ShapeError(
                f"{what} must have shape {self.shape}, or a row for each world, "
                f"(num_envs, {', '.join(map(str, self.shape))}); got "
                f"{tuple(tensor.shape)}."
                if rank
                else f"{what} must be a number, or have shape (num_envs,), got "
                f"{tuple(tensor.shape)}.",
                name=self.name,
                shape=tensor.shape,
            )
        return self.limits.check(tensor, what)


class Parameters(Mapping[str, Tensor]):
    """The parameters of one model, by name: plain float64 tensors.

    Before the model is added to a simulation they have the shape that was given;
    afterwards each has a row for every world, (num_envs, …), which may be written.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._declared: dict[str, Parameter] = {}
        self._values: dict[str, Tensor] = {}
        self._sim: SteppingHost | None = None

    def declare(
        self,
        name: str,
        values: Numbers,
        *shape: int,
        unit: str = "",
        more_than: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Tensor:
        """Add a parameter with its values; raise if they are out of range."""
        limits = Limits(more_than, at_least, at_most=at_most, unit=unit)
        parameter = Parameter(name, shape, unit, limits)
        self._values[name] = parameter.read(values, self._owner)
        self._declared[name] = parameter
        return self._values[name]

    def attach(self, sim: SteppingHost) -> None:
        """Give every world a row of each parameter, in the simulation's ledger."""
        if self._sim is sim:
            return
        if self._sim is not None:
            raise InvalidInputError(
                f"The parameters of {self._owner} already belong to another "
                "simulation: create one for each.",
                name="parameters",
            )
        spread: dict[str, Tensor] = {}
        for name, values in self._values.items():
            shape = self._declared[name].shape
            rows = values if values.ndim > len(shape) else values[None]
            if rows.shape[0] not in (1, sim.num_envs):
                raise ShapeError(
                    f"{name} of {self._owner} has {rows.shape[0]} rows, the simulation "
                    f"{sim.num_envs} worlds: give one row for each, or one for all.",
                    name=name,
                    shape=rows.shape,
                )
            spread[name] = rows.to(sim.device)
        key = self._free_key(sim)
        for name, rows in spread.items():
            declared = self._declared[name]
            slot = worlds_of(sim).ledger.memory(
                f"parameter/{key}/{name}", declared.shape, torch.float64, None,
                initial=rows, kind="parameter", stage=Stage.ACCELERATION,
                optional=True, unit=declared.unit,
            )  # fmt: skip
            self._values[name] = slot.tensor
        self._sim = sim

    def _free_key(self, sim: SteppingHost) -> str:
        """Return the prefix of its slots: the owner, numbered from the second on."""
        taken = {
            slot.name.split("/")[1]
            for slot in worlds_of(sim).ledger.of(("sim",))
            if slot.name.startswith("parameter/")
        }
        key, count = self._owner, 1
        while key in taken:
            count += 1
            key = f"{self._owner} {count}"
        return key

    def __getitem__(self, name: str) -> Tensor:
        """A parameter's values; (num_envs, …) once the model is in a simulation."""
        if name not in self._values:
            raise unknown_name(f"parameter of {self._owner}", name, self._values)
        return self._values[name]

    def __setitem__(self, name: str, values: Numbers) -> None:
        """Write a parameter, checked as at first; for all worlds, or a row for each.

        Write single worlds as `parameters[name][env_ids] = …`.
        """
        own = self[name]
        given = self._declared[name].read(values, self._owner)
        if self._sim is None:
            self._values[name] = given
            return
        if given.ndim == own.ndim and len(given) not in (1, len(own)):
            raise ShapeError(
                f"{name} of {self._owner} has {len(given)} rows, the simulation "
                f"{len(own)} worlds: give one row for each, or one for all.",
                name=name,
                shape=given.shape,
            )
        own.copy_(given)

    def rows(self, name: str) -> Tensor:
        """Return a parameter with a leading dimension: (num_envs, …) or (1, …)."""
        values = self[name]
        ranks = len(self._declared[name].shape)
        return values if values.ndim > ranks else values[None]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def numbers(values: Numbers, what: str) -> Tensor:
    """Return real numbers as a float64 tensor of the same shape."""
    if isinstance(values, Tensor):
        if values.is_complex() or values.dtype == torch.bool:
            raise InvalidInputError(
                f"{what} must be real numbers, got {values.dtype}.", name=argument(what)
            )
        report_rounding(values, what)
        return values.detach().to(torch.float64)
    return torch.as_tensor(as_array(values, what))


def by_world(sim: SteppingHost, what: str, values: Tensor | float) -> Tensor:
    """Return a user function's result as a number per world, float64; (num_envs,)."""
    tensor = torch.as_tensor(values, dtype=torch.float64, device=sim.device)
    has_shape(what, tensor, (), (sim.num_envs,))
    return tensor.expand(sim.num_envs)


def vectors_by_world(values: Tensor, what: str, num_envs: int) -> Tensor:
    """Return a user function's result as a vector per world; (num_envs or 1, 3)."""
    has_shape(what, values, (num_envs, 3), (3,), (1, 3))
    return torch.as_tensor(values).double().reshape(-1, 3)
