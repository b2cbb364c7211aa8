"""A list of states whose dictionaries are built when they are touched."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, SupportsIndex, cast, overload

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
        if isinstance(index, slice):
            return [self._state(i) for i in range(len(self))[index]]
        return self._state(range(len(self))[index])

    def __iter__(self) -> Iterator[State]:
        for start in range(0, len(self), _CHUNK):
            with _collector_paused():
                states = self[start : start + _CHUNK]
            yield from states

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

    def _state(self, i: int) -> State:
        if i not in self._built:
            self._built[i] = build_state(self._tensors, i)
        return self._built[i]


def build_state(tensors: TensorState, i: int) -> State:
    """The dictionary of one world."""
    return {
        "objects": {
            name: build_object(part, i) for name, part in tensors.objects.items()
        },
        "robots": {name: build_robot(part, i) for name, part in tensors.robots.items()},
        "cameras": {
            name: build_camera(part, i) for name, part in tensors.cameras.items()
        },
    }


def build_object(tensors: EntityTensors, i: int) -> ObjectState:
    """The dictionary of one object; joints and links only if it has joints."""
    state = cast("ObjectState", _root(tensors, i))
    if tensors.joint_names or tensors.ball_joint_names or len(tensors.body_names) > 1:
        state["dof_pos"] = _by_joint(tensors, tensors.dof_pos[i], tensors.ball_quat[i])
        state["dof_vel"] = _by_joint(
            tensors, tensors.dof_vel[i], tensors.ball_ang_vel[i]
        )
        state["body"] = _links(tensors, i)
    return state


def build_robot(tensors: EntityTensors, i: int) -> RobotState:
    """The dictionary of one robot: root, joints, links, and targets of each joint."""
    state: RobotState = {
        **_root(tensors, i),
        "dof_pos": _by_joint(tensors, tensors.dof_pos[i], tensors.ball_quat[i]),
        "dof_vel": _by_joint(tensors, tensors.dof_vel[i], tensors.ball_ang_vel[i]),
        "body": _links(tensors, i),
        "dof_pos_target": _by_name(tensors, tensors.dof_pos_target[i]),
        "dof_vel_target": _by_name(tensors, tensors.dof_vel_target[i]),
    }
    if tensors.dof_effort_target is not None:
        state["dof_effort_target"] = _by_name(tensors, tensors.dof_effort_target[i])
    return state


def _root(tensors: EntityTensors, i: int) -> BodyState:
    """Pose and velocity of the root link in one world."""
    return {
        "pos": tensors.pos[i],
        "rot": tensors.rot[i],
        "vel": tensors.vel[i],
        "ang_vel": tensors.ang_vel[i],
    }


def _links(tensors: EntityTensors, i: int) -> dict[str, BodyState]:
    """Poses and velocities of all links in one world, by name."""
    parts = zip(
        tensors.body_pos[i].unbind(0),
        tensors.body_rot[i].unbind(0),
        tensors.body_vel[i].unbind(0),
        tensors.body_ang_vel[i].unbind(0),
        strict=True,
    )
    bodies: Iterable[BodyState] = (
        {"pos": pos, "rot": rot, "vel": vel, "ang_vel": ang_vel}
        for pos, rot, vel, ang_vel in parts
    )
    return dict(zip(tensors.body_names, bodies, strict=True))


def build_camera(tensors: CameraTensors, i: int) -> CameraState:
    """The dictionary of one camera."""
    return {
        "rgb": tensors.rgb[i],
        "depth": tensors.depth[i],
        "pos": tensors.pos[i],
        "look_at": tensors.look_at[i],
        "intrinsic": tensors.intrinsic[i],
        "extrinsic": tensors.extrinsic[i],
    }


def _by_joint(
    tensors: EntityTensors, single: Tensor, balls: Tensor
) -> dict[str, DofValue]:
    """Numbers of the 1-DoF joints and tensors of the ball joints, by name."""
    found: dict[str, DofValue] = {**_by_name(tensors, single)}
    if tensors.ball_joint_names:
        found.update(zip(tensors.ball_joint_names, balls.unbind(0), strict=True))
    return found


def _by_name(tensors: EntityTensors, single: Tensor) -> dict[str, float]:
    """Numbers of the 1-DoF joints, by name."""
    numbers = cast("list[float]", single.tolist())  # pyright: ignore[reportUnknownMemberType]
    return dict(zip(tensors.joint_names, numbers, strict=True))


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
