"""Rollouts of a simulation that torch differentiates."""

# Torch's types of autograd functions are incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from simstate.base.checks import (
    all_of,
    check_finite,
    has_shape,
    instance_of,
    number,
    whole_number,
)
from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.simulation import Simulation
from simstate.study.derivative_estimates import check_differentiable, derivatives
from simstate.study.perturbations import INPUTS, perturbations
from simstate.study.scratch_worlds import run_ahead
from simstate.study.tangent_state import StateVector

_AFTER = "Nothing was simulated."


class DifferentiableRollout:
    """Steps of a simulation as a function of state, controls and parameters.

    Everything else (time, warm starts, inputs of processes, other parameters, random
    streams) is that of the simulation at the time of the call. All slots of the
    simulation are restored bit for bit. Gradients are those of `study.derivatives` for
    each control step, chained backwards.

    A state is a row of qpos, qvel, act and the values of processes. Quaternions are
    normalised, so gradients have no component along them.
    """

    def __init__(
        self, sim: Simulation, parameters: Sequence[str], steps: int, step: float
    ) -> None:
        self.sim, self.steps, self.step = sim, steps, step
        self._names = tuple(parameters)
        self._vector = StateVector(sim)
        self.size = sum(part.shape[1] for part in self._vector.read())
        """The number of values in a state: nq + nv + na, and those of processes."""
        self.switched: Tensor | None = None
        """Control steps of the last call with gradients in which a contact, limit,
        friction state or actuator limit switched between perturbed worlds, so that the
        gradient mixes both sides; bool, (num_envs, T). None before the first call."""

    @property
    def state(self) -> Tensor:
        """A copy of the simulation's current state; (num_envs, size)."""
        return torch.cat(self._vector.read(), dim=1)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Copies of the current parameters by name; (num_envs, …) each."""
        return {name: self.sim.expand(name).clone() for name in self._names}

    def __call__(self, state: Tensor, controls: Tensor, **parameters: Tensor) -> Tensor:
        """Return the states after each control; (num_envs, T, size), float64.

        Args:
            state: the first state; (num_envs, size).
            controls: T controls, each held over `steps` time steps; (num_envs, T, nu).
            parameters: values of the parameters by name, (num_envs, …); by default the
                simulation's values.
        """
        count, nu = self.sim.num_envs, int(self.sim.model.nu)
        given = {"state": state, "controls": controls, **parameters}
        for name, value in given.items():
            instance_of(name, value, Tensor)
        has_shape("state", state, (count, self.size))
        has_shape("controls", controls, (count, "T", nu))
        if not controls.shape[1]:
            raise InvalidInputError(
                "controls have T = 0 steps: give at least one.", name="controls"
            )
        values: list[Tensor] = []
        for name, value in parameters.items():
            if name not in self._names:
                raise unknown_name("parameter of the rollout", name, self._names)
            has_shape(name, value, tuple(self.sim.expand(name).shape))
            values.append(value.double())
        for name, value in given.items():
            check_finite(value.detach(), name, after=_AFTER)
        function = cast("Any", _Rollout)  # whose apply has no types
        names = tuple(parameters)
        return function.apply(self, names, state.double(), controls.double(), *values)

    def run(
        self,
        state: Tensor,
        controls: Tensor,
        parameters: dict[str, Tensor],
        needs_gradient: bool,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the states and, if required, the derivatives of each control step."""
        return run_ahead(
            self.sim,
            lambda: self._run(state, controls, parameters, needs_gradient),
            "study.differentiable()",
        )

    def _run(
        self,
        state: Tensor,
        controls: Tensor,
        parameters: dict[str, Tensor],
        needs_gradient: bool,
    ) -> tuple[Tensor, list[Tensor]]:
        sim: Any = self.sim
        for name, value in parameters.items():
            sim.write_parameter(name, value)
        self._vector.write(state)
        states, jacobians, switched = list[Tensor](), list[Tensor](), list[Tensor]()
        by = ("state", "ctrl", *parameters)
        for t in range(controls.shape[1]):
            sim.write_field("ctrl", controls[:, t])
            if needs_gradient:
                found = derivatives(
                    sim, by=by, steps=self.steps, step=self.step, error=False
                )
                jacobians.append(found.matrix)
                switched.append(found.switched.any(dim=1))
            sim._step_ahead(self.steps)
            states.append(self.state)
            states[-1][sim.diverged] = torch.nan
        if needs_gradient:
            self.switched = torch.stack(switched, dim=1)
        return torch.stack(states, dim=1), jacobians

    def to_tangent(self, state: Tensor, gradient: Tensor) -> Tensor:
        """Return a gradient by tangent displacements, given one by components."""
        return self._vector.pull_back(state, gradient)

    def to_components(self, state: Tensor, gradient: Tensor) -> Tensor:
        """Return a gradient by components, given one by tangent displacements."""
        return self._vector.push_out(state, gradient)


