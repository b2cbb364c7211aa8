"""Columns of each state field in a row of the state tensor."""

from __future__ import annotations

import mujoco

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
    """The columns of each state field in a row of mjSTATE_INTEGRATION."""
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
            f"MuJoCo {mujoco.__version__} keeps {whole - start} values in the state of "
            "this model that simstate does not know: it would not reset or save them. "
            "Use a tested version (docs/versions.md), or leave out of the model what "
            "is new in this one.",
            name="state",
        )
    return columns


def field_shape(model: mujoco.MjModel, shape: tuple[str | int, ...]) -> tuple[int, ...]:
    """A symbolic shape of the table of fields in the model's own sizes."""
    return tuple(
        size if isinstance(size, int) else int(getattr(model, size, 0))
        for size in shape
    )
