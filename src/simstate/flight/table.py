"""Tables of numbers over several variables, interpolated linearly in each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import argument, check_finite, has_shape, instance_of, one_of
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.ids import Values
from simstate.step.forces.force_parameters import numbers

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

Outside: TypeAlias = Literal["clamp", "extrapolate", "raise"]
"""Extrapolation of a table: the last value, linear, or an error."""


class Table:
    """Values over a grid of variables; multilinear between the grid's points.

    Args:
        axes: the ascending breakpoints of each variable by its name, in the order of
            the dimensions of `values`.
        values: shape (n₁, …, n_k, *tail) for k axes, or (num_envs, n₁, …) with
            `per_world`.
        tail: the shape of one value; () for a number, (3,) for a vector.
        outside: the behaviour beyond the ends.
        times: a variable by which the interpolated value is multiplied, such as "q_hat"
            for a damping derivative that depends on the axes.
        per_world: True if values differ by world.
    """

    def __init__(
        self,
        axes: Mapping[str, Sequence[float] | Values],
        values: Values,
        *,
        tail: tuple[int, ...] = (),
        outside: Outside = "clamp",
        times: str | None = None,
        per_world: bool = False,
    ) -> None:
        one_of("behaviour outside a table", outside, get_args(Outside))
        instance_of("axes of a table", axes, Mapping)
        if not axes:
            raise InvalidInputError("A table needs at least one axis.", name="axes")
        self.outside: Outside = outside
        self.times = times
        self.per_world = per_world
        self.axes = {name: _breakpoints(name, given) for name, given in axes.items()}
        with torch.inference_mode(False):  # writes are detected by the version
            given = numbers(values, "values of a table").contiguous()
            self.values: Tensor = given.clone() if given.is_inference() else given
        sizes = tuple(len(points) for points in self.axes.values())
        wanted = (*sizes, *tail)
        what = f"values of a table over {', '.join(self.axes)}"
        has_shape(what, self.values, ("num_envs", *wanted) if per_world else wanted)
        check_finite(self.values, "values of a table", after="")
        self._flat: Tensor = self.values.reshape(-1, *tail)
        self._tail = tail

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its variables."""
        return (*self.axes, *((self.times,) if self.times else ()))

    def attach(self, sim: SteppingHost) -> None:
        """Move the table to a simulation's device; check its number of worlds."""
        if self.per_world and self.values.shape[0] != sim.num_envs:
            raise ShapeError(
                f"A table has {self.values.shape[0]} rows, the simulation "
                f"{sim.num_envs} worlds.",
                name="values",
                shape=self.values.shape,
            )
        self.axes = {name: points.to(sim.device) for name, points in self.axes.items()}
        self.values, self._flat = (x.to(sim.device) for x in (self.values, self._flat))

    def __call__(self, variables: Mapping[str, Tensor]) -> Tensor:
        """Return the value at a point of each world; (..., num_envs, *tail)."""
        for name in self.variables:
            if name not in variables:
                raise unknown_name("variable of a table", name, variables)
        given = [variables[name].double() for name in self.axes]
        left, share = zip(
            *(self._place(n, x) for n, x in zip(self.axes, given, strict=True)),
            strict=True,
        )
        total = self._corners(left, share)
        if self.times is None:
            return total
        factor = variables[self.times].double()
        return total * factor.view(*factor.shape, *(1 for _ in self._tail))

    def _place(self, name: str, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the breakpoint to the left, and the fraction to the next one."""
        points = self.axes[name]
        if self.outside == "raise":
            self._refuse_outside(name, x)
        elif self.outside == "clamp":
            x = x.clamp(float(points[0]), float(points[-1]))
        if len(points) == 1:
            return torch.zeros_like(x, dtype=torch.int64), torch.zeros_like(x)
        left = (
            torch.bucketize(x.contiguous(), points, right=True).clamp(
                1, len(points) - 1
            )
            - 1
        )
        low, high = points[left], points[left + 1]
        return left, (x - low) / (high - low)

    def _corners(self, left: Sequence[Tensor], share: Sequence[Tensor]) -> Tensor:
        """Return the weighted sum over the corners of the cell."""
        sizes = [len(points) for points in self.axes.values()]
        base = torch.zeros_like(left[0])
        if self.per_world:
            base = torch.arange(self.values.shape[0], device=base.device).expand_as(
                base
            )
        total: Tensor | float = 0.0
        for corner in itertools.product((0, 1), repeat=len(sizes)):
            index, weight = base, torch.ones_like(share[0])
            for bit, size, low, part in zip(corner, sizes, left, share, strict=True):
                index = index * size + (low + bit).clamp(max=size - 1)
                weight = weight * (part if bit else 1 - part)
            weight = weight.view(*weight.shape, *(1 for _ in self._tail))
            total = total + weight * self._flat[index]
        assert isinstance(total, Tensor)
        return total

    def _refuse_outside(self, name: str, x: Tensor) -> None:
        points = self.axes[name]
        bad = (x < points[0]) | (x > points[-1])
        if bool(bad.any()):
            value = float(x[bad].flatten()[0])
            raise InvalidInputError(
                f"{name} = {value:g} is outside the table, which covers "
                f"{float(points[0]):g} to {float(points[-1]):g}. To continue use "
                'outside="clamp" or "extrapolate".',
                name=name,
            )


def _breakpoints(name: str, given: Sequence[float] | Values) -> Tensor:
    """Return the checked breakpoints of an axis; (n,)."""
    what = f"breakpoints of {name}"
    points = check_finite(numbers(given, what), what, after="")
    has_shape(what, points, ("n",))
    if not len(points) or bool((points.diff() <= 0).any()):
        raise InvalidInputError(
            f"The {what} must rise, got {given}.", name=argument(what)
        )
    ordered: Tensor = points.contiguous()
    return ordered
