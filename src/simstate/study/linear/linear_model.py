"""LinearModel: ẋ = A x + B u, y = C x + D u, with names and units, of each world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import all_of, whole_number
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.extras import library
from simstate.math.vector import inverse, rank
from simstate.study.linear.modes import Mode, modes_of


@dataclass(frozen=True)
class LinearModel:
    """A linear model of each world about its state; float64.

    x, u and y are differences from the state, inputs and outputs of the linearisation
    point. In continuous time ẋ = A x + B u; with a `timestep` xₖ₊₁ = A xₖ + B uₖ.
    """

    a: Tensor
    """The matrix A; (num_envs, states, states)."""
    b: Tensor
    """The matrix B; (num_envs, states, inputs)."""
    c: Tensor
    """The matrix C; (num_envs, outputs, states)."""
    d: Tensor
    """The matrix D; (num_envs, outputs, inputs)."""
    states: tuple[str, ...]
    """Names of the states."""
    units: tuple[str, ...]
    """Units of the states."""
    inputs: tuple[str, ...]
    """Names of the inputs."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    timestep: float | None = None
    """Time step of a model in discrete time [s]; None: the time is continuous."""
    output_units: tuple[str, ...] = ()
    """Units of the outputs, "" where none was given."""

    def part(self, states: Sequence[str]) -> LinearModel:
        """Return the model of some states; the others are held at zero."""
        for name in all_of("states", states, str):
            if name not in self.states:
                raise unknown_name("state of the model", name, self.states)
        if not states:
            raise InvalidInputError("states must not be empty.", name="states")
        rows = torch.tensor([self.states.index(name) for name in states])
        return replace(
            self,
            a=self.a[:, rows][:, :, rows],
            b=self.b[:, rows],
            c=self.c[:, :, rows],
            states=tuple(states),
            units=tuple(self.units[int(k)] for k in rows),
        )

    def in_outputs(self, units: Sequence[str] | None = None) -> LinearModel:
        """Return the model with its outputs, which must be independent, as states.

        Outputs that depend on inputs (D ≠ 0) cannot be states.
        """
        if self.c.shape[1] != self.c.shape[2]:
            raise ShapeError(
                f"There are {self.c.shape[1]} outputs for {self.c.shape[2]} states: "
                "give as many outputs as states.",
                name="outputs",
                shape=self.c.shape,
            )
        if self.d.numel() and float(self.d.abs().max()) > 1e-9:
            raise InvalidInputError(
                "Some outputs depend on inputs directly (D is not zero), so they "
                "cannot be states: observe positions and velocities."
            )
        if bool((rank(self.c) < self.c.shape[1]).any()):
            raise InvalidInputError(
                "The outputs do not determine the states (C is singular): observe "
                "independent quantities."
            )
        back = inverse(self.c)
        eye = torch.eye(self.c.shape[1], dtype=self.c.dtype).expand_as(self.c)
        known = self.output_units or ("",) * len(self.outputs)
        output_units = known if units is None else tuple(all_of("units", units, str))
        if len(output_units) != len(self.outputs):
            raise ShapeError(
                f"units must have one for each of the {len(self.outputs)} outputs, got "
                f"{len(output_units)}.",
                name="units",
                shape=(len(output_units),),
            )
        return replace(
            self,
            a=self.c @ self.a @ back,
            b=self.c @ self.b,
            c=eye.clone(),
            states=self.outputs,
            units=output_units,
            output_units=output_units,
        )

    def modes(self, env_id: int = 0) -> list[Mode]:
        """Return the modes of a world, fastest first; a conjugate pair is one mode."""
        return modes_of(self.matrices(env_id)[0], self.states, self.timestep)

    def matrices(self, env_id: int = 0) -> tuple[np.ndarray, ...]:
        """Return A, B, C and D of a world as arrays."""
        env_id = whole_number("env_id", env_id, 0, len(self.a) - 1)
        return tuple(x[env_id].cpu().numpy() for x in (self.a, self.b, self.c, self.d))

    def to_scipy(self, env_id: int = 0) -> Any:
        """Return the model of a world as a scipy.signal.StateSpace (needs scipy)."""
        signal = library("scipy.signal", "sysid", "StateSpace models")
        options = {} if self.timestep is None else {"dt": self.timestep}
        return signal.StateSpace(*self.matrices(env_id), **options)

    def to_control(self, env_id: int = 0) -> Any:
        """Return the model of a world as a python-control StateSpace, with all names.

        python-control does not allow dots in names: `root.vx` becomes `root_vx`.
        """
        try:
            control: Any = import_module("control")
        except ImportError as error:
            raise InvalidInputError(
                "to_control needs python-control: pip install control.", name="control"
            ) from error
        return control.ss(
            *self.matrices(env_id),
            0 if self.timestep is None else self.timestep,
            states=[name.replace(".", "_") for name in self.states],
            inputs=[name.replace(".", "_") for name in self.inputs],
            outputs=[name.replace(".", "_") for name in self.outputs],
        )
