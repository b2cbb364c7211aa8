"""Parameters of joints: reading from a model and writing to it."""

from __future__ import annotations

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.parameters.common import BALL, FREE, Read, Write, row


def of_joints(field: str, *without: int) -> Read:
    """Return a reader of a field of all joints except those of some types."""

    def read(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
        return {
            names.joint[j]: row(getattr(model, field)[j])
            for j in range(model.njnt)
            if model.jnt_type[j] not in without
        }

    return read


def to_joint(field: str) -> Write:
    """Return a writer of a field of one joint."""

    def write(
        model: mujoco.MjModel, names: ModelNames, element: str, value: Array
    ) -> None:
        array, joint = getattr(model, field), names.joint.index(element)
        array[joint] = value if array.ndim > 1 else value[0]

    return write


def read_range(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return lower and upper limits; infinite for a joint without limits."""
    found: dict[str, Array] = {}
    for j in range(model.njnt):
        if model.jnt_type[j] != FREE:
            limited = bool(model.jnt_limited[j])
            found[names.joint[j]] = (
                row(model.jnt_range[j]) if limited else np.array([-np.inf, np.inf])
            )
    return found


def write_range(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the limits of a joint; infinite ones remove them."""
    joint = names.joint.index(element)
    model.jnt_limited[joint] = bool(np.isfinite(value).all())
    if model.jnt_limited[joint]:
        model.jnt_range[joint] = value


def dof_count(model: mujoco.MjModel, joint: int) -> int:
    """Return the number of velocities of a joint."""
    return {FREE: 6, BALL: 3}.get(int(model.jnt_type[joint]), 1)


def of_dofs(field: str) -> Read:
    """Return a reader of a field of all joints' dofs."""

    def read(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for j in range(model.njnt):
            first = model.jnt_dofadr[j]
            last = first + dof_count(model, j)
            found[names.joint[j]] = row(getattr(model, field)[first:last])
        return found

    return read


def to_dofs(field: str) -> Write:
    """Return a writer of a field of one joint's dofs."""

    def write(
        model: mujoco.MjModel, names: ModelNames, element: str, value: Array
    ) -> None:
        joint = names.joint.index(element)
        first = model.jnt_dofadr[joint]
        getattr(model, field)[first : first + dof_count(model, joint)] = value

    return write


def read_rest(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the rest positions of the springs of 1-DoF joints, where present."""
    return {
        names.joint[j]: row(model.qpos_spring[model.jnt_qposadr[j]])
        for j in np.flatnonzero(model.jnt_stiffness)
        if model.jnt_type[j] not in (FREE, BALL)
    }


def write_rest(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the rest position of the spring of a 1-DoF joint."""
    joint = names.joint.index(element)
    model.qpos_spring[model.jnt_qposadr[joint]] = value[0]


def read_higher_damping(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the coefficients of v |v| and v³ in the damping of each joint."""
    return {
        names.joint[j]: row(model.dof_dampingpoly[model.jnt_dofadr[j]])
        for j in range(model.njnt)
    }


def write_higher_damping(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the coefficients of v |v| and v³ in a joint's damping."""
    to_dofs("dof_dampingpoly")(model, names, element, value)
