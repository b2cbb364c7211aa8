"""Inertia matrices: moved from point to point, turned, and checked for being physical.

An inertia matrix [kg·m²] has products of inertia with a minus sign off its diagonal:
I = ∫ (|r|² 1 − r rᵀ) dm, so that angular momentum is I @ ω.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import dot, eigenvalues


def point_inertia(mass: Tensor, offset: Tensor) -> Tensor:
    """The inertia of a point mass [kg] at `offset` [m]; shape (..., 3, 3)."""
    eye = torch.eye(3, dtype=offset.dtype, device=offset.device)
    outer = offset[..., :, None] * offset[..., None, :]
    return mass[..., None, None] * (dot(offset, offset)[..., None] * eye - outer)


def about_point(inertia_com: Tensor, mass: Tensor, offset: Tensor) -> Tensor:
    """The inertia about a point at `offset` from the COM, same axes; (..., 3, 3)."""
    return inertia_com + point_inertia(mass, offset)


def about_com(inertia_point: Tensor, mass: Tensor, offset: Tensor) -> Tensor:
    """The inertia about the COM, of that about the point at `offset` from it."""
    return inertia_point - point_inertia(mass, offset)


def turn(inertia: Tensor, rot_ab: Tensor) -> Tensor:
    """The inertia in axes a of that in axes b, about the same point; (..., 3, 3)."""
    return rot_ab @ inertia @ rot_ab.mT


def physical_fault(inertia: Tensor) -> str:
    """Why no body has these inertia matrices (..., 3, 3); "" if one has.

    They must be symmetric, positive definite, and no principal moment greater than
    the sum of the other two.
    """
    if not bool(torch.isfinite(inertia).all()):
        return "it is not finite"
    skew = (inertia - inertia.mT).abs().amax(dim=(-1, -2))
    if bool((skew > 1e-9 * inertia.abs().amax(dim=(-1, -2))).any()):
        return "it is not symmetric"
    moments = eigenvalues(0.5 * (inertia + inertia.mT))
    flat = moments.reshape(-1, 3)
    for row in flat[(flat[:, 0] <= 0).nonzero().flatten()[:1]]:
        return f"its principal moments {_numbers(row)} are not all positive"
    excess = flat[:, 2] - flat[:, 0] - flat[:, 1]
    for row in flat[(excess > 1e-9 * flat[:, 2]).nonzero().flatten()[:1]]:
        return (
            f"of its principal moments {_numbers(row)} one is greater than the sum of "
            "the other two, which no distribution of mass has"
        )
    return ""


def _numbers(row: Tensor) -> str:
    return "(" + ", ".join(f"{float(x):.6g}" for x in row) + ")"
