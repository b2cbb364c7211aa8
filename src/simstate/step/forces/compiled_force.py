"""The description by which a force model runs in the compiled core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import core

if TYPE_CHECKING:
    from simstate.step.forces.frame import MovingFrame


@dataclass(frozen=True, eq=False)
class CompiledForce:
    """A force model as the compiled core evaluates it.

    The parameters of a world are `numbers`, then those of each item, side by side.
    Tensors are live: their values at the start of a step hold during the step.
    """

    kind: core.LoadKind
    """The formula, which defines the order of the parameters."""
    bodies: Sequence[int]
    """Ids of the bodies that it acts on."""
    numbers: Sequence[Tensor | float] = ()
    """Constants, and live tensors of shape (num_envs,) or (num_envs, k)."""
    items: Sequence[Tensor] = ()
    """Live parameters of the masses, wheels or panels: (num_envs, items, …) each."""
    table: NDArray[np.float64] | None = None
    """Values shared by all worlds."""
    frame: MovingFrame | None = None
    """The frame that positions and velocities are relative to; None: the world."""
    field: core.Field | None = None
    """The gravity field of the table, whose polynomials cover a limited time."""
    limits: Sequence[tuple[Tensor, float, float]] = ()
    """Live values with the limits within which the core's formula holds; beyond them
    the model is evaluated in Python."""
    sampled: SampledField | None = None
    """The field of SAMPLED_GRAVITY, which Python evaluates at points that the core
    chooses."""
    live: Sequence[tuple[int, Tensor]] = ()
    """Tensors in the table: the index of the first element, and the values, which are
    copied again after they have been written."""
    check: Callable[[], None] | None = None
    """Called before each step: warns or raises if the model should not be used."""


class SampledField(Protocol):
    """A field of accelerations, as `Gravity` is."""

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """Return the acceleration at points, world axes [m/s²]; (num_envs, k, 3)."""
        ...


@dataclass(frozen=True, eq=False)
class CompiledAir:
    """The atmosphere of a planet as the compiled core evaluates it."""

    table: core.PlanetAirTable
    """The part shared by all worlds."""
    numbers: Sequence[Tensor | float]
    """Density [kg/m³], scale height and base [m]; or a factor of the density, and two
    unused values."""
    limits: Sequence[tuple[Tensor, float, float]] = ()
    """As in `CompiledForce`."""


@runtime_checkable
class Compilable(Protocol):
    """A force model that the compiled core may be able to evaluate."""

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the model as the core evaluates it between two times [s], or None.

        None leaves the evaluation to Python. A subclass of a model with this method
        may compute something else, so the method returns None for subclasses, unless
        they define their own.
        """
        ...
