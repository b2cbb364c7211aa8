"""Drake's MultibodyPlant: a separate discrete plant and diagram for each world.

Importing this module loads pydrake; `simstate.simulators.make("drake", …)` does so.
"""

# pydrake comes without the type information that strict checking needs.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import numpy as np

from simstate.simulators.adapted_simulator import AdaptedSimulator, Array, BodyStates
from simstate.simulators.catalog import info
from simstate.simulators.drake_coordinates import DrakeCoordinates
from simstate.simulators.drake_model import DrakeModel
from simstate.simulators.drives import drive_inputs


class DrakeSimulator(AdaptedSimulator):
    """Worlds in Drake, stepped one after the other by its discrete updates."""

    name = "drake"
    capabilities = info("drake").capabilities

    def build(self) -> None:
        """Create the worlds."""
        self.drake = DrakeModel(self.model, self.timestep, self.terms)
        self._coordinates = DrakeCoordinates(self.drake)
        with self.drake.listening():
            worlds = [self.drake.diagram.CreateDefaultContext() for _ in self._all]
        self._roots: list[Any] = worlds
        plant = self.drake.plant
        self.contexts: list[Any] = [
            plant.GetMyMutableContextFromRoot(root) for root in worlds
        ]
        """The plant's context in each world."""

    @property
    def _all(self) -> range:
        return range(self.num_envs)

    def read(self, ids: list[int]) -> BodyStates:
        """Return the states of some worlds."""
        return self._coordinates.read([self.contexts[i] for i in ids])

    def write(self, qpos: Array, qvel: Array, ids: list[int]) -> None:
        """Set the states of some worlds."""
        for row, i in enumerate(ids):
            self._coordinates.write(self.contexts[i], qpos[row], qvel[row])

    def check(self, qpos: Array) -> None:
        """Raise for a ball joint at a singularity of Drake's angles."""
        for row in qpos:
            self._coordinates.positions(row)

    def advance(self, n: int, ctrl: Array, ids: list[int]) -> dict[int, str]:
        """Advance some worlds."""
        drake = self.drake
        failed: dict[int, str] = {}
        for i in ids:
            set_inputs(drake, self.contexts[i], ctrl[i])
            try:
                for _ in range(n):
                    step(drake, self._roots[i])
            except RuntimeError as error:  # of Drake's solver
                failed[i] = " ".join(str(error).split())[:200]
        return failed


def set_inputs(drake: DrakeModel, context: Any, ctrl: Array) -> None:
    """Set the targets and efforts of a plant from MuJoCo's controls."""
    if not drake.drives:
        return
    position, rate, effort = drive_inputs(drake.model, drake.drives, ctrl)
    plant = drake.plant
    if "actuators" not in drake.terms:
        effort = np.zeros_like(effort)
    else:
        desired = np.concatenate([position, rate])
        plant.get_desired_state_input_port(drake.instance).FixValue(context, desired)
    plant.get_actuation_input_port(drake.instance).FixValue(context, effort)


def step(drake: DrakeModel, root: Any) -> None:
    """Take one discrete step of the plant in a diagram's context."""
    values = drake.diagram.EvalUniquePeriodicDiscreteUpdate(root)
    root.get_mutable_discrete_state().SetFrom(values)
