"""EntityReader: the fields, parameters and settings that quantities are read from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import ModelError, unknown_name
from simstate.base.ids import Index, as_index
from simstate.engine import OneTorchThread, Stage
from simstate.engine.core import reads
from simstate.entity import joint_quantities as j
from simstate.entity.dynamics.dof_motion import moved_by, spatial_acceleration
from simstate.entity.frame_quantities import Frame, Picks
from simstate.entity.quantity import Quantity, read_stage
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind
from simstate.world import Trees
from simstate.world.declared import Declared, Memo, Reader
from simstate.world.worlds import Worlds

_TORCH_GRAIN = 32768
"""Numbers from which on torch splits an operation over threads."""


class _TargetPicks(NamedTuple):
    """Columns of the controls that take one kind of target, and their scales."""

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


_UNSHARED = 2
"""References to an array that nothing but its owner uses, as sys.getrefcount counts."""


class CompiledRead:
    """One quantity of an entity, as the core computes it.

    Args:
        num_envs: the number of worlds.
        read: what is computed.
        sizes: the shape of one world's values.
    """

    def __init__(self, num_envs: int, read: reads.Read, sizes: list[int]) -> None:
        self._write = read.writer(num_envs)
        self._values = np.empty((num_envs, *sizes))

    def array(self) -> Any:
        """Return the values at the current state as an array, in new memory."""
        values = np.empty_like(self._values)
        self._write(values)
        return values

    def run(self) -> Tensor:
        """Return the values at the current state.

        A tensor refers to its array for as long as it, a view of it or a computation
        graph is in use. If there is none any more, the memory is used again.
        """
        if sys.getrefcount(self._values) > _UNSHARED:
            self._values = np.empty_like(self._values)
        self._write(self._values)
        return torch.from_numpy(self._values)  # pyright: ignore[reportUnknownMemberType]


class EntityReader(Reader):
    """The source of an entity's quantities: fields, parameters, its settings."""

    quantities: Mapping[str, Quantity]
    """The contract of every quantity, by name."""

    def __init__(
        self, index: EntityIndex, worlds: Worlds, soft_limit_factor: float
    ) -> None:
        super().__init__(worlds, index.name)
        self.index = index
        self.model = worlds.model
        self.engine = worlds.engine
        self.num_envs = worlds.num_envs
        self.dtype = worlds.dtype
        self.num_joints = len(index.joints)
        self.soft_limit_factor = soft_limit_factor
        self._picks: dict[Frame, Picks] = {}
        self._targets: dict[TargetKind, _TargetPicks] = {}
        self._columns: dict[str, Index] = {}
        self._parts: dict[str, list[slice]] = {}
        self._checked: set[str] = set()
        """Quantities whose declared reads were found to be complete."""
        self._compiled: dict[str, CompiledRead | None] = {}
        self._compiled_with = (-1, -1)
        """The token of constants and the parameters that differed, as of those."""

    def label_of(self, name: str) -> str:
        """Return the name of a quantity in error messages."""
        return f"{self.name}.data.{name}"

    def trees_of(self, name: str) -> Trees:
        """Return the trees whose joints and mocap poses alone a quantity depends on."""
        return self.trees if self.quantities[name].is_local else None

    @cached_property
    def trees(self) -> Trees:
        """The trees that the entity's elements are in; None: some are in none."""
        model, index = self.model, self.index
        bodies = {
            *index.bodies.ids,
            *(int(model.geom_bodyid[i]) for i in index.geoms.ids),
            *(int(model.site_bodyid[i]) for i in index.sites.ids),
        }
        joints = (index.joints, index.ball_joints, index.free_joints)
        moved = {int(model.jnt_bodyid[i]) for group in joints for i in group.ids}
        if 0 in bodies or not moved <= bodies:
            return None
        return frozenset(int(model.body_rootid[body]) for body in bodies)

    def quantity(self, name: str) -> Quantity:
        """Return the contract of a quantity."""
        if name not in self.quantities:
            raise unknown_name("quantity", name, self.quantities)
        return self.quantities[name]

    def read(self, name: str) -> Tensor:
        """Return a quantity that another one reads, which has made it fresh."""
        return self.quantity(name).current(self)

    def stored(self, name: str) -> Tensor:
        """Return a setting of the entity's own, live; shape (num_envs, …)."""
        return self.worlds.ledger[f"entity/{self.name}/{name}"].tensor

    def compute(self, declared: Declared, token: int) -> Tensor:
        """Compute a quantity for the state of a token, and memoise it.

        Not in inference mode: a memo outlives the caller's, in which it could not be
        used.
        """
        assert isinstance(declared, Quantity)
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self.compute(declared, token)
        name = declared.name
        compiled = self._compiled_read(declared)
        if compiled is not None:
            value = compiled.run()
            self.memo[name] = Memo(token, value, 0)
            return value
        is_first = name not in self._checked
        source = _CheckedReader(self, declared) if is_first else self
        if self._is_small:
            value = declared.compute(source)
        else:
            with OneTorchThread():
                value = declared.compute(source)
        self._checked.add(name)
        return self.memoise(name, token, value)

    def compute_array(self, declared: Declared) -> Any:
        """Return a value in new memory as an array; None: `compute` has to do it."""
        assert isinstance(declared, Quantity)
        compiled = self._compiled_read(declared)
        return None if compiled is None else compiled.array()

    @cached_property
    def _is_small(self) -> bool:
        """True if torch would compute all quantities in the calling thread anyway."""
        model = self.model
        elements = max(model.nbody, model.ngeom, model.nsite, model.nv)
        return 7 * elements * self.num_envs < _TORCH_GRAIN

    def _compiled_read(self, quantity: Quantity) -> CompiledRead | None:
        """Return the quantity as the core computes it; None: by its formula."""
        if quantity.compiled is None or self.engine.compiled is None:
            return None
        token = self.fresh.tokens[Stage.CONSTANT]
        if token != self._compiled_with[0]:
            self._forget_compiled(token)
        if quantity.name not in self._compiled:
            self._compiled[quantity.name] = self._make_compiled(quantity)
        return self._compiled[quantity.name]

    def _forget_compiled(self, token: int) -> None:
        """Forget compiled reads if a further parameter may differ by world."""
        differing = self.engine.num_differing
        if differing != self._compiled_with[1]:
            self._compiled.clear()
        self._compiled_with = (token, differing)

    def _make_compiled(self, quantity: Quantity) -> CompiledRead | None:
        assert quantity.compiled is not None
        if any(self.engine.differs(name) for name in quantity.parameters):
            return None
        read = quantity.compiled(_CheckedReader(self, quantity))
        if read is None or not read.count:
            return None
        sizes = [
            size if isinstance(size, int) else read.count for size in quantity.shape
        ]
        return CompiledRead(self.num_envs, read, sizes)

    def field(self, name: str) -> Tensor:
        """Return the tensor of a raw field, for a result that is no view of it."""
        return self.worlds.bound_field(name)

    def raw(self, name: str) -> Tensor:
        """Return the live tensor of a raw field; the quantity has made it fresh."""
        tensor = self.field(name)
        self.fresh.watch_derived(name)
        return tensor

    def parameter(self, name: str) -> Tensor:
        """Return a model parameter; shape (num_envs or 1, …)."""
        return self.engine.parameter(name)

    def take(self, field: str, columns: str) -> Tensor:
        """Return some columns of a raw field: a view where they are contiguous."""
        parts = self.runs(columns)
        tensor = self.raw(field)
        if len(parts) == 1:
            return tensor[:, parts[0]]
        return torch.cat([tensor[:, part] for part in parts], dim=1)

    def runs(self, name: str) -> list[slice]:
        """Return the same ids as slices of neighbours, in their order."""
        if name not in self._parts:
            self._parts[name] = _runs(_COLUMN_IDS[name](self.index, self.model))
        return self._parts[name]

    def columns(self, name: str) -> Index:
        """Return the ids of some of the entity's elements, a slice where contiguous."""
        if name not in self._columns:
            ids = _COLUMN_IDS[name](self.index, self.model)
            self._columns[name] = as_index(ids, self.engine.device)
        return self._columns[name]

    def addresses(self, name: str) -> Tensor:
        """Addresses of the entity's ball or free joints; shape (joints,)."""
        ids = getattr(self.index, name)
        return torch.tensor(ids, dtype=torch.int64, device=self.engine.device)

    @property
    def root_body_id(self) -> int:
        """Id of the root link in the model."""
        if self.index.base == "none":
            raise ModelError(
                f"Entity {self.name!r} has no body, so it has no root link.",
                name=self.name,
            )
        return self.index.root_body_id

    def picks(self, frame: Frame) -> Picks:
        """Return the indices of a frame's elements."""
        if frame not in self._picks:
            if frame.subject == "root":
                _ = self.root_body_id  # there must be one
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

    def spatial_acceleration(self) -> Tensor:
        """Return the derivative of cvel of the bodies; (num_envs, num_bodies, 6)."""
        return self.shared(
            "spatial acceleration", Stage.STATE, self._spatial_acceleration
        )

    def _spatial_acceleration(self) -> Tensor:
        return spatial_acceleration(
            self.raw("qvel"),
            self.worlds.acceleration_now(),
            self.raw("cdof"),
            self.raw("cdof_dot"),
            self.all_moved_by[self.columns("body_ids")],
        )

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


