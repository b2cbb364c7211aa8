"""The native engine: MuJoCo's C engine on all cores, float64, through mujoco.batch."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import warnings

import mujoco
import numpy as np
import torch
from mujoco import batch
from torch import Tensor

from simstate.engine.base import MAX_VALUE, Engine
from simstate.engine.cfg import NativeCfg
from simstate.engine.core import CoreBatch, is_available
from simstate.engine.fields import EVALUATED_FIELDS, STATE_FIELDS
from simstate.engine.stage import Stage
from simstate.engine.threads import threads_by_work
from simstate.errors import InvalidInputError, unknown_name

_STAGES = {
    Stage.POSITION: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.VELOCITY: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.ACCELERATION: mujoco.mjtStage.mjSTAGE_ACC.value,
}
_FIRST_BAD = mujoco.mjtWarning.mjWARN_BADQPOS.value
_BAD_FIELDS = ("qpos", "qvel", "qacc", "ctrl")  # in the order of mjtWarning


NATIVE_CONSTANTS = (
    "dof_M0",
    "dof_length",
    "actuator_length0",
    "geom_sameframe",
    "bvh_aabb",
)
"""What mj_setConst computes that MuJoCo Warp has no use for."""


class NativeEngine(Engine):
    """Worlds as rows of mjSTATE_INTEGRATION, run by the compiled core or mujoco.batch.

    One MjData per thread serves all worlds: it measured as fast as one per world or
    faster, and memory does not grow with the worlds.
    """

    name = "native"
    dtype = torch.float64
    _more_derived_constants = NATIVE_CONSTANTS

    def __init__(self, model: mujoco.MjModel, num_envs: int, cfg: NativeCfg) -> None:
        super().__init__(model, num_envs, torch.device("cpu"))
        if cfg.num_threads < 0:
            raise InvalidInputError(f"num_threads must be ≥ 0, got {cfg.num_threads}.")
        model = _neutral_settings(model)
        threads = cfg.num_threads or threads_by_work(model, num_envs)
        make = CoreBatch if is_available() else batch.Batch
        self.batch = make(model, num_envs, threads)
        with torch.inference_mode(False):
            self._state = torch.from_numpy(self.batch.state)
        for name in (*STATE_FIELDS, *EVALUATED_FIELDS):
            self.field(name)
        self._counts = self.batch.warning[..., 1]
        self._counts_before = self._counts.copy()
        self._risen: np.ndarray | None = None
        """Which warning counters rose in the last step; None: none did."""
        # NumPy's calls cost less than torch's, which tells for few worlds.
        self._evolving = self.batch.state[:, : self.num_evolving]
        mocap = slice(self.columns["mocap_pos"].start, self.columns["mocap_quat"].stop)
        self._mocap = self.batch.state[:, mocap]
        self._before = self.before.numpy()
        self._sizes = np.zeros_like(self._before)

    @property
    def state(self) -> Tensor:
        """The live state of all worlds; shape (num_envs, nstate)."""
        return self._state

    @property
    def state_is_live(self) -> bool:
        """Writing into `state` writes the simulation's state."""
        return True

    def is_bound(self, name: str) -> bool:
        """Whether the field has been copied out of the calls so far."""
        return name in self.fields

    def _bind(self, name: str) -> Tensor:
        array = self.batch.bind(name)
        with warnings.catch_warnings():
            # Outputs are read-only arrays; nobody here writes to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            tensor = torch.from_numpy(array)
        return tensor.view(self.field_shape(name))

    def remember(self) -> None:
        """Copy the columns of the state that a step changes to `before`."""
        np.copyto(self._before, self._evolving)
        np.copyto(self._counts_before, self._counts)

    def _advance(self, n: int, env_ids: Tensor | None) -> None:
        """Run n × mj_step, then the velocity stage at the new state."""
        with _QUIET:
            self.batch.step(_ids(env_ids), n, _STAGES[Stage.VELOCITY])
        risen = self._counts != self._counts_before
        self._risen = risen if risen.any() else None
        if self._risen is not None and risen[:, :_FIRST_BAD].any():
            self._warn_of(risen)

    def find_bad(self) -> Tensor | None:
        """Worlds whose state is bad, or that MuJoCo found bad on its way."""
        # NaN compares as false. (A dot product would start BLAS's threads, and those
        # wait for milliseconds while MuJoCo's still spin.)
        np.abs(self._evolving, out=self._sizes)
        fine = bool(self._sizes.max() <= MAX_VALUE)
        if self._mocap.size:
            fine = fine and bool((np.abs(self._mocap) <= MAX_VALUE).all())
        if fine and self._risen is None:
            return None
        bad = ~(self._sizes <= MAX_VALUE).all(axis=1)
        bad |= ~(np.abs(self._mocap) <= MAX_VALUE).all(axis=1)
        if self._risen is not None:
            bad |= self._risen[:, _FIRST_BAD:].any(axis=1)
        return torch.from_numpy(bad) if bad.any() else None

    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage`, in these worlds alone.

        A pass that stops before the accelerations leaves those of another world in
        their place; a world whose positions are behind has them behind as well.
        """
        with _QUIET:
            self.batch.forward(_ids(env_ids), _STAGES[stage])

    def cause(self, world: int) -> tuple[str, int] | None:
        """The field and index that MuJoCo's own warning names in this world."""
        for k, field in enumerate(_BAD_FIELDS):
            if self._risen is not None and self._risen[world, _FIRST_BAD + k]:
                return field, int(self.batch.warning[world, _FIRST_BAD + k, 0])
        return None

    def _expand(self, name: str) -> Tensor:
        if name not in batch.MODEL_FIELDS:
            raise unknown_name("model parameter", name, sorted(batch.MODEL_FIELDS))
        return torch.from_numpy(self.batch.expand(name))

    def set_const(self, env_ids: Tensor | None) -> None:
        """Run mj_setConst in these worlds; the state is not touched."""
        with _QUIET:
            self.batch.set_const(_ids(env_ids))
        for name in self.derived_constants():
            self.expand(name)  # the batch did: now they are known to be per world

    def report_warnings(self) -> None:
        """Warn of full buffers and the like since `remember`."""
        risen = self._counts != self._counts_before
        if risen[:, :_FIRST_BAD].any():
            self._warn_of(risen)

    def _warn_of(self, risen: np.ndarray) -> None:
        """Tell of warnings in the last step that are not about a bad state."""
        for kind in range(_FIRST_BAD):
            worlds = np.flatnonzero(risen[:, kind])
            if worlds.size:
                text = mujoco.mju_warningText(kind, 0)
                warnings.warn(
                    f"MuJoCo warns in {worlds.size} worlds, first {worlds[0]}: {text}",
                    RuntimeWarning,
                    stacklevel=4,
                )


def _neutral_settings(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of the model as the engine runs it; sound worlds have the same bits.

    MuJoCo does not reset the worlds that it finds bad: even a forward pass would, and
    the state would be lost. A single kinematic tree is one constraint island: looking
    for islands then only costs time.
    """
    model = copy.copy(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET.value
    if model.ntree == 1:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND.value
    return model


def _ids(env_ids: Tensor | None) -> np.ndarray | None:
    """Rising ids as mujoco.batch takes them."""
    if env_ids is None:
        return None
    return env_ids.sort().values.numpy()


class _Quiet:
    """Keeps MuJoCo from printing and logging what its counters tell us anyway."""

    def __enter__(self) -> None:
        self._handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(_ignore)

    def __exit__(self, *error: object) -> None:
        mujoco.set_mju_user_warning(self._handler)


def _ignore(message: str) -> None:
    del message


_QUIET = _Quiet()
