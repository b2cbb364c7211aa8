"""The unified state of many worlds: one tensor for each quantity, with names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor

from simstate.base.errors import UnknownNameError, listed
from simstate.base.ids import Index, Selection
from simstate.entity import Entity
from simstate.entity.data import EntityData
from simstate.entity.reader import EntityReader
from simstate.scene.index import Elements, places_of
from simstate.world.worlds import worlds_of

DOF_COLUMNS = (
    "dof_pos",
    "dof_vel",
    "dof_pos_target",
    "dof_vel_target",
    "dof_effort_target",
)
"""The tensors that have a column for each 1-DoF joint."""


@dataclass(frozen=True)
class EntityTensors:
    """State of one entity in n worlds; points and axes as in simstate.state.types."""

    joint_names: tuple[str, ...]
    """The 1-DoF joints, in the order of the columns of dof_pos."""
    ball_joint_names: tuple[str, ...]
    """The ball joints, in the order of ball_quat."""
    body_names: tuple[str, ...]
    """The links, in the order of body_pos."""
    pos: Tensor
    """Origin of the root link, world axes [m]; shape (n, 3)."""
    rot: Tensor
    """Orientation of the root link, wxyz; shape (n, 4)."""
    vel: Tensor
    """Velocity of the root link's origin, world axes [m/s]; shape (n, 3)."""
    ang_vel: Tensor
    """Angular velocity of the root link, world axes [rad/s]; shape (n, 3)."""
    dof_pos: Tensor
    """Joint positions [rad or m]; shape (n, joints)."""
    dof_vel: Tensor
    """Joint velocities [rad/s or m/s]; shape (n, joints)."""
    dof_pos_target: Tensor
    """Position targets [rad or m]; shape (n, joints)."""
    dof_vel_target: Tensor
    """Velocity targets [rad/s or m/s]; shape (n, joints)."""
    ball_quat: Tensor
    """Orientations of the ball joints to their parents, wxyz; shape (n, balls, 4)."""
    ball_ang_vel: Tensor
    """Angular velocities of the ball joints, body axes [rad/s]; (n, balls, 3)."""
    body_pos: Tensor
    """Origins of the links, world axes [m]; shape (n, bodies, 3)."""
    body_rot: Tensor
    """Orientations of the links, wxyz; shape (n, bodies, 4)."""
    body_vel: Tensor
    """Velocities of the links' origins, world axes [m/s]; shape (n, bodies, 3)."""
    body_ang_vel: Tensor
    """Angular velocities of the links, world axes [rad/s]; (n, bodies, 3)."""
    dof_effort_target: Tensor | None = None
    """Effort targets [N·m or N]; shape (n, joints). None, as in states of simulators
    that have none: what is set stays."""

    def __repr__(self) -> str:
        joints = len(self.joint_names) + len(self.ball_joint_names)
        size = f"{joints} joints, {len(self.body_names)} links"
        return f"EntityTensors({len(self.pos)} worlds, {size})"

    def reorder(self, joint_names: Sequence[str]) -> EntityTensors:
        """Return the same state with the 1-DoF joints in another simulator's order.

        Both sides must have the same joints; what is missing on either is named.
        """
        order = joint_order(self.joint_names, joint_names)
        columns = {name: getattr(self, name) for name in DOF_COLUMNS}
        return replace(
            self,
            joint_names=tuple(joint_names),
            **{k: v if v is None else v[:, order] for k, v in columns.items()},
        )


@dataclass(frozen=True)
class CameraTensors:
    """Images and geometry of one camera in n worlds; see CameraState."""

    rgb: Tensor
    """Colour, uint8; shape (n, H, W, 3)."""
    depth: Tensor
    """Distance along the optical axis [m]; shape (n, H, W)."""
    pos: Tensor
    """Position, world axes [m]; shape (n, 3)."""
    look_at: Tensor
    """A point on the optical axis, 1 m in front, world axes [m]; shape (n, 3)."""
    intrinsic: Tensor
    """Pinhole matrix in pixels; shape (n, 3, 3)."""
    extrinsic: Tensor
    """World to camera, OpenCV's axes; shape (n, 4, 4)."""


@dataclass(frozen=True)
class TensorState:
    """The unified state of n worlds. What comes out of a simulation is a copy."""

    num_envs: int
    objects: Mapping[str, EntityTensors]
    """Entities that are not robots, by name."""
    robots: Mapping[str, EntityTensors]
    """Articulations with actuators, by name."""
    cameras: Mapping[str, CameraTensors] = field(
        default_factory=dict[str, CameraTensors]
    )
    """Cameras by name."""

    def __repr__(self) -> str:
        parts = ("objects", "robots", "cameras")
        names = ", ".join(f"{p}: {listed(getattr(self, p), 4)}" for p in parts)
        return f"TensorState({self.num_envs} worlds, {names})"

    @property
    def entities(self) -> dict[str, EntityTensors]:
        """Objects and robots together, by name."""
        return {**self.objects, **self.robots}

    def converted(
        self, convert: Callable[[str, EntityTensors], EntityTensors]
    ) -> TensorState:
        """Return the state with each entity's, given with its name, converted."""
        return replace(
            self,
            objects={name: convert(name, part) for name, part in self.objects.items()},
            robots={name: convert(name, part) for name, part in self.robots.items()},
        )


