"""LinearModel: ẋ = A x + B u, y = C x + D u, with names and units, of each world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
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
    """Their units."""
    inputs: tuple[str, ...]
    """Names of the inputs."""
    outputs: tuple[str, ...]
    """Names of the outputs."""
    timestep: float | None = None
    """Time step of a model in discrete time [s]; None: continuous."""
    output_units: tuple[str, ...] = ()
    """Units of the outputs, "" where none was given."""

    def part(self, states: Sequence[str]) -> LinearModel:
        """Return the model of some states; the others are held at zero."""
        for name in states:
            if name not in self.states:
                raise unknown_name("state of the model", name, self.states)
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
        names = known if units is None else tuple(units)
        return replace(
            self,
            a=self.c @ self.a @ back,
            b=self.c @ self.b,
            c=eye.clone(),
            states=self.outputs,
            units=names,
            output_units=names,
        )

    def modes(self, env_id: int = 0) -> list[Mode]:
        """Return the modes of a world, fastest first; a conjugate pair is one mode."""
        return modes_of(self.a[env_id].cpu().numpy(), self.states, self.timestep)

    def matrices(self, env_id: int = 0) -> tuple[np.ndarray, ...]:
        """Return A, B, C and D of a world as arrays."""
        return tuple(x[env_id].cpu().numpy() for x in (self.a, self.b, self.c, self.d))

    def to_scipy(self, env_id: int = 0) -> Any:
        """Return the model of a world as a scipy.signal.StateSpace (needs scipy)."""
        signal = import_module("scipy.signal")
        options = {} if self.timestep is None else {"dt": self.timestep}
        return signal.StateSpace(*self.matrices(env_id), **options)

    def to_control(self, env_id: int = 0) -> Any:
        """Return the model of a world as a python-control StateSpace, with all names.

        python-control does not allow dots in names: `root.vx` becomes `root_vx`.
        """
        try:
            control = import_module("control")
        except ImportError as error:
            raise InvalidInputError(
                "This needs python-control: pip install control."
            ) from error
        time = 0 if self.timestep is None else self.timestep
        return control.ss(
            *self.matrices(env_id),
            time,
            states=[name.replace(".", "_") for name in self.states],
            inputs=[name.replace(".", "_") for name in self.inputs],
            outputs=[name.replace(".", "_") for name in self.outputs],
        )
