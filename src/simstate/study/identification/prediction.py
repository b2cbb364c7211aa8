"""Prediction: windows of a log, simulated with many values of the parameters at once.

A world is a window with one set of parameter values: instead of a compiled model, as in
`mujoco.sysid`, it has a row of per-world parameters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.engine import NativeCfg
from simstate.record import Log, LogColumn
from simstate.scene.build import BuiltScene
from simstate.simulation import Simulation
from simstate.study.identification.free_parameters import (
    FreeParameter,
    model_writes,
)
from simstate.study.identification.signals import match_signals
from simstate.study.identification.window_states import States
from simstate.study.identification.windows import Windows
from simstate.study.rollout import advance, record_fields

Array = NDArray[np.float64]


@dataclass
class Costs:
    """CPU seconds by part."""

    parameters: float = 0.0
    """Writing parameters and states, and the constants that depend on them."""
    rollouts: float = 0.0
    """Steps and reads of the worlds."""
    calls: int = 0
    """Number of rollouts."""


@dataclass(frozen=True)
class Predicted:
    """Simulated signals: a row for each set of parameters."""

    outputs: list[Array]
    """Values at the samples of each output; shape (columns, samples, components)."""
    ends: States
    """States at the ends of the windows; shape (columns, windows, …)."""

    def check_finite(self, windows: Windows) -> None:
        """Raise if the first set diverges in some window: nothing can be fitted."""
        for values, samples in zip(self.outputs, windows.samples, strict=True):
            wrong = samples.window[~np.isfinite(values[0]).all(axis=1)]
            if len(wrong):
                raise InvalidInputError(
                    "The model diverges in the window that starts at "
                    f"{windows.start[wrong[0]]:g} s, before anything is fitted: check "
                    "the log's units, the model's time step and its parameters.",
                    name="model",
                )


@dataclass
class Predictor:
    """Simulates all windows with `columns` different values of the parameters."""

    scene: BuiltScene
    windows: Windows
    parameters: Sequence[FreeParameter]
    columns: int
    num_threads: int | None = None
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        worlds = self.columns * len(self.windows)
        engine = NativeCfg(num_threads=self.num_threads or 0)
        self.sim = sim = Simulation(
            self.scene, worlds, engine=engine, on_divergence="mask"
        )
        first = self.windows.signals[0].outputs
        names = [one.column.name for one in first]
        columns = {one.column.name: one.column for one in first}
        self._outputs = match_signals(
            sim, Log([*columns.values(), *_control_of(self.windows)]), names
        ).outputs
        self._targets = [(one, one.targets) for one in self.parameters]
        fields = [t[0] for one in self.parameters for t in one.targets]
        self._fields = {name: sim.expand(name) for name in dict.fromkeys(fields)}
        self._biases = [
            (p, output, k)
            for p, one in enumerate(self.parameters)
            if one.kind == "bias"
            for output, signal in enumerate(self._outputs)
            for k, address in enumerate(signal.addresses)
            if address == ("qpos", _address(sim.model, one))
        ]
        needed: set[int] = set()
        for one in self.windows.samples:
            needed |= set(one.step.tolist()) | set(
                (one.step + 1)[one.part > 0].tolist()
            )
        self._reads = np.array(sorted(needed), np.intp)
        self._commands: dict[float, Array] = {}  # by delay

    def predict(
        self, theta: Array, states: States, signs: Array | None = None
    ) -> Predicted:
        """Simulate all windows with each set of values.

        Args:
            theta: parameters; shape (columns, parameters).
            states: initial states; shape (columns, windows, …).
            signs: factors on the commands; shape (columns, actuators); None: 1.
        """
        sim, count = self.sim, len(self.windows)
        begin = time.process_time()
        sim.reset()
        for name, index, values in model_writes(sim.model, self._targets, theta):
            rows = torch.as_tensor(values).repeat_interleave(count, dim=0)
            self._fields[name][(slice(None), *index)] = rows
        if self._fields:
            sim.set_const()
        for name in ("qpos", "qvel", "act"):
            rows = getattr(states, name).reshape(sim.num_envs, -1)
            if rows.shape[1]:
                getattr(sim.data, name).copy_(torch.as_tensor(rows))
        controls = self._controls(theta)
        if signs is not None:
            controls = controls * signs.repeat(count, axis=0)[:, None]
        middle = time.process_time()
        self.costs.parameters += middle - begin
        reads = self._roll(controls)
        self.costs.rollouts += time.process_time() - middle
        self.costs.calls += 1
        return self._gathered(theta, reads)

    def _controls(self, theta: Array) -> Array:
        """Return the commands of each time step; shape (worlds, steps, actuators)."""
        delays = [p for p, one in enumerate(self.parameters) if one.kind == "delay"]
        each = theta[:, delays[0]] if delays else np.zeros(self.columns)
        before = self._commands
        self._commands = {
            delay: before[delay] if delay in before else self.windows.controls(delay)
            for delay in dict.fromkeys(each)
        }
        return np.concatenate([self._commands[delay] for delay in each])

    def _roll(self, controls: Array) -> list[Array]:
        """Advance all worlds; return the outputs at the time steps to read."""
        sim = self.sim
        found = [
            np.empty((len(self._reads), sim.num_envs, len(one.picked)))
            for one in self._outputs
        ]
        self._read(found, 0)
        commands = torch.as_tensor(controls)
        later = self._reads[self._reads > 0]
        recorded = None
        if all(one.source for one in self._outputs):
            names = {one.source[0] for one in self._outputs if one.source}
            recorded = record_fields(sim, commands, later, names)
        if recorded is None:
            for here, after in pairwise([0, *later, self.windows.steps]):
                if after > here:
                    advance(sim, commands[:, here:after])
                    self._read(found, after)
        else:
            for values, one in zip(found, self._outputs, strict=True):
                if one.source:
                    field, columns = one.source
                    values[len(values) - len(later) :] = recorded[field][:, :, columns]
        diverged = sim.diverged.numpy()
        if diverged.any():
            for values in found:
                values[:, diverged] = np.inf
        return found

    def _read(self, found: list[Array], step: int) -> None:
        """Read all outputs if a sample needs them after this number of steps."""
        for k in np.flatnonzero(self._reads == step):
            for values, one in zip(found, self._outputs, strict=True):
                now = one.read().reshape(self.sim.num_envs, -1).numpy()
                values[k] = now[:, one.picked]

    def _gathered(self, theta: Array, reads: list[Array]) -> Predicted:
        """Return the values at the samples of the log, with biases."""
        count, columns = len(self.windows), self.columns
        outputs: list[Array] = []
        for values, samples, signal in zip(
            reads, self.windows.samples, self._outputs, strict=True
        ):
            values = values.reshape(len(values), columns, count, -1)
            at = np.searchsorted(self._reads, samples.step)
            later = np.minimum(at + (samples.part > 0), len(self._reads) - 1)
            part = samples.part[:, None, None]
            before = values[at, :, samples.window]
            mixed = before
            if samples.part.any():
                with np.errstate(invalid="ignore"):  # where worlds diverged
                    after = values[later, :, samples.window]
                    mixed = before + part * (after - before)
            found = np.ascontiguousarray(mixed.swapaxes(0, 1))
            if signal.is_quaternion:
                flip = np.sign(np.einsum("csk,sk->cs", found, samples.values))
                found *= np.where(flip == 0, 1.0, flip)[:, :, None]
            outputs.append(found)
        for p, output, k in self._biases:
            outputs[output][:, :, k] += theta[:, p, None]
        data, shape = self.sim.data, (columns, count, -1)
        ends = States(
            data.qpos.numpy().reshape(shape).copy(),
            data.qvel.numpy().reshape(shape).copy(),
            data.act.numpy().reshape(columns, count, self.sim.model.na).copy(),
        )
        return Predicted(outputs, ends)


def _control_of(windows: Windows) -> list[LogColumn]:
    control = windows.signals[0].control
    return [] if control is None else [control]


def _address(model: mujoco.MjModel, parameter: FreeParameter) -> int:
    """Return the index in qpos of a biased joint."""
    return int(model.jnt_qposadr[model.joint(parameter.element[1]).id])
