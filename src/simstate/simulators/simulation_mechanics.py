"""Mechanics of simstate's engines, for comparisons with MuJoCo."""

from __future__ import annotations

import copy
from typing import Literal

import mujoco
import numpy as np
from torch import Tensor

from simstate.scene import SceneCfg, build_scene
from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import Array, BodyStates
from simstate.simulators.mechanics import MechanicalState, Mechanics, of_masses
from simstate.simulators.parameters import Parameters, parameters_of
from simstate.simulators.plain_model import NO_TERMS, Terms, switch_off


class SimulationMechanics(Mechanics):
    """A `Simulation` of one world, on one of the engines."""

    engine: Literal["native", "warp"]

    def __init__(self, scene: SceneCfg | mujoco.MjModel) -> None:
        self._model = build_scene(scene).model
        self._made: dict[Terms, Simulation] = {}

    def _at(self, state: MechanicalState, terms: Terms) -> Simulation:
        """Return a simulation with these terms, set to a state."""
        if terms not in self._made:
            model = copy.copy(self._model)
            switch_off(model, terms)
            self._made[terms] = Simulation(model, 1, engine=self.engine)
        sim = self._made[terms]
        state.write_to(sim)
        return sim

    def parameters(self) -> Parameters:
        """Return the parameters of the model that the engine was given."""
        return parameters_of(self._model)

    def motion(self, state: MechanicalState) -> BodyStates:
        """By the quantities of the links."""
        sim = self._at(state, NO_TERMS)
        data = next(iter(sim.scene.values())).data
        motion = BodyStates.blank(self._model, 1)
        motion.qpos[0], motion.qvel[0] = state.qpos, state.qvel
        motion.body_pos[:, 1:] = _array(data.body_link_pos_w)
        motion.body_quat[:, 1:] = _array(data.body_link_quat_w)
        motion.body_vel[:, 1:] = _array(data.body_link_lin_vel_w)
        motion.body_ang_vel[:, 1:] = _array(data.body_link_ang_vel_w)
        return motion

    def com(self, state: MechanicalState) -> Array:
        """xipos."""
        com = _array(self._at(state, NO_TERMS).data.xipos)[0]
        return of_masses(self._model, com)

    def bias(self, state: MechanicalState) -> Array:
        """qfrc_bias."""
        return _array(self._at(state, NO_TERMS).data.qfrc_bias)[0]

    def passive(self, state: MechanicalState) -> Array:
        """qfrc_passive."""
        return _array(self._at(state, NO_TERMS).data.qfrc_passive)[0]

    def acceleration(self, state: MechanicalState) -> Array:
        """qacc_smooth without actuators."""
        sim = self._at(state, NO_TERMS)
        sim.forward()
        return _array(sim.data.qacc_smooth)[0]

    def step(self, state: MechanicalState, terms: Terms) -> Array:
        """By one step of the engine."""
        sim = self._at(state, terms)
        sim.step()
        return (_array(sim.data.qvel)[0] - state.qvel) / sim.timestep


class NativeMechanics(SimulationMechanics):
    """The native engine."""

    name = "native"
    engine = "native"


class WarpMechanics(SimulationMechanics):
    """The warp engine."""

    name = "warp"
    engine = "warp"
    single = True


def _array(tensor: Tensor) -> Array:
    return tensor.cpu().numpy().astype(np.float64)
