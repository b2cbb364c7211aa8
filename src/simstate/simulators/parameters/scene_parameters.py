"""Options, integrators and geoms: reading and writing."""

from __future__ import annotations

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.capabilities import colliding
from simstate.simulators.drives import drives
from simstate.simulators.mjcf_actuators import actuator_kind
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.parameters.body_parameters import is_free
from simstate.simulators.parameters.common import Read, row


def of_options(*fields: str) -> Read:
    """Return a reader of physics options by name."""

    def read(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
        return {field: row(getattr(model.opt, field)) for field in fields}

    return read


def to_option(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write a physics option."""
    field = getattr(model.opt, element)
    setattr(model.opt, element, value if np.ndim(field) else value[0])


EXPLICIT_EULER = 4.0
"""MuJoCo's Euler (0) with explicit dampers."""
IMPLICIT_SERVOS = 5.0
"""MuJoCo's implicitfast (3) with implicit stiffness of servos."""
EXPLICIT_GYROSCOPIC = 6.0
"""MuJoCo's implicitfast (3) with explicit gyroscopic forces of free bodies without
children."""


def read_integrator(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the number of the integrator."""
    return {"the scene": row(model.opt.integrator)}


def write_integrator(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write an integrator of MuJoCo's, or the nearest to another simulator's."""
    number = float(value[0])
    if number == EXPLICIT_EULER:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER.value
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP.value
    elif number in (IMPLICIT_SERVOS, EXPLICIT_GYROSCOPIC):  # completed by step_as
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST.value
    else:
        model.opt.integrator = int(number)


def free_bodies_alone(model: mujoco.MjModel) -> list[int]:
    """Return the bodies with a free joint and no children."""
    return [
        b
        for b in range(1, model.nbody)
        if is_free(model, b) and not np.any(model.body_parentid[1:] == b)
    ]


def step_as(model: mujoco.MjModel, number: float) -> None:
    """Make a model step like an integrator that MuJoCo does not have.

    The implicit stiffness P (q* − q − h v⁺) of a servo is an additional damping h P.
    implicitfast evaluates dampers and servos at v⁺, and also the gyroscopic forces of
    free bodies without children. With such bodies, Euler is used instead, which
    evaluates dampers at v⁺, and servos' damping is moved to dampers.
    """
    if number not in (IMPLICIT_SERVOS, EXPLICIT_GYROSCOPIC):
        return
    alone = free_bodies_alone(model)
    step = float(model.opt.timestep)
    kind = mujoco.mjtIntegrator
    integrator = kind.mjINT_EULER if alone else kind.mjINT_IMPLICITFAST
    model.opt.integrator = integrator.value
    joints = {i.column: drive.joint for drive in drives(model) for i in drive.inputs}
    for a in range(model.nactuator):
        bias = model.actuator_biasprm[a]
        if number == IMPLICIT_SERVOS and actuator_kind(model, a) == "position":
            bias[2] += step * bias[1]
        joint = joints.get(int(model.actuator_ctrladr[a]))
        if alone and joint is not None:
            gear = float(model.actuator_gear[int(model.actuator_outadr[a]), 0])
            model.dof_damping[model.jnt_dofadr[joint]] -= bias[2] * gear**2
            bias[2] = 0.0


def read_sizes(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return half-sizes or radii of colliding geoms other than planes and meshes."""
    used = {2: 1, 3: 2, 4: 3, 5: 2, 6: 3}
    return {
        names.geom[g]: row(model.geom_size[g, : used[int(model.geom_type[g])]])
        for g in colliding(model)
        if int(model.geom_type[g]) in used
    }


def read_friction(model: mujoco.MjModel, names: ModelNames) -> dict[str, Array]:
    """Return the sliding friction of the geoms that may touch."""
    return {names.geom[g]: row(model.geom_friction[g, 0]) for g in colliding(model)}


def write_size(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the sizes of a geom."""
    model.geom_size[names.geom.index(element), : len(value)] = value


def write_friction(
    model: mujoco.MjModel, names: ModelNames, element: str, value: Array
) -> None:
    """Write the sliding friction of a geom."""
    model.geom_friction[names.geom.index(element), 0] = value[0]
