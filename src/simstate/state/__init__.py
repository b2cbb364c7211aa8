"""Unified states, exact snapshots, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, overload

from simstate.base.checks import one_of
from simstate.base.ids import Ids, Index, Selection
from simstate.engine import OneTorchThread
from simstate.entity.host import Host
from simstate.state.apply import write_states
from simstate.state.dicts import state_dicts
from simstate.state.difference import Diff, Difference, diff
from simstate.state.snapshot import Snapshot, restore_snapshot, take_snapshot
from simstate.state.tensors import (
    CameraTensors,
    EntityTensors,
    TensorState,
    read_entities,
)
from simstate.state.types import (
    BodyState,
    CameraState,
    ObjectState,
    RobotState,
    State,
)

__all__ = [
    "BodyState",
    "CameraState",
    "CameraTensors",
    "Diff",
    "Difference",
    "EntityTensors",
    "ImageSource",
    "ObjectState",
    "RobotState",
    "Snapshot",
    "State",
    "StateSource",
    "TensorState",
    "diff",
    "read_states",
    "restore_snapshot",
    "state_dicts",
    "take_snapshot",
    "write_states",
]


class ImageSource(Protocol):
    """A camera: what gives images and geometry of some worlds."""

    def tensors(self, index: Index) -> CameraTensors:
        """Images and geometry of some worlds, copies."""
        ...


class StateSource:
    """A simulation, or another simulator, whose unified state can be read."""

    @overload
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict"] = "dict",
        cameras: bool = True,
    ) -> list[State]: ...
    @overload
    def get_states(
        self, env_ids: Ids = None, *, mode: Literal["tensor"], cameras: bool = True
    ) -> TensorState: ...
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict", "tensor"] = "dict",
        cameras: bool = True,
    ) -> list[State] | TensorState:
        """Return a copy of the unified state: dictionaries, or tensors with names.

        Positions and velocities are those of link origins along world axes; see
        `simstate.state.types`. `cameras=False` leaves the images out.
        """
        one_of("mode", mode, ("dict", "tensor"))
        tensors = self._state_tensors(env_ids, cameras)
        return state_dicts(tensors) if mode == "dict" else tensors

    def _state_tensors(self, env_ids: Ids, cameras: bool) -> TensorState:
        """Return the unified state of some worlds as tensors."""
        raise NotImplementedError


def read_states(
    sim: Host, rows: Selection, cameras: Mapping[str, ImageSource]
) -> TensorState:
    """Return a copy of the unified state of the selected worlds."""
    entities = {name: e for name, e in sim.scene.items() if e.num_bodies}
    with OneTorchThread():
        tensors = read_entities(list(entities.values()), rows)
    parts = dict(zip(entities, tensors, strict=True))
    robots = {name for name, entity in entities.items() if entity.is_robot}
    return TensorState(
        rows.count,
        {name: part for name, part in parts.items() if name not in robots},
        {name: part for name, part in parts.items() if name in robots},
        {name: camera.tensors(rows.index) for name, camera in cameras.items()},
    )
