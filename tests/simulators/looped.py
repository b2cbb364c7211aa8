"""A simulator of one's own: plain MuJoCo behind an adapter, a world after the other.

With it, what adapters share is tested where no other simulator is installed.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from simstate.simulators import (
    AdaptedMechanics,
    AdaptedSimulator,
    Capabilities,
    SimulatorInfo,
)
from simstate.simulators.adapted_simulator import BodyStates
from simstate.simulators.parameters import parameters_of
from simstate.simulators.plain_model import switch_off

NAME = "looped"
INFO = SimulatorInfo(
    name=NAME,
    title="Looped MuJoCo",
    package=None,
    extra=None,
    simulator=(__name__, "LoopedSimulator"),
    mechanics=(__name__, "LoopedMechanics"),
    capabilities=Capabilities(
        dtype="float64", batching="loop", lacks={"mocap bodies": "they stay"}
    ),
)


class LoopedSimulator(AdaptedSimulator):
    name = NAME
    capabilities = INFO.capabilities

    def build(self):
        self.own_model = copy.copy(self.model)
        switch_off(self.own_model, self.terms)
        self.worlds = [mujoco.MjData(self.own_model) for _ in range(self.num_envs)]

    def read(self, ids):
        model = self.own_model
        found = BodyStates.blank(model, len(ids))
        vel = np.zeros(6)
        for row, i in enumerate(ids):
            data = self.worlds[i]
            found.qpos[row], found.qvel[row] = data.qpos, data.qvel
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_comVel(model, data)
            found.body_pos[row], found.body_quat[row] = data.xpos, data.xquat
            for body in range(model.nbody):
                kind = mujoco.mjtObj.mjOBJ_XBODY.value
                mujoco.mj_objectVelocity(model, data, kind, body, vel, 0)
                found.body_ang_vel[row, body] = vel[:3]
                found.body_vel[row, body] = vel[3:]
        return found

    def write(self, qpos, qvel, ids):
        for row, i in enumerate(ids):
            self.worlds[i].qpos[:], self.worlds[i].qvel[:] = qpos[row], qvel[row]
            self.worlds[i].act[:] = self.reference.data.act[i].numpy()
            self.worlds[i].qacc_warmstart[:] = 0.0

    def advance(self, n, ctrl, ids):
        failed = {}
        for i in ids:
            data = self.worlds[i]
            data.ctrl[:] = ctrl[i]
            if np.abs(data.qvel).max(initial=0.0) > 1e9:
                failed[i] = "it is too fast"
                continue
            mujoco.mj_step(self.own_model, data, n)
            self.reference.data.act[i] = self.reference.data.act.new_tensor(data.act)
        return failed


class LoopedMechanics(AdaptedMechanics):
    name = NAME

    def __init__(self, scene):
        super().__init__(lambda terms: LoopedSimulator(scene, terms=terms))

    def parameters(self):
        return parameters_of(self.simulator(frozenset()).model)
