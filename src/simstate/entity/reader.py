"""EntityReader: how quantities get at fields, and keep what they computed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FrameType
from typing import NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.dynamics.motion import moved_by, spatial_acceleration
from simstate.engine import STATE_FIELDS, OneTorchThread
from simstate.entity import joints as j
from simstate.entity.compiled_reads import CompiledRead
from simstate.entity.frames import Frame, Picks
from simstate.entity.quantity import Quantity, read_stage
from simstate.errors import ModelError, unknown_name
from simstate.ids import Index, as_index
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind
from simstate.world.worlds import Worlds

_TORCH_GRAIN = 32768
"""Numbers from which on torch splits an operation over threads."""


class Memo(NamedTuple):
    """A computed value, the state that it belongs to, and its version then."""

    token: int
    value: Tensor
    version: int
    is_live: bool


class _TargetPicks(NamedTuple):
    """Where the controls are that take one kind of target, and what scales them."""

    joints: Index
    ctrl: Index
    outputs: Index
    actuators: Index
    has_gain: Tensor

    @staticmethod
    def of(index: EntityIndex, kind: TargetKind, device: torch.device) -> _TargetPicks:
        """Those of one entity."""
        inputs = index.target_inputs(kind)
        return _TargetPicks(
            as_index(inputs.joints, device),
            as_index(inputs.ctrl, device),
            as_index(inputs.outputs, device),
            as_index(inputs.actuators, device),
            torch.tensor(inputs.has_gain, dtype=torch.bool, device=device),
        )


class EntityReader:
    """What an entity's quantities read from: fields, parameters, its own store."""

    quantities: Mapping[str, Quantity]
    """The contract of every quantity, by name."""

    def __init__(
        self, index: EntityIndex, worlds: Worlds, soft_limit_factor: float
    ) -> None:
        self.name = index.name
        self.index = index
        self.worlds = worlds
        self.model = worlds.model
        self.engine = worlds.engine
        self.fresh = worlds.fresh
        self.num_envs = worlds.num_envs
        self.dtype = worlds.dtype
        self.num_joints = len(index.joints)
        self.soft_limit_factor = soft_limit_factor
        self.memo: dict[str, Memo] = {}
        self._picks: dict[Frame, Picks] = {}
        self._targets: dict[TargetKind, _TargetPicks] = {}
        ids = _column_ids(index, self.model)
        self._columns = {k: as_index(v, worlds.device) for k, v in ids.items()}
        self._parts = {name: _runs(group) for name, group in ids.items()}
        self._cacc: tuple[int, Tensor] | None = None
        self.computed: Quantity | None = None
        """The quantity that is being computed, if one is."""
        self._computing_frame: FrameType | None = None
        self._live: tuple[int, set[int]] | None = None
        self._compiled: dict[str, CompiledRead | None] = {}
        self._compiled_with = -1
        """How many parameters differed between worlds when those were made."""

    def read(self, name: str) -> Tensor:
        """A quantity by name."""
        if name not in self.quantities:
            raise unknown_name("quantity", name, self.quantities)
        return self.quantities[name].read(self)

    def stored(self, name: str) -> Tensor:
        """A setting of the entity's own, live; shape (num_envs, …)."""
        return self.worlds.ledger[f"entity/{self.name}/{name}"].tensor

    def begin(self, quantity: Quantity, frame: FrameType) -> None:
        """From now on quantities read each other at no more than this one's stage.

        `frame` is that of the function which computes it.
        """
        self._computing_frame = frame
        self.computed = quantity

    def compute(self, quantity: Quantity, token: int) -> Tensor:
        """Compute a quantity for the state of that token, and keep it.

        Not in inference mode: a memo outlives the caller's, in which it could not be
        used.
        """
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self.compute(quantity, token)
        compiled = self._compiled_read(quantity)
        if compiled is not None:
            value = compiled.run()
            self.memo[quantity.name] = Memo(token, value, 0, False)
            return value
        if self._is_small:
            return self.remember(quantity.name, token, quantity.compute(self))
        with OneTorchThread():
            return self.remember(quantity.name, token, quantity.compute(self))

    @cached_property
    def _is_small(self) -> bool:
        """Whether torch would compute all quantities in the calling thread anyway."""
        model = self.model
        elements = max(model.nbody, model.ngeom, model.nsite, model.nv)
        return 7 * elements * self.num_envs < _TORCH_GRAIN

    def _compiled_read(self, quantity: Quantity) -> CompiledRead | None:
        """The quantity by the compiled core; None: by its formula."""
        if quantity.compiled is None or self.engine.compiled is None:
            return None
        known = self.engine.num_differing
        if known != self._compiled_with:
            self._compiled.clear()
            self._compiled_with = known
        if quantity.name not in self._compiled:
            self._compiled[quantity.name] = self._make_compiled(quantity)
        return self._compiled[quantity.name]

    def _make_compiled(self, quantity: Quantity) -> CompiledRead | None:
        assert quantity.compiled is not None
        if any(self.engine.differs(name) for name in quantity.parameters):
            return None
        read = quantity.compiled(self)
        if read is None or not read.count:
            return None
        sizes = [
            size if isinstance(size, int) else read.count for size in quantity.shape
        ]
        return CompiledRead(self.num_envs, read, sizes)

    def forget_interrupted(self) -> None:
        """Forget a quantity whose computation was interrupted, and has not said so.

        Python may interrupt between any two instructions, also just before the end.
        """
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame is not self._computing_frame:
            frame = frame.f_back
        if frame is None:
            self.computed = None

    def raw(self, name: str) -> Tensor:
        """A raw field's live tensor; the quantity has seen to its freshness."""
        if self.computed is not None:
            self.computed.check_reads(name, read_stage(name))
        if name in STATE_FIELDS or self.engine.is_bound(name):
            self.fresh.watch_derived(name)
            return self.engine.field(name)
        return self.worlds.read_field(name)

    def parameter(self, name: str) -> Tensor:
        """A model parameter; shape (num_envs or 1, …)."""
        return self.engine.parameter(name)

    def take(self, field: str, columns: str) -> Tensor:
        """Some columns of a raw field: a view where they are contiguous."""
        parts = self._parts[columns]
        tensor = self.raw(field)
        if len(parts) == 1:
            return tensor[:, parts[0]]
        return torch.cat([tensor[:, part] for part in parts], dim=1)

    def runs(self, name: str) -> list[slice]:
        """The same ids as slices of neighbours, in their order."""
        return self._parts[name]

    def columns(self, name: str) -> Index:
        """The ids of some of the entity's elements, a slice where contiguous."""
        return self._columns[name]

    def addresses(self, name: str) -> Tensor:
        """Addresses of the entity's ball or free joints; shape (joints,)."""
        ids = getattr(self.index, name)
        return torch.tensor(ids, dtype=torch.int64, device=self.engine.device)

    def picks(self, frame: Frame) -> Picks:
        """Where a frame's elements are."""
        if frame not in self._picks:
            if frame.subject == "root" and self.index.base == "none":
                raise ModelError(
                    f"Entity {self.name!r} has no body, so it has no root link."
                )
            self._picks[frame] = Picks.resolve(
                frame, self.index, self.model, self.engine.device
            )
        return self._picks[frame]

    def target_inputs(self, kind: TargetKind) -> tuple[Index, Index, Tensor]:
        """Joints, columns of ctrl and control per unit of one kind of target.

        The last has shape (num_envs or 1, inputs): it follows gears and gains that
        differ from world to world.
        """
        if kind not in self._targets:
            self._targets[kind] = _TargetPicks.of(self.index, kind, self.engine.device)
        picks = self._targets[kind]
        scale = self.parameter("actuator_gear")[:, picks.outputs, 0]
        if kind == "effort":
            gain = self.parameter("actuator_gainprm")[:, picks.actuators, 0]
            scale = 1.0 / (scale * torch.where(picks.has_gain, gain, 1.0))
        return picks.joints, picks.ctrl, scale

    def remember(self, name: str, token: int, value: Tensor) -> Tensor:
        """Keep a computed value for this state, and hand it out."""
        is_live = value.untyped_storage().data_ptr() in self._live_storages()
        self.memo[name] = Memo(token, value, value._version, is_live)
        return value

    def spatial_acceleration(self) -> Tensor:
        """Derivative of cvel of the entity's bodies; (num_envs, num_bodies, 6)."""
        token = self.fresh.tokens[0]
        if self._cacc is None or self._cacc[0] != token:
            cacc = spatial_acceleration(
                self.raw("qvel"),
                self.worlds.acceleration_now(),
                self.raw("cdof"),
                self.raw("cdof_dot"),
                self.all_moved_by[self.columns("body_ids")],
            )
            self._cacc = (token, cacc)
        return self._cacc[1]

    @cached_property
    def all_moved_by(self) -> Tensor:
        """1 where a dof moves a body of the scene; shape (nbody, nv)."""
        mask = moved_by(self.model, tuple(range(self.model.nbody)))
        return torch.as_tensor(mask, dtype=self.dtype, device=self.engine.device)

    def gravity_direction(self) -> Tensor:
        """Unit vector along gravity, world axes; −z without; (num_envs or 1, 3)."""
        if "opt.gravity" not in self.engine.expanded:
            return self._shared_gravity_direction
        return j.unit_or_down(self.parameter("opt.gravity") * self._gravity_acts)

    @cached_property
    def _shared_gravity_direction(self) -> Tensor:
        return j.unit_or_down(self.parameter("opt.gravity") * self._gravity_acts)

    @cached_property
    def _gravity_acts(self) -> float:
        """1.0, or 0.0 in a model whose gravity is switched off."""
        off = mujoco.mjtDisableBit.mjDSBL_GRAVITY.value
        return float(not self.model.opt.disableflags & off)

    def _live_storages(self) -> set[int]:
        """Memory that is not a quantity's own: writes to it are seen elsewhere."""
        slots = self.worlds.ledger.slots
        known = len(slots) + len(self.engine.fields)
        if self._live is None or self._live[0] != known:
            tensors = [*self.engine.fields.values(), *self.engine.expanded.values()]
            tensors += [slot.tensor for slot in slots.values()]
            pointers = {t.untyped_storage().data_ptr() for t in tensors}
            self._live = (known, pointers)
        return self._live[1]


def _column_ids(index: EntityIndex, model: mujoco.MjModel) -> dict[str, Sequence[int]]:
    """The ids of each kind of element, by the names that declarations use."""
    return {
        "body_ids": index.bodies.ids,
        "joint_ids": index.joints.ids,
        "qpos_adr": index.qpos_adr,
        "dof_adr": index.dof_adr,
        "free_dofs": [adr + k for adr in index.free_dof_adr for k in range(6)],
        "tendon_ids": index.tendons.ids,
        "actuator_columns": index.actuators.ids,
        "control_columns": index.controls.ids,
        "activation_columns": index.activations.ids,
        "mocap_ids": [int(model.body_mocapid[i]) for i in index.mocap_bodies.ids],
        "equality_ids": index.equalities.ids,
        "body_rootid": np.asarray(model.body_rootid).tolist(),
    }


def _runs(ids: Sequence[int]) -> list[slice]:
    """The ids as slices of neighbours, in their order; at least one slice."""
    runs: list[slice] = []
    for i in ids:
        if runs and runs[-1].stop == i:
            runs[-1] = slice(runs[-1].start, i + 1)
        else:
            runs.append(slice(i, i + 1))
    return runs or [slice(0, 0)]
