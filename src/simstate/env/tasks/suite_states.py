"""States at reset of dm_control's tasks, one world at a time."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.random import Generator

from simstate.base.errors import InvalidInputError

Array = np.ndarray[Any, Any]
_MAX_DRAWS, _MAX_LIFTS = 10_000, 10_000


def random_joints(rng: Generator, model: mujoco.MjModel, qpos: Array) -> Array:
    """Return qpos with joints drawn from their ranges; free bodies get an attitude.

    Slides without a range, and positions of free bodies, keep their values.
    """
    kinds, found = mujoco.mjtJoint, qpos.copy()
    for k in range(model.njnt):
        kind, at = model.jnt_type[k], model.jnt_qposadr[k]
        low, high = model.jnt_range[k]
        if kind == kinds.mjJNT_FREE or kind == kinds.mjJNT_BALL:
            quat = rng.random(4) if kind == kinds.mjJNT_FREE else rng.normal(size=4)
            first = at + 3 * (kind == kinds.mjJNT_FREE)
            found[first : first + 4] = quat / np.linalg.norm(quat)
        elif model.jnt_limited[k]:
            found[at] = rng.uniform(low, high)
        elif kind == kinds.mjJNT_HINGE:
            found[at] = rng.uniform(-np.pi, np.pi)
    return found


def num_contacts(model: mujoco.MjModel, data: mujoco.MjData, qpos: Array) -> int:
    """Return the number of contacts at rest in these positions."""
    data.qpos[:] = qpos
    mujoco.mj_fwdPosition(model, data)
    return int(data.ncon)


def collision_free(rng: Generator, model: mujoco.MjModel, qpos: Array) -> Array:
    """Return the first draw of `random_joints` that has no contacts."""
    data = mujoco.MjData(model)
    for _ in range(_MAX_DRAWS):
        found = random_joints(rng, model, qpos)
        if num_contacts(model, data, found) == 0:
            return found
    raise InvalidInputError(f"No state without contacts in {_MAX_DRAWS} draws.")


def without_contacts(model: mujoco.MjModel, qpos: Array) -> Array:
    """Return qpos with a free body raised, by 1 cm at a time, off all contacts."""
    data, found = mujoco.MjData(model), qpos.copy()
    for _ in range(_MAX_LIFTS):
        if num_contacts(model, data, found) == 0:
            return found
        found[2] += 0.01
    raise InvalidInputError(f"Contacts remain {_MAX_LIFTS} cm higher.")


def settled(model: mujoco.MjModel, qpos: Array, steps: int) -> tuple[Array, Array]:
    """Return qpos and qvel after some time steps without controls.

    As in dm_control, the forces of the first step are those of the model's own state.
    """
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    data.qpos[:] = qpos
    mujoco.mj_step2(model, data)
    mujoco.mj_step(model, data, nstep=steps - 1)
    return data.qpos.copy(), data.qvel.copy()


def limited_joints(rng: Generator, model: mujoco.MjModel, qpos: Array) -> Array:
    """Return qpos with the joints that have a range drawn from it.

    All joints are hinges or slides.
    """
    limited, found = model.jnt_limited == 1, qpos.copy()
    found[limited] = rng.uniform(*model.jnt_range[limited].T)
    return found


def sensors_at_rest(model: mujoco.MjModel, qpos: Array, qvel: Array) -> Array:
    """Return sensordata at a state, with actuators switched off."""
    data, flags = mujoco.MjData(model), model.opt.disableflags
    data.qpos[:], data.qvel[:] = qpos, qvel
    try:
        model.opt.disableflags = flags | mujoco.mjtDisableBit.mjDSBL_ACTUATION.value
        mujoco.mj_forward(model, data)
    finally:
        model.opt.disableflags = flags
    return data.sensordata.copy()
