"""mujoco.batch without the compiled core, with checks of threads and forks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import mujoco
import numpy as np
from mujoco import batch

from simstate.base.errors import ModelError
from simstate.base.mujoco_warnings import silenced
from simstate.engine.fields import AFTER_CONSTRAINTS
from simstate.engine.forks import keep_in_child, num_forks, refusal

if TYPE_CHECKING:
    from simstate.engine.native import NativeEngine

T = TypeVar("T")
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value


class PlainBatch:
    """`nsim` worlds of a model on `nthread` threads, by `mujoco.batch.Batch`.

    It rejects calls from a second thread and from a forked child.
    """

    def __init__(self, model: mujoco.MjModel, nsim: int, nthread: int) -> None:
        self._batch = batch.Batch(model, nsim, nthread)
        self.model = self._batch.model
        self.nthread = self._batch.nthread
        self.state = self._batch.state
        self.warning = self._batch.warning
        self.bind = self._batch.bind
        self.expand = self._batch.expand
        self.get_model = self._batch.get_model
        self._num_forks = num_forks()
        self._caller: int | None = None
        """The thread that is in a call, if any."""
        if self.nthread > 1:
            keep_in_child(self._batch)

    def step(self, ids: np.ndarray | None, nstep: int, stage: int) -> None:
        """Advance by nstep × mj_step, then compute the stages up to `stage`."""
        self._call(self._batch.step, ids, nstep, stage)

    def forward(self, ids: np.ndarray | None, stage: int) -> None:
        """Compute the stages up to `stage`."""
        self._call(self._batch.forward, ids, stage)

    def set_const(self, ids: np.ndarray | None) -> None:
        """Run mj_setConst by world."""
        self._call(self._batch.set_const, ids)

    def ray(self, *args: Any, **kwargs: Any) -> Any:
        """Cast rays, as `mujoco.batch.Batch.ray`."""
        return self._call(lambda: self._batch.ray(*args, **kwargs))

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        here = threading.get_ident()
        if self._num_forks != num_forks() and self.nthread > 1:
            raise refusal("fork")
        if self._caller not in (None, here) and self._caller in _alive():
            raise refusal("busy")
        self._caller = here
        try:
            with silenced():
                return function(*args)
        except batch.SimulationError as error:
            raise simulation_error(error) from error
        finally:
            self._caller = None


def simulation_error(error: batch.SimulationError) -> ModelError:
    """Return MuJoCo's error of a world as a ModelError with the remedy."""
    hint = ' Increase <size memory="…"/>.' if "memory" in str(error) else ""
    return ModelError(f"{str(error).rstrip('.')}.{hint}", worlds=error.ids.tolist())


def _alive() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate()}


def keep_by_world(
    engine: NativeEngine,
    states: np.ndarray,
    ids: np.ndarray | None,
    steps: int,
    after_constraints: bool,
) -> None:
    """Write `engine.kept` as mj_forward or mj_step leaves mjData, world by world.

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
