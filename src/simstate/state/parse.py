"""Dictionaries of states → checked tensors; nothing is written before all is checked.

Worlds whose dictionaries name the same things are handled together, so that a list of
equal states costs a few stacked tensors and not a walk through each number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    UnknownNameError,
    suggestion,
)
from simstate.base.ids import int_list
from simstate.entity import Entity
from simstate.entity.host import Host
from simstate.entity.state_writes import TARGETS, Part

Dict = Mapping[str, Any]

ROOT_SIZES = {"pos": 3, "rot": 4, "vel": 3, "ang_vel": 3}
DOF_KEYS = ("dof_pos", "dof_vel")
BALL_KEYS = {"dof_pos": ("ball_quat", 4), "dof_vel": ("ball_ang_vel", 3)}
"""Values of ball joints under these keys, and the number of components of each."""
TARGET_KEYS = tuple(TARGETS)

# Dictionaries whose keys are what is allowed: a whole set of keys is compared at once.
_GROUPS: Dict = dict.fromkeys(("objects", "robots", "cameras"))
_CAMERA: Dict = dict.fromkeys(
    ("rgb", "depth", "pos", "look_at", "intrinsic", "extrinsic")
)
_OBJECT: Dict = dict.fromkeys((*ROOT_SIZES, *DOF_KEYS, "body"))
_ROBOT: Dict = dict.fromkeys((*_OBJECT, *TARGET_KEYS))


@dataclass
class EntityUpdate:
    """The values of one entity in some worlds, as tensors, complete or partial."""

    entity: Entity
    worlds: list[int]
    """Positions in the list of states."""
    path: str
    """Path in the state, for messages."""
    root: frozenset[str] = frozenset()
    """Which of pos, rot, vel and ang_vel were given for the entity itself."""
    given: dict[str, Part] = field(default_factory=dict[str, Part])
    """The numbers, by the keys of `Entity.state_writes`; shape (n, elements, …)."""

    def path_of(self, key: str, link: int) -> str:
        """Return the path of a link's key in the state."""
        if link == 0 and key in self.root:
            return f"{self.path}.{key}"
        return f"{self.path}.body.{self.entity.body_names[link]}.{key}"


def parse_states(sim: Host, states: Sequence[Any]) -> list[EntityUpdate]:
    """Return the updates that a list of states asks for, every one of them checked."""
    found: dict[tuple[str, Any], tuple[EntityUpdate, list[Dict]]] = {}
    known = _KNOWN.get(sim)
    if known is None:
        known = _KNOWN[sim] = _Known(sim)
    for world, state in enumerate(states):
        for group, name, part in _entities_of(known, state, world):
            path = f"{group}.{name}"
            signature = _signature(known, name, group, part, f"states[{world}].{path}")
            key = (name, signature)
            if key not in found:
                found[key] = (EntityUpdate(sim.scene[name], [], path), [])
            update, parts = found[key]
            update.worlds.append(world)
            parts.append(part)
    _fill_roots(sim, found.values(), len(states))
    for update, parts in found.values():
        _fill(sim, update, parts)
    return [update for update, _ in found.values()]


class _Known:
    """The names that a simulation has, as dictionaries for `_check_keys`."""

    def __init__(self, sim: Host) -> None:
        entities = sim.scene.items()
        self.groups = {
            "objects": dict.fromkeys(n for n, e in entities if not e.is_robot),
            "robots": dict.fromkeys(n for n, e in entities if e.is_robot),
            "cameras": dict.fromkeys(sim.camera_names),
        }
        self.joints = {n: dict.fromkeys(e.joint_names) for n, e in entities}
        self.dofs = {
            n: dict.fromkeys(e.joint_names + e.ball_joint_names) for n, e in entities
        }
        self.bodies = {n: dict.fromkeys(e.body_names) for n, e in entities}


_KNOWN: WeakKeyDictionary[Host, _Known] = WeakKeyDictionary()
"""The names of each simulation, which do not change."""


def _entities_of(known: _Known, state: Any, world: int) -> list[tuple[str, str, Dict]]:
    """The entities that a state names, each with its group and its dictionary."""
    where = f"states[{world}]"
    _check_keys(state, _GROUPS, where)
    found: list[tuple[str, str, Dict]] = []
    for group in ("objects", "robots"):
        members = state.get(group, {})
        _check_keys(members, known.groups[group], f"{where}.{group}", known.groups)
        found += [(group, name, part) for name, part in members.items()]
    cameras = state.get("cameras", {})
    _check_keys(cameras, known.groups["cameras"], f"{where}.cameras")
    for name, camera in cameras.items():
        _check_keys(camera, _CAMERA, f"{where}.cameras.{name}")
    return found


def entity_suggestion(name: object, group: str, groups: Mapping[str, Dict]) -> str:
    """Return the group that an entity is in, or the closest names in this one."""
    for other in ("objects", "robots"):
        if other != group and name in groups[other]:
            return f" It is in {other!r}: robots are articulations with actuators."
    return suggestion(name, groups[group])


