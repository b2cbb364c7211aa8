"""Reference values: MuJoCo's C functions, applied to one world after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.entity import Entity
from simstate.entity.dynamics.dof_motion import moved_by
from simstate.simulation import Simulation

_BODY, _XBODY = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_XBODY
_GEOM, _SITE = mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_SITE

FRAMES: dict[str, Any] = {
    "body_link": _XBODY,
    "body_com": _BODY,
    "geom": _GEOM,
    "site": _SITE,
}
"""MuJoCo's object type for each family of frames."""


class Reference:
    """One MjData per world, in the simulation's current state, after mj_forward."""

    def __init__(self, sim: Simulation) -> None:
        self.model = sim.model
        self.datas = [mujoco.MjData(sim.model) for _ in range(sim.num_envs)]
        spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
        rows = sim.state.to(torch.float64).cpu().numpy()
        for data, row in zip(self.datas, rows, strict=True):
            mujoco.mj_setState(self.model, data, row, spec)
            mujoco.mj_forward(self.model, data)

    def field(self, name: str) -> Tensor:
        """Return a field of MjData in all worlds; shape (num_envs, …)."""
        return self._stack(lambda data: np.array(getattr(data, name)))

    def velocity(self, kind: Any, ids: tuple[int, ...]) -> Tensor:
        """Return linear, then angular velocity by mj_objectVelocity; (…, n, 6)."""
        return self._six(mujoco.mj_objectVelocity, kind, ids)

    def acceleration(self, kind: Any, ids: tuple[int, ...], qacc: Tensor) -> Tensor:
        """Return linear, then angular accelerations of bodies; shape (num_envs, n, 6).

        They are those of mj_objectAcceleration for the given qacc. MuJoCo subtracts
        gravity, as an accelerometer does (before 4.0 not for bodies without moving
        dofs); it is added here, which leaves the derivative of the velocity.
        """
        for data, row in zip(self.datas, qacc.to(torch.float64).cpu(), strict=True):
            data.qacc[:] = row.numpy()
            mujoco.mj_rnePostConstraint(self.model, data)
        result = self._six(mujoco.mj_objectAcceleration, kind, ids)
        off = mujoco.mjtDisableBit.mjDSBL_GRAVITY.value
        if not self.model.opt.disableflags & off:
            subtracted = torch.as_tensor(moved_by(self.model, ids).any(axis=1))
            if mujoco.mj_version() >= 4000000:
                subtracted[:] = True
            gravity = torch.as_tensor(np.array(self.model.opt.gravity))
            result[..., :3] += subtracted[:, None] * gravity
        return result

    def jacobian_velocity(self, points: Tensor, bodies: list[int]) -> Tensor:
        """Return J·q̇ at world points on bodies by mj_jac; shape (num_envs, n, 6)."""

        def world(data: Any, at: np.ndarray) -> np.ndarray:
            out = np.zeros((len(bodies), 6))
            lin, ang = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
            for k, body in enumerate(bodies):
                mujoco.mj_jac(self.model, data, lin, ang, at[k], body)
                out[k] = np.concatenate([lin @ data.qvel, ang @ data.qvel])
            return out

        pos_w = points.to(torch.float64).cpu().numpy()
        rows = [world(data, at) for data, at in zip(self.datas, pos_w, strict=True)]
        return torch.as_tensor(np.array(rows))

    def times_mass_matrix(self, qacc: Tensor) -> Tensor:
        """Return M·q̈ by mj_mulM; shape (num_envs, nv)."""
        forces = np.zeros((len(self.datas), self.model.nv))
        for data, row, force in zip(self.datas, qacc, forces, strict=True):
            acc = row.to(torch.float64).cpu().numpy()
            mujoco.mj_mulM(self.model, data, force, acc)
        return torch.as_tensor(forces)

    def applied_wrenches(self) -> Tensor:
        """Return Jᵀ·xfrc_applied by mj_applyFT at the COMs; shape (num_envs, nv)."""

        def world(data: Any) -> np.ndarray:
            force = np.zeros(self.model.nv)
            for body in range(1, self.model.nbody):
                wrench, at = data.xfrc_applied[body], data.xipos[body]
                mujoco.mj_applyFT(
                    self.model, data, wrench[:3], wrench[3:], at, body, force
                )
            return force

        return self._stack(world)

    def _six(self, function: Any, kind: Any, ids: tuple[int, ...]) -> Tensor:
        """Return MuJoCo's (angular, linear) vectors along world axes, swapped."""

        def world(data: Any) -> np.ndarray:
            out = np.zeros((len(ids), 6))
            for k, i in enumerate(ids):
                six = np.zeros(6)
                function(self.model, data, kind, i, six, 0)
                out[k] = np.concatenate([six[3:], six[:3]])
            return out

        return self._stack(world)

    def _stack(self, of_world: Callable[[Any], np.ndarray]) -> Tensor:
        return torch.as_tensor(np.array([of_world(data) for data in self.datas]))


def frame_ids(entity: Entity, frame: str) -> tuple[int, ...]:
    """Return the model's ids of the elements in a family of frames."""
    if frame == "geom":
        return entity.index.geoms.ids
    if frame == "site":
        return entity.index.sites.ids
    return entity.index.bodies.ids