class _CheckedReader(EntityReader):
    """A reader that rejects reads which a quantity does not declare.

    Each quantity is computed with one the first time.
    """

    def __init__(self, reader: EntityReader, quantity: Quantity) -> None:
        vars(self).update(vars(reader))
        self._reader = reader
        self._quantity = quantity

    def read(self, name: str) -> Tensor:
        """Return a quantity, if the declared reads cover it."""
        self._quantity.check_read_of(self.quantity(name))
        return self._reader.read(name)

    def field(self, name: str) -> Tensor:
        """Return the tensor of a raw field, if the declared reads cover it."""
        self._quantity.check_read(name, read_stage(name))
        return super().field(name)


_COLUMN_IDS: Mapping[str, Callable[[EntityIndex, mujoco.MjModel], Sequence[int]]] = {
    "body_ids": lambda index, _: index.bodies.ids,
    "joint_ids": lambda index, _: index.joints.ids,
    "qpos_adr": lambda index, _: index.qpos_adr,
    "dof_adr": lambda index, _: index.dof_adr,
    "free_dofs": lambda index, _: [
        adr + k for adr in index.free_dof_adr for k in range(6)
    ],
    "tendon_ids": lambda index, _: index.tendons.ids,
    "actuator_columns": lambda index, _: index.actuators.ids,
    "control_columns": lambda index, _: index.controls.ids,
    "activation_columns": lambda index, _: index.activations.ids,
    "mocap_ids": lambda index, model: [
        int(model.body_mocapid[i]) for i in index.mocap_bodies.ids
    ],
    "equality_ids": lambda index, _: index.equalities.ids,
    "body_rootid": lambda _, model: np.asarray(model.body_rootid).tolist(),
}
"""The ids of each kind of element, by the names that declarations use."""


def _runs(ids: Sequence[int]) -> list[slice]:
    """Return the ids as slices of neighbours, in their order; at least one slice."""
    runs: list[slice] = []
    for i in ids:
        if runs and runs[-1].stop == i:
            runs[-1] = slice(runs[-1].start, i + 1)
        else:
            runs.append(slice(i, i + 1))
    return runs or [slice(0, 0)]
