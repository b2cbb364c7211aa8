from typing import Any

import numpy as np
from mujoco import MjModel

DATA_FIELDS: frozenset[str]
MODEL_FIELDS: frozenset[str]

class SimulationError(RuntimeError):
    ids: np.ndarray[Any, Any]
    def __init__(
        self, ids: np.ndarray[Any, Any], message: str, ncall: int | None = ...
    ) -> None: ...

class Batch:
    model: MjModel
    state: np.ndarray[Any, Any]
    warning: np.ndarray[Any, Any]
    status: np.ndarray[Any, Any]
    nthread: int
    def __init__(
        self, model: MjModel, nsim: int, nthread: int = ..., persistent: bool = ...
    ) -> None: ...
    def bind(self, name: str) -> np.ndarray[Any, Any]: ...
    def expand(self, name: str) -> np.ndarray[Any, Any]: ...
    def get_model(self, sim: int) -> MjModel: ...
    def step(
        self, ids: np.ndarray[Any, Any] | None, nstep: int = ..., stage: int = ...
    ) -> None: ...
    def forward(self, ids: np.ndarray[Any, Any] | None, stage: int = ...) -> None: ...
    def set_const(self, ids: np.ndarray[Any, Any] | None) -> None: ...
    def ray(
        self,
        pnt: np.ndarray[Any, Any],
        vec: np.ndarray[Any, Any],
        geomgroup: np.ndarray[Any, Any] | None = ...,
        flg_static: bool = ...,
        bodyexclude: int = ...,
        ids: np.ndarray[Any, Any] | None = ...,
        normal: bool = ...,
    ) -> tuple[np.ndarray[Any, Any], ...]: ...
