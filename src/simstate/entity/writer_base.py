"""Base of an entity's writers: checked values, and the fields they go to."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.errors import InvalidInputError, listed, warn
from simstate.base.ids import (
    Ids,
    Index,
    Selection,
    Values,
    as_index,
    as_values,
    int_list,
    select,
)
from simstate.engine import OneTorchThread
from simstate.entity.links import Links, normalize_pose
from simstate.entity.reader import EntityReader
from simstate.entity.targets import TARGET_NAMES, Targets
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind
from simstate.world import Write
from simstate.world.worlds import Worlds

Array = np.ndarray[Any, Any]


def host_array(values: Tensor | Array) -> Array:
    """Return values in the host's memory as an array."""
    return values.detach().numpy() if isinstance(values, Tensor) else values


class WriterBase:
    """Checks what is to be written, and finds where it goes."""

    index: EntityIndex
    _worlds: Worlds
    _reader: EntityReader
    _links: Links
    _all_targets: dict[TargetKind, Targets]
    """Destinations of the targets of all joints, by kind."""
    _warned_targets: set[TargetKind]
    """Kinds of target for which a warning was given that no actuator takes them."""

    @property
    def _num_joints(self) -> int:
        return len(self.index.joints)

    def _rows(
        self, name: str, values: Values, shape: tuple[int, ...], env_ids: Ids
    ) -> tuple[Selection, Tensor]:
        """Return the selected worlds, and finite values of the right shape for them."""
        rows = self._worlds.select(env_ids)
        return rows, self._values(name, values, shape, rows.count)

    def _values(
        self, name: str, values: Values, shape: tuple[int, ...], count: int
    ) -> Tensor:
        """Return a copy of values, checked to be finite; shape (count or 1, *shape)."""
        like = self._worlds.engine.field("qpos")
        if like.is_cpu:
            numbers = self._numbers(name, values, shape, count)
            return torch.from_numpy(numbers.copy())
        tensor = as_values(values, name, count, shape, like)
        return check_finite(tensor, name)

    def _numbers(
        self, name: str, values: Values, shape: tuple[int, ...], count: int
    ) -> Array:
        """Return the same in the host's memory: the given one where it can be."""
        like = self._worlds.engine.field("qpos")
        numbers = _in_place(values, like)
        if numbers is None or numbers.shape not in ((count, *shape), (1, *shape)):
            numbers = as_values(values, name, count, shape, like).numpy()
        if not np.isfinite(numbers).all():
            check_finite(torch.as_tensor(numbers), name)  # which raises
        return numbers

    def _chosen(self, kind: str, ids: Ids, of: Sequence[int]) -> list[int]:
        """Those of the model's ids `of` that the entity's own ids select."""
        device = self._worlds.device
        selection = select(ids, len(of), kind, device)
        if isinstance(selection.index, slice):
            return [int(i) for i in of[selection.index]]
        return [int(of[i]) for i in int_list(selection.tensor(device))]

    def _elements(self, kind: str, ids: Ids, of: Sequence[int]) -> tuple[Index, int]:
        """Return the same as columns of a field, and how many they are."""
        chosen = self._chosen(kind, ids, of)
        return as_index(chosen, self._worlds.device), len(chosen)

    def _write(self, *writes: Write) -> None:
        """Write checked values, all of them or none."""
        self._worlds.ledger.write(*writes, trees=self._reader.trees)

    def _write_columns(
        self,
        field: str,
        name: str,
        values: Values,
        elements: tuple[str, Ids, Sequence[int]],
        env_ids: Ids,
    ) -> None:
        """Write one number for each selected element into columns of a state field.

        `elements` are their kind, the selected ones and the columns of all.
        """
        columns, count = self._elements(*elements)
        rows, tensor = self._rows(name, values, (count,), env_ids)
        self._write(Write(field, rows, columns, tensor))

    def _control_writer(self, control_ids: Ids = None) -> Callable[[Tensor], None]:
        """Return a function that writes some controls in all worlds; (num_envs, U).

        As `write_ctrl_to_sim`, with ids resolved once and values not checked: for what
        is called in every step. On the host they may be an array.
        """
        columns, _ = self._elements("control", control_ids, self.index.controls.ids)
        rows = self._worlds.everywhere
        if self._worlds.ledger["ctrl"].array is None:
            return lambda values: self._write(Write("ctrl", rows, columns, values))
        write = self._control_array_writer(columns)
        return lambda values: write(host_array(values))

    def _control_array_writer(self, columns: Index) -> Callable[[Array], None]:
        """Return a function that writes columns of ctrl in all worlds, on the host."""
        ledger = self._worlds.ledger
        slot = ledger["ctrl"]
        return lambda values: ledger.write_array(slot, columns, values)

    def _set_target(
        self, kind: TargetKind, target: Values, joint_ids: Ids, env_ids: Ids
    ) -> None:
        """Write targets: into the controls that take them, others into their slot."""
        if self._num_joints == 0 and torch.as_tensor(target).numel():
            raise InvalidInputError(
                f"Entity {self.index.name!r} has no joints with one degree of freedom, "
                "so it takes no joint targets.",
                name=self.index.name,
            )
        targets = self._targets(kind, joint_ids)
        rows = self._worlds.select(env_ids)
        if targets.undriven and kind not in self._warned_targets:
            self._warned_targets.add(kind)
            self._warn_undriven(kind, targets.undriven)
        if targets.are_controls:
            values = self._numbers("target", target, targets.shape, rows.count)
            controls = targets.controls(values, rows)
            self._worlds.ledger.write_array(
                targets.ctrl, targets.columns, controls, rows
            )
        else:
            tensor = self._values("target", target, targets.shape, rows.count)
            with OneTorchThread():
                writes = targets.writes(tensor, rows)
            self._write(*writes)

    def _targets(self, kind: TargetKind, joint_ids: Ids) -> Targets:
        """Return where targets of some joints are written."""
        if joint_ids is None and kind in self._all_targets:
            return self._all_targets[kind]
        joints = select(joint_ids, self._num_joints, "joint", self._worlds.device)
        found = Targets(self._reader, self.index, kind, joints)
        if joint_ids is None:
            self._all_targets[kind] = found
        return found

    def _warn_undriven(self, kind: TargetKind, joints: Sequence[int]) -> None:
        """Warn that targets of joints have no effect, and state the remedy."""
        others = [
            other
            for other in ("position", "velocity", "effort")
            if set(joints) <= set(self.index.target_inputs(other).joints)
        ]
        remedy = {
            "position": "PositionActuatorCfg(joints=…, stiffness=…, damping=…)",
            "velocity": "VelocityActuatorCfg(joints=…, damping=…)",
            "effort": "MotorActuatorCfg(joints=…)",
        }[kind]
        alone, instead = "", ""
        if others:  # a joint has one actuator
            alone = ", keep_model_actuators=False"
            instead = f" or set {others[0]} targets, which they take,"
        names = [self.index.joints.names[joint] for joint in joints]
        warn(
            f"No actuator of entity {self.index.name!r} takes {kind} targets for the "
            f"joints {listed(names, 6)}: the targets are stored, but do not move them. "
            f"Use EntityCfg(actuators=[{remedy}]{alone}),{instead} or ignore this "
            f"warning if a controller of yours reads {TARGET_NAMES[kind]}."
        )

    def _of_worlds(self, parameter: str, rows: Selection) -> Tensor:
        """Return a model parameter in the selected worlds; (n or 1, …)."""
        values = self._reader.parameter(parameter)
        return values if values.shape[0] == 1 else values[rows.index]

    def _can_place(self, link: int) -> bool:
        """Return True if a link's pose can be written, by its index in `body_names`.

        So it is of links with a free joint, of mocap bodies and of a root that is fixed
        to the world; others are where their joints put them.
        """
        return self.index.bodies.ids[link] in self._links.placeable

    def _check_root(self, method: str, velocity: bool = False) -> None:
        """Raise unless the root link can be placed, or be given a velocity."""
        base = self.index.base
        if base == "free" or (base == "mocap" and not velocity):
            return
        if self._links.base is not None and not velocity:
            return
        why = {
            "fixed": "its base is fixed, so that it has no velocity",
            "mocap": "a mocap body has no velocity: write its pose each step instead",
            "none": "it has no body",
        }[base]
        if base == "fixed" and self._links.base is None:
            why = (
                "its root link moves on joints: write those, and place the "
                "entity with EntityCfg.init_state"
            )
        raise InvalidInputError(
            f"{method} cannot write the root of {self.index.name!r}: {why}. Nothing "
            "was written.",
            name=method,
        )

    def _movable(self, body_ids: Ids, method: str, velocity: bool = False) -> list[int]:
        """The model's ids of the selected bodies, if all of them can be written."""
        bodies = self._chosen("body", body_ids, self.index.bodies.ids)
        movable = self._links.free if velocity else self._links.placeable
        names = dict(zip(self.index.bodies.ids, self.index.bodies.names, strict=True))
        stuck = [names[body] for body in bodies if body not in movable]
        if stuck:
            can = [names[body] for body in self.index.bodies.ids if body in movable]
            kinds = "a free joint"
            if not velocity:
                kinds = "a free joint, are mocap, or are the root on a fixed base"
            raise InvalidInputError(
                f"{method} writes links that have {kinds}; these move with their "
                f"joints: {listed(stuck)}. Writable: {listed(can)}. Nothing was "
                "written.",
                name=method,
            )
        return bodies

    def _pose_writes(
        self, rows: Selection, bodies: Sequence[int], pose: Tensor
    ) -> list[Write]:
        """Return the writes of poses (n, B, 7) of links; normalises them in place."""
        return self._links.pose_writes(rows, bodies, normalize_pose(pose, "pose"))

    def _block_columns(self, adrs: Sequence[int], width: int) -> Index:
        columns = [adr + k for adr in adrs for k in range(width)]
        return as_index(columns, self._worlds.device)


def _in_place(values: Values, like: Tensor) -> Array | None:
    """Return an array on the values' own memory; None: they must be converted."""
    if not isinstance(values, Tensor) or values.dtype != like.dtype:
        return None
    try:
        return values.numpy()
    except (RuntimeError, TypeError):  # on a device, sparse, or with a graph
        return None


# For simstate's own modules: entities show users only what they may call.


def can_place(entity: WriterBase, link: int) -> bool:
    """Return True if a link's pose can be written, by its index in `body_names`."""
    return entity._can_place(link)  # pyright: ignore[reportPrivateUsage]


def control_writer(
    entity: WriterBase, control_ids: Ids = None
) -> Callable[[Tensor], None]:
    """Return a function that writes some controls in all worlds; (num_envs, U)."""
    return entity._control_writer(control_ids)  # pyright: ignore[reportPrivateUsage]