def _signature(known: _Known, name: str, group: str, part: Any, where: str) -> Any:
    """Return the keys of a dictionary; worlds with equal keys share one pass."""
    _check_keys(part, _ROBOT if group == "robots" else _OBJECT, where)
    names: list[Any] = [tuple(key for key in ROOT_SIZES if key in part)]
    for key in (*DOF_KEYS, *TARGET_KEYS):
        if key not in part:
            names.append(None)
            continue
        joints = part[key]
        allowed = known.dofs if key in DOF_KEYS else known.joints
        _check_keys(joints, allowed[name], f"{where}.{key}")
        names.append(tuple(joints))
    if "body" not in part:
        names.append(None)
    else:
        bodies = part["body"]
        _check_keys(bodies, known.bodies[name], f"{where}.body")
        for link, body in bodies.items():
            if type(body) is not dict or not body.keys() <= ROOT_SIZES.keys():
                _check_keys(body, ROOT_SIZES, f"{where}.body.{link}")
        names.append(tuple([(link, *body) for link, body in bodies.items()]))
    return tuple(names)


def _fill_roots(
    sim: Host, found: Iterable[tuple[EntityUpdate, list[Dict]]], count: int
) -> None:
    """Stack and check what is given of root links, of all entities together.

    Entities share a stack if the same keys are given of them in the same worlds.
    """
    groups: dict[Any, list[tuple[EntityUpdate, list[Dict]]]] = {}
    for update, parts in found:
        update.root = frozenset(parts[0].keys() & ROOT_SIZES.keys())
        everywhere = len(update.worlds) == count
        worlds = None if everywhere else tuple(update.worlds)
        groups.setdefault((worlds, update.root), []).append((update, parts))
    for (_, root), members in groups.items():
        worlds = members[0][0].worlds
        for key, size in ROOT_SIZES.items():
            if key not in root:
                continue
            columns = {
                f"{update.path}.{key}": [part[key] for part in parts]
                for update, parts in members
            }
            stacked = _stack_columns(sim, columns, size, worlds)
            for k, (update, _) in enumerate(members):
                update.given[key] = Part((0,), stacked[:, k : k + 1])


def _fill(sim: Host, update: EntityUpdate, parts: list[Dict]) -> None:
    """Stack and check what is given of links and joints, of one entity."""
    first = parts[0]
    entity, path, worlds = update.entity, update.path, update.worlds
    if "body" in first:
        _fill_links(sim, update, parts)
    singles_known = entity.index.joints.places
    balls_known = entity.index.ball_joints.places
    for key in (*DOF_KEYS, *TARGET_KEYS):
        if key not in first:
            continue
        dofs = [part[key] for part in parts]
        singles = [name for name in first[key] if name in singles_known]
        balls = [name for name in first[key] if name not in singles_known]
        if singles:
            ids = [singles_known[name] for name in singles]
            values = _numbers(sim, dofs, singles, worlds, f"{path}.{key}")
            update.given[key] = Part(ids, values)
        if balls:
            ball_key, size = BALL_KEYS[key]
            columns = {
                f"{path}.{key}.{name}": [dof[name] for dof in dofs] for name in balls
            }
            ids = [balls_known[name] for name in balls]
            values = _stack_columns(sim, columns, size, worlds)
            update.given[ball_key] = Part(ids, values)


def _fill_links(sim: Host, update: EntityUpdate, parts: list[Dict]) -> None:
    """Add what is given under "body"; what is given for the entity itself stays."""
    places = update.entity.index.bodies.places
    bodies: Dict = parts[0]["body"]
    for key, size in ROOT_SIZES.items():
        names = [name for name, body in bodies.items() if key in body]
        if not names:
            continue
        columns = {
            f"{update.path}.body.{name}.{key}": [p["body"][name][key] for p in parts]
            for name in names
        }
        values = _stack_columns(sim, columns, size, update.worlds)
        links = [places[name] for name in names]
        root = update.given.get(key)
        if root is not None:
            kept = [k for k, link in enumerate(links) if link]
            links = [0, *(links[k] for k in kept)]
            values = torch.cat([root.values, values[:, kept]], dim=1)
        update.given[key] = Part(links, values)


def _stack_columns(
    sim: Host, columns: Mapping[str, list[Any]], size: int, worlds: list[int]
) -> Tensor:
    """Return vectors of the worlds, by their paths, as one tensor; (n, columns, size).

    They are finite, of the engine's dtype and, of size 4, not zero.
    """
    values = [value for column in columns.values() for value in column]
    stacked = _stack_tensors(sim, values, size)
    if stacked is not None:
        return stacked.view(len(columns), len(worlds), size).transpose(0, 1)
    found: list[Tensor] = []
    for path, column in columns.items():
        found.append(_stack(sim, column, size, worlds, path))
        if size == 4:
            check_quats(found[-1], path)
    return torch.stack(found, dim=1)


