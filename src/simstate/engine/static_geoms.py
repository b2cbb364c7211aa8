"""Poses of geoms that are attached to the world without a joint, in each world.

MuJoCo Warp computes their places when the data is made and never again, so that one
whose body or offset is moved in some world would stay behind: for contacts, rays and
pictures alike.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.math import quaternion

PLACES = frozenset(("body_pos", "body_quat", "geom_pos", "geom_quat"))
"""The parameters that say where they are."""


class StaticGeoms:
    """The geoms of a model that no joint and no mocap body moves."""

    def __init__(self, model: mujoco.MjModel, device: torch.device) -> None:
        bodies = np.asarray(model.geom_bodyid)
        roots = np.asarray(model.body_rootid)[bodies]
        is_static = np.asarray(model.body_weldid)[bodies] == 0
        is_static &= np.asarray(model.body_mocapid)[roots] == -1
        (ids,) = np.nonzero(is_static)
        self._ids = torch.as_tensor(ids, device=device)
        self._bodies = torch.as_tensor(bodies[ids].astype(np.int64), device=device)

    def __len__(self) -> int:
        return len(self._ids)

    def place(
        self,
        xpos: Tensor,
        xquat: Tensor,
        geom_pos: Tensor,
        geom_quat: Tensor,
        geom_xpos: Tensor,
        geom_xmat: Tensor,
    ) -> None:
        """Write their places, world axes, from those of their bodies and offsets.

        Shapes (num_envs, elements, …); the offsets' may be (1, elements, …).
        """
        pos, quat = xpos[:, self._bodies], xquat[:, self._bodies]
        offset = geom_pos[:, self._ids].expand_as(pos)
        turn = geom_quat[:, self._ids].expand_as(quat)
        geom_xpos[:, self._ids] = pos + quaternion.rotate(quat, offset)
        rot = quaternion.to_matrix(quaternion.multiply(quat, turn))
        geom_xmat[:, self._ids] = rot.reshape(geom_xmat[:, self._ids].shape)
