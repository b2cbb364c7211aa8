"""Writing unified states into a simulation, after everything was checked.

Dictionaries and tensors go one way: both become what is given of each entity, tensors
with the ids of the elements that they are of, and that becomes writes to the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    UnknownNameError,
)
from simstate.base.ids import Selection
from simstate.engine import OneTorchThread
from simstate.entity import Entity
from simstate.entity.host import Host
from simstate.entity.state_writes import TARGETS, Part, state_writes
from simstate.entity.writer_base import can_place
from simstate.math import quaternion
from simstate.state.parse import (
    ROOT_SIZES,
    EntityUpdate,
    check_quats,
    entity_suggestion,
    parse_states,
)
from simstate.state.tensors import (
    EntityTensors,
    TensorState,
    joint_order,
    tensor_shapes,
)
from simstate.world import Write
from simstate.world.worlds import worlds_of

States: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | TensorState"
"""One dictionary for all worlds, a list of them, or what `get_states` returns."""

_MOVED = 1e-4
"""Tolerance [m or rad] for the pose of a link that cannot be placed."""


def write_states(sim: Host, states: States, rows: Selection) -> None:
    """Write states, dictionaries or tensors, into the selected worlds, or nothing."""
    with OneTorchThread():
        updates = check_states(sim, states, rows)
        count, ids = _count(states), rows.tensor(sim.device)
        groups: dict[tuple[int, ...] | None, list[EntityUpdate]] = {}
        for update in updates:
            everywhere = len(update.worlds) == count
            worlds = None if everywhere else tuple(update.worlds)
            groups.setdefault(worlds, []).append(update)
        writes: list[Write] = []
        for worlds, members in groups.items():
            some = rows
            if worlds is not None:
                some = worlds_of(sim).select(ids[list(worlds)])
            entities = [update.entity for update in members]
            writes += state_writes(entities, [u.given for u in members], some)
    worlds_of(sim).ledger.write(*writes)


def check_states(sim: Host, states: States, rows: Selection) -> list[EntityUpdate]:
    """Return the updates of each entity; raise if one cannot be written."""
    if isinstance(states, Mapping):
        states = [states]
    kinds = (Sequence, TensorState)
    fits = isinstance(states, kinds)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not fits or isinstance(states, str):
        raise InvalidInputError(
            "states must be dictionaries, or what get_states returns, got "
            f"{type(states).__name__}. Nothing was written."
        )
    count = _count(states)
    if count not in (rows.count, 1):
        raise ShapeError(
            f"states must be {rows.count}, one for each selected world, or a single "
            f"one for all of them; got {count}. Nothing was written.",
            name="states",
            shape=[count],
        )
    if isinstance(states, TensorState):
        groups = (("objects", states.objects), ("robots", states.robots))
        updates = [
            _update_of(sim, group, name, tensors, count)
            for group, members in groups
            for name, tensors in members.items()
        ]
    else:
        updates = parse_states(sim, states)
    ids = rows.tensor(sim.device)
    for update in updates:
        _check_links(update)
        _check_root(update, ids if count == 1 else ids[update.worlds])
    return updates


def _count(states: States) -> int:
    """Return the number of worlds that states are of; one dictionary is one."""
    if isinstance(states, TensorState):
        return states.num_envs
    return 1 if isinstance(states, Mapping) else len(states)


def _check_links(update: EntityUpdate) -> None:
    """Raise if a link but the root gets a pose or a velocity that it cannot have.

    Links that joints move follow their joints, welded ones the link that they are
    welded to, which must be given; mocap bodies have no velocity.
    """
    entity = update.entity
    jointed = bool(entity.num_joints + entity.num_ball_joints)
    given = "dof_pos" in update.given or "ball_quat" in update.given
    for key in [key for key in ROOT_SIZES if key in update.given]:
        ids, values = update.given[key]
        for k, link in enumerate(ids):
            why = ""
            if not link:
                continue
            if can_place(entity, link):
                is_free = entity.index.bodies.ids[link] in entity.index.free_body_ids
                moves = key in ("pos", "rot") or is_free
                if not moves and bool((values[:, k].abs() > _MOVED).any()):
                    why = f"it is a mocap body, which has no velocity, so omit {key!r}"
            elif jointed and not given:
                why = "links follow from the joints, so give dof_pos as well"
            elif not jointed:
                why = _carrier_missing(entity, link, ids, key)
            if why:
                name = f"{update.path}.body.{entity.body_names[link]}"
                raise InvalidInputError(f"{name}: {why}. Nothing was written.")


def _carrier_missing(entity: Entity, link: int, given: Sequence[int], key: str) -> str:
    """Return the reason why a welded link needs others to be given; "" if it does not.

    A complete state, which has the root, may have links that are fixed to the world.
    """
    parents, ids = worlds_of(entity).model.body_parentid, entity.index.bodies.ids
    body = parents[ids[link]]
    while body in ids:
        other = ids.index(body)
        if can_place(entity, other):
            why = f"it is welded to {entity.body_names[other]!r}, so give {key!r} of it"
            return "" if other in given else why
        body = parents[body]
    return "" if 0 in given else "it is fixed to the world"


def _check_root(update: EntityUpdate, env_ids: Tensor) -> None:
    """Raise if a root gets a pose or a velocity that it cannot have."""
    entity, base = update.entity, update.entity.index.base
    if base == "free":
        return
    for key in [key for key in ROOT_SIZES if key in update.given]:
        ids, values = update.given[key]
        if 0 not in ids or (key in ("pos", "rot") and can_place(entity, 0)):
            continue
        if base == "fixed" and _follows_joints(update, key):
            continue
        if not _is_now(entity, key, values[:, list(ids).index(0)], env_ids):
            why = "its root follows from joints that are not given"
            if can_place(entity, 0):
                kind = "a mocap body" if base == "mocap" else "fixed"
                why = f"its base is {kind}, which has no velocity"
            raise InvalidInputError(
                f"{update.path_of(key, 0)} cannot be set in {entity.name!r}: {why}. "
                "Nothing was written."
            )


def _follows_joints(update: EntityUpdate, key: str) -> bool:
    """Return True if joints move the root link and the update contains them."""
    entity = update.entity
    if not worlds_of(entity).model.body_dofnum[entity.index.root_body_id]:
        return False
    keys = ("dof_vel", "ball_ang_vel")
    if key in ("pos", "rot"):
        keys = ("dof_pos", "ball_quat")
    return any(k in update.given for k in keys)


def _is_now(entity: Entity, key: str, given: Tensor, env_ids: Tensor) -> bool:
    """Return True if a root link has these values up to float32 and text; (n, k)."""
    if can_place(entity, 0):  # mocap or fixed: it does not move
        return bool((given.abs() <= _MOVED).all())
    now = {
        "pos": entity.data.root_link_pos_w,
        "rot": entity.data.root_link_quat_w,
        "vel": entity.data.root_link_lin_vel_w,
        "ang_vel": entity.data.root_link_ang_vel_w,
    }[key][env_ids]
    if key == "rot":
        angle = quaternion.angle_between(quaternion.normalize(given), now)
        return bool((angle <= 10 * _MOVED).all())  # float32 keeps half of the digits
    return bool(((given - now).abs() <= _MOVED * (1.0 + now.abs())).all())


def _update_of(
    sim: Host, group: str, name: str, tensors: EntityTensors, count: int
) -> EntityUpdate:
    """Return the update in a state of tensors; joints and links are matched by name."""
    groups: dict[str, dict[str, None]] = {"objects": {}, "robots": {}}
    for n, e in sim.scene.items():
        groups["robots" if e.is_robot else "objects"][n] = None
    known, path = groups[group], f"{group}.{name}"
    if name not in known:
        raise UnknownNameError(
            f"Unknown entity {path}.{entity_suggestion(name, group, groups)} Nothing "
            "was written.",
            name=name,
            known=known,
        )
    entity = sim.scene[name]
    joints = joint_order(tensors.joint_names, entity.joint_names)
    balls = joint_order(tensors.ball_joint_names, entity.ball_joint_names)
    links = joint_order(tensors.body_names, entity.body_names)
    values = _checked(sim, entity, tensors, count, path)
    update = EntityUpdate(entity, list(range(count)), path, frozenset(ROOT_SIZES))
    for key in ROOT_SIZES:
        of_links = values[f"body_{key}"][:, links]
        if links:
            of_links[:, 0] = values[key]
        update.given[key] = Part(range(len(links)), of_links)
    for key in ("dof_pos", "dof_vel", *TARGETS):
        if joints and key in values:
            update.given[key] = Part(range(len(joints)), values[key][:, joints])
    for key in ("ball_quat", "ball_ang_vel"):
        if balls:
            update.given[key] = Part(range(len(balls)), values[key][:, balls])
    return update


def _checked(
    sim: Host, entity: Entity, tensors: EntityTensors, count: int, path: str
) -> dict[str, Tensor]:
    """The tensors of a state by name, finite, in the engine's dtype, on its device."""
    values: dict[str, Tensor] = {}
    for key, shape in tensor_shapes(entity).items():
        tensor = getattr(tensors, key)
        if key == "dof_effort_target" and tensor is None:
            continue
        want = (count, *shape)
        if not isinstance(tensor, Tensor) or tuple(tensor.shape) != want:
            got = tuple(tensor.shape) if isinstance(tensor, Tensor) else tensor
            raise ShapeError(
                f"{path}.{key} must have shape {want}, got {got}. Nothing was written.",
                name=f"{path}.{key}",
                shape=getattr(tensor, "shape", None),
            )
        values[key] = tensor.detach().to(device=sim.device, dtype=sim.dtype)
        check_finite(values[key], f"{path}.{key}")
        if key in ("rot", "body_rot", "ball_quat"):
            check_quats(values[key], f"{path}.{key}")
    return values
