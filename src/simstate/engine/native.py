"""The native engine: MuJoCo's C engine on all cores, float64."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch
from mujoco import batch
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.errors import listed, unknown_name, warn
from simstate.engine.core import CoreBatch, StepWatch, is_available
from simstate.engine.engine import MAX_VALUE, Engine, moving_columns
from simstate.engine.engine_cfg import NativeCfg
from simstate.engine.fields import (
    AFTER_CONSTRAINTS,
    EVALUATED_FIELDS,
    FIELDS,
    STATE_FIELDS,
)
from simstate.engine.native_on_demand import NativeOnDemand
from simstate.engine.on_demand import OnDemand
from simstate.engine.plain_batch import PlainBatch, keep_by_world
from simstate.engine.stage import Seen, Stage
from simstate.engine.threads import threads_by_work

if TYPE_CHECKING:
    from simstate.engine.core import _core

_STAGES = {
    Stage.POSITION: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.VELOCITY: mujoco.mjtStage.mjSTAGE_VEL.value,
    Stage.ACCELERATION: mujoco.mjtStage.mjSTAGE_ACC.value,
}
_LATE_WORLDS = 512
"""Number of worlds at a time in which a late-bound field is computed."""
_NO_STAGE = mujoco.mjtStage.mjSTAGE_NONE.value
_FIRST_LOSS = mujoco.mjtWarning.mjWARN_CONTACTFULL.value
_FIRST_BAD = mujoco.mjtWarning.mjWARN_BADQPOS.value
_FAILED = Seen.FAILED.value
_BAD_FIELDS = ("qpos", "qvel", "qacc", "ctrl")  # in the order of mjtWarning


class NativeEngine(Engine):
    """Worlds as rows of mjSTATE_INTEGRATION, run by the compiled core or mujoco.batch.

    All worlds share one MjData per thread, which was measured to be at least as fast as
    one per world, and memory does not grow with the number of worlds.
    """

    name = "native"
    dtype = torch.float64
    is_exact = True
    state_is_live = True
    constants = Engine.all_constants
    uses_sameframe = True

    def __init__(
        self,
        model: mujoco.MjModel,
        num_envs: int,
        cfg: NativeCfg,
        timestep: float | None = None,
    ) -> None:
        super().__init__(model, num_envs, torch.device("cpu"))
        whole_number("num_threads", cfg.num_threads, 0, 4096)
        model = _neutral_settings(model)
        if timestep is not None:
            model.opt.timestep = timestep
        threads = cfg.num_threads or threads_by_work(model, num_envs)
        if is_available():
            self.batch = self.compiled = CoreBatch(model, num_envs, threads)
        else:
            self.batch = PlainBatch(model, num_envs, threads)
        with torch.inference_mode(False):
            self._state = torch.from_numpy(self.batch.state)
        for name in (*STATE_FIELDS, *EVALUATED_FIELDS):
            self.field(name)
        self._counts = self.batch.warning[..., 1]
        self._counts_before = self._counts.copy()
        # NumPy's calls are cheaper than torch's, which matters for few worlds.
        moving = moving_columns(self)
        self._moving = self.batch.state[:, moving]
        mocap = slice(self.columns["mocap_pos"].start, self.columns["mocap_quat"].stop)
        self._watch: StepWatch | None = None
        # Invalid values of other inputs show in MuJoCo's state.
        inputs = [self.columns["ctrl"], mocap, *self._wrenches_without_effect()]
        if self.compiled is not None:
            self._watch = StepWatch(self.compiled, (moving, *inputs), MAX_VALUE)
            self._watched_step = self.compiled.core.watched_step
            self._forward = self.compiled.core.forward
            self._counts_before = self._watch.counts
        parts = (self.batch.state[:, columns] for columns in inputs)
        self._inputs = [part for part in parts if part.size]
        self._is_rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4.value

    def _wrenches_without_effect(self) -> list[slice]:
        """Return the columns of wrenches on immovable bodies, such as the world."""
        first = self.columns["xfrc_applied"].start
        still = np.flatnonzero(self.model.body_weldid == 0)
        runs = np.split(still, np.flatnonzero(np.diff(still) > 1) + 1)
        return [slice(first + 6 * int(r[0]), first + 6 * int(r[-1]) + 6) for r in runs]

    @property
    def state(self) -> Tensor:
        """The live state of all worlds; shape (num_envs, nstate)."""
        return self._state

    def state_memory(self) -> list[tuple[tuple[str, ...], Tensor]]:
        """Return the single array with the rows of all fields."""
        return [(STATE_FIELDS, self._state.data)]

    def is_bound(self, name: str) -> bool:
        """Return True if the field is already copied out of each call."""
        return name in self.fields

    def _bind(self, name: str) -> Tensor:
        if name in STATE_FIELDS:  # MuJoCo 3 does not have all of them
            array = self.batch.state[:, self.columns[name]]
        else:
            array = self.batch.bind(name)
        with warnings.catch_warnings():
            # Outputs are read-only arrays; nothing here writes to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            tensor = torch.from_numpy(array)
        return tensor.view(self.field_shape(name))

    def compute_late(self, name: str) -> None:
        """Compute a field that was not bound so far, in chunks of worlds.

        This limits the memory for the fields that must be kept meanwhile.
        """
        self.field(name)
        stage = max(FIELDS[name].stage, Stage.VELOCITY)
        for first in range(0, self.num_envs, _LATE_WORLDS):
            rows = slice(first, min(first + _LATE_WORLDS, self.num_envs))
            kept = self.keep_accelerations(rows)
            whole = rows.stop - rows.start == self.num_envs
            self.forward(None if whole else torch.arange(rows.start, rows.stop), stage)
            self.put_back(kept, rows)

    def _make_on_demand(self) -> OnDemand:
        return NativeOnDemand(self)

    def begin_evaluation(self) -> None:
        """Record MuJoCo's counts of warnings."""
        if self._watch is not None:
            self._watch.begin()
            return
        np.copyto(self._counts_before, self._counts)

    def step(
        self,
        n: int,
        env_ids: Tensor | None,
        settle: Callable[[], None] | None = None,
    ) -> int:
        """Run n × mj_step, then the velocity stage at the new state, and check it."""
        if self.compiled is None:
            return super().step(n, env_ids, settle)
        ids = None if env_ids is None else _ids(env_ids)
        contacts = ()
        if self.observers:
            contacts = self._begin_observation()
        seen = self._watched_step(ids, n, contacts)
        self.kept_writes += 1
        if seen & _FAILED:
            self.compiled.check(ids, 1)
        return seen

    def _begin_observation(self) -> tuple[_core.Contacts, ...]:
        for observer in self.observers:
            observer.begin_step()
        return self.compiled_observers()

    def advance(self, n: int, env_ids: Tensor | None) -> None:
        """Run n × mj_step, then the velocity stage at the new state.

        In the core, observers see each step within the call. Without it, each step is a
        separate call if an observer needs it, with the same bits.
        """
        ids = _ids(env_ids)
        self.kept_writes += 1
        if self.compiled is not None:
            self.compiled.step(ids, n, self.compiled_observers())
            return
        batch = self.batch
        assert isinstance(batch, PlainBatch)
        if self._looks_at_every_step:
            for _ in range(n - 1):
                batch.step(ids, 1, _NO_STAGE)
                self._observe(1, env_ids)
            n = 1
        if self.kept or self._is_rk4:
            if n > 1:
                batch.step(ids, n - 1, _NO_STAGE)
            self._last_plain_step(batch, ids)
        else:
            batch.step(ids, n, _STAGES[Stage.VELOCITY])
        self._observe(n, env_ids)

    def _last_plain_step(self, batch: PlainBatch, ids: np.ndarray | None) -> None:
        """Take one step, and keep the fields that belong to the state before it.

        After a step of MuJoCo's RK4, accelerations are those of the fourth stage and
        sensors those of the first; an evaluation before the step gives both.
        """
        rows = slice(None) if ids is None else torch.from_numpy(ids.astype(np.int64))
        before, first = batch.state.copy(), {}
        if self._is_rk4:
            batch.forward(ids, _STAGES[Stage.ACCELERATION])
            first = self.keep_accelerations(rows)
        batch.step(ids, 1, _STAGES[Stage.VELOCITY])
        self.put_back(first, rows)
        if self.kept:
            keep_by_world(self, before, ids, steps=1, after_constraints=True)

    def _observe(self, n: int, env_ids: Tensor | None) -> None:
        self.note_evaluation()
        self.note_steps(n, env_ids)

    def find_bad(self) -> Tensor | None:
        """Return the mask of worlds whose state or input is or was invalid.

        None if there are none.
        """
        if self._watch is not None:
            is_bad, _ = self._watch.look()
            return torch.from_numpy(self._watch.bad.copy()) if is_bad else None
        # NaN compares as false. (A dot product would start BLAS's threads, which wait
        # for milliseconds while MuJoCo's threads still spin.)
        sizes = np.abs(self._moving)
        fine = bool(sizes.max() <= MAX_VALUE)
        fine = fine and all(bool((np.abs(x) <= MAX_VALUE).all()) for x in self._inputs)
        risen = self._counts != self._counts_before
        if fine and not risen.any():
            return None
        bad = ~(sizes <= MAX_VALUE).all(axis=1)
        bad |= risen[:, _FIRST_LOSS:].any(axis=1)
        for part in self._inputs:
            bad |= ~(np.abs(part) <= MAX_VALUE).all(axis=1)
        return torch.from_numpy(bad) if bad.any() else None

    def seen(self) -> int:
        """Return flags of `Seen` for what happened since `begin_step`."""
        if self._watch is None:
            return super().seen()
        bad, warned = self._watch.look()
        return bad * Seen.BAD.value + warned * Seen.WARNED.value

    def has_warned(self) -> bool:
        """Return True if MuJoCo has warned since `begin_evaluation`."""
        if self._watch is not None:
            return self._watch.warned()
        return bool((self._counts != self._counts_before).any())

    def forward(self, env_ids: Tensor | None, stage: Stage) -> None:
        """Compute derived fields up to `stage`, in these worlds only.

        A pass that stops before the accelerations leaves those of another world in the
        fields; they are stale, as is every world whose positions were stale.
        """
        ids = None if env_ids is None else _ids(env_ids)
        if self.compiled is None:
            self.batch.forward(ids, _STAGES[stage])
        elif self._forward(ids, _STAGES[stage]):
            self.compiled.check(ids, 1)
        if stage == Stage.ACCELERATION:
            self.note_evaluation()

    def keep(self, name: str, memory: Tensor) -> None:
        """Copy a field out of mjData after every MuJoCo step from now on."""
        self.kept[name] = memory
        if self.compiled is not None:
            late = name in AFTER_CONSTRAINTS
            self.compiled.keep(name, memory.data.numpy(), late)

    def evaluate_kept(self, env_ids: Tensor | None, after_constraints: bool) -> None:
        """Run mj_forward at the current state, only for the kept fields."""
        ids = _ids(env_ids)
        if self.compiled is not None:
            self.compiled.evaluate_kept(ids, after_constraints)
        else:
            state = self.batch.state
            keep_by_world(self, state, ids, 0, after_constraints)

    def cause(self, world: int) -> tuple[str, int] | None:
        """Return the field and index that MuJoCo's warning names in this world."""
        for k, field in enumerate(_BAD_FIELDS, start=_FIRST_BAD):
            if self._counts[world, k] != self._counts_before[world, k]:
                return field, int(self.batch.warning[world, k, 0])
        return None

    def _expand(self, name: str) -> Tensor:
        if name not in batch.MODEL_FIELDS:
            raise unknown_name("model parameter", name, sorted(batch.MODEL_FIELDS))
        if name == "geom_dataid":
            # The bounding volume trees are those of the compiled meshes.
            flags = self.batch.expand("opt.disableflags")
            flags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE.value
        return torch.from_numpy(self.batch.expand(name))

    def set_const(self, env_ids: Tensor | None) -> None:
        """Run mj_setConst in these worlds; the state is unchanged."""
        self.batch.set_const(_ids(env_ids))
        self._constants_differ = True

    def loss(self, world: int) -> str:
        """Return MuJoCo's description of the loss."""
        risen = self._counts[world] != self._counts_before[world]
        kinds = np.flatnonzero(risen[_FIRST_LOSS:_FIRST_BAD]) + _FIRST_LOSS
        return " ".join(self._warning(world, int(kind)) for kind in kinds)

    def report_warnings(self, env_ids: Tensor | None) -> bool:
        """Warn about full buffers and similar problems since `begin_step`."""
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
        """Return the text of a warning that MuJoCo gave in a world."""
        info = int(self.batch.warning[world, kind, 0])
        return f"MuJoCo warns: {mujoco.mju_warningText(kind, info)}"


def _neutral_settings(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy of the model with settings that do not change valid worlds.

    Automatic resets of diverged worlds are disabled: even a forward pass would reset
    them, and the state would be lost. With a single kinematic tree, which is one
    constraint island, the search for islands is disabled to save time. Energies are
    computed where they are read: with <flag energy="enable"/>, MuJoCo's sensor of the
    kinetic energy has that of the evaluation before.
    """
    model = copy.copy(model)
    model.opt.enableflags &= ~mujoco.mjtEnableBit.mjENBL_ENERGY.value
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET.value
    if model.ntree == 1:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND.value
    return model


def _ids(env_ids: Tensor | None) -> np.ndarray | None:
    """Return ascending int32 ids, as mujoco.batch expects them."""
    return None if env_ids is None else np.sort(env_ids.numpy()).astype(np.int32)
