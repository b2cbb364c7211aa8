"""Inertia matrices: change of point, change of axes, and physical validity.

An inertia matrix [kg·m²] has products of inertia with a minus sign off its diagonal:
I = ∫ (|r|² 1 − r rᵀ) dm, so that angular momentum is I @ ω.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import dot, eigenvalues


def point_inertia(mass: Tensor, offset: Tensor) -> Tensor:
    """Return the inertia of a point mass [kg] at `offset` [m]; shape (..., 3, 3)."""
    eye = torch.eye(3, dtype=offset.dtype, device=offset.device)
    outer = offset[..., :, None] * offset[..., None, :]
    return mass[..., None, None] * (dot(offset, offset)[..., None] * eye - outer)


def about_point(inertia_com: Tensor, mass: Tensor, offset: Tensor) -> Tensor:
    """Return the inertia about the point at `offset` from the COM; (..., 3, 3)."""
    return inertia_com + point_inertia(mass, offset)


def about_com(inertia_point: Tensor, mass: Tensor, offset: Tensor) -> Tensor:
    """Return the inertia about the COM, of that about the point at `offset` from it."""
    return inertia_point - point_inertia(mass, offset)


def turn(inertia: Tensor, rot_ab: Tensor) -> Tensor:
    """Return the inertia in axes a, given that in axes b, same point; (..., 3, 3)."""
    return rot_ab @ inertia @ rot_ab.mT


def physical_fault(inertia: Tensor) -> str:
    """Return why inertia matrices (..., 3, 3) are not physical; "" if they are.

    They must be symmetric and positive definite, with no principal moment larger than
    the sum of the other two.
    """
    if not bool(torch.isfinite(inertia).all()):
        return "it is not finite"
    rounding = 1e-9 if inertia.dtype == torch.float64 else 1e-5
    skew = (inertia - inertia.mT).abs().amax(dim=(-1, -2))
    if bool((skew > rounding * inertia.abs().amax(dim=(-1, -2))).any()):
        return "it is not symmetric"
    moments = eigenvalues(0.5 * (inertia + inertia.mT))
    flat = moments.reshape(-1, 3)
    for row in flat[(flat[:, 0] <= 0).nonzero().flatten()[:1]]:
        return f"its principal moments {_numbers(row)} are not all positive"
    excess = flat[:, 2] - flat[:, 0] - flat[:, 1]
    for row in flat[(excess > rounding * flat[:, 2]).nonzero().flatten()[:1]]:
        return (
            f"one of its principal moments {_numbers(row)} is larger than the sum of "
            "the other two, which is impossible for any distribution of mass"
        )
    return ""


def _numbers(row: Tensor) -> str:
    return "(" + ", ".join(f"{float(x):.6g}" for x in row) + ")"
