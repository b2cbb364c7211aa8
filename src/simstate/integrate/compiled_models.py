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
from torch import Tensor

from simstate.engine import core
from simstate.integrate.frame import MovingFrame, frame_of
from simstate.integrate.gravity import Gravity, UniformGravity
from simstate.integrate.gravity_sources import PointMassGravity
from simstate.integrate.loads import Drag, Thruster
from simstate.integrate.mass import LEAST_SHARE, MassFlow
from simstate.integrate.scene_force import SceneForce, body_id, body_ids

if TYPE_CHECKING:
    from simstate.step.forcing import Forcing
    from simstate.step.host import SteppingHost

_THROTTLE = 7
"""The column of a thruster's throttle."""


@dataclass(eq=False)
class _Model:
    """A force model of the core, and the live numbers that it follows."""

    load: core.Load
    copies: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])
    """Columns of its parameters, and the slot that each is a copy of."""
    has_throttle: bool = False
    field: core.Field | None = None
    """A field of gravity, whose polynomials end somewhere."""
    zero: Any = None
    """Numbers that the core leaves out, so they must be zero."""

    def follow(self, model: SceneForce, name: str, first: int, step: int = 1) -> None:
        """Let columns, one for each number of a world, follow a parameter."""
        rows = model.parameters[name].numpy()
        rows = rows.reshape(len(rows), -1)
        last = first + step * rows.shape[1]
        self.copies.append((self.load.parameters[:, first:last:step], rows))

    def copy(self, first: int, values: Tensor) -> None:
        """Let columns follow live numbers, one row for each world or for all."""
        rows = values.numpy()
        rows = rows.reshape(len(rows), -1) if rows.ndim else rows
        last = first + (rows.shape[1] if rows.ndim else 1)
        self.copies.append((self.load.parameters[:, first:last], rows))

    def update(self) -> bool:
        """Take the present numbers; False: there is one that needs Python."""
        if self.zero is not None and self.zero.any():
            return False
        for own, slot in self.copies:
            np.copyto(own, slot)
        numbers = self.load.parameters
        if self.has_throttle:
            throttle = numbers[:, _THROTTLE]
            if not ((throttle >= 0) & (throttle <= 1)).all():
                return False
        return bool(np.isfinite(numbers).all())


@dataclass(frozen=True, eq=False)
class CompiledAir:
    """The air about a planet as the compiled core has it."""

    table: core.PlanetAirTable
    """What all worlds share."""
    numbers: Sequence[Tensor]
    """Live numbers of the worlds; see `core.air_drag`."""
    zero: Tensor | None = None
    """Numbers that the core leaves out: where they are not zero, Python computes."""


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
        self.has_fields = any(model.field is not None for model in models)
        """Whether there is anything that may end at some time; see `covers`."""
        self.masses = None if flow is None else _mass_arrays(flow)
        """The masses' arrays, if masses flow."""

    def covers(self, start: float, end: float) -> bool:
        """Whether all motions that it has reach from one time to another [s]."""
        return all(model.field is None or model.field.covers(start, end)
                   for model in self._models)  # fmt: skip

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


def compile_models(
    forcing: Forcing, is_adaptive: bool, start: float, end: float
) -> CompiledModels | None:
    """The models of a simulation for the core; None: one of them is Python's alone.

    Motions of other bodies reach from one time to another [s], at least.
    """
    sim = forcing.sim
    frames: list[MovingFrame] = []
    for process in forcing.processes:
        if type(process) is not MovingFrame:
            return None
        frames.append(process)
    models: list[_Model] = []
    for force in forcing.models:
        model = _compile(force, sim, frames, is_adaptive, (start, end))
        if model is None:
            return None
        models.append(model)
    if forcing.mass_flow is not None and sim.model.nflex:
        return None
    return CompiledModels(models, frames, forcing.mass_flow)


def _compile(
    force: Any,
    sim: SteppingHost,
    frames: list[MovingFrame],
    is_adaptive: bool,
    times: tuple[float, float],
) -> _Model | None:
    """The core's form of a force model; None: it has none."""
    address = getattr(force, "address", None)  # numba's cfunc has one
    if isinstance(address, int):
        from simstate.engine.core.loads import function

        return _Model(function(address))
    owner = getattr(force, "__self__", None)
    if type(owner) is MovingFrame and force == owner.pull:
        return _gravity(owner.gravity, sim, frames.index(owner), times)
    if isinstance(force, Gravity) and not is_adaptive:  # which warns of speed
        return _gravity(force, sim, -1, times)
    if type(force) is UniformGravity:
        start = np.zeros((sim.num_envs, 3))
        model = _Model(core.uniform_gravity(body_ids(sim, force.entity), start))
        model.follow(force, "acceleration", 0)
        return model
    if type(force) is Thruster and "throttle" in force.parameters:
        return _thruster(force, sim)
    form = getattr(force, "compiled_wheels", None)
    if form is not None:
        return _wheels(force, form(sim.num_envs))
    panels: CompiledAir | None = getattr(force, "compiled_air", lambda: None)()
    if panels is not None:
        return _panels(force, panels, sim, frames)
    if type(force) is Drag:
        if force.density is None and force.wind is None:
            return _drag(force, sim, frames)
        return _air_drag(force, sim, frames)
    return None


