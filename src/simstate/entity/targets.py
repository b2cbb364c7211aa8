"""Targets: where the targets of some joints of an entity are written, resolved once."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from simstate.base.ids import Index, Selection, as_index, int_list
from simstate.entity.reader import EntityReader
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind
from simstate.world import Slot, Write

Array = np.ndarray[Any, Any]

TARGET_NAMES: dict[TargetKind, str] = {
    "position": "joint_pos_target",
    "velocity": "joint_vel_target",
    "effort": "joint_effort_target",
}
"""The quantity that shows each kind of target."""


class Targets:
    """Columns and scales of one kind of target of some joints.

    Actuators that take this kind have them as controls, in their own unit. Targets of
    joints without such an actuator are kept in a slot of the entity.
    """

    def __init__(
        self,
        reader: EntityReader,
        index: EntityIndex,
        kind: TargetKind,
        joints: Selection,
    ) -> None:
        device, inputs = reader.engine.device, index.target_inputs(kind)
        chosen = int_list(joints.tensor(device))
        place = {joint: k for k, joint in enumerate(chosen)}
        taken = [k for k, joint in enumerate(inputs.joints) if joint in place]
        picked = [place[inputs.joints[k]] for k in taken]
        others = [k for k, joint in enumerate(chosen) if joint not in inputs.joints]
        self.shape = (joints.count,)
        """The shape of the targets of one world."""
        self.ctrl: Slot = reader.worlds.ledger["ctrl"]
        self.columns: Index = as_index([inputs.ctrl[k] for k in taken], device)
        """The columns of ctrl."""
        self._reader = reader
        self._kind: TargetKind = kind
        self._picked = as_index(picked, device)
        self._places = None if picked == list(range(len(chosen))) else picked
        self._scales = as_index(taken, device)
        self._others = others
        self.undriven = [chosen[k] for k in others]
        """Joints that no actuator drives by this kind of target."""
        self._kept = as_index(self.undriven, device)
        self._slot = f"entity/{index.name}/{TARGET_NAMES[kind]}"
        self._parameters = ("actuator_gear",)
        if kind == "effort":
            self._parameters = ("actuator_gear", "actuator_gainprm")
        self._common: Array | None = None

    @property
    def are_controls(self) -> bool:
        """True if all are controls in the host's memory: `controls` are written."""
        return not self._others and self.ctrl.array is not None

    def controls(self, values: Array, rows: Selection) -> Array:
        """Return the controls for targets of shape (n or 1, J), in new memory."""
        if self._places is not None:
            values = values[:, self._places]
        engine = self._reader.engine
        if any(map(engine.differs, self._parameters)):
            return values * self._scale(rows).numpy()
        if self._common is None:
            self._common = self._scale(rows).numpy().copy()
        return values * self._common

    def write(self, values: Tensor | Array) -> None:
        """Write checked targets of all worlds; `are_controls` holds; (num_envs, J)."""
        worlds = self._reader.worlds
        array = values.detach().numpy() if isinstance(values, Tensor) else values
        controls = self.controls(array, worlds.everywhere)
        worlds.ledger.write_array(self.ctrl, self.columns, controls)

    def writes(self, values: Tensor, rows: Selection) -> list[Write]:
        """Return the writes of checked targets of shape (n or 1, J)."""
        controls = values[:, self._picked] * self._scale(rows)
        found = [Write("ctrl", rows, self.columns, controls)]
        if self._others:
            kept = values[:, self._others]
            found.append(Write(self._slot, rows, self._kept, kept))
        return found

    def _scale(self, rows: Selection) -> Tensor:
        """Return the control per unit of target; shape (n or 1, inputs)."""
        scale = self._reader.target_inputs(self._kind)[2][:, self._scales]
        return scale[rows.index] if scale.shape[0] > 1 else scale
