"""Moments, velocities and inertia moved from one point of a body to another, checked.

All arguments of a call are along the same axes, any batch shape in front. An offset
leads from the point that a quantity is given at to the one where it is wanted [m].
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.conventions.values import as_tensor, batch_of
from simstate.errors import InvalidInputError
from simstate.ids import Values
from simstate.math import inertia as inertias
from simstate.math import spatial


def move_moment(moment: Values, force: Values, offset: Values) -> Tensor:
    """The moment [N·m] of a load about another point; shape (..., 3).

    `force` is the load's whole force [N], which is the same about every point.
    """
    first = as_tensor(moment, "moment", 3)
    whole = as_tensor(force, "force", 3, like=first)
    shift = as_tensor(offset, "offset", 3, like=first)
    batch_of(moment=(first, 1), force=(whole, 1), offset=(shift, 1))
    return spatial.move_moment(first, whole, shift)


def move_velocity(velocity: Values, angular_velocity: Values, offset: Values) -> Tensor:
    """The velocity [m/s] of another point of a body turning at [rad/s]; (..., 3)."""
    first = as_tensor(velocity, "velocity", 3)
    rates = as_tensor(angular_velocity, "angular_velocity", 3, like=first)
    shift = as_tensor(offset, "offset", 3, like=first)
    batch_of(velocity=(first, 1), angular_velocity=(rates, 1), offset=(shift, 1))
    return spatial.rigid_rate(first, rates, shift)


def move_inertia(
    inertia: Values, mass: Values | float, com: Values, offset: Values
) -> Tensor:
    """The inertia [kg·m²] about another point; shape (..., 3, 3).

    `com` leads from the point of `inertia` to the centre of mass [m]; zeros if the
    inertia is about it.
    """
    matrix = check_inertia(inertia)
    masses = check_mass(mass, like=matrix)
    centre = as_tensor(com, "com", 3, like=matrix)
    shift = as_tensor(offset, "offset", 3, like=matrix)
    batch_of(inertia=(matrix, 2), mass=(masses, 0), com=(centre, 1), offset=(shift, 1))
    about_com = inertias.about_com(matrix, masses, centre)
    if fault := inertias.physical_fault(about_com):
        raise InvalidInputError(
            f"inertia and com do not fit together: about the centre of mass {fault}."
        )
    return inertias.about_point(about_com, masses, shift - centre)


def check_inertia(inertia: Values, name: str = "inertia") -> Tensor:
    """The inertia matrices (..., 3, 3), if a body can have them; else raises."""
    matrix = as_tensor(inertia, name, 3, 3)
    if fault := inertias.physical_fault(matrix):
        raise InvalidInputError(
            f"{name} is not that of a body: {fault}. Products of inertia stand off the "
            "diagonal with a minus sign."
        )
    return 0.5 * (matrix + matrix.mT)


def check_mass(mass: Values | float, like: Tensor | None = None) -> Tensor:
    """The masses [kg], if all are positive; shape (...)."""
    tensor = as_tensor(mass, "mass", like=like)
    if not bool((tensor > 0).all()):
        raise InvalidInputError(f"mass must be > 0, got {float(torch.min(tensor)):g}.")
    return tensor
