"""Differences of a simulation between perturbed worlds, all worlds at once.

The general implementation, for any stepper, force models, processes, parameters and
quantities. The compiled core has one for MuJoCo's steps (`engine/core/derivatives.c`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from simstate.base.errors import ShapeError
from simstate.simulation import Simulation
from simstate.step.history import Read
from simstate.study.active_constraints import constraint_signatures
from simstate.study.perturbations import Perturbation
from simstate.study.scratch_worlds import quiet, run_ahead
from simstate.study.tangent_state import StateVector


@dataclass(frozen=True)
class DerivativeColumns:
    """Derivatives by one value or several, and where a constraint switched."""

    values: Tensor
    """The derivatives; (num_envs, rows)."""
    wider: Tensor | None
    """The same by differences of twice the width; None: not computed."""
    switched: Tensor
    """Mask of worlds in which a constraint switched; bool, (num_envs,)."""


class Target(Protocol):
    """The values that are differentiated."""

    @property
    def ends(self) -> bool:
        """True if they depend on the constraints at the state after the last step."""
        ...

    def read(self) -> Any:
        """Return a copy of the current values."""
        ...

    def difference(self, ahead: Any, behind: Any) -> Tensor:
        """Return the displacement from one result to another; (num_envs, rows)."""
        ...


class StateTarget:
    """The tangent state."""

    def __init__(self, vector: StateVector) -> None:
        self._vector = vector
        self.ends = vector.sim.integration is not None  # evaluated there, too
        self.names, self.units = vector.names, vector.units

    def read(self) -> tuple[Tensor, ...]:
        """Return qpos, qvel, act and the values of processes."""
        return self._vector.read()

    def difference(
        self, ahead: tuple[Tensor, ...], behind: tuple[Tensor, ...]
    ) -> Tensor:
        """Return displacements; orientations differ by rotation vectors."""
        return self._vector.difference(ahead, behind)


class QuantityTarget:
    """Quantities or functions of a simulation, side by side."""

    ends = True

    def __init__(
        self,
        sim: Simulation,
        reads: Mapping[str, tuple[Read, str]],
        units: Mapping[str, list[str]],
    ) -> None:
        self._sim, self._reads = sim, reads
        names: list[str] = []
        self.units: tuple[str, ...] = ()
        for name, (read, unit) in reads.items():
            # A function may draw random numbers or write memory.
            value = run_ahead(
                sim, lambda read=read: torch.as_tensor(read(sim)).detach().clone()
            )
            if not value.ndim or len(value) != sim.num_envs:
                raise ShapeError(
                    f"{name!r} must return a value for each world, of shape "
                    f"({sim.num_envs}, …), got {tuple(value.shape)}.",
                    name=name,
                    shape=value.shape,
                )
            count = value[0].numel()
            names += (
                [f"{name}[{k}]" for k in range(count)] if value.ndim > 1 else [name]
            )
            self.units += tuple(units.get(name) or [unit] * count)
        self.names = tuple(names)

    def read(self) -> Tensor:
        """Return all values, (num_envs, rows)."""
        reads = [read for read, _ in self._reads.values()]
        found = [torch.as_tensor(read(self._sim)).detach() for read in reads]
        return torch.cat([x.double().reshape(len(x), -1) for x in found], dim=1)

    def difference(self, ahead: Tensor, behind: Tensor) -> Tensor:
        """Return the difference of each component."""
        return ahead - behind


def columns(
    sim: Simulation, target: Target, block: Perturbation, steps: int, step: float,
    with_error: bool,
) -> list[DerivativeColumns]:  # fmt: skip
    """Return the derivatives by all values of a block."""
    first = _Trial(sim, target, steps)
    return [
        _column(first, block, k, step, with_error) for k in range(len(block.labels))
    ]


class _Trial:
    """Results of the steps of perturbed worlds, relative to the unperturbed ones."""

    def __init__(self, sim: Simulation, target: Target, steps: int) -> None:
        self._sim, self._target, self._steps = sim, target, steps
        _, self._signatures, self._bad = self._result(lambda: None)

    def _result(self, move: Callable[[], None]) -> tuple[Any, list[Tensor], Tensor]:
        """Return values, signatures of constraints, and the worlds that diverged."""
        with quiet():  # worlds that diverge have no derivatives
            return run_ahead(self._sim, lambda: self._run(move), "study.derivatives()")

    def _moved(
        self, block: Perturbation, column: int, by: Tensor
    ) -> tuple[Any, list[Tensor], Tensor]:
        try:
            return self._result(lambda: block.move(column, by))
        finally:
            block.restore()

    def _run(self, move: Callable[[], None]) -> tuple[Any, list[Tensor], Tensor]:
        sim: Any = self._sim
        signatures: list[Tensor] = []
        move()
        for _ in range(self._steps):
            signatures.append(constraint_signatures(sim))
            sim._step_ahead(1)
        if self._target.ends:
            signatures.append(constraint_signatures(sim))
        bad = sim.diverged.clone() if self._steps else torch.zeros_like(sim.diverged)
        return self._target.read(), signatures, bad

    def difference(
        self, block: Perturbation, column: int, ahead: Tensor, behind: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return a column of derivatives, and the worlds where something switched."""
        results: list[Any] = []
        switched = torch.zeros_like(self._bad)
        bad = self._bad
        for by in (ahead, -behind):
            values, signatures, diverged = self._moved(block, column, by)
            results.append(values)
            bad = bad | diverged
            for one, other in zip(signatures, self._signatures, strict=True):
                switched = switched | (one != other)
        change = self._target.difference(*results)
        width = (ahead + behind).to(change)[:, None]
        derivative = torch.where(width > 0.0, change / width, 0.0)
        derivative[bad] = torch.nan
        return derivative, switched


def _column(
    trial: _Trial, block: Perturbation, column: int, step: float, with_error: bool
) -> DerivativeColumns:
    values, switched = trial.difference(block, column, *block.reach(column, step))
    if not with_error:
        return DerivativeColumns(values, None, switched)
    reach = block.reach(column, 2 * step)
    wider, too = trial.difference(block, column, *reach)
    return DerivativeColumns(values, wider, switched | too)
