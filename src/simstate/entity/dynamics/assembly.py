"""Inputs of the dynamics: the selected bodies and dofs, and fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Index, as_index
from simstate.entity.dynamics.dof_motion import moved_by
from simstate.math.vector import cross
from simstate.world.worlds import Worlds


class DynamicsParts:
    """Some bodies of the scene, and the dofs of their joints."""

    def __init__(self, worlds: Worlds, bodies: Sequence[int]) -> None:
        self.worlds = worlds
        self.bodies = tuple(bodies)
        self._device = worlds.device

    @cached_property
    def dofs(self) -> tuple[int, ...]:
        """The columns of qvel that the dofs are."""
        model, own = self.worlds.model, list(self.bodies)
        first, number = model.body_dofadr[own].tolist(), model.body_dofnum[own].tolist()
        blocks = sorted(zip(first, number, strict=True))  # no dof: first is −1
        return tuple(adr + k for adr, count in blocks for k in range(count))

    @cached_property
    def body_index(self) -> Index:
        """The ids of the bodies, a slice where contiguous."""
        return as_index(self.bodies, self._device)

    @cached_property
    def dof_index(self) -> Index:
        """The columns of the dofs, a slice where contiguous."""
        return as_index(self.dofs, self._device)

    @property
    def num_dofs(self) -> int:
        """The number of dofs."""
        return len(self.dofs)

    def field(self, name: str) -> Tensor:
        """Return a raw field, which whoever asks has made fresh."""
        return self.worlds.live_field(name)

    def of_dofs(self, name: str) -> Tensor:
        """Return a raw field's columns of these dofs; (num_envs, D, …)."""
        return self.field(name)[:, self.dof_index]

    @property
    def mass(self) -> Tensor:
        """Mass of each body [kg]; (num_envs or 1, B)."""
        return self.worlds.engine.parameter("body_mass")[:, self.body_index]

    @property
    def gravity(self) -> Tensor:
        """Gravity, world axes [m/s²], zero if it is off; (num_envs or 1, 3)."""
        off = mujoco.mjtDisableBit.mjDSBL_GRAVITY.value
        acts = float(not self.worlds.model.opt.disableflags & off)
        return self.worlds.engine.parameter("opt.gravity") * acts

    @cached_property
    def moves(self) -> Tensor:
        """1 where a dof moves a body; (B, D)."""
        mask = moved_by(self.worlds.model, self.bodies)[:, list(self.dofs)]
        return torch.as_tensor(mask, dtype=self.worlds.dtype, device=self._device)

    @cached_property
    def body_roots(self) -> Tensor:
        """The root of the tree that each body is in; (B,)."""
        roots = np.asarray(self.worlds.model.body_rootid)[list(self.bodies)]
        return torch.as_tensor(roots, dtype=torch.int64, device=self._device)

    @cached_property
    def dof_roots(self) -> Tensor:
        """The root of the tree that each dof is in; (D,)."""
        bodies = np.asarray(self.worlds.model.dof_bodyid)[list(self.dofs)]
        roots = np.asarray(self.worlds.model.body_rootid)[bodies]
        return torch.as_tensor(roots, dtype=torch.int64, device=self._device)

    @cached_property
    def entries(self) -> tuple[Tensor, Tensor]:
        """Indices of each entry of the dense mass matrix in MuJoCo's M; (D, D) each.

        The second is 1 where there is one, 0 where the entry is zero.
        """
        model = self.worlds.model
        table = np.zeros((model.nv, model.nv), dtype=np.int64)
        there = np.zeros((model.nv, model.nv))
        for row in range(model.nv):
            first, count = int(model.M_rowadr[row]), int(model.M_rownnz[row])
            for k in range(first, first + count):
                column = int(model.M_colind[k])
                table[row, column] = table[column, row] = k
                there[row, column] = there[column, row] = 1.0
        own = np.ix_(list(self.dofs), list(self.dofs))
        places = torch.as_tensor(table[own], device=self._device)
        mask = torch.as_tensor(there[own], dtype=self.worlds.dtype)
        return places, mask.to(self._device)

    @cached_property
    def compiled_entries(self) -> np.ndarray:
        """The same places for the core, int32, −1: a zero; (D, D)."""
        places, there = self.entries
        return np.where(there.numpy() > 0, places.numpy(), -1).astype(np.int32)

    def total_mass(self) -> Tensor:
        """Mass of all bodies [kg]; (num_envs or 1, 1)."""
        return self.mass.sum(dim=1, keepdim=True)

    def com(self) -> Tensor:
        """Centre of mass of all bodies, world axes [m]; (num_envs, 3)."""
        weighted = self.mass[..., None] * self.field("xipos")[:, self.body_index]
        return weighted.sum(dim=1) / self.total_mass()

    def momentum_matrix(self) -> Tensor:
        """Return the map from qvel to momentum about `com`; (N, 6, D).

        World axes; of the bodies alone, without the armature of joints.
        """
        inertia = torch.matmul(
            self.moves.T, self.field("cinert")[:, self.body_index]
        )  # of all that a dof moves, about the centre of mass of its tree
        motion = self.of_dofs("cdof")
        angular, linear = _times_inertia(inertia, motion)
        centre = self.field("subtree_com")[:, self.dof_roots]
        angular = angular + cross(centre - self.com()[:, None], linear)
        return torch.cat([linear, angular], dim=-1).transpose(1, 2)


def _times_inertia(inertia: Tensor, motion: Tensor) -> tuple[Tensor, Tensor]:
    """Angular and linear momentum of MuJoCo's ten numbers times a motion; (..., 3)."""
    xx, yy, zz, xy, xz, yz = inertia[..., :6].unbind(dim=-1)
    moment, mass = inertia[..., 6:9], inertia[..., 9:]
    w, v = motion[..., :3], motion[..., 3:]
    wx, wy, wz = w.unbind(dim=-1)
    turned = torch.stack(
        [
            xx * wx + xy * wy + xz * wz,
            xy * wx + yy * wy + yz * wz,
            xz * wx + yz * wy + zz * wz,
        ],
        dim=-1,
    )
    return turned + cross(moment, v), mass * v + cross(w, moment)
