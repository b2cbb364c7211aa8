"""Velocities, accelerations and moments of rigid bodies at other points."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.math.vector import cross


def rigid_rate(linear: Tensor, angular: Tensor, offset: Tensor) -> Tensor:
    """Return the linear rate at `offset` from that of `linear`, v + ω × r; (..., 3)."""
    return linear + cross(angular, offset)


def compute_velocity_from_cvel(
    pos: Tensor, subtree_com: Tensor, cvel: Tensor
) -> Tensor:
    """Return (linear, angular) velocity at `pos`, world axes [m/s, rad/s]; (..., 6).

    Args:
        pos: a point fixed to the body, world axes [m]; (..., 3).
        subtree_com: the reference point of cvel, `subtree_com[body_rootid[body]]`:
            the centre of mass of the entire kinematic tree, not of the body's own
            subtree, world axes [m]; (..., 3).
        cvel: MuJoCo's (angular, linear) velocity at that point; (..., 6).
    """
    cvel = cvel.contiguous()  # a cross product of strided vectors takes twice as long
    ang_vel, lin_vel = cvel[..., :3], cvel[..., 3:]
    moved = rigid_rate(lin_vel, ang_vel, pos - subtree_com)
    return torch.cat([moved, ang_vel.expand_as(moved)], dim=-1)


def acceleration_from_cacc(
    pos: Tensor, subtree_com: Tensor, cvel: Tensor, cacc: Tensor
) -> Tensor:
    """Return (linear, angular) acceleration of the material point at `pos`; (..., 6).

    World axes [m/s², rad/s²]: the time derivative of `compute_velocity_from_cvel` for
    a point fixed to the body. `cacc` is the derivative of the spatial velocity
    (angular, linear), without MuJoCo's gravity offset.
    """
    ang_acc, lin_acc = cacc[..., :3], cacc[..., 3:]
    vel = compute_velocity_from_cvel(pos, subtree_com, cvel)
    lin_vel, ang_vel = vel[..., :3], vel[..., 3:]
    moved = rigid_rate(lin_acc, ang_acc, pos - subtree_com)
    moved = moved + cross(ang_vel, lin_vel)
    return torch.cat([moved, ang_acc.expand_as(moved)], dim=-1)


def move_velocity(vel: Tensor, offset: Tensor) -> Tensor:
    """Return (linear, angular) velocity at `offset` from the point of `vel`; (..., 6).

    All in the same axes; `offset` points from the old point to the new one [m].
    """
    lin_vel, ang_vel = vel[..., :3], vel[..., 3:]
    moved = rigid_rate(lin_vel, ang_vel, offset)
    return torch.cat([moved, ang_vel.expand_as(moved)], dim=-1)


def move_moment(moment: Tensor, force: Tensor, offset: Tensor) -> Tensor:
    """Return the moment about the point at `offset` from that of `moment`; (..., 3).

    All in the same axes; `offset` points from the old point to the new one [m], and
    `force` is the load's total force, which does not depend on the point.
    """
    return moment - cross(offset, force)
