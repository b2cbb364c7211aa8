"""Free bodies and their loads as in flight dynamics, in C for all worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simstate.base import compiled_core

Array = NDArray[Any]


def describe(qpos: Array, qvel: Array, com: Array) -> Array:
    """Return the motion of a free body's centre of mass; float64, (num_worlds, 18).

    Position [m] and velocity [m/s], world axes; angular velocity, body axes [deg/s];
    and the matrix from world to body components, row by row. `qpos` (num_worlds, 7) and
    `qvel` (num_worlds, 6) are those of its joint, `com` (num_worlds or 1, 3) is the
    centre of mass from the body's origin, body axes [m].
    """
    out = np.empty((len(qpos), 18))
    compiled_core.module().free_bodies(len(qpos), (qpos, qvel, com, out))
    return out


def to_world(
    qpos: Array, force: Array, moment: Array, turned: bool, out: Array
) -> bool:
    """Write loads on a free body, world axes, into `out`; (num_worlds, 1, 6).

    `qpos` (num_worlds, 7) is that of its joint, `force` and `moment` are (num_worlds or
    1, 3), along the body's axes if `turned`, else along the world's. Return False if a
    value is not finite.
    """
    module = compiled_core.module()
    return bool(module.body_loads(len(qpos), turned, (qpos, force, moment, out)))
