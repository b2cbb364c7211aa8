"""On-demand computations of the warp engine. Importing this module loads Warp."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import copy
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from torch import Tensor

from simstate.engine.on_demand import ContactRows, OnDemand, RayFilter, RayHits
from simstate.engine.stage import Stage

import mujoco_warp as mjw  # isort: skip

if TYPE_CHECKING:
    from simstate.engine.warp import WarpEngine

_FORCE_LIMITS = ("actuator_forcelimited", "jnt_actfrclimited", "tendon_actfrclimited")
_GROUPS: Any = wp.types.vector(length=6, dtype=wp.float32)


class WarpOnDemand(OnDemand):
    """On-demand computations by MuJoCo Warp's functions, for all worlds at once."""

    def __init__(self, engine: WarpEngine) -> None:
        self._engine = engine
        self._ray_groups: dict[bytes, Any] = {}

    @contextmanager
    def _evaluated(self) -> Generator[Any]:
        """Yield Warp's arrays with the dynamics of the present state."""
        engine = self._engine
        kept = engine.keep_accelerations(slice(None))
        try:
            engine.forward(None, Stage.ACCELERATION)
            with wp.ScopedDevice(engine.warp_device):
                yield engine.warp_data
        finally:
            engine.put_back(kept, slice(None))

    def joint_wrenches(self) -> Tensor:
        """By rne_postconstraint."""
        with self._evaluated() as data:
            mjw.rne_postconstraint(self._engine.warp_model, data)
            return wp.to_torch(data.cfrc_int).clone()

    def inverse(self, qacc: Tensor, env_ids: Tensor) -> Tensor:
        """By inverse; the other worlds are computed too."""
        engine = self._engine
        kept = engine.keep_accelerations(slice(None))
        try:
            with wp.ScopedDevice(engine.warp_device):
                wp.to_torch(engine.warp_data.qacc)[env_ids] = qacc
                engine.set_switches()
                mjw.inverse(engine.warp_model, engine.warp_data)
                return wp.to_torch(engine.warp_data.qfrc_inverse)[env_ids].clone()
        finally:
            engine.put_back(kept, slice(None))
            engine.forward(None, Stage.VELOCITY)

    def unlimited_actuation(self) -> tuple[Tensor, Tensor]:
        """By a forward pass with the limits switched off."""
        model = self._engine.warp_model
        flags = [
            wp.to_torch(getattr(model, name))
            for name in _FORCE_LIMITS
            if np.any(getattr(self._engine.model, name))
        ]
        before = [flag.clone() for flag in flags]
        try:
            for flag in flags:
                flag.zero_()
            with self._evaluated() as data:
                force = wp.to_torch(data.actuator_force).clone()
                return force, wp.to_torch(data.qfrc_actuator).clone()
        finally:
            for flag, value in zip(flags, before, strict=True):
                flag.copy_(value)

    def energies(self) -> Tensor:
        """By energy_pos and energy_vel."""
        with self._evaluated() as data:
            mjw.energy_pos(self._engine.warp_model, data)
            mjw.energy_vel(self._engine.warp_model, data)
            return wp.to_torch(data.energy).clone()

    def contacts(self, env_ids: Tensor) -> ContactRows:
        """By contact_force; contacts are sorted by world."""
        with self._evaluated() as data:
            found = min(int(data.nacon.numpy()[0]), data.naconmax)
            ids = wp.array(np.arange(found), dtype=int)
            force = wp.zeros(found, dtype=wp.spatial_vector)
            if found:
                mjw.contact_force(self._engine.warp_model, data, ids, False, force)
            contact = data.contact
            columns = {
                "world": contact.worldid, "geom": contact.geom, "flex": contact.flex,
                "pos": contact.pos, "frame": contact.frame, "dist": contact.dist,
                "friction": contact.friction,
            }  # fmt: skip
            rows = {name: array.numpy()[:found] for name, array in columns.items()}
            rows["force"] = force.numpy()
            if len(rows["flex"]) < found:  # Warp has none for a model without flexes
                rows["flex"] = np.full((found, 2), -1)
        chosen = _in_order(rows, env_ids.cpu().numpy())
        table = {name: [values[chosen]] for name, values in rows.items()}
        return ContactRows.of(table, self._engine.dtype, self._engine.device)

    def cast(
        self, origins: Tensor, directions: Tensor, to: RayFilter, normals: bool
    ) -> RayHits:
        """By rays, which always computes the normals."""
        del normals
        engine, rays = self._engine, origins.shape[1]
        with wp.ScopedDevice(engine.warp_device):
            shape = (engine.num_envs, rays)
            distance = wp.empty(shape, dtype=float)
            geom = wp.empty(shape, dtype=int)
            normal = wp.empty(shape, dtype=wp.vec3)
            mjw.rays(
                self._model(to),
                engine.warp_data,
                wp.from_torch(origins.contiguous(), dtype=wp.vec3),
                wp.from_torch(directions.contiguous(), dtype=wp.vec3),
                _GROUPS(*[-1] * 6) if to.is_open else _GROUPS(1, 0, 0, 0, 0, 0),
                True,
                wp.array(np.full(rays, -1), dtype=int),
                distance,
                geom,
                normal,
            )
            hit = wp.to_torch(geom)
            there = (hit >= 0)[..., None]
            return RayHits(
                wp.to_torch(distance).clone(), hit, wp.to_torch(normal) * there
            )

    def _model(self, to: RayFilter) -> Any:
        """Return the model, with the geoms that can be hit in group 0 if needed."""
        if to.is_open:
            return self._engine.warp_model
        key = to.geoms.tobytes()
        if key not in self._ray_groups:
            groups = np.where(to.geoms, 0, 1).astype(np.int32)
            self._ray_groups[key] = wp.array(groups, dtype=int)
        model = copy.copy(self._engine.warp_model)
        model.geom_group = self._ray_groups[key]
        return model


def _in_order(rows: dict[str, np.ndarray], worlds: np.ndarray) -> np.ndarray:
    """Return the contacts of some worlds: world by world, then by geoms and point."""
    place = {int(world): k for k, world in enumerate(worlds)}
    known = np.flatnonzero(np.isin(rows["world"], worlds))
    keys = [
        (place[int(rows["world"][k])], *rows["geom"][k].tolist(), *rows["pos"][k])
        for k in known
    ]
    return known[sorted(range(len(known)), key=keys.__getitem__)]
