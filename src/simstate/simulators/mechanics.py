"""Mechanics: a simulator's kinematics and dynamics at one state.

Comparisons evaluate the same quantities in two of them. Forces and accelerations are
along MuJoCo's qvel, whatever velocities the simulator itself uses.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import mujoco
import numpy as np
import torch

from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import AdaptedSimulator, Array, BodyStates
from simstate.simulators.parameters import Parameters, parameters_of
from simstate.simulators.parameters.scene_parameters import step_as
from simstate.simulators.plain_model import Terms, switch_off


@dataclass(frozen=True)
class MechanicalState:
    """A state of a scene at which mechanics are evaluated."""

    qpos: Array
    """MuJoCo's generalised positions; shape (nq,)."""
    qvel: Array
    """MuJoCo's generalised velocities; shape (nv,)."""
    ctrl: Array
    """MuJoCo's controls; shape (nu,)."""

    def write_to(self, sim: Simulation) -> None:
        """Reset a simulation and set its first world to the state."""
        sim.reset()
        for field in ("qpos", "qvel", "ctrl"):
            getattr(sim.data, field)[0] = torch.as_tensor(getattr(self, field))


class Mechanics(ABC):
    """A simulator's evaluation of a state; None where it is not available."""

    name: str
    """Name of the simulator in reports."""
    single: bool = False
    """True if it computes in float32."""

    @abstractmethod
    def parameters(self) -> Parameters:
        """Return the parameters that the simulator reports."""

    @abstractmethod
    def motion(self, state: MechanicalState) -> BodyStates:
        """Poses and velocities of the bodies, of one world."""

    def notes(self) -> tuple[str, ...]:
        """Return the messages of the simulator's parser, without repetitions."""
        return ()

    def com(self, state: MechanicalState) -> Array | None:
        """Centres of mass of the bodies, world axes [m]; shape (nbody, 3).

        Zero for a body without mass.
        """
        return None

    def jacobian(self, state: MechanicalState) -> Array | None:
        """Velocity (linear, angular) of each body's origin by qvel; (nbody, 6, nv)."""
        return None

    def mass_matrix(self, state: MechanicalState) -> Array | None:
        """Joint-space inertia matrix; shape (nv, nv)."""
        return None

    def bias(self, state: MechanicalState) -> Array | None:
        """Coriolis, centrifugal and gravity forces along qvel; shape (nv,)."""
        return None

    def passive(self, state: MechanicalState) -> Array | None:
        """Forces of springs, dampers, compensation and fluid; shape (nv,)."""
        return None

    def acceleration(self, state: MechanicalState) -> Array | None:
        """d qvel/dt without actuators, constraints and contacts; shape (nv,)."""
        return None

    @abstractmethod
    def step(self, state: MechanicalState, terms: Terms) -> Array | None:
        """(qvel⁺ − qvel) / time step of one step with these terms; shape (nv,)."""


def of_masses(model: mujoco.MjModel, com: Array) -> Array:
    """Centres of mass of the bodies with mass, zero for the others."""
    return np.where(model.body_mass[:, None] > 0, com, 0.0)


class MujocoMechanics(Mechanics):
    """MuJoCo's C functions, the reference of comparisons.

    Args:
        model: the compiled model.
        integrator: number of the integrator to step as, by `step_as`; None: the
            model's.
    """

    name = "mujoco"

    def __init__(self, model: mujoco.MjModel, integrator: float | None = None) -> None:
        self.model = model
        self._integrator = integrator

    def stepping_model(self, terms: Terms) -> mujoco.MjModel:
        """Return a copy of the model that steps with these terms."""
        model = copy.copy(self.model)
        switch_off(model, terms)
        if self._integrator is not None:
            step_as(model, self._integrator)
        return model

    def _data(self, state: MechanicalState, terms: Terms) -> mujoco.MjData:
        """Return MuJoCo's data at a state, evaluated with these terms."""
        model = copy.copy(self.model)
        switch_off(model, terms)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.ctrl[:] = state.qpos, state.qvel, state.ctrl
        mujoco.mj_forward(model, data)
        return data

    def parameters(self) -> Parameters:
        """Return the parameters of the model."""
        return parameters_of(self.model)

    def motion(self, state: MechanicalState) -> BodyStates:
        """By mj_kinematics and mj_objectVelocity."""
        model, data = self.model, self._data(state, frozenset())
        vel = np.zeros((model.nbody, 6))
        kind = mujoco.mjtObj.mjOBJ_XBODY.value
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(model, data, kind, body, vel[body], 0)
        return BodyStates(
            qpos=state.qpos[None],
            qvel=state.qvel[None],
            body_pos=data.xpos[None].copy(),
            body_quat=data.xquat[None].copy(),
            body_vel=vel[None, :, 3:],
            body_ang_vel=vel[None, :, :3],
        )

    def com(self, state: MechanicalState) -> Array:
        """xipos."""
        return of_masses(self.model, self._data(state, frozenset()).xipos)

    def jacobian(self, state: MechanicalState) -> Array:
        """By mj_jacBody."""
        model, data = self.model, self._data(state, frozenset())
        found = np.zeros((model.nbody, 6, model.nv))
        for body in range(model.nbody):
            lin, ang = np.zeros((3, model.nv)), np.zeros((3, model.nv))
            mujoco.mj_jacBody(model, data, lin, ang, body)
            found[body, :3], found[body, 3:] = lin, ang
        return found

    def mass_matrix(self, state: MechanicalState) -> Array:
        """By mj_fullM."""
        data, nv = self._data(state, frozenset()), self.model.nv
        full = np.zeros((nv, nv))
        mujoco.mj_fullM(self.model, data, full)
        return full

    def bias(self, state: MechanicalState) -> Array:
        """qfrc_bias."""
        return self._data(state, frozenset()).qfrc_bias.copy()

    def passive(self, state: MechanicalState) -> Array:
        """qfrc_passive."""
        return self._data(state, frozenset()).qfrc_passive.copy()

    def acceleration(self, state: MechanicalState) -> Array:
        """qacc_smooth without actuators."""
        return self._data(state, frozenset()).qacc_smooth.copy()

    def step(self, state: MechanicalState, terms: Terms) -> Array:
        """By mj_step."""
        model = self.stepping_model(terms)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.ctrl[:] = state.qpos, state.qvel, state.ctrl
        mujoco.mj_step(model, data)
        return (data.qvel - state.qvel) / model.opt.timestep


S = TypeVar("S", bound=AdaptedSimulator)


class AdaptedMechanics(Mechanics, Generic[S]):
    """Base class of adapters: evaluates by simulators with some of the terms."""

    def __init__(self, make: Callable[[Terms], S]) -> None:
        self._make = make
        self._made: dict[Terms, S] = {}

    def simulator(self, terms: Terms) -> S:
        """Return the simulator of one world with these terms, created once."""
        if terms not in self._made:
            self._made[terms] = self._make(terms)
        return self._made[terms]

    def motion(self, state: MechanicalState) -> BodyStates:
        """By the simulator's own kinematics."""
        simulator = self.simulator(frozenset())
        simulator.write(state.qpos[None], state.qvel[None], [0])
        return simulator.read([0])

    def step(self, state: MechanicalState, terms: Terms) -> Array | None:
        """By one step of the simulator."""
        simulator = self.simulator(terms)
        simulator.reference.data.act.zero_()  # a state here has no activations
        simulator.write(state.qpos[None], state.qvel[None], [0])
        if simulator.advance(1, state.ctrl[None], [0]):
            return None
        after = simulator.read([0]).qvel[0]
        return (after - state.qvel) / simulator.timestep
