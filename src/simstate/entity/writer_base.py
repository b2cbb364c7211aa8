"""What the writers of an entity share: checked values, and the fields they go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from simstate.checks import check_finite
from simstate.entity.links import Links, unit_pose
from simstate.entity.reader import EntityReader
from simstate.errors import InvalidInputError, listed
from simstate.ids import (
    Ids,
    Index,
    Selection,
    Values,
    as_index,
    as_values,
    everything,
    int_list,
    select,
)
from simstate.ledger import Write
from simstate.scene import EntityIndex
from simstate.scene.index import TargetKind
from simstate.world.worlds import Worlds

TARGET_NAMES: dict[TargetKind, str] = {
    "position": "joint_pos_target",
    "velocity": "joint_vel_target",
    "effort": "joint_effort_target",
}
"""The quantity that shows each kind of target."""


class WriterBase:
    """Checks what is to be written, and finds where it goes."""

    index: EntityIndex
    _worlds: Worlds
    _reader: EntityReader
    _links: Links

    @property
    def _num_joints(self) -> int:
        return len(self.index.joints)

    def _rows(
        self, name: str, values: Values, shape: tuple[int, ...], env_ids: Ids
    ) -> tuple[Selection, Tensor]:
        """The selected worlds, and finite values of the right shape for them."""
        rows = self._worlds.select(env_ids)
        like = self._worlds.engine.field("qpos")
        tensor = as_values(values, name, rows.count, shape, like)
        check_finite(tensor, name)
        return rows, tensor

    def _chosen(self, kind: str, ids: Ids, of: Sequence[int]) -> list[int]:
        """Those of the model's ids `of` that the entity's own ids select."""
        device = self._worlds.device
        selection = select(ids, len(of), kind, device)
        if isinstance(selection.index, slice):
            return [int(i) for i in of[selection.index]]
        return [int(of[i]) for i in int_list(selection.tensor(device))]

    def _elements(self, kind: str, ids: Ids, of: Sequence[int]) -> tuple[Index, int]:
        """The same as columns of a field, and how many they are."""
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
        kind: str,
        ids: Ids,
        of: Sequence[int],
        env_ids: Ids,
    ) -> None:
        """Write one number for each selected element into columns of a state field."""
        columns, count = self._elements(kind, ids, of)
        rows, tensor = self._rows(name, values, (count,), env_ids)
        self._write(Write(field, rows, columns, tensor))

    def control_writer(self, control_ids: Ids = None) -> Callable[[Tensor], None]:
        """A function that writes some controls in all worlds; (num_envs, U).

        As `write_ctrl_to_sim`, with ids resolved once and values not checked: for what
        is called in every step.
        """
        columns, _ = self._elements("control", control_ids, self.index.controls.ids)
        rows = everything(self._worlds.num_envs)
        return lambda values: self._write(Write("ctrl", rows, columns, values))

    def _set_target(
        self, kind: TargetKind, target: Values, joint_ids: Ids, env_ids: Ids
    ) -> None:
        """Write targets: into the controls that take them, else beside them."""
        joints = select(joint_ids, self._num_joints, "joint", self._worlds.device)
        rows, values = self._rows("target", target, (joints.count,), env_ids)
        self._write(*self._target_writes(kind, joints)(values, rows))

    def _target_writes(
        self, kind: TargetKind, joints: Selection
    ) -> Callable[[Tensor, Selection], list[Write]]:
        """What makes writes of some joints' targets, checked (n, J), resolved once."""
        device, inputs = self._worlds.device, self.index.target_inputs(kind)
        chosen = int_list(joints.tensor(device))
        place = {joint: k for k, joint in enumerate(chosen)}
        taken = [k for k, joint in enumerate(inputs.joints) if joint in place]
        columns = as_index([inputs.ctrl[k] for k in taken], device)
        picked = as_index([place[inputs.joints[k]] for k in taken], device)
        scales = as_index(taken, device)
        others = [k for k, joint in enumerate(chosen) if joint not in inputs.joints]
        beside = as_index([chosen[k] for k in others], device)
        slot = f"entity/{self.index.name}/{TARGET_NAMES[kind]}"

        def writes(values: Tensor, rows: Selection) -> list[Write]:
            scale = self._reader.target_inputs(kind)[2][:, scales]
            if scale.shape[0] > 1:
                scale = scale[rows.index]
            found = [Write("ctrl", rows, columns, values[:, picked] * scale)]
            if others:
                found.append(Write(slot, rows, beside, values[:, others]))
            return found

        return writes

    def _of_worlds(self, parameter: str, rows: Selection) -> Tensor:
        """A model parameter in the selected worlds; (n or 1, …)."""
        values = self._reader.parameter(parameter)
        return values if values.shape[0] == 1 else values[rows.index]

    def can_place(self, link: int) -> bool:
        """Whether a link's pose can be written, by its place in `body_names`.

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
                "its root link moves on joints of its own: write those, and place the "
                "entity with EntityCfg.init_state"
            )
        raise InvalidInputError(
            f"{method} cannot write the root of {self.index.name!r}: {why}. Nothing "
            "was written."
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
                "written."
            )
        return bodies

    def _pose_writes(
        self, rows: Selection, bodies: Sequence[int], pose: Tensor
    ) -> list[Write]:
        """Writes of the poses (n, B, 7) of links that can be placed, normalised."""
        return self._links.pose_writes(rows, bodies, unit_pose(pose, "pose"))

    def _block_columns(self, adrs: Sequence[int], width: int) -> Index:
        columns = [adr + k for adr in adrs for k in range(width)]
        return as_index(columns, self._worlds.device)
