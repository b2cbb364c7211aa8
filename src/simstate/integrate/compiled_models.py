"""The force models that ship, as the compiled core evaluates them.

Only models of exactly these classes, with numbers instead of functions of time: a
subclass may compute anything, and a function is Python's. Their numbers are live, so
they are handed over anew before each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from simstate.engine import core
from simstate.integrate.frame import MovingFrame, frame_of
from simstate.integrate.gravity import Gravity, UniformGravity
from simstate.integrate.gravity_sources import PointMassGravity
from simstate.integrate.loads import Drag, Thruster
from simstate.integrate.mass import LEAST_SHARE, MassFlow
from simstate.integrate.scene_force import SceneForce, body_id, body_ids
from simstate.integrate.schemes import Adaptive

if TYPE_CHECKING:
    from simstate.integrate.integration import Integration
    from simstate.integrate.worlds import IntegratedWorlds

_THROTTLE = 7
"""The column of a thruster's throttle."""


@dataclass(eq=False)
class _Model:
    """A force model of the core, and the live numbers that it follows."""

    load: core.Load
    copies: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])
    """Columns of its parameters, and the slot that each is a copy of."""
    has_throttle: bool = False

    def follow(self, model: SceneForce, name: str, first: int, step: int = 1) -> None:
        """Let columns, one for each number of a world, follow a parameter."""
        rows = model.parameters[name].numpy()
        rows = rows.reshape(len(rows), -1)
        last = first + step * rows.shape[1]
        self.copies.append((self.load.parameters[:, first:last:step], rows))

    def update(self) -> bool:
        """Take the present numbers; False: there is one for Python to refuse."""
        for own, slot in self.copies:
            np.copyto(own, slot)
        numbers = self.load.parameters
        if self.has_throttle:
            throttle = numbers[:, _THROTTLE]
            if not ((throttle >= 0) & (throttle <= 1)).all():
                return False
        return bool(np.isfinite(numbers).all())


class CompiledModels:
    """Force models, moving frames and masses of a simulation as the core has them."""

    def __init__(
        self,
        models: Sequence[_Model],
        frames: Sequence[MovingFrame],
        flow: MassFlow | None,
    ) -> None:
        self._models = models
        self.loads = [model.load for model in models]
        """The force models."""
        values = [frame.value.numpy() for frame in frames]
        self._frames = [(value, value.copy()) for value in values]
        self.frames = {
            frame.name: own
            for frame, (_, own) in zip(frames, self._frames, strict=True)
        }
        """Position and velocity of the moving frames, by name; (num_envs, 6) each."""
        self._flow = flow
        self.masses = None if flow is None else _mass_arrays(flow)
        """The masses' arrays, if masses flow."""

    def update(self) -> bool:
        """Take the present numbers; False: there is one for Python to see to."""
        if not all(model.update() for model in self._models):
            return False
        for slot, own in self._frames:
            np.copyto(own, slot)
        flow, masses = self._flow, self.masses
        if flow is None or masses is None:
            return True
        np.copyto(masses.rate, flow.rate.numpy())
        np.multiply(flow.mass_at_reset.numpy(), LEAST_SHARE, out=masses.least)
        return not flow.has_constants_by_hand

    def store(self) -> None:
        """Put what a step has moved back into the ledger."""
        for slot, own in self._frames:
            np.copyto(slot, own)


def compile_models(integration: Integration) -> CompiledModels | None:
    """The models of a simulation for the core; None: one of them is Python's alone."""
    sim = integration.sim
    frames: list[MovingFrame] = []
    for process in integration.processes:
        if type(process) is not MovingFrame:
            return None
        frames.append(process)
    models: list[_Model] = []
    for force in integration.forces.models:
        model = _compile(force, sim, frames, isinstance(integration.scheme, Adaptive))
        if model is None:
            return None
        models.append(model)
    if integration.mass_flow is not None and sim.model.nflex:
        return None
    return CompiledModels(models, frames, integration.mass_flow)


def _compile(
    force: object,
    sim: IntegratedWorlds,
    frames: list[MovingFrame],
    is_adaptive: bool,
) -> _Model | None:
    """The core's form of a force model; None: it has none."""
    owner = getattr(force, "__self__", None)
    if type(owner) is MovingFrame and force == owner.pull:
        return _gravity(owner.gravity, sim, frames.index(owner))
    if type(force) is PointMassGravity and not is_adaptive:  # which warns of speed
        return _gravity(force, sim, -1)
    if type(force) is UniformGravity:
        start = np.zeros((sim.num_envs, 3))
        model = _Model(core.uniform_gravity(body_ids(sim, force.entity), start))
        model.follow(force, "acceleration", 0)
        return model
    if type(force) is Thruster and "throttle" in force.parameters:
        return _thruster(force, sim)
    if type(force) is Drag and {"density", "wind"} <= set(force.parameters):
        return _drag(force, sim, frames)
    return None


def _gravity(gravity: Gravity, sim: IntegratedWorlds, frame: int) -> _Model | None:
    if type(gravity) is not PointMassGravity or "position" not in gravity.parameters:
        return None
    masses = gravity.parameters["mu"].shape[1]
    load = core.point_mass_gravity(
        *(gravity.bodies, np.ones((sim.num_envs, masses))),
        np.zeros((sim.num_envs, masses, 3)), frame, gravity.gradient_torque,
    )  # fmt: skip
    model = _Model(load)
    model.follow(gravity, "mu", 0, 4)
    places = gravity.parameters["position"].numpy()
    for k in range(3):
        model.copies.append((load.parameters[:, k + 1 :: 4], places[..., k]))
    return model


def _thruster(thruster: Thruster, sim: IntegratedWorlds) -> _Model:
    body = body_id(sim, thruster.entity, thruster.body)
    load = core.thruster(body, np.zeros((sim.num_envs, 3)))
    model = _Model(load, has_throttle=True)
    columns = {"force": 0, "position": 3, "throttle": _THROTTLE, "dry_mass": 8}
    if thruster.uses_mass:
        columns["mass_flow"] = 6
    for name, first in columns.items():
        model.follow(thruster, name, first)
    return model


def _drag(drag: Drag, sim: IntegratedWorlds, frames: list[MovingFrame]) -> _Model:
    body = body_id(sim, drag.entity, drag.body)
    frame = frame_of(sim, body)
    index = -1 if frame is None else frames.index(frame)
    load = core.drag(body, 0.0, 0.0, np.zeros((sim.num_envs, 3)), index)
    model = _Model(load)
    for name, first in (("area", 0), ("density", 1), ("wind", 2)):
        model.follow(drag, name, first)
    return model


def _mass_arrays(flow: MassFlow) -> core.MassArrays:
    model, shape = flow.sim.model, tuple(flow.mass.shape)
    names = sorted(flow.physics.engine.constants)
    return core.MassArrays(
        np.zeros(shape),
        flow.total_rate.numpy(),
        np.zeros(shape),
        flow.empty.numpy(),
        [name for name in names if getattr(model, name).size],
    )
