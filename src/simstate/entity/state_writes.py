"""The writes that a state of an entity amounts to: at a reset, or given in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from simstate.checks import check_finite
from simstate.entity.links import unit_pose, unit_quat
from simstate.entity.writers import EntityWriters
from simstate.ids import Selection, as_index
from simstate.ledger import Write
from simstate.scene.index import TargetKind

_DEFAULTS = ("default_root_state", "default_joint_pos", "default_joint_vel")

TARGETS: dict[str, TargetKind] = {
    "dof_pos_target": "position",
    "dof_vel_target": "velocity",
    "dof_effort_target": "effort",
}
"""The kind of target behind each key of a state."""


class Part(NamedTuple):
    """Numbers of some elements of an entity, for n worlds."""

    ids: Sequence[int]
    """Which elements, in the order of the entity's names of them."""
    values: Tensor
    """Shape (n or 1, elements, …)."""


class StateWrites(EntityWriters):
    """The part of Entity that knows where a state of it is written."""

    def default_writes(self, rows: Selection) -> list[Write]:
        """Writes of the `default_…` quantities of the selected worlds, checked."""
        stored = {name: self._reader.stored(name)[rows.index] for name in _DEFAULTS}
        for name, values in stored.items():
            check_finite(values, f"{self.index.name}.data.{name}")
        state = stored["default_root_state"]
        pose = unit_pose(state[:, :7], f"{self.index.name}.data.default_root_state")
        pose, vel = pose[:, None], state[:, None, 7:]
        links, writes = self._links, list[Write]()
        if self.index.base != "none":
            root = [self.index.root_body_id]
            if links.base is None or not links.base_is_at(rows, state[:, :7]):
                writes += links.pose_writes(rows, root, pose)
            if self.index.base == "free":
                writes.append(links.vel_write(rows, root, vel, pose[..., 3:]))
        if self._num_joints:
            for field, adrs, name in (
                ("qpos", self.index.qpos_adr, "default_joint_pos"),
                ("qvel", self.index.dof_adr, "default_joint_vel"),
            ):
                columns, _ = self._elements("joint", None, adrs)
                writes.append(Write(field, rows, columns, stored[name]))
        return writes

    def defaults_changed(self, rows: Selection) -> bool:
        """Whether a reset of these worlds writes more than the scene's own state.

        Their `default_…` quantities are others, or a fixed base is elsewhere.
        """
        ledger = self._worlds.ledger
        for name in _DEFAULTS:
            slot = ledger[f"entity/{self.index.name}/{name}"]
            assert slot.initial is not None
            if not bool((slot.tensor[rows.index] == slot.initial).all()):
                return True
        return self._links.is_placed

    def state_writes(self, rows: Selection, given: Mapping[str, Part]) -> list[Write]:
        """Writes of what is given of a state, checked values; the rest stays.

        Its keys are "pos", "rot", "vel" and "ang_vel", of links; "dof_pos", "dof_vel"
        and those of TARGETS, of 1-DoF joints; "ball_quat" and "ball_ang_vel". Links
        that joints move are where their joints are: what is given of them is not used.
        """
        writes = self._link_writes(rows, given)
        index = self.index
        for key, field, adrs, width in (
            ("dof_pos", "qpos", index.qpos_adr, 1),
            ("dof_vel", "qvel", index.dof_adr, 1),
            ("ball_quat", "qpos", index.ball_qpos_adr, 4),
            ("ball_ang_vel", "qvel", index.ball_dof_adr, 3),
        ):
            if key in given and len(given[key].ids):
                ids, values = given[key]
                if key == "ball_quat":
                    values = unit_quat(values, key)
                columns = self._block_columns([adrs[k] for k in ids], width)
                writes.append(Write(field, rows, columns, values.flatten(1)))
        for key, kind in TARGETS.items():
            if key in given:
                ids, values = given[key]
                joints = Selection(
                    as_index(ids, self._worlds.device), len(ids), self._num_joints
                )
                writes += self._target_writes(kind, joints)(values, rows)
        return writes

    def _link_writes(self, rows: Selection, given: Mapping[str, Part]) -> list[Write]:
        """Writes of poses and velocities of links that can be placed."""
        links, ids_of = self._links, self.index.bodies.ids

        def part(key: str, of: frozenset[int]) -> tuple[list[int], Tensor | None]:
            ids, values = given.get(key, ((), None))
            places = [k for k, link in enumerate(ids) if ids_of[link] in of]
            if values is None or not places:
                return [], None
            return [ids_of[ids[k]] for k in places], values[:, places]

        writes: list[Write] = []
        moved, pos = part("pos", links.placeable)
        if pos is not None:
            writes += links.pos_writes(rows, moved, pos)
        turned, quat = part("rot", links.placeable)
        if quat is not None:
            quat = unit_quat(quat, "rot")
            writes += links.quat_writes(rows, turned, quat)
        pushed, vel = part("vel", links.free)
        if vel is not None:
            writes.append(links.lin_vel_write(rows, pushed, vel))
        spun, spin = part("ang_vel", links.free)
        # Axes that turn take the angular velocity with them, unless it stays in world
        # axes: what is not given is written as it is now.
        kept = [body for body in turned if body in links.free and body not in spun]
        bodies = [*spun, *kept]
        if bodies:
            ang_vel = links.free_ang_vels(rows, bodies)
            if spin is not None:
                ang_vel[:, : len(spun)] = spin
            quats = links.free_quats(rows, bodies)
            if quat is not None:
                for k, body in enumerate(bodies):
                    if body in turned:
                        quats[:, k] = quat[:, turned.index(body)]
            writes.append(links.ang_vel_write(rows, bodies, ang_vel, quats))
        return writes
