"""Fields of the last evaluation without the core, one world after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from simstate.base.mujoco_warnings import silenced
from simstate.engine.fields import AFTER_CONSTRAINTS

if TYPE_CHECKING:
    from simstate.engine.native import NativeEngine

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value


def keep_by_world(
    engine: NativeEngine,
    states: np.ndarray,
    ids: np.ndarray | None,
    steps: int,
    after_constraints: bool,
) -> None:
    """Write `engine.kept` as mj_forward or mj_step leaves mjData, from given states.

    Args:
        engine: the engine, whose state is not touched.
        states: the states to start from; shape (num_envs, nstate).
        ids: the worlds; None: all.
        steps: 1: take a step; 0: evaluate the dynamics.
        after_constraints: run mj_rnePostConstraint then.
    """
    batch, differ = engine.batch, engine.has_own_parameters
    data = mujoco.MjData(batch.model)
    memory = {name: kept.data.numpy() for name, kept in engine.kept.items()}
    worlds = range(engine.num_envs) if ids is None else ids.tolist()
    with silenced():
        for world in worlds:
            model = batch.get_model(world) if differ else batch.model
            for name in AFTER_CONSTRAINTS:
                getattr(data, name)[:] = 0.0
            mujoco.mj_setState(model, data, states[world], _STATE)
            (mujoco.mj_step if steps else mujoco.mj_forward)(model, data)
            if after_constraints:
                mujoco.mj_rnePostConstraint(model, data)
            for name, rows in memory.items():
                rows[world] = getattr(data, name).reshape(rows.shape[1:])
