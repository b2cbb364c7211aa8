"""A scheme and a model as arrays for the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import mujoco
import numpy as np

ATTITUDES = {"manifold": 0, "high_order": 1, "lie": 2}
"""The attitude modes, as the core numbers them."""


class TableauLike(Protocol):
    """A Butcher tableau, as `simstate.integrate.Tableau` has it."""

    @property
    def a(self) -> Sequence[Sequence[float]]:
        """Row i has the weights of the i stages before it."""
        ...

    @property
    def b(self) -> Sequence[float]:
        """The weights of the accepted solution."""
        ...

    @property
    def c(self) -> Sequence[float]:
        """When each stage is evaluated, as a part of the step."""
        ...

    @property
    def b_error(self) -> Sequence[float] | None:
        """b less the weights of the embedded solution."""
        ...

    @property
    def b_error_low(self) -> Sequence[float] | None:
        """A second, coarser estimate."""
        ...

    @property
    def control_order(self) -> int:
        """The order of the error estimate."""
        ...

    @property
    def is_first_same_as_last(self) -> bool:
        """True if the last stage is at the new state."""
        ...


def tableau_arrays(tableau: TableauLike, attitude: str) -> dict[str, Any]:
    """The weights of a scheme; a is filled up with zeros to a square."""
    stages = len(tableau.b)
    a = np.zeros((stages, stages))
    for i, row in enumerate(tableau.a):
        a[i, : len(row)] = row
    return {
        "a": a,
        "b": np.array(tableau.b, np.float64),
        "c": np.array(tableau.c, np.float64),
        "control_order": tableau.control_order,
        "first_same_as_last": int(tableau.is_first_same_as_last),
        "attitude": ATTITUDES[attitude],
    }


def optional_row(row: Sequence[float] | None) -> np.ndarray[Any, Any] | None:
    """Weights that a tableau may not have."""
    return None if row is None else np.array(row, np.float64)


def position_layout(model: mujoco.MjModel) -> dict[str, Any]:
    """Return the columns of scalars and quaternions in qpos and of their rates."""
    flat: list[tuple[int, int]] = []
    quats: list[tuple[int, int]] = []
    free, ball = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
    for joint in range(model.njnt):
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        kind = int(model.jnt_type[joint])
        numbers = {free: 3, ball: 0}.get(kind, 1)
        flat += [(q + k, v + k) for k in range(numbers)]
        if kind in (free, ball):
            quats.append((q + numbers, v + numbers))
    tables = {
        name: np.array(pairs, np.int32).reshape(-1, 2)
        for name, pairs in (("flat", flat), ("quat", quats))
    }
    return {
        f"{name}_{part}": np.ascontiguousarray(table[:, k])
        for name, table in tables.items()
        for k, part in enumerate(("qpos", "qvel"))
    }


def activation_range(model: mujoco.MjModel) -> dict[str, Any]:
    """Return the limits of each activation, if any is limited."""
    if not model.na or not np.any(model.actuator_actlimited):
        return {"act_low": None, "act_high": None}
    low, high = np.full(model.na, -np.inf), np.full(model.na, np.inf)
    for actuator in np.flatnonzero(model.actuator_actlimited):
        first = model.actuator_actadr[actuator]
        if first >= 0:
            part = slice(first, first + model.actuator_actnum[actuator])
            low[part], high[part] = model.actuator_actrange[actuator]
    return {"act_low": low, "act_high": high}
