"""The force models of a simulation as the compiled core evaluates them.

Each model describes itself (`Compilable`). Its numbers are live, so they are copied to
the core before each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import core
from simstate.step.forces.compiled_force import Compilable, CompiledForce
from simstate.step.forces.frame import MovingFrame
from simstate.step.forces.scene_force import ForceModel
from simstate.step.mass import LEAST_SHARE, MassFlow

if TYPE_CHECKING:
    from simstate.step.forcing import Forcing


class _Model:
    """A load of the core, and the live numbers that it copies."""

    def __init__(
        self, force: CompiledForce, num_envs: int, frames: Sequence[MovingFrame]
    ) -> None:
        self.field = force.field
        """A field of gravity, whose polynomials end at some time."""
        self._limits = [(live.numpy(), *ends) for live, *ends in force.limits]
        numbers = [_columns(part) for part in force.numbers]
        items = [_columns(part, 2) for part in force.items]
        head = sum(part.shape[-1] for part in numbers)
        width = sum(part.shape[-1] for part in items)
        count = items[0].shape[1] if items else 0
        parameters = np.zeros((num_envs, head + count * width))
        rest = parameters[:, head:].reshape(num_envs, count, width)
        self._copies = _pairs(parameters[:, :head], numbers) + _pairs(rest, items)
        self.load = core.CoreLoad(
            force.kind,
            np.asarray(force.bodies, np.int32),
            parameters,
            -1 if force.frame is None else frames.index(force.frame),
            np.zeros(1) if force.table is None else force.table,
        )

    def update(self) -> bool:
        """Copy the present numbers; False: Python must evaluate the model."""
        for values, least, greatest in self._limits:
            if not ((values >= least) & (values <= greatest)).all():
                return False
        for own, live in self._copies:
            np.copyto(own, live)
        return bool(np.isfinite(self.load.parameters).all())


def _columns(values: Tensor | float, leading: int = 1) -> NDArray[Any]:
    """Return live numbers with their columns last; constants have shape (1, 1)."""
    if not isinstance(values, Tensor):
        return np.full((1, 1), float(values))
    array = values.numpy()
    return array[..., None] if array.ndim == leading else array


def _pairs(
    own: NDArray[Any], parts: Sequence[NDArray[Any]]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return views of consecutive columns, each with the numbers that it copies."""
    ends = np.cumsum([part.shape[-1] for part in parts])
    return [
        (own[..., end - part.shape[-1] : end], part)
        for end, part in zip(ends, parts, strict=True)
    ]


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
        """Copy the current numbers; False: Python must evaluate a model."""
        for model in self._models:
            if not model.update():
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


def compile_models(forcing: Forcing, start: float, end: float) -> CompiledModels | None:
    """Return the models of a simulation for the core; None: Python must evaluate one.

    Motions of other bodies extend at least from one time to another [s].
    """
    sim = forcing.sim
    frames: list[MovingFrame] = []
    for process in forcing.processes:
        if type(process) is not MovingFrame:
            return None
        frames.append(process)
    models: list[_Model] = []
    for model in forcing.models:
        force = model.compiled(start, end) if isinstance(model, Compilable) else None
        if force is None:
            return None
        models.append(_Model(force, sim.num_envs, frames))
    if forcing.mass_flow is not None and sim.model.nflex:
        return None
    return CompiledModels(models, frames, forcing.mass_flow)


def split_models(
    models: Sequence[ForceModel], num_envs: int
) -> tuple[CompiledModels, list[ForceModel]]:
    """Return the models that the core evaluates at a stage, and the others.

    The core evaluates its models after the others, so these are the last ones: a model
    that follows may replace the loads of those before it. Models in moving frames, and
    those whose motions end at some time, are called.
    """
    compiled: list[_Model] = []
    called = list(models)
    while called:
        last: object = called[-1]
        force = last.compiled(0.0, 0.0) if isinstance(last, Compilable) else None
        if force is None or force.frame is not None or force.field is not None:
            break
        called.pop()
        compiled.insert(0, _Model(force, num_envs, ()))
    return CompiledModels(compiled, (), None), called


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
