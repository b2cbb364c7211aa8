"""dm_control's own environments, for comparisons."""

from __future__ import annotations

import mujoco
import numpy as np

STATE = mujoco.mjtState.mjSTATE_INTEGRATION
TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}


def theirs_of(name: str):
    from dm_control import suite

    _, domain, task = name.split("-")
    return suite.load(domain, task, task_kwargs={"random": 3})


def flat(observation) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in observation.values()])
