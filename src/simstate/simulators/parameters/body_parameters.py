"""Parameters of bodies: reading from a model and writing to it."""

from __future__ import annotations

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.parameters.common import FREE, Read, Write, row


def of_bodies(field: str, attached: bool = False) -> Read:
    """Return a reader of a field of all bodies but the world.

    With `attached`, free and mocap bodies are left out.
    """

    def read(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
        return {
            names.body[b]: row(getattr(model, field)[b])
            for b in range(1, model.nbody)
            if not (attached and (model.body_mocapid[b] >= 0 or is_free(model, b)))
        }

    return read


def is_free(model: mujoco.MjModel, body: int) -> bool:
    """Return True if a body has a free joint."""
    first = model.body_jntadr[body]
    return bool(first >= 0 and model.jnt_type[first] == FREE)


def to_body(field: str) -> Write:
    """Return a writer of a field of one body."""

    def write(
        model: mujoco.MjModel, names: ModelNames, element: str, value: Array
    ) -> None:
        array = getattr(model, field)
        body = names.body.index(element)
        array[body] = value if array.ndim > 1 else value[0]

    return write


def read_com(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the COM of the bodies that have mass."""
    found = of_bodies("body_ipos")(model, names)
    massive = np.flatnonzero(model.body_mass > 0)
    return {names.body[b]: found[names.body[b]] for b in massive}


def inertia_numbers(matrix: Array) -> Array:
    """Return xx, yy, zz, xy, xz, yz of a symmetric matrix."""
    return matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].astype(np.float64)


def read_inertia(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return inertias about the COM, body axes: xx, yy, zz, xy, xz, yz."""
    found: dict[str, Array] = {}
    for body in range(1, model.nbody):
        rot = np.zeros(9)
        mujoco.mju_quat2Mat(rot, model.body_iquat[body])
        rot_bi = rot.reshape(3, 3)
        matrix = rot_bi @ np.diag(model.body_inertia[body]) @ rot_bi.T
        found[names.body[body]] = inertia_numbers(matrix)
    return found


def write_inertia(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write an inertia about the COM, body axes, as its principal axes."""
    xx, yy, zz, xy, xz, yz = value
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments, axes = np.linalg.eigh(matrix)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0
    body, quat = names.body.index(element), np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(axes).ravel())
    model.body_inertia[body], model.body_iquat[body] = moments, quat


def read_quat(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return orientations in the parents as canonical quaternions."""
    found = of_bodies("body_quat", attached=True)(model, names)
    return {name: canonical(quat) for name, quat in found.items()}


def canonical(quat: Array) -> Array:
    """Return the one of ±q whose first component that is not zero is positive."""
    first = quat[np.flatnonzero(np.abs(quat) > 1e-9)[0]]
    return quat * np.sign(first)
