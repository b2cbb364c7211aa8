"""Motion of a model's bodies by its dofs: masks, Jacobians, accelerations.

MuJoCo's `cdof` is the motion (angular, linear) that each dof gives to the bodies that
it moves, at the centre of mass of their tree, along world axes.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.math.vector import cross

_QUATERNIONS = (
    mujoco.mjtJoint.mjJNT_FREE.value,
    mujoco.mjtJoint.mjJNT_BALL.value,
)


def spatial_acceleration(
    qvel: Tensor, qacc: Tensor, cdof: Tensor, cdof_dot: Tensor, moved_by: Tensor
) -> Tensor:
    """Derivative of cvel (angular, linear) of each body; shape (num_envs, bodies, 6).

    `moved_by` (bodies, nv) is 1 where a dof moves a body. MuJoCo's cacc is this with
    gravity taken off.
    """
    of_dofs = cdof * qacc[..., None] + cdof_dot * qvel[..., None]
    return torch.matmul(moved_by, of_dofs)


def moved_by(model: mujoco.MjModel, bodies: tuple[int, ...]) -> np.ndarray:
    """1 where a dof moves a body, else 0; shape (bodies, nv)."""
    mask = np.zeros((model.nbody, model.nv))
    for body in range(1, model.nbody):
        mask[body] = mask[model.body_parentid[body]]
        first, count = model.body_dofadr[body], model.body_dofnum[body]
        mask[body, first : first + count] = 1.0
    return mask[list(bodies)]


def turns_with_body(model: mujoco.MjModel) -> np.ndarray:
    """Return True for dofs about an axis of the body that they move; (nv,)."""
    mask = np.zeros(model.nv, dtype=bool)
    for joint in range(model.njnt):
        kind, first = int(model.jnt_type[joint]), int(model.jnt_dofadr[joint])
        if kind in _QUATERNIONS:
            start = first + (3 if kind == _QUATERNIONS[0] else 0)
            mask[start : start + 3] = True
    return mask


def cross_motion(vel: Tensor, motion: Tensor) -> Tensor:
    """Return the rate of a motion vector that is carried along by a velocity; (..., 6).

    Both angular then linear, at the same point, same axes.
    """
    angular, linear = vel[..., :3], vel[..., 3:]
    return torch.cat(
        [
            cross(angular, motion[..., :3]),
            cross(angular, motion[..., 3:]) + cross(linear, motion[..., :3]),
        ],
        dim=-1,
    )


def jacobian(cdof: Tensor, offset: Tensor, moves: Tensor) -> Tensor:
    """Jacobian (linear, angular) of points, world axes; shape (N, points, 6, dofs).

    Args:
        cdof: motion of each dof at the centre of mass of its tree; (N, dofs, 6).
        offset: from that centre to each point [m]; (N, points, 3).
        moves: 1 where a dof moves the body of a point; (points, dofs).
    """
    worlds, points = offset.shape[:2]
    # What takes a motion at the centre to one at the point: one product for all points.
    moved = cdof.new_zeros(worlds, points, 6, 6)
    x, y, z = offset.unbind(dim=-1)
    moved[:, :, 0, 1], moved[:, :, 0, 2] = z, -y
    moved[:, :, 1, 0], moved[:, :, 1, 2] = -z, x
    moved[:, :, 2, 0], moved[:, :, 2, 1] = y, -x
    for k in range(3):
        moved[:, :, k, 3 + k] = moved[:, :, 3 + k, k] = 1.0
    product = torch.bmm(moved.view(worlds, points * 6, 6), cdof.transpose(1, 2))
    matrix = product.view(worlds, points, 6, cdof.shape[1])
    return matrix.mul_(moves[:, None])


def jacobian_dot(
    cdof: Tensor,
    cdof_dot: Tensor,
    offset: Tensor,
    lin_vel: Tensor,
    moves: Tensor,
) -> Tensor:
    """Time derivative of such a Jacobian for points that move with their bodies.

    `cdof_dot` is the rate of cdof, `lin_vel` each point's velocity [m/s];
    (N, points, 3).
    """
    rate = jacobian(cdof_dot, offset, moves)
    # The point moves on while the dof turns.
    angular = (cdof[:, None, :, :3] * moves[..., None]).expand(
        -1, offset.shape[1], -1, -1
    )
    rate[:, :, :3] += cross(angular, lin_vel[:, :, None]).transpose(2, 3)
    return rate
