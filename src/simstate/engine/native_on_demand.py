"""On-demand computations of the native engine.

Where MuJoCo has no batched call, they run one world after the other in a separate
MjData, which takes tens of microseconds each for a robot.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import int_list
from simstate.base.mujoco_warnings import silenced
from simstate.engine.core.core_rays import CarriedRays, cast
from simstate.engine.on_demand import ContactRows, OnDemand, RayFilter, RayHits
from simstate.engine.plain_batch import PlainBatch
from simstate.engine.stage import Stage

if TYPE_CHECKING:
    from simstate.engine.native import NativeEngine

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
_INPUTS = ("xfrc_applied", "qfrc_applied", "ctrl")
"""The inputs that a C function may change."""
_FORCE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
)
"""The type `simstate_force` of simstate/force.h."""
_FORCE_LIMITS = ("actuator_forcelimited", "jnt_actfrclimited", "tendon_actfrclimited")


class NativeOnDemand(OnDemand):
    """On-demand computations by MuJoCo's C functions."""

    can_call_functions = True

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine

    @cached_property
    def _data(self) -> mujoco.MjData:
        return mujoco.MjData(self._engine.batch.model)

    def _worlds(self, env_ids: list[int]) -> Iterator[tuple[Any, Any]]:
        """Yield each world's model, and an MjData in its state."""
        engine = self._engine
        data = self._data
        differ = engine.has_own_parameters
        for world in env_ids:
            model = engine.batch.get_model(world) if differ else engine.batch.model
            mujoco.mj_setState(model, data, engine.batch.state[world], _STATE)
            yield model, data

    def joint_wrenches(self) -> Tensor:
        """By mj_rnePostConstraint, one world after the other."""
        engine = self._engine
        out = np.zeros((engine.num_envs, engine.model.nbody, 6))
        with silenced():
            worlds = self._worlds(list(range(engine.num_envs)))
            for row, (model, data) in zip(out, worlds, strict=True):
                mujoco.mj_forward(model, data)
                mujoco.mj_rnePostConstraint(model, data)
                row[:] = data.cfrc_int
        return torch.as_tensor(out)

    def inverse(self, qacc: Tensor, env_ids: Tensor) -> Tensor:
        """By mj_inverse, one world after the other."""
        out = np.zeros((qacc.shape[0], self._engine.model.nv))
        with silenced():
            worlds = self._worlds(int_list(env_ids))
            for row, acc, (model, data) in zip(out, qacc, worlds, strict=True):
                data.qacc[:] = acc.numpy()
                mujoco.mj_inverse(model, data)
                row[:] = data.qfrc_inverse
        return torch.as_tensor(out)

    def unlimited_actuation(self) -> tuple[Tensor, Tensor]:
        """By a forward pass with the limits switched off, in all worlds."""
        engine = self._engine
        with self._without_limits():
            kept = engine.keep_accelerations(slice(None))
            try:
                engine.forward(None, Stage.ACCELERATION)
                names = ("actuator_force", "qfrc_actuator")
                force, on_dofs = (engine.field(name).clone() for name in names)
            finally:
                engine.put_back(kept, slice(None))
        return force, on_dofs

    def energies(self) -> Tensor:
        """By mj_energyPos and mj_energyVel, one world after the other."""
        engine = self._engine
        out = np.zeros((engine.num_envs, 2))
        with silenced():
            worlds = self._worlds(list(range(engine.num_envs)))
            for row, (model, data) in zip(out, worlds, strict=True):
                mujoco.mj_fwdPosition(model, data)
                mujoco.mj_energyPos(model, data)
                mujoco.mj_energyVel(model, data)
                row[:] = data.energy
        return torch.as_tensor(out)

    def call_function(self, address: int, parameters: np.ndarray) -> dict[str, Tensor]:
        """By its address, one world after the other."""
        engine = self._engine
        function = _FORCE(address)
        found = {name: engine.field(name).clone() for name in _INPUTS}
        rows = np.ascontiguousarray(parameters)
        with silenced():
            worlds = self._worlds(list(range(engine.num_envs)))
            for world, (model, data) in enumerate(worlds):
                mujoco.mj_fwdPosition(model, data)
                mujoco.mj_fwdVelocity(model, data)
                row = rows[world].ctypes.data
                function(model._address, data._address, row, world)
                for name, values in found.items():
                    values[world] = torch.as_tensor(getattr(data, name))
        return found

    @contextmanager
    def _without_limits(self) -> Generator[None]:
        """Disable the force limits of actuators in the block."""
        names = [n for n in _FORCE_LIMITS if np.any(getattr(self._engine.model, n))]
        flags = [self._engine.batch.expand(name) for name in names]
        before = [flag.copy() for flag in flags]
        try:
            for flag in flags:
                flag[:] = 0
            yield
        finally:
            for flag, value in zip(flags, before, strict=True):
                flag[:] = value

    def contacts(self, env_ids: Tensor) -> ContactRows:
        """By mj_contactForce, one world after the other."""
        columns: dict[str, list[np.ndarray]] = {}
        ids = int_list(env_ids)
        with silenced():
            for world, (model, data) in zip(ids, self._worlds(ids), strict=True):
                mujoco.mj_forward(model, data)
                for name, values in _contacts(model, data, world).items():
                    columns.setdefault(name, []).append(values)
        return ContactRows.of(columns, self._engine.dtype, self._engine.device)

    def cast(
        self, origins: Tensor, directions: Tensor, to: RayFilter, normals: bool
    ) -> RayHits:
        """By Batch.ray, which computes positions from the state itself."""
        batch = self._engine.batch
        assert isinstance(batch, PlainBatch)  # the core has `cast_carried`
        with self._only(to) as groups:
            distance, geom, *normal = batch.ray(
                origins.contiguous().numpy(),
                directions.contiguous().numpy(),
                geomgroup=groups,
                normal=normals,
            )
        found = [torch.as_tensor(x) for x in (distance, geom, *normal)]
        return RayHits(found[0], found[1], found[2] if normals else None)

    def cast_carried(self, rays: CarriedRays, normals: bool) -> RayHits | None:
        """In the compiled core, which computes origins and directions itself."""
        if self._engine.compiled is None:
            return None
        hits = cast(self._engine.compiled, rays, normals)
        normal = None if hits.normal is None else torch.as_tensor(hits.normal)
        return RayHits(
            torch.as_tensor(hits.distance), torch.as_tensor(hits.geom), normal,
            torch.as_tensor(hits.height),
        )  # fmt: skip

    @contextmanager
    def _only(self, to: RayFilter) -> Generator[np.ndarray | None]:
        """Yield the geom groups to pass; in the block, they represent the filter."""
        if to.is_open:
            yield None
            return
        groups = self._engine.batch.expand("geom_group")
        before = groups.copy()
        try:
            groups[:] = np.where(to.geoms, 0, 1)
            yield np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
        finally:
            groups[:] = before


def _contacts(model: Any, data: Any, world: int) -> dict[str, np.ndarray]:
    """Return the columns of the table for one world."""
    contact = data.contact
    force = np.zeros((data.ncon, 6))
    for k, row in enumerate(force):
        mujoco.mj_contactForce(model, data, k, row)
    return {
        "world": np.full(data.ncon, world),
        "geom": contact.geom.copy(),
        "flex": contact.flex.copy(),
        "pos": contact.pos.copy(),
        "frame": contact.frame.reshape(-1, 3, 3).copy(),
        "dist": contact.dist.copy(),
        "force": force,
        "friction": contact.friction.copy(),
    }
