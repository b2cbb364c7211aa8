"""Common parts of reading and writing parameters."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mjcf_parts import ModelNames

Read = Callable[[mujoco.MjModel, ModelNames], dict[str, Array]]
"""Function that reads the values of a model by element."""
Write = Callable[[mujoco.MjModel, ModelNames, str, Array], None]
"""Function that writes a value of an element."""

FREE, BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value


def row(values: object) -> Array:
    """A value as a new one-dimensional array of float64."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).copy()
