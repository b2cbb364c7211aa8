"""Unified states, exact snapshots, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from simstate.base.ids import Index, Selection
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


def read_states(
    sim: Host, rows: Selection, cameras: Mapping[str, ImageSource]
) -> TensorState:
    """A copy of the unified state of the selected worlds."""
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
