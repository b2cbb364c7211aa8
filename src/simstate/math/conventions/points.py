"""Moments, velocities and inertias at another point of a body, with checked arguments.

All arguments of a call are along the same axes, with any leading batch shape. An offset
points from the point where a quantity is given to the one where it is wanted [m].
"""

from __future__ import annotations

from torch import Tensor

from simstate.base.checks import Limits
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math import inertia as inertias
from simstate.math import spatial
from simstate.math.conventions.checked_values import as_tensor, together


def move_moment(moment: Values, force: Values, offset: Values) -> Tensor:
    """Return the moment [N·m] of a load about another point; shape (..., 3).

    `force` is the load's total force [N], which does not depend on the point.
    """
    return spatial.move_moment(
        *together(moment=(moment, 3), force=(force, 3), offset=(offset, 3))
    )


def move_velocity(velocity: Values, angular_velocity: Values, offset: Values) -> Tensor:
    """Return the velocity [m/s] of another point of a body; rates [rad/s]; (..., 3)."""
    checked = together(
        velocity=(velocity, 3),
        angular_velocity=(angular_velocity, 3),
        offset=(offset, 3),
    )
    return spatial.rigid_rate(*checked)


def move_inertia(
    inertia: Values, mass: Values | float, com: Values, offset: Values
) -> Tensor:
    """Return the inertia [kg·m²] about another point; shape (..., 3, 3).

    `com` points from the point of `inertia` to the centre of mass [m]; zeros if the
    inertia is about it.
    """
    matrix, masses, centre, shift = together(
        inertia=(check_inertia(inertia), 3, 3),
        mass=(check_mass(mass),),
        com=(com, 3),
        offset=(offset, 3),
    )
    about_com = inertias.about_com(matrix, masses, centre)
    if fault := inertias.physical_fault(about_com):
        raise InvalidInputError(
            f"inertia and com are inconsistent: about the centre of mass, {fault}.",
            name="inertia",
        )
    return inertias.about_point(about_com, masses, shift - centre)


def check_inertia(inertia: Values, name: str = "inertia") -> Tensor:
    """Return symmetrised inertia matrices (..., 3, 3); raise unless physical."""
    matrix = as_tensor(inertia, name, 3, 3)
    if fault := inertias.physical_fault(matrix):
        raise InvalidInputError(
            f"{name} is not physical: {fault}. Off-diagonal elements are the negative "
            "products of inertia."
        )
    return 0.5 * (matrix + matrix.mT)


def check_mass(mass: Values | float, like: Tensor | None = None) -> Tensor:
    """Return the masses [kg], shape (...); raise unless all are positive."""
    return Limits(more_than=0).check(as_tensor(mass, "mass", like=like), "mass")