def _stack_tensors(sim: Host, values: list[Any], size: int) -> Tensor | None:
    """Return floating-point tensors as one; None if a value needs a closer look."""
    dtypes = {v.dtype if isinstance(v, Tensor) else None for v in values}
    if not all(dtype is not None and dtype.is_floating_point for dtype in dtypes):
        return None
    try:
        with torch.no_grad():
            stacked = torch.stack(values)
    except RuntimeError:
        return None
    if stacked.shape[1:] != (size,):
        return None
    stacked = stacked.to(device=sim.device, dtype=sim.dtype)
    usable = stacked.isfinite().all()
    if size == 4:
        usable &= ~_is_zero(stacked).any()
    return stacked if bool(usable) else None


def _stack(
    sim: Host, values: list[Any], size: int, worlds: list[int], path: str
) -> Tensor:
    """Return vectors of the worlds as one tensor, each checked; (n, size)."""
    tensor = torch.stack(
        [
            _vector(value, size, f"states[{world}].{path}")
            for world, value in zip(worlds, values, strict=True)
        ]
    ).to(device=sim.device, dtype=sim.dtype)
    finite = torch.isfinite(tensor)
    if not bool(finite.all()):
        row, column = (~finite).nonzero()[0]
        raise InvalidInputError(
            f"states[{worlds[int(row)]}].{path} must be finite, got "
            f"{float(tensor[row, column])}. Nothing was written.",
            name=path,
            worlds=[worlds[int(row)]],
        )
    return tensor


def _vector(value: Any, size: int, path: str) -> Tensor:
    """Return one vector, or an error that names where it stands."""
    try:
        numbers = value
        if not isinstance(value, Tensor):
            if any(isinstance(number, bool) for number in value):
                raise TypeError("a truth value is not a number")
            numbers = np.asarray(value)
            if numbers.dtype.kind not in "iuf":
                raise TypeError(f"{numbers.dtype} is not a real number")
        tensor = torch.as_tensor(numbers)
        if tensor.dtype == torch.bool or tensor.dtype.is_complex:
            raise TypeError(f"{tensor.dtype} is not a real number")
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInputError(
            f"{path} must be {size} numbers, got {type(value).__name__}: {error}. "
            "Nothing was written.",
            name=path,
        ) from error
    if tuple(tensor.shape) != (size,):
        raise ShapeError(
            f"{path} must have shape ({size},), got {tuple(tensor.shape)}. Nothing was "
            "written.",
            name=path,
            shape=tensor.shape,
        )
    return tensor.detach().to(torch.float64)


def _numbers(
    sim: Host, dofs: list[Dict], names: list[str], worlds: list[int], path: str
) -> Tensor:
    """Return the numbers of 1-DoF joints in all worlds; shape (n, joints)."""
    rows = [list(map(dof.__getitem__, names)) for dof in dofs]
    if all(set(map(type, row)) == {float} for row in rows):
        array = np.array(rows)
    else:
        array = np.array(
            [
                [_number(value, f"states[{world}].{path}.{name}")
                 for name, value in zip(names, row, strict=True)]
                for world, row in zip(worlds, rows, strict=True)
            ]
        )  # fmt: skip
    tensor = torch.as_tensor(array, dtype=sim.dtype, device=sim.device)
    finite = torch.isfinite(tensor)  # in the engine's dtype, which may be too narrow
    if not bool(finite.all()):
        row, column = int_list((~finite).nonzero()[0])
        raise InvalidInputError(
            f"states[{worlds[row]}].{path}.{names[column]} must be finite in "
            f"{str(sim.dtype).removeprefix('torch.')}, got {array[row, column]}. "
            "Nothing was written.",
            name=f"{path}.{names[column]}",
            worlds=[worlds[row]],
        )
    return tensor


def _is_zero(quats: Tensor) -> Tensor:
    """Return where quaternions are zero; shape (…)."""
    return (quats * quats).sum(-1) < 1e-18


def check_quats(quats: Tensor, path: str) -> None:
    """Raise if a quaternion is zero; shape (…, 4)."""
    if bool(_is_zero(quats).any()):
        raise InvalidInputError(
            f"{path} must not be a zero quaternion. Nothing was written.", name=path
        )


def _number(value: Any, path: str) -> float:
    """Return one number, or an error that names where it stands."""
    try:
        if isinstance(value, Tensor):
            value = value.detach().cpu()
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError("it is not a real number")
        if array.size != 1:
            raise TypeError(f"it has shape {array.shape}")
        return float(array.reshape(()))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInputError(
            f"{path} must be one number, got {value!r}: {error}. Nothing was written."
        ) from error


def _check_keys(
    part: Any, known: Dict, where: str, groups: Mapping[str, Dict] | None = None
) -> None:
    """Raise unless `part` is a dictionary whose keys are all among those of `known`.

    For one of the groups of entities, `groups` are all of them.
    """
    if type(part) is dict and part.keys() <= known.keys():
        return
    if not isinstance(part, Mapping):
        raise InvalidInputError(
            f"{where} must be a dictionary, got {type(part).__name__}. Nothing was "
            "written."
        )
    for key in cast("Dict", part):
        if key not in known:
            hint = suggestion(key, known)
            if groups is not None:
                hint = entity_suggestion(key, where.rpartition(".")[2], groups)
            raise UnknownNameError(
                f"Unknown key {where}.{key}.{hint} Nothing was written.",
                name=str(key),
                known=known,
            )
