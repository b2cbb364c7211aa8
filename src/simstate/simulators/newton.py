"""Newton on Warp: its MuJoCo solver, or its Featherstone solver; float32.

Importing this module loads Warp and Newton; `simstate.simulators.make` does so.
"""

# Newton and Warp come without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import warnings
from typing import Any, Literal

import mujoco
import numpy as np
import torch

from simstate.base.errors import ModelError
from simstate.simulators.adapted_simulator import AdaptedSimulator, Array, BodyStates
from simstate.simulators.catalog import info
from simstate.simulators.drives import drive_inputs
from simstate.simulators.newton_model import NewtonModel, newton
from simstate.simulators.plain_model import switch_off


class NewtonSimulator(AdaptedSimulator):
    """Worlds in Newton with its MuJoCo solver, stepped one after the other.

    Newton converts the scene to its own model, and that to another MuJoCo model
    (`solver.mj_model`), which MuJoCo's C engine steps. Its other back end needs an
    earlier release of MuJoCo Warp than simstate. Neither supports the equalities of
    MuJoCo 3.16 and later.
    """

    name = "newton"
    capabilities = info("newton").capabilities
    dtype = torch.float32
    solver_name: Literal["mujoco", "featherstone"] = "mujoco"

    def build(self) -> None:
        """Create the worlds."""
        direct = self.solver_name == "mujoco"
        self.newton = NewtonModel(self.model, ctrl_direct=direct, terms=self.terms)
        model = self.newton.newton_model
        self.states: list[Any] = [model.state() for _ in range(self.num_envs)]
        """Newton's state of each world."""
        self._spare: Any = model.state()
        self._control: Any = model.control()
        self.solver: Any = self._make_solver()

    def _make_solver(self) -> Any:
        model = self.newton.newton_model
        with warnings.catch_warnings():
            # Newton warns of later releases of MuJoCo than it was built for.
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                solver = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True)
            except (ValueError, NotImplementedError) as error:
                raise ModelError(f"Newton rejects this model: {error}") from error
        switch_off(solver.mj_model, self.terms)
        # Otherwise a world that diverges would be reset silently.
        bit = mujoco.mjtDisableBit.mjDSBL_AUTORESET.value
        solver.mj_model.opt.disableflags |= bit
        return solver

    def read(self, ids: list[int]) -> BodyStates:
        """Return the states of some worlds."""
        return self.newton.read([self.states[i] for i in ids])

    def write(self, qpos: Array, qvel: Array, ids: list[int]) -> None:
        """Set the states of some worlds."""
        for row, i in enumerate(ids):
            self.newton.write(self.states[i], qpos[row], qvel[row])

    def advance(self, n: int, ctrl: Array, ids: list[int]) -> dict[int, str]:
        """Advance some worlds."""
        for i in ids:
            self._set_control(ctrl[i])
            for _ in range(n):
                state = self.states[i]
                self._clear_warm_start()
                contacts = self._contacts(state)
                self.solver.step(
                    state, self._spare, self._control, contacts, self.timestep
                )
                self.states[i], self._spare = self._spare, state
        return {}

    def _set_control(self, ctrl: Array) -> None:
        if self.newton.columns:
            inputs = ctrl[self.newton.columns].astype(np.float32)
            self._control.mujoco.ctrl.assign(inputs)

    def _clear_warm_start(self) -> None:
        """Discard the solver's warm start, which is that of another world."""
        self.solver.mj_data.qacc_warmstart[:] = 0.0

    def _contacts(self, state: Any) -> Any:
        return None


class NewtonFeatherstoneSimulator(NewtonSimulator):
    """Worlds in Newton with its Featherstone solver, stepped one after the other."""

    name = "newton-featherstone"
    capabilities = info("newton-featherstone").capabilities
    solver_name = "featherstone"

    def _make_solver(self) -> Any:
        model = self.newton.newton_model
        self._pipeline_contacts: Any = None
        if "contacts" in self.terms and model.shape_count:
            self._pipeline: Any = newton.CollisionPipeline(model)
            self._pipeline_contacts = self._pipeline.contacts()
        return newton.solvers.SolverFeatherstone(model)

    def _set_control(self, ctrl: Array) -> None:
        inputs = drive_inputs(self.newton.model, self.newton.drives, ctrl)
        dofs = [int(self.newton.dof_of[drive.joint]) for drive in self.newton.drives]
        count = self.newton.newton_model.joint_dof_count
        position, rate, effort = (np.zeros(count, np.float32) for _ in range(3))
        position[dofs], rate[dofs], effort[dofs] = inputs
        if "actuators" not in self.terms:
            effort[:] = 0.0
        self.newton.set_targets(self._control, position, rate, effort)

    def _clear_warm_start(self) -> None:
        """Do nothing: the Featherstone solver has no warm start."""

    def _contacts(self, state: Any) -> Any:
        if self._pipeline_contacts is not None:
            self._pipeline.collide(state, self._pipeline_contacts)
        return self._pipeline_contacts
