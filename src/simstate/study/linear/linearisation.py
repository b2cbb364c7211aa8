"""Linear models of simulations, by their derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import all_of, has_shape, instance_of, one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.record import reads_of
from simstate.simulation import Simulation
from simstate.step.history import Recorded
from simstate.step.stepping_host import forcing_of
from simstate.study.derivative_estimates import derivatives
from simstate.study.linear.linear_model import LinearModel
from simstate.study.tangent_state import StateVector

Inputs: TypeAlias = "Sequence[str] | Mapping[str, Tensor]"
"""Names of controls; or views of live tensors by name, (num_envs,) each, such as
{"wind": air.parameters["wind"][:, 0]}."""
Outputs: TypeAlias = Recorded
"""Outputs as in `sim.record`: names of quantities, or a mapping from new names to a
function of the simulation, (num_envs,) or (num_envs, k), and optionally its unit."""
Time: TypeAlias = Literal["continuous", "discrete"]

_STEP = 1e-5
"""Width of the differences, in each coordinate's unit."""


def linearise(
    sim: Simulation,
    inputs: Inputs | None = None,
    outputs: Outputs | None = None,
    *,
    time: Time = "continuous",
    step: float = _STEP,
) -> LinearModel:
    """Return the linear model of every world about its current state, which is kept.

    States are displacements of positions, velocities, activations and processes:
    `<joint>.x`, `.rx` (a rotation vector along body axes), `.vx`, `.wx`, … In
    continuous time, A and B are derivatives of the dynamics with all force models. In
    discrete time, they are those of one time step, by `study.derivatives`.

    If the worlds are moving, x is the difference from that motion. The model is
    constant if the motion is steady (rest, straight flight, a spin).

    Args:
        sim: the simulation, at the state (see `trim`); native engine.
        inputs: names of controls, as in the model; or tensors by name. None: all
            controls.
        outputs: the outputs, as in `sim.record`; None: the states.
        time: "continuous" or "discrete".
        step: width of the differences, in the unit of each coordinate.
    """
    one_of("time of a linear model", time, get_args(Time))
    instance_of("sim", sim, Simulation)
    if forcing_of(sim).mass_flow is not None:
        raise InvalidInputError(
            "linearise has no states for variable masses (sim.mass_rate, Thruster): "
            "linearise a simulation without mass flow."
        )
    if outputs is not None:
        reads_of(sim, outputs, "outputs")  # checks names before anything is computed
    vector = StateVector(sim)
    names_of_inputs, by, chosen = _inputs(vector, inputs)
    discrete = time == "discrete"
    rate: Recorded = {"rate": lambda _: vector.rate()}
    target = "state" if discrete else rate
    found = derivatives(sim, target, by, int(discrete), step=step, error=False)
    size = vector.size
    a, b = found.matrix[:, :, :size].clone(), found.matrix[:, :, size:][:, :, chosen]
    if not discrete:
        vector.kinematics(a)
    eye = torch.eye(size, dtype=a.dtype).expand_as(a).clone()
    c, d = eye, torch.zeros_like(b)
    names_of_outputs, output_units = vector.names, vector.units
    if outputs:
        observed = derivatives(sim, outputs, by, 0, step=step, error=False)
        c, d = observed.matrix[:, :, :size].clone(), observed.matrix[:, :, size:]
        d = d[:, :, chosen]
        names_of_outputs = observed.names_of_rows
        output_units = observed.units_of_rows
    return LinearModel(
        a, b, c, d,
        states=vector.names,
        units=vector.units,
        inputs=names_of_inputs,
        outputs=names_of_outputs,
        output_units=output_units,
        timestep=sim.timestep if discrete else None,
    )  # fmt: skip


def _inputs(
    vector: StateVector, inputs: Inputs | None
) -> tuple[tuple[str, ...], dict[str, str | Tensor], list[int]]:
    """Return the names of inputs, `by` of the derivatives, and the columns to keep."""
    names = vector.controls
    by: dict[str, str | Tensor] = {"state": "state"}
    if isinstance(inputs, Mapping):
        for name, view in inputs.items():
            has_shape(f"inputs[{name!r}]", view, (vector.sim.num_envs,))
            by[f"input {name}"] = view
        return tuple(inputs), by, list(range(len(inputs)))
    chosen = names if inputs is None else tuple(all_of("inputs", inputs, str))
    for name in chosen:
        if name not in names:
            raise unknown_name("control of the model", name, names)
    return chosen, by | {"ctrl": "ctrl"}, [names.index(name) for name in chosen]
