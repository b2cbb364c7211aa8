"""A list of states whose dictionaries are built when they are touched."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, SupportsIndex, cast, overload

import torch
from torch import Tensor

from simstate.state.lazy_links import LazyLinks, poses
from simstate.state.tensors import CameraTensors, EntityTensors, TensorState
from simstate.state.types import (
    BodyState,
    CameraState,
    DofValue,
    ObjectState,
    RobotState,
    State,
)

_CHUNK = 64


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


class StateList(Sequence[State]):
    """The states of many worlds, as a list of dictionaries.

    Each dictionary is made when it is first asked for, and kept, so that changes to it
    stay. Slices, iteration, equality, `list()` and pickling work as with a list.
    """

    def __init__(self, tensors: TensorState) -> None:
        self._tensors = tensors
        self._built: dict[int, State] = {}

    def __len__(self) -> int:
        return self._tensors.num_envs

    @overload
    def __getitem__(self, index: SupportsIndex) -> State: ...
    @overload
    def __getitem__(self, index: slice) -> list[State]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> State | list[State]:
        if not isinstance(index, slice):
            world = range(len(self))[index]
            self._build(world, world + 1)
            return self._built[world]
        worlds = range(len(self))[index]
        if worlds.step == 1:
            self._build(worlds.start, worlds.stop)
        return [self[i] for i in worlds]

    def __iter__(self) -> Iterator[State]:
        for start in range(0, len(self), _CHUNK):
            yield from self[start : start + _CHUNK]

    def __setitem__(self, index: SupportsIndex, state: State) -> None:
        self._built[range(len(self))[index]] = state

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        others = cast("Sequence[State]", other)
        return len(self) == len(others) and all(map(same, self, others))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"StateList of {len(self)} worlds; entities: " + ", ".join(
            self._tensors.entities
        )

    def _build(self, first: int, stop: int) -> None:
        """Make those of a row of worlds that nobody has asked for yet."""
        for start in range(first, stop, _CHUNK):
            end = min(start + _CHUNK, stop)
            if all(i in self._built for i in range(start, end)):
                continue
            # Views that nobody differentiates cost less. They are many.
            with torch.no_grad(), _collector_paused():
                states = build_states(self._tensors, start, end)
            for i, state in enumerate(states, start):
                self._built.setdefault(i, state)


def build_states(tensors: TensorState, first: int, stop: int) -> list[State]:
    """The dictionaries of the worlds from `first` to before `stop`."""
    rows = slice(first, stop)
    objects = {name: _objects(part, rows) for name, part in tensors.objects.items()}
    robots = {name: _robots(part, rows) for name, part in tensors.robots.items()}
    cameras = {name: _cameras(part, rows) for name, part in tensors.cameras.items()}
    return [
        {
            "objects": {name: states[k] for name, states in objects.items()},
            "robots": {name: states[k] for name, states in robots.items()},
            "cameras": {name: states[k] for name, states in cameras.items()},
        }
        for k in range(stop - first)
    ]


def _objects(tensors: EntityTensors, rows: slice) -> list[ObjectState]:
    """The dictionaries of an object; joints and links only if it has joints."""
    if tensors.joint_names or tensors.ball_joint_names or len(tensors.body_names) > 1:
        return _jointed(tensors, rows)
    return cast("list[ObjectState]", _roots(tensors, rows))


def _robots(tensors: EntityTensors, rows: slice) -> list[RobotState]:
    """The dictionaries of a robot: root, joints, links, and targets of each joint."""
    states = cast("list[RobotState]", _jointed(tensors, rows))
    positions = _by_name(tensors, tensors.dof_pos_target[rows])
    velocities = _by_name(tensors, tensors.dof_vel_target[rows])
    for state, pos, vel in zip(states, positions, velocities, strict=True):
        state["dof_pos_target"] = pos
        state["dof_vel_target"] = vel
    if tensors.dof_effort_target is not None:
        efforts = _by_name(tensors, tensors.dof_effort_target[rows])
        for state, effort in zip(states, efforts, strict=True):
            state["dof_effort_target"] = effort
    return states


def _jointed(tensors: EntityTensors, rows: slice) -> list[ObjectState]:
    """Root, joints and links of an entity, world by world."""
    states = cast("list[ObjectState]", _roots(tensors, rows))
    positions = _by_joint(tensors, tensors.dof_pos[rows], tensors.ball_quat[rows])
    velocities = _by_joint(tensors, tensors.dof_vel[rows], tensors.ball_ang_vel[rows])
    for world, (state, pos, vel) in enumerate(
        zip(states, positions, velocities, strict=True), rows.start
    ):
        state["dof_pos"] = pos
        state["dof_vel"] = vel
        state["body"] = LazyLinks(tensors, world)
    return states


def _roots(tensors: EntityTensors, rows: slice) -> list[BodyState]:
    """Poses and velocities of the root link."""
    parts = (tensors.pos, tensors.rot, tensors.vel, tensors.ang_vel)
    return poses(*(part[rows].unbind(0) for part in parts))


def _cameras(tensors: CameraTensors, rows: slice) -> list[CameraState]:
    """The dictionaries of one camera."""
    parts = {
        field.name: getattr(tensors, field.name)[rows].unbind(0)
        for field in fields(tensors)
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


def same(left: object, right: object) -> bool:
    """Whether two states, or parts of them, hold the same names and numbers."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        a = cast("Mapping[str, Any]", left)
        b = cast("Mapping[str, Any]", right)
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        try:
            one, two = torch.as_tensor(left), torch.as_tensor(right)
        except (TypeError, ValueError, RuntimeError):
            return False
        return one.shape == two.shape and bool(torch.equal(one, two.to(one)))
    return left == right
