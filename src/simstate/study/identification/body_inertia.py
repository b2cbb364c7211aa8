"""The shape of a body's inertia: six parameters whose values are always physical.

They are those of `mujoco.sysid`'s pseudo-inertia, which also has the mass m and the
centre of mass. The second moments of mass about the centre of mass, along the body's
axes, are m L Lᵀ with L = [[exp d1, s12, s13], [0, exp d2, s23], [0, 0, exp d3]]:
logarithms of lengths in m, and lengths in m. For any six values, no moment of inertia
exceeds the sum of the other two.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.math import quaternion

Array = NDArray[np.float64]

SHAPE = ("d1", "d2", "d3", "s12", "s23", "s13")
"""Names of the components."""


def shape_of(model: mujoco.MjModel, body: int) -> Array:
    """Return the shape of a body's inertia, in the order of `SHAPE`; shape (6,)."""
    moments, mass = model.body_inertia[body], float(model.body_mass[body])
    spread = moments.sum() / 2 - moments
    if mass <= 0 or spread.min() <= 1e-9 * max(float(spread.max()), 1e-30):
        raise InvalidInputError(
            f"The inertia of body {model.body(body).name!r} is that of a point, a line "
            "or a plate, whose shape cannot be fitted: give it moments of inertia of "
            "which none is the sum of the other two.",
            name=model.body(body).name,
        )
    axes = quaternion.to_matrix(torch.as_tensor(model.body_iquat[body])).numpy()
    second = axes @ np.diag(spread / mass) @ axes.T
    # Upper triangular: the lower factor of the reversed matrix, reversed.
    root = np.linalg.cholesky(second[::-1, ::-1])[::-1, ::-1]
    return np.append(np.log(np.diag(root)), [root[0, 1], root[1, 2], root[0, 2]])


def principal_inertia(shape: Array, mass: Array) -> tuple[Array, Array]:
    """Return moments [kg·m²] (n, 3) and axes (n, 4) from shapes and masses [kg]."""
    root = np.zeros((len(shape), 3, 3))
    root[:, [0, 1, 2], [0, 1, 2]] = np.exp(shape[:, :3])
    root[:, [0, 1, 0], [1, 2, 2]] = shape[:, 3:]
    spread, axes = np.linalg.eigh(root @ root.swapaxes(1, 2))
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]
    moments = mass[:, None] * (spread.sum(axis=1, keepdims=True) - spread)
    return moments, quaternion.from_matrix(torch.as_tensor(axes)).numpy()