def _gravity(
    gravity: Gravity, sim: SteppingHost, frame: int, times: tuple[float, float]
) -> _Model | None:
    if type(gravity) is not PointMassGravity:
        return _field(gravity, sim, frame, times)
    if "position" not in gravity.parameters:
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


def _field(
    gravity: Gravity, sim: SteppingHost, frame: int, times: tuple[float, float]
) -> _Model | None:
    """A central body with harmonics and others that disturb it."""
    form = gravity.compiled_form(*times)
    if form is None or not form.field.is_small_enough:
        return None
    load = core.field_gravity(
        gravity.bodies, form.field, sim.num_envs, frame, gravity.gradient_torque
    )
    model = _Model(load, field=form.field)
    for first, values in form.numbers.items():
        model.copy(first, values)
    return model


def _thruster(thruster: Thruster, sim: SteppingHost) -> _Model:
    body = body_id(sim, thruster.entity, thruster.body)
    load = core.thruster(body, np.zeros((sim.num_envs, 3)))
    model = _Model(load, has_throttle=True)
    columns = {"force": 0, "position": 3, "throttle": _THROTTLE, "dry_mass": 8}
    if thruster.uses_mass:
        columns["mass_flow"] = 6
    for name, first in columns.items():
        model.follow(thruster, name, first)
    return model


def _air_drag(
    drag: Drag, sim: SteppingHost, frames: list[MovingFrame]
) -> _Model | None:
    """Drag in the air about a planet, where density and wind are its own."""
    air = getattr(drag.density, "__self__", None)
    form = getattr(air, "compiled_form", None)
    if air is None or form is None or drag.density != air.density:
        return None
    if drag.wind is not None and drag.wind != air.wind:
        return None
    found: CompiledAir | None = form(drag.wind is not None)
    if found is None:
        return None
    body, index = _body_and_frame(drag, sim, frames)
    load = core.air_drag(body, found.table, sim.num_envs, index)
    zero = None if found.zero is None else found.zero.numpy()
    model = _Model(load, zero=zero)
    model.follow(drag, "area", 0)
    if drag.wind is None:
        model.follow(drag, "wind", 1)
    for k, values in enumerate(found.numbers):
        model.copy(4 + k, values)
    return model


def _wheels(force: SceneForce, load: core.Load | None) -> _Model | None:
    """Reaction wheels: their numbers by wheel, of which the core has three each."""
    if load is None:
        return None
    model = _Model(load)
    for first, name in enumerate(("max_speed", "viscous", "coulomb")):
        rows = force.parameters[name].numpy()
        model.copies.append((load.parameters[:, first::3], rows))
    return model


def _panels(
    drag: Any, air: CompiledAir, sim: SteppingHost, frames: list[MovingFrame]
) -> _Model:
    """Drag of panels: the air's numbers, then those of each panel."""
    body, index = _body_and_frame(drag, sim, frames)
    count = drag.parameters["areas"].shape[1]
    load = core.panel_drag(body, air.table, count, sim.num_envs, index)
    model = _Model(load, zero=None if air.zero is None else air.zero.numpy())
    for k, values in enumerate(air.numbers):
        model.copy(k, values)
    columns = load.parameters[:, 3:].reshape(sim.num_envs, count, -1)
    for name, part in (
        ("normals", columns[..., :3]), ("areas", columns[..., 3]),
        ("coefficient", columns[..., 4]), ("centres", columns[..., 5:]),
    ):  # fmt: skip
        model.copies.append((part, drag.parameters[name].numpy()))
    return model


def _body_and_frame(
    drag: Any, sim: SteppingHost, frames: list[MovingFrame]
) -> tuple[int, int]:
    """The id of its body, and the index of the frame that this is seen from."""
    body = body_id(sim, drag.entity, drag.body)
    frame = frame_of(sim, body)
    return body, -1 if frame is None else frames.index(frame)


def _drag(drag: Drag, sim: SteppingHost, frames: list[MovingFrame]) -> _Model:
    body, index = _body_and_frame(drag, sim, frames)
    load = core.drag(body, 0.0, 0.0, np.zeros((sim.num_envs, 3)), index)
    model = _Model(load)
    for name, first in (("area", 0), ("density", 1), ("wind", 2)):
        model.follow(drag, name, first)
    return model


def _mass_arrays(flow: MassFlow) -> core.MassArrays:
    model, shape = flow.worlds.model, tuple(flow.mass.shape)
    names = sorted(flow.worlds.engine.constants)
    return core.MassArrays(
        np.zeros(shape),
        flow.total_rate.numpy(),
        np.zeros(shape),
        flow.empty.numpy(),
        [name for name in names if getattr(model, name).size],
    )
