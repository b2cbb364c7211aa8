"""Zero quaternions in the state, which are no turn: MuJoCo Warp takes them otherwise.

Its quaternion of no turn has its 1 in the last place, which is half a turn about z in
the order of MuJoCo.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

_MIN = 1e-15
"""MuJoCo's mjMINVAL: what is shorter counts as zero."""


class ZeroQuats:
    """Puts a 1 into zero quaternions for the time of a computation.

    Args:
        model: whose free joints, ball joints and mocap bodies are looked at.
        qpos: memory of the positions; shape (num_envs, nq).
        mocap_quat: that of the mocap bodies; shape (num_envs, nmocap, 4).
    """

    def __init__(self, model: mujoco.MjModel, qpos: Tensor, mocap_quat: Tensor) -> None:
        kind, address = np.asarray(model.jnt_type), np.asarray(model.jnt_qposadr)
        free = address[kind == mujoco.mjtJoint.mjJNT_FREE.value] + 3
        first = np.concatenate(
            [free, address[kind == mujoco.mjtJoint.mjJNT_BALL.value]]
        )
        self._first = torch.as_tensor(first.astype(np.int64), device=qpos.device)
        self._columns = self._first[:, None] + torch.arange(4, device=qpos.device)
        self._qpos = qpos
        self._mocap_quat = mocap_quat
        self._kept: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return len(self._first) + self._mocap_quat.shape[1]

    def fill(self) -> None:
        """Turn zero quaternions into those of no turn."""
        real, mocap = self._qpos[:, self._columns], self._mocap_quat
        zero = (real.abs() < _MIN).all(-1), (mocap.abs() < _MIN).all(-1)
        self._kept = zero
        if len(self._first):
            self._qpos[:, self._first] = real[..., 0].masked_fill(zero[0], 1.0)
        if mocap.shape[1]:
            mocap[..., 0].masked_fill_(zero[1], 1.0)

    def put_back(self, moved: bool) -> None:
        """Make them zero again; those of joints that have `moved` are new."""
        if self._kept is None:
            return
        zero, self._kept = self._kept, None
        if len(self._first) and not moved:
            real = self._qpos[:, self._first]
            self._qpos[:, self._first] = real.masked_fill(zero[0], 0.0)
        if self._mocap_quat.shape[1]:
            self._mocap_quat[..., 0].masked_fill_(zero[1], 0.0)
