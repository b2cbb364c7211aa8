"""The force models of a simulation as the compiled core evaluates them.

Each model describes itself (`Compilable`). Its parameters are live, so they are copied
to the core before each step. Models that only Python can evaluate are called by the
core, between its own, in the order in which they were added: a later model may replace
the loads of earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import core
from simstate.step.forces.compiled_force import Compilable, CompiledForce
from simstate.step.forces.frame import FrameGravity, MovingFrame
from simstate.step.forces.sampled_gravity import SampledGravity
from simstate.step.forces.scene_force import ForceModel
from simstate.step.mass import LEAST_SHARE, MassFlow
from simstate.step.processes import Process

if TYPE_CHECKING:
    from simstate.step.forcing import Forcing


class _Model:
    """A load of the core, and the live values that it copies."""

    def __init__(
        self, force: CompiledForce, num_envs: int, processes: Sequence[Process]
    ) -> None:
        self.field = force.field
        """A gravity field, whose polynomials cover a limited time."""
        self.frame = force.frame
        """The moving frame that it acts in, and which it accelerates."""
        self.sampled = SampledGravity.of(force, num_envs)
        """The part that Python evaluates, or None."""
        self._check = force.check
        self._live = [(start, values, -1) for start, values in force.live]
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
            -1 if force.frame is None else processes.index(force.frame),
            np.zeros(1) if force.table is None else force.table,
            samples=None if self.sampled is None else self.sampled.samples,
        )

    def update(self) -> bool:
        """Copy the current values; return False if Python must evaluate the model."""
        if self._check is not None:
            self._check()
        for values, least, greatest in self._limits:
            if not ((values >= least) & (values <= greatest)).all():
                return False
        for own, live in self._copies:
            np.copyto(own, live)
        for k, (start, values, version) in enumerate(self._live):
            if values._version != version:
                end = start + values.numel()
                self.load.table[start:end] = values.numpy().reshape(-1)
                self._live[k] = (start, values, values._version)
        return bool(np.isfinite(self.load.parameters).all())


def _columns(values: Tensor | float, leading: int = 1) -> NDArray[Any]:
    """Return live values with their columns last; constants have shape (1, 1)."""
    if not isinstance(values, Tensor):
        return np.full((1, 1), float(values))
    array = values.numpy()
    return array[..., None] if array.ndim == leading else array


def _pairs(
    own: NDArray[Any], parts: Sequence[NDArray[Any]]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return views of consecutive columns, each with the values that it copies."""
    ends = np.cumsum([part.shape[-1] for part in parts])
    return [
        (own[..., end - part.shape[-1] : end], part)
        for end, part in zip(ends, parts, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class EvaluationPlan:
    """Parts of an evaluation of the dynamics, in the core and in Python."""

    loads: list[core.CoreLoad] = field(default_factory=list[core.CoreLoad])
    """The models that the core evaluates."""
    calls: list[list[ForceModel]] = field(default_factory=list[list[ForceModel]])
    """The models that it calls, all those of a list at a time."""
    processes: list[core.CoreProcess] = field(default_factory=list[core.CoreProcess])
    """The processes, in their order."""
    rates: list[tuple[Process, NDArray[np.float64]]] = field(
        default_factory=list[tuple[Process, NDArray[np.float64]]]
    )
    """The processes whose rate Python evaluates, and the core's memory for it."""
    masses: core.MassArrays | None = None
    """The masses' arrays, if masses flow."""

    @property
    def is_closed(self) -> bool:
        """True if the core takes steps without calling Python."""
        return not self.calls and not self.rates

    def add(self, model: ForceModel, form: _Model | None) -> None:
        """Evaluate a model after those that were added before it."""
        if form is None:
            self._call(model)
            return
        if form.sampled is not None:
            self._call(form.sampled)
        self.loads.append(replace(form.load, segment=len(self.calls)))

    def _call(self, model: ForceModel) -> None:
        follows = self.loads and self.loads[-1].segment == len(self.calls)
        if follows or not self.calls:
            self.calls.append([])
        self.calls[-1].append(model)

    def prepares(self, segment: int) -> bool:
        """Return True if the core computes derived values before a call."""
        return any(
            load.segment == segment
            or (load.samples is not None and load.segment == segment + 1)
            for load in self.loads
        )


class CompiledModels:
    """Force models, processes and masses of a simulation as the core evaluates them.

    Motions of other bodies cover at least the time from `start` to `end` [s].
    """

    def __init__(self, forcing: Forcing, start: float, end: float) -> None:
        self._models = list(forcing.models)
        self._processes = list(forcing.processes)
        num_envs = forcing.sim.num_envs
        forces = [
            model.compiled(start, end) if isinstance(model, Compilable) else None
            for model in self._models
        ]
        self._forms = [
            None if force is None else _Model(force, num_envs, self._processes)
            for force in forces
        ]
        self._flow = forcing.mass_flow
        self.has_fields = any(form and form.field is not None for form in self._forms)
        """True if some motions cover a limited time; see `covers`."""
        self._masses = None if self._flow is None else _mass_arrays(self._flow)
        self._plan: EvaluationPlan | None = None
        self._usable: list[bool] = []

    def covers(self, start: float, end: float) -> bool:
        """Return True if all motions cover the time from `start` to `end` [s]."""
        fields = [form.field for form in self._forms if form is not None]
        return all(found is None or found.covers(start, end) for found in fields)

    def plan(self) -> EvaluationPlan | None:
        """Copy the current values; return the plan, or None if the core cannot step.

        The same plan is returned while the core evaluates the same models.
        """
        if not self._update_masses():
            return None
        usable = [form is not None and form.update() for form in self._forms]
        if self._plan is None or usable != self._usable:
            self._usable = usable
            self._plan = self._make_plan()
        return self._plan

    def _make_plan(self) -> EvaluationPlan:
        plan = EvaluationPlan(masses=self._masses)
        falling: set[MovingFrame] = set()
        rows = zip(self._models, self._forms, self._usable, strict=True)
        for model, form, is_usable in rows:
            plan.add(model, form if is_usable else None)
            if isinstance(model, FrameGravity) and is_usable:
                falling.add(model.frame)
        for process in self._processes:
            value, rate = process.value.numpy(), None
            if process not in falling:
                rate = np.zeros(value.shape)
                plan.rates.append((process, rate))
            plan.processes.append(core.CoreProcess(process.name, value, rate))
        return plan

    def _update_masses(self) -> bool:
        flow, masses = self._flow, self._masses
        if flow is None or masses is None:
            return True
        np.multiply(flow.mass_at_reset.numpy(), LEAST_SHARE, out=masses.least)
        return not flow.has_constants_by_hand


def compile_models(forcing: Forcing, start: float, end: float) -> CompiledModels | None:
    """Return the models of a simulation for the core, or None if it cannot step."""
    if forcing.mass_flow is not None and forcing.sim.model.nflex:
        return None
    return CompiledModels(forcing, start, end)


def _mass_arrays(flow: MassFlow) -> core.MassArrays:
    model, shape = flow.worlds.model, tuple(flow.mass.shape)
    names = sorted(flow.worlds.engine.constants)
    return core.MassArrays(
        flow.rate.numpy(),
        flow.total_rate.numpy(),
        np.zeros(shape),
        flow.empty.numpy(),
        [name for name in names if getattr(model, name).size],
    )
