"""MJX's mechanics, read from its data after one evaluation."""

# JAX and MJX come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import jax
import mujoco
import numpy as np
from jax import numpy as jnp
from mujoco import mjx

from simstate.scene import SceneCfg
from simstate.simulators.adapted_simulator import Array
from simstate.simulators.mechanics import AdaptedMechanics, MechanicalState, of_masses
from simstate.simulators.mjx import MjxSimulator, field
from simstate.simulators.parameters import Parameters, parameters_of
from simstate.simulators.parameters.scene_parameters import (
    EXPLICIT_GYROSCOPIC,
    free_bodies_alone,
)
from simstate.simulators.plain_model import ALL_TERMS, NO_TERMS, Terms, plain_model

# Of one world: they compile faster than the simulator's batch.
_forward: Any = jax.jit(mjx.forward)
_step: Any = jax.jit(mjx.step)


class MjxMechanics(AdaptedMechanics[MjxSimulator]):
    """MJX's mechanics. Each set of terms compiles a separate function."""

    name = "mjx"

    def __init__(self, scene: SceneCfg | mujoco.MjModel) -> None:
        super().__init__(lambda terms: MjxSimulator(scene, terms=terms))
        self._memo: tuple[bytes, Any] = (b"", None)

    def _at(self, state: MechanicalState) -> Any:
        """Return MJX's data at a state, without actuators, constraints and contacts."""
        key = state.qpos.tobytes() + state.qvel.tobytes()
        if self._memo[0] != key:
            simulator = self.simulator(NO_TERMS)
            blank = mjx.make_data(simulator.mjx_model)
            data = blank.replace(qpos=jnp.array(state.qpos), qvel=jnp.array(state.qvel))
            self._memo = (key, _forward(simulator.mjx_model, data))
        return self._memo[1]

    def step(self, state: MechanicalState, terms: Terms) -> Array:
        """By mjx.step."""
        model = self.simulator(terms).mjx_model
        data = mjx.make_data(model).replace(
            qpos=jnp.array(state.qpos),
            qvel=jnp.array(state.qvel),
            ctrl=jnp.array(state.ctrl),
        )
        after = field(_step(model, data), "qvel")
        return (after - state.qvel) / self.simulator(terms).timestep

    def com(self, state: MechanicalState) -> Array:
        """xipos."""
        com = field(self._at(state), "xipos")
        return of_masses(self.simulator(NO_TERMS).model, com)

    def jacobian(self, state: MechanicalState) -> Array:
        """By mjx.jac at the bodies' origins."""
        simulator, data = self.simulator(NO_TERMS), self._at(state)
        nbody, nv = simulator.model.nbody, simulator.model.nv
        found = np.zeros((nbody, 6, nv))
        positions = field(data, "xpos")
        for body in range(1, nbody):
            lin, ang = mjx.jac(
                simulator.mjx_model, data, jnp.array(positions[body]), body
            )
            found[body, :3], found[body, 3:] = np.asarray(lin).T, np.asarray(ang).T
        return found

    def mass_matrix(self, state: MechanicalState) -> Array:
        """By mjx.full_m."""
        model = self.simulator(NO_TERMS).mjx_model
        return np.asarray(mjx.full_m(model, self._at(state)), dtype=np.float64)

    def bias(self, state: MechanicalState) -> Array:
        """qfrc_bias."""
        return field(self._at(state), "qfrc_bias")

    def passive(self, state: MechanicalState) -> Array:
        """qfrc_passive."""
        return field(self._at(state), "qfrc_passive")

    def acceleration(self, state: MechanicalState) -> Array:
        """qacc_smooth without actuators."""
        return field(self._at(state), "qacc_smooth")

    def parameters(self) -> Parameters:
        """Return the parameters of MJX's model, written to a MuJoCo model."""
        simulator = self.simulator(ALL_TERMS)
        model, held = plain_model(simulator.model), simulator.mjx_model
        for name in _FIELDS:
            array = getattr(model, name)
            if array.size:
                array[:] = np.asarray(getattr(held, name)).reshape(array.shape)
        for name in ("timestep", "density", "viscosity"):
            setattr(model.opt, name, float(getattr(held.opt, name)))
        model.opt.gravity[:] = np.asarray(held.opt.gravity)
        model.opt.integrator = int(held.opt.integrator)
        found = parameters_of(model)
        fast = model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST.value
        if fast and free_bodies_alone(model):
            found["integrator"] = {"the scene": np.array([EXPLICIT_GYROSCOPIC])}
        return found


_FIELDS = (
    *("body_mass", "body_ipos", "body_inertia", "body_iquat", "body_pos", "body_quat"),
    *("body_gravcomp", "jnt_axis", "jnt_pos", "jnt_range", "jnt_stiffness"),
    *("dof_armature", "dof_damping", "dof_frictionloss", "qpos_spring"),
    *("actuator_gear", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange"),
    *("tendon_stiffness", "tendon_damping", "geom_size", "geom_friction"),
)
"""Arrays of a model that MJX stores as arrays, not as constants of compilation."""
