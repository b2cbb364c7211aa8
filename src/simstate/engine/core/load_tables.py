"""Force models as data, which the core evaluates with the dynamics.

A load is a kind, the bodies that it acts on, and numbers: one row for all worlds, or
one for each. The formulas are in loads.c; tables of planets are built by planets.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class LoadKind(IntEnum):
    """The formulas of the core, with the parameters of one world; loads.h has both."""

    UNIFORM_GRAVITY = 0
    """Acceleration (3) [m/s²]."""
    POINT_GRAVITY = 1
    """1 if the field's gradient turns bodies, else 0; (μ, x, y, z) of each mass."""
    THRUSTER = 2
    """Force (3) [N], point (3) [m], mass flow [kg/s], throttle, dry mass [kg]."""
    DRAG = 3
    """Drag area C_d A [m²], density [kg/m³], wind (3) [m/s]."""
    FIELD_GRAVITY = 4
    """μ, radius [m], rate of rotation [rad/s], angle [rad], 1 if the gradient turns
    bodies; (μ, x, y, z) of each other body. The table is `Field.row()`."""
    AIR_DRAG = 5
    """Drag area [m²], wind (3) [m/s] beyond the rotation, three numbers of the air. The
    table is `PlanetAirTable.row()`."""
    WHEELS = 6
    """Maximum speed [rad/s], viscous [N·m·s] and Coulomb friction [N·m] of each wheel.
    The table has the number of wheels, then the dof and the control of each."""
    PANELS = 7
    """Three numbers of the air; normal (3), area [m²], drag coefficient and centre (3)
    [m] of each panel. The table is `PlanetAirTable.row()`."""
    SAMPLED_GRAVITY = 9
    """One number that is not used. The table has 1 if the gradient turns bodies, else
    0. The accelerations are those that `FieldSamples` receive."""
    AERODYNAMICS = 10
    """Eight numbers of the air, then area, span, chord, induced drag, point (3) and
    derivatives; flight.h has them and the table."""
    ROTOR = 11
    """Eight numbers of the air, then position (3), axis (3), inertia and coefficients,
    or the diameter of a propeller; flight.h has them and the table."""
    FUNCTION = 8
    """Those of a C function, whose address is the table's one number, bit for bit."""


@dataclass(frozen=True, eq=False)
class FieldSamples:
    """Points at which the core needs accelerations; shape (num_worlds, k, 3) each.

    They are the origin of the moving frame, if there is one, then the COM of each body
    and, if the gradient turns it, the ends of three segments through it.
    """

    points: NDArray[np.float64]
    """World axes [m]; written by the core before the call that fills `values`."""
    values: NDArray[np.float64]
    """Accelerations there, world axes [m/s²]."""

    @classmethod
    def of(
        cls, num_worlds: int, bodies: int, framed: bool, turns: bool
    ) -> FieldSamples:
        """Return the memory for a number of bodies."""
        shape = (num_worlds, framed + bodies * (7 if turns else 1), 3)
        return cls(np.zeros(shape), np.zeros(shape))


@dataclass(frozen=True, eq=False)
class CoreProcess:
    """Numbers of each world that evolve with the mechanics."""

    name: str
    value: NDArray[np.float64]
    """Shape (num_worlds, width), each row contiguous; written by steps."""
    rate: NDArray[np.float64] | None = None
    """Rates, shape (num_worlds, width), written by a call after each evaluation. None:
    a moving frame of six numbers, which falls by the loads that name it."""


@dataclass(frozen=True, eq=False)
class CoreLoad:
    """One force model as the core takes it."""

    kind: int
    bodies: NDArray[np.int32]
    """Ids of the bodies that it acts on."""
    parameters: NDArray[np.float64]
    """Its numbers; shape (1, k), or (num_worlds, k)."""
    frame: int = -1
    """Index of the process that is the moving frame which positions and velocities are
    relative to; −1: none."""
    table: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    """Numbers that all worlds share, one after the other; see planets.py."""
    segment: int = 0
    """Number of calls of Python at an evaluation that precede it."""
    samples: FieldSamples | None = None
    """Positions at which a field is sampled, for SAMPLED_GRAVITY."""

    def row(self) -> tuple[object, ...]:
        """Return what the compiled module takes."""
        samples = self.samples
        return (
            *(self.kind, self.segment, self.frame, len(self.parameters)),
            (self.bodies, self.parameters, self.table),
            None if samples is None else (samples.points, samples.values),
        )
