"""Newton's mechanics, with either of its two solvers."""

# Newton and Warp come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from simstate.base.errors import ModelError
from simstate.scene import SceneCfg
from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mechanics import (
    AdaptedMechanics,
    MechanicalState,
    MujocoMechanics,
    of_masses,
)
from simstate.simulators.mjcf_actuators import simple_actuators
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.newton import NewtonFeatherstoneSimulator, NewtonSimulator
from simstate.simulators.newton_model import newton, rotation
from simstate.simulators.newton_parameters import UNLIMITED, read_parameters
from simstate.simulators.parameters import Parameters, parameters_of
from simstate.simulators.plain_model import ALL_TERMS, NO_TERMS, Terms, plain_model


class NewtonMechanics(AdaptedMechanics[NewtonSimulator]):
    """Newton with its MuJoCo solver.

    Motions are those of Newton's kinematics and steps those of its solver; matrices and
    forces are those of the MuJoCo model that the solver creates from Newton's.
    """

    name = "newton"
    single = True

    def __init__(self, scene: SceneCfg | mujoco.MjModel) -> None:
        super().__init__(lambda terms: NewtonSimulator(scene, terms=terms))
        simulator = self.simulator(ALL_TERMS)
        self._model, own = simulator.model, simulator.solver.mj_model
        if not np.array_equal(own.jnt_type, self._model.jnt_type):
            raise ModelError("Newton's solver orders the joints differently.")
        self._own = MujocoMechanics(own)

    def _with_controls(self, state: MechanicalState) -> MechanicalState:
        """Return a state with the controls of the actuators that Newton supports."""
        columns = self.simulator(ALL_TERMS).newton.columns
        return replace(state, ctrl=state.ctrl[columns])

    def notes(self) -> tuple[str, ...]:
        """Return the output of Newton's parser."""
        return tuple(dict.fromkeys(self.simulator(ALL_TERMS).newton.messages))

    def com(self, state: MechanicalState) -> Array:
        """xipos of the solver's model."""
        return self._own.com(self._with_controls(state))

    def jacobian(self, state: MechanicalState) -> Array:
        """By mj_jacBody on the solver's model."""
        return self._own.jacobian(self._with_controls(state))

    def mass_matrix(self, state: MechanicalState) -> Array:
        """By mj_fullM on the solver's model: Newton's own has no armature."""
        return self._own.mass_matrix(self._with_controls(state))

    def bias(self, state: MechanicalState) -> Array:
        """qfrc_bias of the solver's model."""
        return self._own.bias(self._with_controls(state))

    def passive(self, state: MechanicalState) -> Array:
        """qfrc_passive of the solver's model."""
        return self._own.passive(self._with_controls(state))

    def acceleration(self, state: MechanicalState) -> Array:
        """qacc_smooth of the solver's model, without actuators."""
        return self._own.acceleration(self._with_controls(state))

    def step(self, state: MechanicalState, terms: Terms) -> Array | None:
        """By one step of the solver; the velocities are its MuJoCo data's."""
        if super().step(state, terms) is None:
            return None
        simulator = self.simulator(terms)
        after = simulator.solver.mj_data.qvel
        return (after - state.qvel) / simulator.timestep

    def parameters(self) -> Parameters:
        """Return the parameters of the solver's model, by the scene's names."""
        own, names = self._own.model, ModelNames(self._model)
        theirs = ModelNames(own)
        theirs.body, theirs.joint = names.body, names.joint
        theirs.tendon = names.tendon
        there = simple_actuators(plain_model(self._model))
        theirs.actuator = [names.actuator[a] for a in there]
        theirs.geom = [_geom_name(label, names.geom) for label in theirs.geom]
        found = parameters_of(own, theirs)
        if own.ntendon != self._model.ntendon:  # tendons without effect may be removed
            del found["tendon"]
        simulator = self.simulator(ALL_TERMS)
        found["time step"] = {"timestep": np.array([simulator.timestep])}
        found["force limit"] = {
            name: np.where(limit >= UNLIMITED, np.inf, limit)
            for name, limit in found["force limit"].items()
        }
        return found


def _geom_name(label: str, names: list[str]) -> str:
    """Return the scene's name of a geom, which Newton labels by path and number."""
    path = label.rsplit("_", 1)[0]
    found = [name for name in names if path.endswith(f"/{name}")]
    return max(found, key=len) if found else label


class NewtonFeatherstoneMechanics(AdaptedMechanics[NewtonFeatherstoneSimulator]):
    """Newton with its Featherstone solver."""

    name = "newton-featherstone"
    single = True

    def __init__(self, scene: SceneCfg | mujoco.MjModel) -> None:
        super().__init__(lambda terms: NewtonFeatherstoneSimulator(scene, terms=terms))

    def _at(self, state: MechanicalState, terms: Terms) -> tuple[NewtonSimulator, Any]:
        """Return a simulator set to a state, and its Newton state."""
        simulator = self.simulator(terms)
        simulator.write(state.qpos[None], state.qvel[None], [0])
        return simulator, simulator.states[0]

    def notes(self) -> tuple[str, ...]:
        """Return the output of Newton's parser."""
        return tuple(dict.fromkeys(self.simulator(ALL_TERMS).newton.messages))

    def com(self, state: MechanicalState) -> Array:
        """By body_com at Newton's own poses."""
        simulator, newton_state = self._at(state, NO_TERMS)
        pose, com = simulator.newton.poses(newton_state), simulator.newton.com
        found = np.zeros((simulator.model.nbody, 3))
        for b in range(1, simulator.model.nbody):
            found[b] = pose[b, :3] + rotation(pose[b, 3:]) @ com[b]
        return of_masses(simulator.model, found)

    def mass_matrix(self, state: MechanicalState) -> Array:
        """By eval_mass_matrix, which has no armature; the solver adds it."""
        simulator, newton_state = self._at(state, NO_TERMS)
        model = simulator.newton.newton_model
        blocks = newton.eval_mass_matrix(model, newton_state).numpy()
        starts = model.joint_qd_start.numpy()
        first, last = model.articulation_start.numpy(), model.articulation_end.numpy()
        full = np.diag(model.joint_armature.numpy().astype(np.float64))
        for block, one, end in zip(blocks, first, last, strict=False):
            dofs = slice(int(starts[one]), int(starts[end]))
            count = dofs.stop - dofs.start
            full[dofs, dofs] += block[:count, :count]
        turn = simulator.newton.velocity_map(state.qpos)
        return turn.T @ full @ turn

    def step(self, state: MechanicalState, terms: Terms) -> Array | None:
        """By one step of the solver, as the acceleration that it integrated."""
        simulator, newton_state = self._at(state, terms)
        before = newton_state.joint_qd.numpy().astype(np.float64)
        if simulator.advance(1, state.ctrl[None], [0]):
            return None
        after = simulator.states[0].joint_qd.numpy().astype(np.float64)
        rates = (after - before) / simulator.timestep
        return simulator.newton.velocity_rates(state.qpos, state.qvel, rates)

    def parameters(self) -> Parameters:
        """Return the parameters of Newton's model."""
        simulator = self.simulator(ALL_TERMS)
        return read_parameters(simulator.newton, simulator.timestep)
