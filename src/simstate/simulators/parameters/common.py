"""What reads and writes of parameters share."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from simstate.simulators.base import Array
from simstate.simulators.mjcf_parts import Names

Read = Callable[[mujoco.MjModel, Names], dict[str, Array]]
"""The values of a model by element."""
Write = Callable[[mujoco.MjModel, Names, str, Array], None]
"""Gives an element of a model another value."""

FREE, BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value


def row(values: object) -> Array:
    """A value as a new one-dimensional array of float64."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).copy()
