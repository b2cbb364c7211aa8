"""The native engine: MuJoCo's C engine on all cores, float64, through mujoco.batch."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import mujoco
import numpy as np
import torch
from mujoco import batch
from torch import Tensor

from simstate.checks import whole_number
from simstate.engine.base import MAX_VALUE, Engine, moving_columns
from simstate.engine.cfg import NativeCfg
from simstate.engine.core import CoreBatch, Watch, is_available
from simstate.engine.fields import EVALUATED_FIELDS, STATE_FIELDS
from simstate.engine.native_calls import NativeCalls
from simstate.engine.native_on_demand import NativeOnDemand
from simstate.engine.on_demand import OnDemand
from simstate.engine.stage import Stage
from simstate.engine.threads import threads_by_work
from simstate.errors import listed, unknown_name, warn

_STAGES = {
    Stage.POSITION: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.VELOCITY: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.ACCELERATION: mujoco.mjtStage.mjSTAGE_ACC.value,
}
_NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE.value
_FIRST_LOSS = mujoco.mjtWarning.mjWARN_CONTACTFULL.value
_FIRST_BAD = mujoco.mjtWarning.mjWARN_BADQPOS.value
_BAD_FIELDS = ("qpos", "qvel", "qacc", "ctrl")  # in the order of mjtWarning


class NativeEngine(Engine):
    """Worlds as rows of mjSTATE_INTEGRATION, run by the compiled core or mujoco.batch.

    One MjData per thread serves all worlds: it measured as fast as one per world or
    faster, and memory does not grow with the worlds.
    """

    name = "native"
    dtype = torch.float64
    is_exact = True
    state_is_live = True
    constants = Engine.all_constants
    uses_sameframe = True

    def __init__(self, model: mujoco.MjModel, num_envs: int, cfg: NativeCfg) -> None:
        super().__init__(model, num_envs, torch.device("cpu"))
        whole_number("num_threads", cfg.num_threads, 0, 4096)
        model = _neutral_settings(model)
        threads = cfg.num_threads or threads_by_work(model, num_envs)
        if is_available():
            self.batch = self.compiled = CoreBatch(model, num_envs, threads)
        else:
            self.batch = batch.Batch(model, num_envs, threads)
        self._calls = NativeCalls(self.batch)
        with torch.inference_mode(False):
            self._state = torch.from_numpy(self.batch.state)
        for name in (*STATE_FIELDS, *EVALUATED_FIELDS):
            self.field(name)
        self._counts = self.batch.warning[..., 1]
        self._counts_before = self._counts.copy()
        # NumPy's calls cost less than torch's, which tells for few worlds.
        moving = moving_columns(self)
        self._moving = self.batch.state[:, moving]
        self._sizes = np.zeros_like(self._moving)
        mocap = slice(self.columns["mocap_pos"].start, self.columns["mocap_quat"].stop)
        self._watch: Watch | None = None
        # Of other inputs, MuJoCo's state shows what is bad.
        inputs = [self.columns["ctrl"], mocap, *self._wrenches_without_effect()]
        if self.compiled is not None:
            self._watch = Watch(self.compiled, (moving, *inputs), MAX_VALUE)
            self._counts_before = self._watch.counts
        parts = (self.batch.state[:, columns] for columns in inputs)
        self._inputs = [part for part in parts if part.size]

    def _wrenches_without_effect(self) -> list[slice]:
        """The columns of wrenches on bodies that cannot move: the world's, and more."""
        first = self.columns["xfrc_applied"].start
        still = np.flatnonzero(self.model.body_weldid == 0)
        runs = np.split(still, np.flatnonzero(np.diff(still) > 1) + 1)
        return [slice(first + 6 * int(r[0]), first + 6 * int(r[-1]) + 6) for r in runs]

    @property
    def state(self) -> Tensor:
        """The live state of all worlds; shape (num_envs, nstate)."""
        return self._state

    def state_memory(self) -> list[tuple[tuple[str, ...], Tensor]]:
        """One array that holds the rows of all fields."""
        return [(STATE_FIELDS, self._state.data)]

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

    def _make_on_demand(self) -> OnDemand:
        return NativeOnDemand(self)

    @property
    def calls(self) -> NativeCalls:
        """Entered for every call: MuJoCo prints nothing, and its errors are ours."""
        return self._calls

    def begin_evaluation(self) -> None:
        """Take note of MuJoCo's counts of warnings."""
        if self._watch is not None:
            self._watch.begin()
            return
        np.copyto(self._counts_before, self._counts)

    def advance(
        self,
        n: int,
        env_ids: Tensor | None,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Run n × mj_step, then the velocity stage at the new state.

        The core lets observers see each step within the call. Without it, where one
        wants to, each step is a call of its own, with the same bits.
        """
        del settle
        ids = _ids(env_ids)
        if self.compiled is not None:
            contacts = ()
            if self.observers:
                contacts = tuple(x.compiled for x in self.observers if x.compiled)
            with self._calls:
                self.compiled.step(ids, n, contacts=contacts)
            return
        with self._calls:
            if self._looks_at_every_step:
                for _ in range(n - 1):
                    self.batch.step(ids, 1, _NO_STAGE)
                    self._observe(1, env_ids)
                n = 1
            self.batch.step(ids, n, _STAGES[Stage.VELOCITY])
        self._observe(n, env_ids)

    def _observe(self, n: int, env_ids: Tensor | None) -> None:
        self.note_evaluation()
        self.note_steps(n, env_ids)

    def find_bad(self) -> Tensor | None:
        """Worlds whose state or input is bad, or that MuJoCo found bad on its way."""
        if self._watch is not None:
            is_bad, _ = self._watch.look()
            return torch.from_numpy(self._watch.bad.copy()) if is_bad else None
        # NaN compares as false. (A dot product would start BLAS's threads, and those
        # wait for milliseconds while MuJoCo's still spin.)
        np.abs(self._moving, out=self._sizes)
        fine = bool(self._sizes.max() <= MAX_VALUE)
        fine = fine and all(bool((np.abs(x) <= MAX_VALUE).all()) for x in self._inputs)
        risen = self._counts != self._counts_before
        if fine and not risen.any():
            return None
        bad = ~(self._sizes <= MAX_VALUE).all(axis=1)
        bad |= risen[:, _FIRST_LOSS:].any(axis=1)
        for part in self._inputs:
            bad |= ~(np.abs(part) <= MAX_VALUE).all(axis=1)
        return torch.from_numpy(bad) if bad.any() else None

    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage`, in these worlds alone.

        A pass that stops before the accelerations leaves those of another world in
        their place; a world whose positions are behind has them behind as well.
        """
        with self._calls:
            self.batch.forward(_ids(env_ids), _STAGES[stage])
        if stage == Stage.ACCELERATION:
            self.note_evaluation()

    def cause(self, world: int) -> tuple[str, int] | None:
        """The field and index that MuJoCo's own warning names in this world."""
        for k, field in enumerate(_BAD_FIELDS, start=_FIRST_BAD):
            if self._counts[world, k] != self._counts_before[world, k]:
                return field, int(self.batch.warning[world, k, 0])
        return None

    def _expand(self, name: str) -> Tensor:
        if name not in batch.MODEL_FIELDS:
            raise unknown_name("model parameter", name, sorted(batch.MODEL_FIELDS))
        if name == "geom_dataid":
            # Its trees of bounding boxes are those of the compiled meshes.
            flags = self.batch.expand("opt.disableflags")
            flags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE.value
        return torch.from_numpy(self.batch.expand(name))

    def set_const(self, env_ids: Tensor | None) -> None:
        """Run mj_setConst in these worlds; the state is not touched."""
        with self._calls:
            self.batch.set_const(_ids(env_ids))
        self._constants_differ = True

    def loss(self, world: int) -> str:
        """What MuJoCo says of it."""
        risen = self._counts[world] != self._counts_before[world]
        kinds = np.flatnonzero(risen[_FIRST_LOSS:_FIRST_BAD]) + _FIRST_LOSS
        return " ".join(self._warning(world, int(kind)) for kind in kinds)

    def report_warnings(self, env_ids: Tensor | None) -> bool:
        """Warn of full buffers and the like since `begin_step`."""
        if self._watch is not None and not self._watch.warned():
            return False
        risen = self._counts != self._counts_before
        if not risen.any():
            return False
        if env_ids is not None:
            others = np.ones(self.num_envs, dtype=bool)
            others[env_ids.numpy()] = False
            risen[others] = False
        for kind in range(_FIRST_BAD):
            worlds = np.flatnonzero(risen[:, kind])
            if worlds.size:
                warn(
                    f"In {worlds.size} of {self.num_envs} worlds "
                    f"({listed(worlds, 10)}): {self._warning(int(worlds[0]), kind)}"
                )
        return bool(risen[:, _FIRST_LOSS:_FIRST_BAD].any())

    def _warning(self, world: int, kind: int) -> str:
        """MuJoCo's text of a warning that it gave in a world."""
        info = int(self.batch.warning[world, kind, 0])
        return f"MuJoCo warns: {mujoco.mju_warningText(kind, info)}"


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
    return np.sort(env_ids.numpy())
