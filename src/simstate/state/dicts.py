"""Unified states as lists of dictionaries, from tensors."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import cast

import torch
from torch import Tensor

from simstate.state.tensors import CameraTensors, EntityTensors, TensorState
from simstate.state.types import (
    BodyState,
    CameraState,
    DofValue,
    ObjectState,
    RobotState,
    State,
)


@contextmanager
def _collector_paused() -> Generator[None]:
    """Keep the garbage collector from walking many new objects again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def state_dicts(tensors: TensorState) -> list[State]:
    """Return the states of all worlds, one dictionary each; their tensors are views."""
    # Views without a gradient cost less, and there are many.
    with torch.no_grad(), _collector_paused():
        objects = {name: _objects(part) for name, part in tensors.objects.items()}
        robots = {name: _robots(part) for name, part in tensors.robots.items()}
        cameras = {name: _cameras(part) for name, part in tensors.cameras.items()}
        return [
            {
                "objects": {name: states[k] for name, states in objects.items()},
                "robots": {name: states[k] for name, states in robots.items()},
                "cameras": {name: states[k] for name, states in cameras.items()},
            }
            for k in range(tensors.num_envs)
        ]


def _objects(tensors: EntityTensors) -> list[ObjectState]:
    """Return the dictionaries of an object; joints and links only if it has joints."""
    if tensors.joint_names or tensors.ball_joint_names or len(tensors.body_names) > 1:
        return _jointed(tensors)
    return cast("list[ObjectState]", _roots(tensors))


def _robots(tensors: EntityTensors) -> list[RobotState]:
    """The dictionaries of a robot: root, joints, links, and targets of each joint."""
    states = cast("list[RobotState]", _jointed(tensors))
    positions = _by_name(tensors, tensors.dof_pos_target)
    velocities = _by_name(tensors, tensors.dof_vel_target)
    for state, pos, vel in zip(states, positions, velocities, strict=True):
        state["dof_pos_target"] = pos
        state["dof_vel_target"] = vel
    if tensors.dof_effort_target is not None:
        efforts = _by_name(tensors, tensors.dof_effort_target)
        for state, effort in zip(states, efforts, strict=True):
            state["dof_effort_target"] = effort
    return states


def _jointed(tensors: EntityTensors) -> list[ObjectState]:
    """Root, joints and links of an entity, world by world."""
    states = cast("list[ObjectState]", _roots(tensors))
    positions = _by_joint(tensors, tensors.dof_pos, tensors.ball_quat)
    velocities = _by_joint(tensors, tensors.dof_vel, tensors.ball_ang_vel)
    for state, pos, vel, body in zip(
        states, positions, velocities, _links(tensors), strict=True
    ):
        state["dof_pos"] = pos
        state["dof_vel"] = vel
        state["body"] = body
    return states


def _roots(tensors: EntityTensors) -> list[BodyState]:
    """Poses and velocities of the root link."""
    parts = (tensors.pos, tensors.rot, tensors.vel, tensors.ang_vel)
    return _poses(*(_rows(part) for part in parts))


def _links(tensors: EntityTensors) -> list[dict[str, BodyState]]:
    """Return poses and velocities of the links by name, world by world."""
    parts = (
        tensors.body_pos, tensors.body_rot, tensors.body_vel, tensors.body_ang_vel
    )  # fmt: skip
    names = tensors.body_names
    links = iter(_poses(*(_rows(part.flatten(0, 1)) for part in parts)))
    # Each world takes the next links of the one iterator.
    return [dict(zip(names, links, strict=False)) for _ in range(len(tensors.pos))]


def _rows(values: Tensor) -> Sequence[Tensor]:
    """Return the rows of a tensor, each with a storage of its size.

    A row by `unbind` has the storage of all rows, and would be pickled with them.
    """
    if values.device.type != "cpu":
        return cast("Sequence[Tensor]", torch.unbind_copy(values))
    rows = values.numpy()
    return list(map(torch.from_numpy, rows))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def _poses(
    pos: Sequence[Tensor],
    rot: Sequence[Tensor],
    vel: Sequence[Tensor],
    ang_vel: Sequence[Tensor],
) -> list[BodyState]:
    """Return dictionaries of poses and velocities that are given one by one."""
    return [
        {"pos": p, "rot": r, "vel": v, "ang_vel": w}
        for p, r, v, w in zip(pos, rot, vel, ang_vel, strict=True)
    ]


def _cameras(tensors: CameraTensors) -> list[CameraState]:
    """Return the dictionaries of one camera."""
    parts = {
        field.name: getattr(tensors, field.name).unbind(0) for field in fields(tensors)
    }
    return [
        cast("CameraState", dict(zip(parts, values, strict=True)))
        for values in zip(*parts.values(), strict=True)
    ]


def _by_joint(
    tensors: EntityTensors, single: Tensor, balls: Tensor
) -> list[dict[str, DofValue]]:
    """Numbers of the 1-DoF joints and tensors of the ball joints, by name."""
    found = cast("list[dict[str, DofValue]]", _by_name(tensors, single))
    if tensors.ball_joint_names:
        for values, own in zip(found, balls.unbind(0), strict=True):
            values.update(zip(tensors.ball_joint_names, own.unbind(0), strict=True))
    return found


def _by_name(tensors: EntityTensors, single: Tensor) -> list[dict[str, float]]:
    """Numbers of the 1-DoF joints by name, world by world."""
    numbers = cast("list[list[float]]", single.tolist())  # pyright: ignore[reportUnknownMemberType]
    names = tensors.joint_names
    return [dict(zip(names, row, strict=True)) for row in numbers]
