"""Trim: find bounded unknowns of a simulation that make a residual zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.checks import (
    check_called_as,
    check_finite,
    has_shape,
    instance_of,
    number,
    whole_number,
)
from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.base.ids import int_list
from simstate.math.vector import solve
from simstate.simulation import Simulation
from simstate.step.forces.force_parameters import Numbers, numbers
from simstate.study.differences import columns
from simstate.study.perturbations import TensorPerturbation

_STEP = 1e-6


@dataclass(frozen=True)
class Unknown:
    """A variable that trim may change: its start and its bounds."""

    start: Numbers = 0.0
    """Initial value; a number, or (num_envs,)."""
    low: float = -torch.inf
    high: float = torch.inf
    scale: float = 1.0
    """Typical size, in which steps are measured."""


@dataclass(frozen=True)
class TrimResult:
    """Result of a trim; each of shape (num_envs,) or (num_envs, k)."""

    values: dict[str, Tensor]
    """The unknowns by name."""
    residual: Tensor
    """Remaining residual."""
    converged: Tensor
    """True where the residual is within the tolerance."""
    at_bound: dict[str, Tensor]
    """True where an unknown is at a bound."""

    def check_converged(self) -> None:
        """Raise unless every world converged."""
        failed = int_list((~self.converged).nonzero().flatten())
        if not failed:
            return
        world = failed[0]
        values = {n: round(float(v[world]), 6) for n, v in self.values.items()}
        raise SimStateError(
            f"trim did not converge in {len(failed)} of {len(self.converged)} worlds: "
            f"in world {world} a residual of "
            f"{float(self.residual[world].abs().max()):.3g} remains at {values}. Check "
            "for unknowns at their bounds, start nearer to the solution, or add an "
            "unknown.",
            worlds=failed,
        )


def trim(
    sim: Simulation,
    unknowns: Mapping[str, Unknown],
    write: Callable[[Mapping[str, Tensor]], None],
    residual: Callable[[], Tensor],
    *,
    tolerance: float = 1e-9,
    iterations: int = 50,
    require: bool = True,
) -> TrimResult:
    """Find values of the unknowns at which the residual is zero, in every world.

    The Levenberg-Marquardt method with central differences runs in all worlds at once,
    with separate steps for each world. Unknowns stay within their bounds. The
    simulation is left at the solution; an error leaves it unchanged.

    Args:
        sim: the simulation.
        unknowns: the unknowns by name.
        write: `write(values)` writes values by name, (num_envs,) each, to the
            simulation.
        residual: `residual()` returns values that should be zero, (num_envs, k). If k
            is less than the number of unknowns, the nearest solution is found.
        tolerance: largest magnitude of a residual that counts as zero.
        iterations: maximum number of iterations.
        require: True to raise an error if a world does not converge.
    """
    instance_of("sim", sim, Simulation)
    instance_of("unknowns", unknowns, Mapping)
    if not unknowns:
        raise InvalidInputError("trim needs at least one unknown.", name="unknowns")
    check_called_as("write", write, "values", name="write")
    check_called_as("residual", residual, name="residual")
    number("tolerance", tolerance, at_least=0)
    iterations = whole_number("iterations", iterations, 0)
    problem = _Problem(sim, unknowns, write, residual)
    before = sim.snapshot()
    try:
        result = problem.result(*problem.solve(tolerance, iterations), tolerance)
        if require:
            result.check_converged()
    except BaseException:
        sim.restore(before)
        raise
    return result


@dataclass(frozen=True)
class _Residual:
    """The residual as a target of differences."""

    read: Callable[[], Tensor]
    ends: bool = False

    def difference(self, ahead: Tensor, behind: Tensor) -> Tensor:
        """Return the difference of two residuals."""
        return ahead - behind


class _Problem:
    """Unknowns as columns of a tensor, and the residual as a function of them."""

    def __init__(
        self,
        sim: Simulation,
        unknowns: Mapping[str, Unknown],
        write: Callable[[Mapping[str, Tensor]], None],
        residual: Callable[[], Tensor],
    ) -> None:
        self.sim, self.names = sim, tuple(unknowns)
        self._write, self._residual = write, residual
        count = sim.num_envs
        columns: list[Tensor] = []
        for name, unknown in unknowns.items():
            instance_of(f"unknowns[{name!r}]", unknown, Unknown)
            number(f"scale of {name!r}", unknown.scale, more_than=0)
            if not unknown.low < unknown.high:
                raise InvalidInputError(
                    f"The bounds of {name!r} must ascend, got {unknown.low} and "
                    f"{unknown.high}.",
                    name=name,
                )
            start = check_finite(numbers(unknown.start, name), name, after="")
            has_shape(f"The start of {name!r}", start, (), (count,))
            columns.append(start.expand(count))
        given = list(unknowns.values())
        self.low = torch.tensor([u.low for u in given], dtype=torch.float64)
        self.high = torch.tensor([u.high for u in given], dtype=torch.float64)
        self.scale = torch.tensor([u.scale for u in given], dtype=torch.float64)
        self.start = torch.stack(columns, dim=1).clamp(self.low, self.high)

    def named(self, x: Tensor) -> dict[str, Tensor]:
        """Return columns by the unknowns' names."""
        return {name: x[:, k].clone() for k, name in enumerate(self.names)}

    def residual(self, x: Tensor) -> Tensor:
        """Return the residual at these values; (num_envs, k)."""
        self._write(self.named(x))
        found = self._residual()
        has_shape("The residual", found, (x.shape[0], "k"))
        if not found.shape[1]:
            raise ShapeError(
                "The residual has no columns: return at least one value for each "
                "world.",
                name="residual",
                shape=found.shape,
            )
        return found.double().clone()

    def _jacobian(self, x: Tensor) -> Tensor:
        """Return derivatives by unknowns in units of their scale; (num_envs, k, n)."""
        unknowns = x / self.scale
        target = _Residual(lambda: self.residual(unknowns * self.scale))
        block = TensorPerturbation(unknowns, self.names, users_own=True)
        found = columns(self.sim, target, block, 0, _STEP, with_error=False)
        return torch.stack([column.values for column in found], dim=-1)

    def solve(self, tolerance: float, iterations: int) -> tuple[Tensor, Tensor]:
        """Return the solution and its residual."""
        x = self.start
        found = self.residual(x)
        damping = torch.full((len(x),), 1e-3, dtype=torch.float64)
        for _ in range(iterations):
            if bool((found.abs().amax(dim=1) <= 0.1 * tolerance).all()):
                break
            step = self._step(x, found, damping)
            trial = (x + step).clamp(self.low, self.high)
            there = self.residual(trial)
            better = there.square().sum(1) < found.square().sum(1)
            x = torch.where(better[:, None], trial, x)
            found = torch.where(better[:, None], there, found)
            damping = torch.where(better, 0.1 * damping, 10 * damping)
            damping = damping.clamp(1e-15, 1e12)
        self._write(self.named(x))
        return x, found

    def result(self, x: Tensor, found: Tensor, tolerance: float) -> TrimResult:
        """Return the values at which the search ended as a result."""
        converged = found.abs().amax(dim=1) <= tolerance
        close = 1e-9 * self.scale
        at_bound = (x <= self.low + close) | (x >= self.high - close)
        return TrimResult(self.named(x), found, converged, self.named(at_bound))

    def _step(self, x: Tensor, found: Tensor, damping: Tensor) -> Tensor:
        """Return a damped Gauss-Newton step; unknowns at an active bound are held."""
        jacobian = self._jacobian(x)
        gradient = (jacobian.mT @ found[..., None])[..., 0]
        held = ((x <= self.low) & (gradient > 0)) | ((x >= self.high) & (gradient < 0))
        jacobian = torch.where(held[:, None], 0.0, jacobian)
        gradient = torch.where(held, 0.0, gradient)
        normal = jacobian.mT @ jacobian
        size = torch.diagonal(normal, dim1=1, dim2=2)
        ridge = damping[:, None] * size.clamp(min=1e-12 * float(size.max()) + 1e-30)
        step = -solve(normal + torch.diag_embed(ridge), gradient)
        return step * self.scale
