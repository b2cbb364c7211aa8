"""The same worlds in plain MuJoCo: one MjModel and one MjData each, in a loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from torch import Tensor

STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value


class PlainWorlds:
    """What a simulation must be equal to, kept by MuJoCo's own functions alone."""

    def __init__(self, model: mujoco.MjModel, num_envs: int) -> None:
        self.model = model
        self.models = [copy.copy(model) for _ in range(num_envs)]
        self.datas = [mujoco.MjData(one) for one in self.models]
        self.memory = np.tile([1.5, -2.0], (num_envs, 1))
        self.watched: list[int] = []
        """The bodies whose contacts are watched."""
        self.clocks = np.zeros((num_envs, 5, 0))
        self._scratch = [mujoco.MjData(one) for one in self.models]

    def row(self, world: int) -> np.ndarray:
        row = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.models[world], self.datas[world], row, STATE)
        return row

    def rows(self) -> np.ndarray:
        return np.stack([self.row(world) for world in range(len(self.datas))])

    def write_row(self, world: int, row: np.ndarray) -> None:
        mujoco.mj_setState(self.models[world], self.datas[world], row, STATE)

    def step(self, n: int, worlds: list[int]) -> None:
        for world in worlds:
            self.clocks[world, 4] = 0.0
            for _ in range(n):
                mujoco.mj_step(self.models[world], self.datas[world])
                self._watch(world)

    def watch(self, bodies: list[int]) -> None:
        """Keep the contact clocks of bodies, and the greatest force of each step.

        `clocks` are time in the air, in contact, the last of each, and that force;
        shape (worlds, 5, bodies).
        """
        self.watched = bodies
        self.clocks = np.zeros((len(self.datas), 5, len(bodies)))

    def _watch(self, world: int) -> None:
        model, data = self.models[world], self.datas[world]
        air, contact, last_air, last_contact, greatest = self.clocks[world]
        for k, body in enumerate(self.watched):
            force = np.zeros(3)
            for c in range(data.ncon):
                owners = model.geom_bodyid[data.contact[c].geom]
                if body in owners:
                    wrench = np.zeros(6)
                    mujoco.mj_contactForce(model, data, c, wrench)
                    frame = data.contact[c].frame.reshape(3, 3)
                    force += (1 if owners[1] == body else -1) * frame.T @ wrench[:3]
            size = np.linalg.norm(force)
            greatest[k] = max(greatest[k], size)
            if size > 0 and air[k] > 0:
                last_air[k] = air[k]
            if not size > 0 and contact[k] > 0:
                last_contact[k] = contact[k]
            dt = model.opt.timestep
            air[k] = 0.0 if size > 0 else air[k] + dt
            contact[k] = contact[k] + dt if size > 0 else 0.0

    def reset(self, worlds: list[int]) -> None:
        for world in worlds:
            mujoco.mj_resetData(self.models[world], self.datas[world])
            self.memory[world] = [1.5, -2.0]
            self.clocks[world] = 0.0

    def write_parameter(self, world: int, name: str, element: Any, value: Any) -> None:
        getattr(self.models[world], name)[element] = value
        kept = self.row(world)
        mujoco.mj_setConst(self.models[world], self._scratch[world])
        self.write_row(world, kept)

    def place_root(
        self, world: int, pos: Any, turn: Any, lin: Any, ang: Any, at_com: bool
    ) -> None:
        """Place the first free body; velocity at its origin or COM, world axes."""
        data, model = self.datas[world], self.models[world]
        quat, matrix = np.array(turn) / np.linalg.norm(turn), np.empty(9)
        mujoco.mju_quat2Mat(matrix, quat)
        rotation = matrix.reshape(3, 3)
        body = model.jnt_bodyid[0]
        arm = rotation @ model.body_ipos[body] if at_com else np.zeros(3)
        data.qpos[:3], data.qpos[3:7] = pos, quat
        data.qvel[:3] = np.array(lin) - np.cross(ang, arm)
        data.qvel[3:6] = rotation.T @ np.array(ang)

    def cast(
        self, world: int, body: str, pos: Any, directions: Any, hidden: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return start and distances of rays that pass hidden bodies [m]."""
        model, data = self.models[world], self.evaluated(world)
        turn = data.body(body).xmat.reshape(3, 3)
        start = data.body(body).xpos + turn @ np.array(pos)
        kept = model.geom_group.copy()
        passed = [model.body(name).id for name in hidden]
        model.geom_group[:] = np.where(np.isin(model.geom_bodyid, passed), 3, 0)
        seen, found = np.array([1, 1, 1, 0, 1, 1], np.uint8), np.full(3, 100.0)
        for k, along in enumerate(directions):
            way, geom = turn @ (along / np.linalg.norm(along)), np.zeros(1, np.int32)
            distance = mujoco.mj_ray(model, data, start, way, seen, 1, -1, geom)
            found[k] = distance if 0 <= distance <= 100.0 else 100.0
        model.geom_group[:] = kept
        return start, found

    def rebuild(
        self, slots: Mapping[str, Tensor], columns: Mapping[str, slice]
    ) -> None:
        """Make all models and data again, from nothing but the slots of worlds."""
        for world in range(len(self.datas)):
            model = copy.copy(self.model)
            for name, values in slots.items():
                if name.startswith("model/"):
                    field = getattr(model, name.removeprefix("model/"))
                    field[:] = values[world].numpy().reshape(field.shape)
            self.models[world], self.datas[world] = model, mujoco.MjData(model)
            self._scratch[world] = mujoco.MjData(model)
            mujoco.mj_setConst(model, self._scratch[world])
            row = np.concatenate(
                [slots[name][world].numpy().ravel() for name in columns]
            )
            self.write_row(world, row.astype(np.float64))
        self.memory[:] = slots["memory/fuzz"].numpy()

    def evaluated(self, world: int) -> mujoco.MjData:
        """Everything that MuJoCo computes at the world's present state."""
        data = self._scratch[world]
        mujoco.mj_setState(self.models[world], data, self.row(world), STATE)
        mujoco.mj_forward(self.models[world], data)
        return data

    def velocity(self, world: int, body: int, kind: mujoco.mjtObj) -> np.ndarray:
        """Linear then angular velocity of a body, world axes; (6,)."""
        result = np.empty(6)
        data = self.evaluated(world)
        mujoco.mj_objectVelocity(self.models[world], data, kind.value, body, result, 0)
        return np.concatenate([result[3:], result[:3]])

    def snapshot(self) -> Any:
        return copy.deepcopy([self.rows(), self.memory, self.models, self.clocks])

    def restore(self, snapshot: Any, taken: list[int], given: list[int]) -> None:
        rows, memory, models, clocks = snapshot
        for source, world in zip(taken, given, strict=True):
            self.models[world] = copy.copy(models[source])
            self.datas[world] = mujoco.MjData(self.models[world])
            self._scratch[world] = mujoco.MjData(self.models[world])
            self.write_row(world, rows[source])
            self.memory[world] = memory[source]
            self.clocks[world] = clocks[source]
