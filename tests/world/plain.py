"""The same worlds in plain MuJoCo: one MjModel and one MjData each, in a loop."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np

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
