"""Writing unified states into a simulation, after everything was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from simstate.errors import (
    InvalidInputError,
    ShapeError,
    UnknownNameError,
    suggestion,
)
from simstate.ids import Selection, check_finite
from simstate.math import quaternion
from simstate.state.parse import EntityUpdate, parse_states
from simstate.state.tensors import (
    EntityTensors,
    TensorState,
    joint_order,
    tensor_shapes,
)
from simstate.worlds import Worlds

States: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | TensorState"
"""A dictionary, a list of them, or what `get_states` returns."""

_ROOT = ("pos", "rot", "vel", "ang_vel")
_MOVED = 1e-4
"""How far [m or rad] the pose of what cannot move may be off."""


def write_states(sim: Worlds, states: States, rows: Selection) -> None:
    """Write states, a list of dictionaries or tensors, into the selected worlds."""
    plans = check_states(sim, states, rows)
    for plan in plans:  # before the first write: the rest stays as it is now
        plan.read()
    with sim.internals.ledger.transaction("sim", "sim.set_states()"):
        for plan in plans:
            plan.write()


def check_states(sim: Worlds, states: States, rows: Selection) -> list[Plan]:
    """The writes that states amount to; raises if one of them cannot be made."""
    if isinstance(states, Mapping):
        states = [states]
    kinds = (Sequence, TensorState)
    fits = isinstance(states, kinds)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not fits or isinstance(states, str):
        raise InvalidInputError(
            "states must be dictionaries, or what get_states returns, got "
            f"{type(states).__name__}. Nothing was written."
        )
    count = states.num_envs if isinstance(states, TensorState) else len(states)
    if count not in (rows.count, 1):
        raise ShapeError(
            f"states must be {rows.count}, one for each selected world, or a single "
            f"one for all of them; got {count}. Nothing was written."
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
    plans = [
        Plan(update, ids if count == 1 else ids[update.worlds]) for update in updates
    ]
    for plan in plans:
        plan.check()
    return plans


class Plan:
    """The writes of one update, checked as a whole before the first of them."""

    def __init__(self, update: EntityUpdate, env_ids: Tensor) -> None:
        self.update = update
        self.entity = update.entity
        self.env_ids = env_ids
        self._placed: tuple[list[int], Tensor, Tensor, list[int]] | None = None

    def check(self) -> None:
        """Raise if something cannot be written."""
        self._check_bodies()
        if "rot" in self.update.root:
            _check_quats(self.update.root["rot"], f"{self.update.path}.rot")
        if "dof_pos" in self.update.balls:
            balls, quats = self.update.balls["dof_pos"]
            for k, ball in enumerate(balls):
                name = self.entity.ball_joint_names[ball]
                _check_quats(quats[:, k], f"{self.update.path}.dof_pos.{name}")
        for name, body in self.update.bodies.items():
            if "rot" in body:
                _check_quats(body["rot"], f"{self.update.path}.body.{name}.rot")
        self._check_root()

    def _check_bodies(self) -> None:
        """Raise if links are given whose joints would have to be found from them."""
        index = self.entity.index
        movable = {*index.free_body_ids, *index.mocap_bodies.ids, index.root_body_id}
        names = dict(zip(index.bodies.names, index.bodies.ids, strict=True))
        driven = [name for name in self.update.bodies if names[name] not in movable]
        given = "dof_pos" in self.update.joints or "dof_pos" in self.update.balls
        has_joints = self.entity.num_joints + self.entity.num_ball_joints > 0
        if driven and has_joints and not given:
            raise InvalidInputError(
                f"{self.update.path}.body.{driven[0]}: links follow from the joints, "
                "so give dof_pos as well. Nothing was written."
            )

    def _check_root(self) -> None:
        """Raise if a root that cannot be placed would get another pose or velocity."""
        base = self.entity.index.base
        if base == "free":
            return
        name = self.entity.body_names[0]
        given = [(f"{self.update.path}.{k}", k, v) for k, v in self.update.root.items()]
        given += [
            (f"{self.update.path}.body.{name}.{k}", k, v)
            for k, v in self.update.bodies.get(name, {}).items()
        ]
        now = self._current([0])
        for path, key, values in given:
            if base == "mocap" and key in ("pos", "rot"):
                continue
            if base == "fixed" and self._follows_joints(key):
                continue
            if not _close(values, now[key][:, 0], key):
                why = "its base is a mocap body, which has no velocity"
                if base == "fixed":
                    why = "its base is fixed, or follows from joints that are not given"
                raise InvalidInputError(
                    f"{path} cannot be set in {self.entity.name!r}: {why}. Nothing was "
                    "written."
                )

    def _follows_joints(self, key: str) -> bool:
        """Whether joints move the root link, and the update says where they are."""
        entity = self.entity
        if not entity.internals.model.body_dofnum[entity.index.root_body_id]:
            return False
        dof = "dof_pos" if key in ("pos", "rot") else "dof_vel"
        return dof in self.update.joints or dof in self.update.balls

    def read(self) -> None:
        """Read what is not given of the links that are placed, so that it stays."""
        self._placed = self._pose_and_velocity()

    def write(self) -> None:
        """Write joints and targets, then poses, then velocities."""
        entity, ids = self.entity, self.env_ids
        for key, method in (
            ("dof_pos", entity.write_joint_position_to_sim),
            ("dof_vel", entity.write_joint_velocity_to_sim),
            ("dof_pos_target", entity.set_joint_position_target),
            ("dof_vel_target", entity.set_joint_velocity_target),
        ):
            if key in self.update.joints:
                joints, values = self.update.joints[key]
                method(values, joints, ids)
        for key, method in (
            ("dof_pos", entity.write_ball_joint_quat_to_sim),
            ("dof_vel", entity.write_ball_joint_ang_vel_to_sim),
        ):
            if key in self.update.balls:
                balls, values = self.update.balls[key]
                method(values, balls, ids)
        if self._placed is not None:
            bodies, pose, vel, free = self._placed
            entity.write_body_link_pose_to_sim(pose, bodies, ids)
            if free:
                moving = [bodies.index(body) for body in free]
                entity.write_body_link_velocity_to_sim(vel[:, moving], free, ids)

    def _pose_and_velocity(self) -> tuple[list[int], Tensor, Tensor, list[int]] | None:
        """Links with a free joint or mocap that are given, with what they will be."""
        index = self.entity.index
        given = {
            self.entity.body_names.index(name): part
            for name, part in self.update.bodies.items()
        }
        if self.update.root:
            given[0] = self.update.root
        free = [index.bodies.ids.index(body) for body in index.free_body_ids]
        mocap = [index.bodies.ids.index(body) for body in index.mocap_bodies.ids]
        bodies = sorted(body for body in given if body in (*free, *mocap))
        if not bodies:
            return None
        now = self._current(bodies)
        for k, body in enumerate(bodies):
            for key, values in given[body].items():
                now[key][:, k] = values
        pose = torch.cat([now["pos"], now["rot"]], dim=-1)
        vel = torch.cat([now["vel"], now["ang_vel"]], dim=-1)
        return bodies, pose, vel, [body for body in bodies if body in free]

    def _current(self, bodies: list[int]) -> dict[str, Tensor]:
        """Copies of the present poses and velocities of links; shape (n, B, k)."""
        data = self.entity.data
        quantities = {
            "pos": data.body_link_pos_w,
            "rot": data.body_link_quat_w,
            "vel": data.body_link_lin_vel_w,
            "ang_vel": data.body_link_ang_vel_w,
        }
        return {key: q[self.env_ids][:, bodies] for key, q in quantities.items()}


def _update_of(
    sim: Worlds, group: str, name: str, tensors: EntityTensors, count: int
) -> EntityUpdate:
    """The update that a state of tensors asks for; joints are matched by name."""
    known = [n for n, e in sim.scene.items() if e.is_robot == (group == "robots")]
    path = f"{group}.{name}"
    if name not in known:
        raise UnknownNameError(
            f"Unknown entity {path}.{suggestion(name, known)} Nothing was written."
        )
    entity = sim.scene[name]
    joints = joint_order(tensors.joint_names, entity.joint_names)
    joint_order(tensors.ball_joint_names, entity.ball_joint_names)
    joint_order(tensors.body_names, entity.body_names)
    values: dict[str, Tensor] = {}
    for key, shape in tensor_shapes(entity).items():
        tensor = getattr(tensors, key)
        want = (count, *shape)
        if not isinstance(tensor, Tensor) or tuple(tensor.shape) != want:
            got = tuple(tensor.shape) if isinstance(tensor, Tensor) else tensor
            raise ShapeError(
                f"{path}.{key} must have shape {want}, got {got}. Nothing was written."
            )
        values[key] = tensor.to(device=sim.device, dtype=sim.dtype)
        check_finite(values[key], f"{path}.{key}")
    update = EntityUpdate(entity, list(range(count)), path)
    update.root = {key: values[key] for key in _ROOT}
    if joints:
        ids = list(range(len(joints)))
        for key in ("dof_pos", "dof_vel", "dof_pos_target", "dof_vel_target"):
            update.joints[key] = (ids, values[key][:, joints])
    if entity.num_ball_joints:
        balls = joint_order(tensors.ball_joint_names, entity.ball_joint_names)
        ids = list(range(len(balls)))
        update.balls["dof_pos"] = (ids, values["ball_quat"][:, balls])
        update.balls["dof_vel"] = (ids, values["ball_ang_vel"][:, balls])
    for k, body in enumerate(tensors.body_names):
        update.bodies[body] = {key: values[f"body_{key}"][:, k] for key in _ROOT}
    return update


def _check_quats(quats: Tensor, path: str) -> None:
    if bool(((quats * quats).sum(-1) < 1e-18).any()):
        raise InvalidInputError(
            f"{path} must not be a zero quaternion. Nothing was written."
        )


def _close(given: Tensor, now: Tensor, key: str) -> bool:
    """Whether a value is the present one, to what float32 and text formats keep."""
    if key == "rot":
        angle = quaternion.angle_between(quaternion.normalize(given), now)
        return bool((angle <= 10 * _MOVED).all())  # float32 keeps half of the digits
    return bool(((given - now).abs() <= _MOVED * (1.0 + now.abs())).all())
