"""Velocities, accelerations and wrenches of rigid bodies, moved from point to point."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import cross


def rigid_rate(linear: Tensor, angular: Tensor, offset: Tensor) -> Tensor:
    """The linear rate at `offset` from the point of `linear`: v + ω × r; (..., 3)."""
    return linear + cross(angular, offset)


def compute_velocity_from_cvel(
    pos: Tensor, subtree_com: Tensor, cvel: Tensor
) -> Tensor:
    """Linear then angular velocity at `pos`, world axes [m/s, rad/s]; (..., 6).

    Args:
        pos: the point that moves with the body, world axes [m]; (..., 3).
        subtree_com: the point of cvel, which is `subtree_com[body_rootid[body]]`:
            the centre of mass of the whole kinematic tree, not of the body's own
            subtree; (..., 3).
        cvel: MuJoCo's angular then linear velocity at that point; (..., 6).
    """
    cvel = cvel.contiguous()  # a cross product of strided vectors takes twice as long
    ang_vel, lin_vel = cvel[..., :3], cvel[..., 3:]
    moved = rigid_rate(lin_vel, ang_vel, pos - subtree_com)
    return torch.cat([moved, ang_vel.expand_as(moved)], dim=-1)


def acceleration_from_cacc(
    pos: Tensor, subtree_com: Tensor, cvel: Tensor, cacc: Tensor
) -> Tensor:
    """Linear then angular acceleration of the material point at `pos`; (..., 6).

    World axes [m/s², rad/s²]: the derivative of `compute_velocity_from_cvel` for a
    point that is fixed in the body. `cacc` is the derivative of the spatial velocity
    (angular, linear), without MuJoCo's gravity offset.
    """
    ang_acc, lin_acc = cacc[..., :3], cacc[..., 3:]
    vel = compute_velocity_from_cvel(pos, subtree_com, cvel)
    lin_vel, ang_vel = vel[..., :3], vel[..., 3:]
    moved = rigid_rate(lin_acc, ang_acc, pos - subtree_com)
    moved = moved + cross(ang_vel, lin_vel)
    return torch.cat([moved, ang_acc.expand_as(moved)], dim=-1)


def move_velocity(vel: Tensor, offset: Tensor) -> Tensor:
    """The (linear, angular) velocity at `offset` from the point of `vel`; (..., 6).

    All in the same axes; `offset` leads from the old point to the new one [m].
    """
    lin_vel, ang_vel = vel[..., :3], vel[..., 3:]
    moved = rigid_rate(lin_vel, ang_vel, offset)
    return torch.cat([moved, ang_vel.expand_as(moved)], dim=-1)


def move_moment(moment: Tensor, force: Tensor, offset: Tensor) -> Tensor:
    """The moment about the point at `offset` from the point of `moment`; (..., 3).

    All in the same axes; `offset` leads from the old point to the new one [m], and
    `force` is the whole force of the load, which does not depend on the point.
    """
    return moment - cross(offset, force)