_LINKS = {
    "pos": "body_link_pos_w",
    "rot": "body_link_quat_w",
    "vel": "body_link_lin_vel_w",
    "ang_vel": "body_link_ang_vel_w",
}
"""The quantity behind what is known of links; the root is the first of them."""

_JOINTS = {
    "dof_pos": "joint_pos",
    "dof_vel": "joint_vel",
    "dof_pos_target": "joint_pos_target",
    "dof_vel_target": "joint_vel_target",
    "dof_effort_target": "joint_effort_target",
    "ball_quat": "ball_joint_quat",
    "ball_ang_vel": "ball_joint_ang_vel",
}
"""The quantity behind each tensor of joints."""


def read_entities(entities: Sequence[Entity], rows: Selection) -> list[EntityTensors]:
    """Return copies of the entities' states in the selected worlds.

    The links of all entities are read together.
    """
    if not entities:
        return []
    links = _read_links(entities, rows)
    empty = _empty_joints(entities[0], rows.count)
    found: list[EntityTensors] = []
    for k, entity in enumerate(entities):
        jointed = entity.num_joints + entity.num_ball_joints
        joints = _read_joints(entity, rows.index) if jointed else empty
        found.append(
            EntityTensors(
                joint_names=entity.joint_names,
                ball_joint_names=entity.ball_joint_names,
                body_names=entity.body_names,
                **{name: parts[k] for name, parts in links.items()},
                **joints,
            )
        )
    return found


def _read_joints(entity: Entity, index: Index) -> dict[str, Tensor]:
    """Return copies of what is known of an entity's joints, by the tensors' names."""
    return {
        name: entity.data.read(quantity)[index].clone()
        for name, quantity in _JOINTS.items()
    }


def _empty_joints(entity: Entity, count: int) -> dict[str, Tensor]:
    """Return the tensors of an entity without joints, which entities may share."""
    like = worlds_of(entity).engine.field("qpos")
    shapes = {"ball_quat": (count, 0, 4), "ball_ang_vel": (count, 0, 3)}
    return {name: like.new_empty(shapes.get(name, (count, 0))) for name in _JOINTS}


def _read_links(
    entities: Sequence[Entity], rows: Selection
) -> dict[str, Sequence[Tensor]]:
    """Return what is known of roots and links, by the tensors' names, per entity."""
    counts = [entity.num_bodies for entity in entities]
    roots = [0, *accumulate(counts)][:-1]
    data = _joined_data(entities)
    others = {
        k: entity.data
        for k, entity in enumerate(entities)
        if type(entity.data) is not EntityData
    }
    found: dict[str, Sequence[Tensor]] = {}
    for name, quantity in _LINKS.items():
        values = data.read(quantity)[rows.index]
        bodies = _copies(torch.split_with_sizes_copy(values, counts, dim=1))
        firsts = _copies(torch.unbind_copy(values[:, roots], dim=1))
        for k, own in others.items():
            if own.quantities[quantity] is not data.quantities[quantity]:
                bodies[k] = own.read(quantity)[rows.index].clone()
                firsts[k] = bodies[k][:, 0].clone()
        found[f"body_{name}"], found[name] = bodies, firsts
    return found


def _copies(parts: Any) -> list[Tensor]:
    """Return the parts as a list; torch declares that its copies return None."""
    return list(cast("Sequence[Tensor]", parts))


def _joined_data(entities: Sequence[Entity]) -> EntityData:
    """Return the quantities of the links of all entities, as of one entity."""
    first = entities[0]
    if len(entities) == 1:
        return first.data
    bodies = Elements(
        tuple(name for entity in entities for name in entity.body_names),
        tuple(i for entity in entities for i in entity.index.bodies.ids),
    )
    index = replace(first.index, bodies=bodies)
    return EntityData(EntityReader(index, worlds_of(first), 1.0))


def tensor_shapes(entity: Entity) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of an entity's state, without the worlds."""
    joints, balls = entity.num_joints, entity.num_ball_joints
    sizes = {"pos": 3, "rot": 4, "vel": 3, "ang_vel": 3}
    return {
        **{name: (size,) for name, size in sizes.items()},
        **dict.fromkeys(DOF_COLUMNS, (joints,)),
        "ball_quat": (balls, 4),
        "ball_ang_vel": (balls, 3),
        **{f"body_{name}": (entity.num_bodies, size) for name, size in sizes.items()},
    }


def joint_order(have: Sequence[str], want: Sequence[str]) -> list[int]:
    """Return where each wanted joint is; a joint missing on either side raises."""
    places, wanted = places_of(have), Counter(want)
    missing = [name for name in want if name not in places]
    extra = [name for name in have if name not in wanted]
    repeated = sorted(name for name, count in wanted.items() if count > 1)
    if missing or extra or repeated:
        raise UnknownNameError(
            "The joints of the two sides differ. Only in the order that was asked for: "
            f"{listed(missing)}. Only in the state: {listed(extra)}. "
            f"Asked for more than once: {listed(repeated)}.",
            name=(missing + extra + repeated)[0],
            known=have,
        )
    return [places[name] for name in want]