class _Rollout(torch.autograd.Function):
    """The rollout with its derivatives."""

    @staticmethod
    def forward(
        ctx: Any,
        rollout: DifferentiableRollout,
        names: tuple[str, ...],
        state: Tensor,
        controls: Tensor,
        *values: Tensor,
    ) -> Tensor:
        """Run the steps, and keep the derivatives of each control step."""
        given = dict(zip(names, values, strict=True))
        needs = any(ctx.needs_input_grad)
        states, jacobians = rollout.run(state, controls, given, needs)
        ctx.rollout, ctx.shapes = rollout, [value.shape for value in values]
        ctx.save_for_backward(state, states, *jacobians)
        return states

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *gradients: Tensor
    ) -> tuple[Any, ...]:
        """Chain the derivatives backwards, in the tangent space."""
        (gradient,) = gradients
        rollout: DifferentiableRollout = ctx.rollout
        state, states, *jacobians = ctx.saved_tensors
        size, nu = jacobians[0].shape[1], int(rollout.sim.model.nu)
        behind = torch.zeros_like(jacobians[0][:, :, 0])
        by_control: list[Tensor] = []
        by_values = torch.zeros_like(jacobians[0][:, 0, size + nu :])
        for t in reversed(range(len(jacobians))):
            behind = behind + rollout.to_tangent(states[:, t], gradient[:, t])
            back = (jacobians[t].mT @ behind[..., None])[..., 0]
            behind = back[:, :size]
            by_control.append(back[:, size : size + nu])
            by_values = by_values + back[:, size + nu :]
        by_state = rollout.to_components(state, behind)
        shaped: list[Tensor] = []
        for shape in ctx.shapes:
            width = shape[1:].numel()
            shaped.append(by_values[:, :width].reshape(shape))
            by_values = by_values[:, width:]
        return None, None, by_state, torch.stack(by_control[::-1], dim=1), *shaped


def differentiable(
    sim: Simulation,
    parameters: Sequence[str] = (),
    steps: int = 1,
    *,
    step: float = 1e-6,
) -> DifferentiableRollout:
    """Return a function that rolls out a simulation and has gradients in torch.

    `rollout(state, controls, body_mass=…)` returns the states after each control; see
    `DifferentiableRollout`. Use it in losses that torch's optimisers minimise.

    Args:
        sim: the simulation, on the native engine; its state is not changed.
        parameters: names of model parameters that calls may set, such as "body_mass".
        steps: number of time steps over which each control is held.
        step: width of the differences, as for `study.derivatives`.
    """
    check_differentiable(sim, "state")
    steps = whole_number("steps", steps, 1)
    number("step", step, more_than=0)
    if isinstance(parameters, str):
        parameters = (parameters,)
    names = all_of("parameters", parameters, str)
    wrong = [name for name in names if name in ("state", *INPUTS)]
    if wrong:
        raise InvalidInputError(
            f"parameters may not contain {listed(wrong)}: states and controls are "
            "arguments of every call.",
            name="parameters",
        )
    if names:  # they are checked, and become per-world parameters
        perturbations(sim, names, StateVector(sim))
    return DifferentiableRollout(sim, names, steps, step)
