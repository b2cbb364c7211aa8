"""ReactionWheels: friction and saturation of reaction wheels as a force model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import all_of
from simstate.base.errors import InvalidInputError
from simstate.engine import core
from simstate.space.spacecraft_parts import ReactionWheelCfg
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.scene_force import SceneForce

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

_FADE = 0.01
"""Fraction of the maximum speed over which a motor loses its torque."""
_STICKING = 1e-2
"""Width of the smooth change of sign of Coulomb friction [rad/s]."""


class ReactionWheels(SceneForce):
    """Friction and saturation of an entity's reaction wheels.

    The motor's torque fades to zero near the maximum speed of a wheel; the torque that
    slows it down does not. Friction is viscous plus Coulomb's, whose sign changes
    smoothly within 0.01 rad/s. All torques act between wheel and hub and conserve the
    total momentum.

    Values are in `parameters`, with a row for each world: max_speed, viscous and
    coulomb, (num_envs, wheels) each.

    Args:
        entity: the entity's name.
        wheels: its wheels, as they were added to its model.
    """

    def __init__(self, entity: str, wheels: Sequence[ReactionWheelCfg]) -> None:
        wheels = all_of("wheels", wheels, ReactionWheelCfg)
        if not wheels:
            raise InvalidInputError(
                "ReactionWheels needs at least one wheel.", name="wheels"
            )
        self.entity = entity
        self.names = [wheel.name for wheel in wheels]
        for name, unit in (
            ("max_speed", "rad/s"), ("viscous", "N·m·s"), ("coulomb", "N·m"),
        ):  # fmt: skip
            values = np.array([getattr(wheel, name) for wheel in wheels])
            self.parameters.declare(name, values, len(wheels), unit=unit, at_least=0)

    def attach(self, sim: SteppingHost) -> None:
        """Find the wheels' joints and motors."""
        entity = sim.scene[self.entity]
        joints = entity.find_joints(self.names, preserve_order=True)[0]
        motors = entity.find_controls(self.names, preserve_order=True)[0]
        self._dofs = [
            int(sim.model.jnt_dofadr[entity.index.joints.ids[j]]) for j in joints
        ]
        self._motors = [entity.index.controls.ids[m] for m in motors]
        super().attach(sim)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the wheels for the core."""
        del start, end
        pairs = np.stack([self._dofs, self._motors], axis=1)
        names = ("max_speed", "viscous", "coulomb")
        return CompiledForce(
            core.LoadKind.WHEELS,
            [0],
            items=[self.parameters[name] for name in names],
            table=np.array([len(pairs), *pairs.flat], np.float64),
        )

    def speeds(self, sim: SteppingHost) -> Tensor:
        """Return the wheels' speeds relative to the hub [rad/s]; (num_envs, wheels)."""
        return sim.data.qvel[:, self._dofs]

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Reduce the motors' torque at their maximum speed, and add the friction."""
        del t
        speed, given = self.speeds(sim).double(), self.parameters
        most = given["max_speed"]
        command = sim.data.ctrl[:, self._motors].double()
        room = most - speed * torch.sign(command)
        left = torch.where(room == 0.0, 0.0, room / (_FADE * most))  # 0 / 0 at rest
        faded = command * left.clamp(0.0, 1.0)
        sim.data.ctrl[:, self._motors] = faded.to(sim.dtype)
        dry = given["coulomb"] * torch.tanh(speed / _STICKING)
        friction = given["viscous"] * speed + dry
        sim.data.qfrc_applied[:, self._dofs] -= friction.to(sim.dtype)
