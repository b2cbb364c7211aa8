"""Force models as data, which the core evaluates with the dynamics.

A load has a kind, the bodies that it acts on, and parameters: one row for all worlds,
or one for each. The formulas are in loads.c; planet_tables.py builds tables of planets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class LoadKind(IntEnum):
    """The formulas of the core, with the parameters of one world, as in loads.h."""

    UNIFORM_GRAVITY = 0
    """Acceleration (3) [m/s²]."""
    POINT_GRAVITY = 1
    """1 with gravity-gradient torques, else 0; (μ, x, y, z) of each mass."""
    THRUSTER = 2
    """Force (3) [N], point (3) [m], mass flow [kg/s], throttle, dry mass [kg]."""
    DRAG = 3
    """Drag area C_d A [m²], density [kg/m³], wind (3) [m/s]."""
    FIELD_GRAVITY = 4
    """μ, radius [m], rate of rotation [rad/s], angle [rad], 1 with gravity-gradient
    torques; (μ, x, y, z) of each other body. The table is `Field.row()`."""
    AIR_DRAG = 5
    """Drag area [m²], wind (3) [m/s] relative to the rotating air, three parameters of
    the air. The table is `PlanetAirTable.row()`."""
    WHEELS = 6
    """Maximum speed [rad/s], viscous [N·m·s] and Coulomb friction [N·m] of each wheel.
    The table has the number of wheels, then the dof and the control of each."""
    PANELS = 7
    """Three values of the air; normal (3), area [m²], drag coefficient and centre (3)
    [m] of each panel. The table is `PlanetAirTable.row()`."""
    SAMPLED_GRAVITY = 9
    """One unused value. The table has 1 with gravity-gradient torques, else 0. The
    accelerations are those in `FieldSamples`."""
    AERODYNAMICS = 10
    """Eight parameters of the air, then area, span, chord, induced drag, point (3) and
    derivatives; flight.h describes them and the table."""
    ROTOR = 11
    """Eight parameters of the air, then position (3), axis (3), inertia and
    coefficients, or the diameter of a propeller; see flight.h, also for the table."""
    FUNCTION = 8
    """Parameters of a C function; the table has the bits of its address."""


@dataclass(frozen=True, eq=False)
class FieldSamples:
    """Points at which the core needs accelerations; shape (num_worlds, k, 3) each.

    They are the origin of the moving frame, if any, then the COM of each body and, with
    gravity-gradient torques, the ends of three segments through it.
    """

    points: NDArray[np.float64]
    """Positions, world axes [m]; the core writes them before the call for `values`."""
    values: NDArray[np.float64]
    """Accelerations at the points, world axes [m/s²]."""

    @classmethod
    def of(
        cls, num_worlds: int, bodies: int, framed: bool, turns: bool
    ) -> FieldSamples:
        """Allocate the arrays for a number of bodies."""
        shape = (num_worlds, framed + bodies * (7 if turns else 1), 3)
        return cls(np.zeros(shape), np.zeros(shape))


@dataclass(frozen=True, eq=False)
class CoreProcess:
    """State variables of each world that are integrated with the mechanics."""

    name: str
    value: NDArray[np.float64]
    """Values, (num_worlds, width), each row contiguous; written by steps."""
    rate: NDArray[np.float64] | None = None
    """Rates, (num_worlds, width), written by a call after each evaluation. None: a
    moving frame of six values, accelerated by the loads that name it."""


@dataclass(frozen=True, eq=False)
class CoreLoad:
    """One force model of the core."""

    kind: int
    bodies: NDArray[np.int32]
    """Ids of the bodies that it acts on."""
    parameters: NDArray[np.float64]
    """Its parameters; shape (1, k) or (num_worlds, k)."""
    frame: int = -1
    """Index of the process that is the moving frame of positions and velocities; −1:
    none."""
    table: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    """Values that all worlds share, in one row; see planet_tables.py."""
    segment: int = 0
    """Number of Python calls of an evaluation that precede it."""
    samples: FieldSamples | None = None
    """Positions at which a field is sampled, for SAMPLED_GRAVITY."""

    def row(self) -> tuple[object, ...]:
        """Return the arguments for the compiled module."""
        samples = self.samples
        return (
            *(self.kind, self.segment, self.frame, len(self.parameters)),
            (self.bodies, self.parameters, self.table),
            None if samples is None else (samples.points, samples.values),
        )
