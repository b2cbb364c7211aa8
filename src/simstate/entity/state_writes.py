"""The writes that a state of an entity amounts to: at a reset, or given in part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Selection, as_index
from simstate.entity.links import Links, normalize_pose, unit_quat
from simstate.entity.targets import Targets
from simstate.entity.writers import EntityWriters
from simstate.scene.index import TargetKind
from simstate.world import Write, memory_of
from simstate.world.worlds import worlds_of

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

    @classmethod
    def _default_writes(
        cls, entities: Sequence[StateWrites], rows: Selection
    ) -> list[Write]:
        """Return the writes of the `default_…` quantities of entities, checked.

        Their roots are written together.
        """
        if not entities:
            return []
        stored = {
            name: [entity._reader.stored(name)[rows.index] for entity in entities]
            for name in _DEFAULTS
        }
        for name, parts in stored.items():
            if not bool(torch.cat(parts, dim=1).isfinite().all()):
                for entity, values in zip(entities, parts, strict=True):
                    check_finite(values, f"{entity.index.name}.data.{name}")
        writes = cls._default_root_writes(entities, stored["default_root_state"], rows)
        for k, entity in enumerate(entities):
            if not entity._num_joints:
                continue
            for field, adrs, name in (
                ("qpos", entity.index.qpos_adr, "default_joint_pos"),
                ("qvel", entity.index.dof_adr, "default_joint_vel"),
            ):
                columns, _ = entity._elements("joint", None, adrs)
                writes.append(Write(field, rows, columns, stored[name][k]))
        return writes

    @staticmethod
    def _default_root_writes(
        entities: Sequence[StateWrites], states: list[Tensor], rows: Selection
    ) -> list[Write]:
        """Return the writes of finite poses and velocities of the roots; (n, 13) each.

        A fixed base that is there already is not written.
        """
        try:
            poses = torch.stack(states, dim=1)[..., :7]
            normalize_pose(poses, "default_root_state")
        except InvalidInputError:
            for entity, state in zip(entities, states, strict=True):
                label = f"{entity.index.name}.data.default_root_state"
                unit_quat(state[:, 3:7], label)
            raise
        moved: list[int] = []
        for k, (entity, state) in enumerate(zip(entities, states, strict=True)):
            links = entity._links
            stays = links.base is not None and links.base_is_at(rows, state[:, :7])
            if entity.index.base != "none" and not stays:
                moved.append(k)
        if not moved:
            return []
        indexes = [entities[k].index for k in moved]
        links = Links(indexes, worlds_of(entities[0]))
        roots = [index.root_body_id for index in indexes]
        state = torch.stack([states[k] for k in moved], dim=1)
        pose = poses[:, moved]
        writes = links.pose_writes(rows, roots, pose)
        free = [k for k, root in enumerate(roots) if root in links.free]
        if free:
            vel, quats = state[:, free, 7:], pose[:, free, 3:]
            writes.append(links.vel_write(rows, [roots[k] for k in free], vel, quats))
        return writes

    def _defaults_changed(self, rows: Selection) -> bool:
        """Return True if a reset of these worlds writes more than the scene's state.

        Their `default_…` quantities are others, or a fixed base is elsewhere.
        """
        for live, initial in self._default_memory:
            index: Any = rows.index if isinstance(live, Tensor) else rows.host
            if not (live[index] == initial).all():
                return True
        return self._links.is_placed

    @cached_property
    def _default_memory(self) -> list[tuple[Any, Any]]:
        """The memory of the `default_…` quantities, and of their initial values."""
        ledger, prefix = self._worlds.ledger, f"entity/{self.index.name}/"
        slots = [ledger[prefix + name] for name in _DEFAULTS]
        return [
            (memory_of(slot.tensor.data), memory_of(slot.initial))
            for slot in slots
            if slot.initial is not None
        ]

    @classmethod
    def _state_writes(
        cls,
        entities: Sequence[StateWrites],
        given: Sequence[Mapping[str, Part]],
        rows: Selection,
    ) -> list[Write]:
        """Return the writes of what is given of states of entities, checked values.

        The keys are "pos", "rot", "vel" and "ang_vel", of links; "dof_pos", "dof_vel"
        and those of TARGETS, of 1-DoF joints; "ball_quat" and "ball_ang_vel". What is
        not given stays. Links that joints move follow their joints: what is given of
        them is not used. The links of all entities are written together.
        """
        links = Links([entity.index for entity in entities], worlds_of(entities[0]))
        parts = {
            key: _joined_links(entities, given, key, of)
            for key, of in (
                ("pos", links.placeable),
                ("rot", links.placeable),
                ("vel", links.free),
                ("ang_vel", links.free),
            )
        }
        writes = _link_writes(links, rows, parts)
        for entity, own in zip(entities, given, strict=True):
            writes += entity._joint_writes(rows, own)
        return writes

    def _joint_writes(self, rows: Selection, given: Mapping[str, Part]) -> list[Write]:
        """Return the writes of what is given of joints and of their targets."""
        writes: list[Write] = []
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
                targets = Targets(self._reader, self.index, kind, joints)
                writes += targets.writes(values, rows)
        return writes


# For simstate's own modules: entities show users only what they may call.


def default_writes(entities: Sequence[StateWrites], rows: Selection) -> list[Write]:
    """Return the writes of the `default_…` quantities of entities, checked."""
    return StateWrites._default_writes(entities, rows)  # pyright: ignore[reportPrivateUsage]


def changed_default_writes(
    entities: Iterable[StateWrites], rows: Selection
) -> list[Write]:
    """Return the writes of the defaults that are no longer those of the scene."""
    writes: list[Write] = []
    for entity in entities:
        if entity._defaults_changed(rows):  # pyright: ignore[reportPrivateUsage]
            writes += default_writes([entity], rows)
    return writes


def state_writes(
    entities: Sequence[StateWrites],
    given: Sequence[Mapping[str, Part]],
    rows: Selection,
) -> list[Write]:
    """Return the writes of what is given of states of entities, checked values."""
    return StateWrites._state_writes(entities, given, rows)  # pyright: ignore[reportPrivateUsage]


class _LinkPart(NamedTuple):
    """Numbers of some links of a scene, for n worlds."""

    bodies: list[int]
    """Their body ids."""
    values: Tensor
    """Shape (n or 1, bodies, …)."""


def _joined_links(
    entities: Sequence[StateWrites],
    given: Sequence[Mapping[str, Part]],
    key: str,
    of: frozenset[int],
) -> _LinkPart | None:
    """Return what is given under a key of the links that are among `of`, if any."""
    bodies: list[int] = []
    values: list[Tensor] = []
    for entity, parts in zip(entities, given, strict=True):
        if key not in parts:
            continue
        ids_of, (ids, numbers) = entity.index.bodies.ids, parts[key]
        places = [k for k, link in enumerate(ids) if ids_of[link] in of]
        if places:
            bodies += [ids_of[ids[k]] for k in places]
            whole = len(places) == len(ids)
            values.append(numbers if whole else numbers[:, places])
    return _LinkPart(bodies, torch.cat(values, dim=1)) if bodies else None


def _link_writes(
    links: Links, rows: Selection, parts: Mapping[str, _LinkPart | None]
) -> list[Write]:
    """Return the writes of poses and velocities of links that can be placed."""
    writes: list[Write] = []
    if (part := parts["pos"]) is not None:
        writes += links.pos_writes(rows, *part)
    turned: dict[int, int] = {}
    quat: Tensor | None = None
    if (part := parts["rot"]) is not None:
        quat = unit_quat(part.values, "rot")
        writes += links.quat_writes(rows, part.bodies, quat)
        turned = {body: k for k, body in enumerate(part.bodies)}
    if (part := parts["vel"]) is not None:
        writes.append(links.lin_vel_write(rows, *part))
    spun = parts["ang_vel"]
    pushed: dict[int, None] = dict.fromkeys(() if spun is None else spun.bodies)
    # Axes that turn take the angular velocity with them, unless it stays in world
    # axes: what is not given is written as it is now.
    kept = [body for body in turned if body in links.free and body not in pushed]
    bodies = [*pushed, *kept]
    if bodies:
        ang_vel = links.free_ang_vels(rows, bodies)
        if spun is not None:
            ang_vel[:, : len(pushed)] = spun.values
        quats = links.free_quats(rows, bodies)
        if quat is not None:
            places = [k for k, body in enumerate(bodies) if body in turned]
            quats[:, places] = quat[:, [turned[bodies[k]] for k in places]]
        writes.append(links.ang_vel_write(rows, bodies, ang_vel, quats))
    return writes
