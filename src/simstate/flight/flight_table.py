"""The description by which loads on an aircraft run in the compiled core.

The table of `engine/core/flight.h` holds the data shared by all worlds: atmosphere,
wind field, controls, and the coefficients of one load model. Values that differ by
world, or that users write, are parameters in addition to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from torch import Tensor

from simstate.engine import core
from simstate.flight.table import Table
from simstate.step.forces.compiled_force import CompiledForce

_HEAD = 8
"""Length of the head of a table, before its parts."""
_MAX_AXES, _MAX_CONTROLS = 6, 64


@dataclass(eq=False)
class FlightTable:
    """Numbers of a part of a table, and the live tensors among them."""

    numbers: list[float] = field(default_factory=list[float])
    """All numbers so far."""
    live: list[tuple[int, Tensor]] = field(default_factory=list[tuple[int, Tensor]])
    """Tensors that are copied again after they are written, with their indices."""

    def add(self, *numbers: float) -> None:
        """Append numbers."""
        self.numbers += [float(x) for x in numbers]

    def add_part(self, part: FlightTable) -> int:
        """Append another part; return its first index."""
        first = len(self.numbers)
        self.live += [(first + start, values) for start, values in part.live]
        self.numbers += part.numbers
        return first

    def add_grid(self, table: Table, variables: Sequence[str]) -> bool:
        """Append a table over some of these variables.

        Return False if the core cannot interpolate it, a variable is unknown, or a
        subclass computes something else.
        """
        is_known = all(name in variables for name in table.variables)
        if type(table).__call__ is not Table.__call__:
            return False
        if not is_known or table.outside == "raise" or len(table.axes) > _MAX_AXES:
            return False
        points = [as_list(values) for values in table.axes.values()]
        sizes = int(np.prod([len(row) for row in points]))
        count = table.values.shape[0] if table.per_world else 1
        tail = table.values.numel() // (sizes * count)
        extrapolates = float(table.outside == "extrapolate")
        times = -1 if table.times is None else variables.index(table.times)
        head = 6 + sum(2 + len(row) for row in points)
        self.add(head + table.values.numel(), len(points), tail, extrapolates)
        self.add(float(table.per_world), times)
        for name, row in zip(table.axes, points, strict=True):
            self.add(variables.index(name), len(row), *row)
        self.live.append((len(self.numbers), table.values))
        self.add(*as_list(table.values))
        return True


@dataclass(frozen=True, eq=False)
class AtmosphereForm:
    """An atmosphere as the core evaluates it."""

    numbers: Sequence[Tensor | float]
    """Four values by world."""
    table: FlightTable | None = None
    """The layers of the standard atmosphere; None: an exponential."""


@dataclass(frozen=True, eq=False)
class AirForm:
    """The air as the core evaluates it."""

    elevation: Tensor
    """Elevation of the Earth origin [m]; (num_envs,)."""
    atmosphere: AtmosphereForm
    wind: Tensor | None
    """Steady wind, Earth axes [m/s]; (num_envs, 3). None: a field."""
    field: FlightTable | None = None
    """The wind as a grid over time, north, east and height."""


@dataclass(frozen=True, eq=False)
class LoadForm:
    """One load model as the core evaluates it."""

    kind: core.LoadKind
    numbers: Sequence[Tensor | float]
    """Live values by world, in the order of flight.h."""
    table: FlightTable


@dataclass(frozen=True, eq=False)
class AircraftForm:
    """The aircraft, for which load models are compiled."""

    body: int
    """Id of the airframe in the model."""
    controls: Sequence[str]
    """Names of its controls, in their order."""
    rows: Sequence[Sequence[float]]
    """Rows of controls: address in act (−1: none), index in ctrl, range, lag [s]."""
    variables: Sequence[str]
    """Names of the variables of coefficients, the controls last."""

    def force(self, air: AirForm, load: LoadForm) -> CompiledForce | None:
        """Return the force on the airframe, or None if the core cannot evaluate it."""
        if len(self.controls) > _MAX_CONTROLS:
            return None
        table, atmosphere = FlightTable(), air.atmosphere
        table.add(*[0.0] * _HEAD)
        starts = [0, 0, 0, 0]
        for k, part in enumerate((atmosphere.table, air.field)):
            if part is not None:
                starts[k] = table.add_part(part)
        starts[2] = len(table.numbers)
        for row in self.rows:
            table.add(*row)
        starts[3] = table.add_part(load.table)
        wind = [air.wind] if air.wind is not None else [0.0, 0.0, 0.0]
        numbers = [air.elevation, *atmosphere.numbers, *wind, *load.numbers]
        width = sum(_width(part) for part in numbers)
        kind = float(atmosphere.table is not None)
        head = [len(table.numbers), width, kind, len(self.controls), *starts]
        table.numbers[:_HEAD] = [float(x) for x in head]
        return CompiledForce(
            *(load.kind, [self.body], numbers),
            table=np.array(table.numbers),
            live=table.live,
        )


def as_list(values: Tensor) -> list[float]:
    """Return all elements of a tensor as a flat list."""
    return cast("list[float]", values.cpu().flatten().tolist())  # pyright: ignore[reportUnknownMemberType]


def _width(part: Tensor | float) -> int:
    """Return the number of columns of a parameter: (num_envs,) or (num_envs, k)."""
    if not isinstance(part, Tensor) or part.ndim == 1:
        return 1
    return part.shape[1]


class CompilableLoad:
    """Base of load models that the core may evaluate."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "compiled" not in vars(cls):  # it may compute something else
            cls.compiled = CompilableLoad.compiled

    def compiled(self, aircraft: AircraftForm) -> LoadForm | None:
        """Return the model as the core evaluates it; None leaves it to Python.

        A subclass of a model has no compiled form, unless it defines one.
        """
        del aircraft
