"""Bounds of geoms whose mesh differs by world; MuJoCo keeps the compiled ones.

A geom that shows another mesh in some world needs that mesh's bounds there, or contacts
and rays that lie outside the old ones are missed.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.math.vector import norm

_MESHES = (mujoco.mjtGeom.mjGEOM_MESH.value, mujoco.mjtGeom.mjGEOM_SDF.value)


class MeshBounds:
    """Half sizes, bounding boxes and bounding radii of all meshes of a model."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        is_mesh = np.isin(model.geom_type, _MESHES) & (model.geom_dataid >= 0)
        self._geoms = torch.as_tensor(np.flatnonzero(is_mesh), device=device)
        boxes = [_box(model, mesh) for mesh in range(model.nmesh)] or [np.zeros(6)]
        box = torch.as_tensor(np.array(boxes), device=device)
        size = box[:, :3].abs() + box[:, 3:]
        self._by_parameter: dict[str, Tensor] = {
            "geom_aabb": box,
            "geom_size": size,
            "geom_rbound": norm(size)[:, 0],
        }

    def __len__(self) -> int:
        return len(self._geoms)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that follow from the choice of a mesh."""
        return tuple(self._by_parameter)

    def follow(self, dataid: Tensor, parameter: str, values: Tensor) -> None:
        """Write a parameter of all mesh geoms for these choices; (num_envs, ngeom, …).

        A choice below 0 is no mesh, and keeps what there is.
        """
        chosen = dataid[:, self._geoms].long()
        now = values[:, self._geoms]
        bounds = self._by_parameter[parameter].to(values.dtype)[chosen.clamp(min=0)]
        there = (chosen >= 0).reshape(*chosen.shape, *([1] * (now.ndim - 2)))
        values[:, self._geoms] = torch.where(there, bounds.reshape(now.shape), now)


def _box(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Centre and half size of a mesh's bounding box, in its own frame; shape (6,)."""
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = np.asarray(model.mesh_vert[first : first + count], dtype=np.float64)
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    return np.concatenate([(low + high) / 2.0, (high - low) / 2.0])
