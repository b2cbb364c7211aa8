"""Columns of the state fields in a row, and of scalars and quaternions in qpos."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import ModelError
from simstate.engine.fields import STATE_FIELDS

_COMPONENTS = {
    "time": mujoco.mjtState.mjSTATE_TIME,
    "qpos": mujoco.mjtState.mjSTATE_QPOS,
    "qvel": mujoco.mjtState.mjSTATE_QVEL,
    "act": mujoco.mjtState.mjSTATE_ACT,
    "history": mujoco.mjtState.mjSTATE_HISTORY,
    "qacc_warmstart": mujoco.mjtState.mjSTATE_WARMSTART,
    "ctrl": mujoco.mjtState.mjSTATE_CTRL,
    "qfrc_applied": mujoco.mjtState.mjSTATE_QFRC_APPLIED,
    "xfrc_applied": mujoco.mjtState.mjSTATE_XFRC_APPLIED,
    "eq_active": mujoco.mjtState.mjSTATE_EQ_ACTIVE,
    "mocap_pos": mujoco.mjtState.mjSTATE_MOCAP_POS,
    "mocap_quat": mujoco.mjtState.mjSTATE_MOCAP_QUAT,
    "userdata": mujoco.mjtState.mjSTATE_USERDATA,
    "plugin_state": mujoco.mjtState.mjSTATE_PLUGIN,
    "plastic": getattr(mujoco.mjtState, "mjSTATE_PLASTIC", None),  # since MuJoCo 4
}


def state_columns(model: mujoco.MjModel) -> dict[str, slice]:
    """Return the columns of each state field in a row of mjSTATE_INTEGRATION."""
    columns: dict[str, slice] = {}
    start = 0
    for name in STATE_FIELDS:
        component = _COMPONENTS[name]
        size = 0 if component is None else mujoco.mj_stateSize(model, component.value)
        columns[name] = slice(start, start + size)
        start += size
    whole = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION.value)
    if start != whole:
        raise ModelError(
            f"MuJoCo {mujoco.__version__} has {whole - start} values in the state of "
            "this model that simstate does not know and would not reset or save. Use "
            "a tested version (docs/versions.md), or do not use features that are new "
            "in this version.",
            name="state",
        )
    return columns


def field_shape(model: mujoco.MjModel, shape: tuple[str | int, ...]) -> tuple[int, ...]:
    """Return a symbolic shape of the table of fields, evaluated for a model."""
    return tuple(
        size if isinstance(size, int) else int(getattr(model, size, 0))
        for size in shape
    )


class JointLayout(NamedTuple):
    """Addresses in qpos and qvel of the joints' coordinates."""

    flat: list[tuple[int, int]]
    """Addresses of each scalar coordinate."""
    quats: list[tuple[int, int]]
    """Addresses of each quaternion and of its angular velocity."""


def joint_layout(model: mujoco.MjModel) -> JointLayout:
    """Return the scalars and quaternions of qpos, in the order of the joints."""
    found = JointLayout([], [])
    free, ball = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
    for joint in range(model.njnt):
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        kind = int(model.jnt_type[joint])
        count = {free: 3, ball: 0}.get(kind, 1)
        found.flat.extend((q + k, v + k) for k in range(count))
        if kind in (free, ball):
            found.quats.append((q + count, v + count))
    return found


def activation_range(
    model: mujoco.MjModel,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the smallest and largest value of each activation; None: no limits."""
    if not model.na or not np.any(model.actuator_actlimited):
        return None
    low, high = np.full(model.na, -np.inf), np.full(model.na, np.inf)
    for actuator in np.flatnonzero(model.actuator_actlimited):
        first = model.actuator_actadr[actuator]
        if first >= 0:
            part = slice(first, first + model.actuator_actnum[actuator])
            low[part], high[part] = model.actuator_actrange[actuator]
    return low, high
