"""Controlled paths: futures with feedback, and derivatives along them, for iLQR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.study import scratch_worlds as scratch
from simstate.study.derivative_estimates import derivatives
from simstate.study.future_worlds import check_defined
from simstate.study.planners.control_space import ControlSpace
from simstate.study.rollout import hold
from simstate.study.tangent_state import StateVector

Residual: TypeAlias = Callable[[Any], Tensor]
"""`residual(sim)` after a control; shape (num_envs, m)."""
_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03, 0.01, 0.003)
"""Fractions of a change of controls that are tried."""


@dataclass(frozen=True)
class ControlledPath:
    """Controls of each world, and the states that they lead through."""

    controls: Tensor
    """Shape (N, H, nu)."""
    states: Tensor
    """Rows of `sim.state` before each control; (N, H, nstate)."""
    residual: Tensor
    """After each control; (N, H, m)."""
    cost: Tensor
    """½ Σ ‖r‖², infinite where it diverged; (N,)."""

    def where(self, mask: Tensor, other: ControlledPath) -> ControlledPath:
        """Return `other` where `mask` is True, and this path elsewhere; (N,)."""
        pairs = [(getattr(self, x.name), getattr(other, x.name)) for x in fields(self)]
        return ControlledPath(
            *(
                torch.where(mask.reshape(-1, *[1] * (mine.ndim - 1)), theirs, mine)
                for mine, theirs in pairs
            )
        )


class Shooting:
    """Runs controls with feedback in scratch worlds, and differentiates them.

    Args:
        target: the simulation, whose worlds do not change.
        residual: a function of the simulation.
        hold: time steps for which each control is held.
        make: builds scratch worlds; see `study.futures`.
    """

    def __init__(
        self, target: Any, residual: Residual, hold: int, make: scratch.Make | None
    ) -> None:
        self._target, self._residual, self._hold = target, residual, hold
        self._make = make
        if StateVector(target).processes:
            raise InvalidInputError(
                "iLQR has no states for processes (sim.add_process): use a sampling "
                "planner, or a simulation without them.",
                name="processes",
            )
        self._start = scratch.copy_rows(target)
        self._worlds = scratch.sim_of(target).num_envs

    def run(
        self,
        controls: Tensor,
        space: ControlSpace,
        before: ControlledPath | None = None,
        change: Tensor | None = None,
        feedback: Tensor | None = None,
    ) -> ControlledPath:
        """Return the best future of each world under changed controls.

        Args:
            controls: shape (N, H, nu).
            space: bounds of the controls.
            before: the path to which the feedback refers; None: no change.
            change: change of the controls, of which fractions are tried; (N, H, nu).
            feedback: gains on displacements of the state; (N, H, nu, nx).
        """
        tries = 1 if before is None else len(_SHARES)
        host = self._branched(tries)
        vector = StateVector(host)
        share = torch.tensor(_SHARES[:tries]).repeat(self._worlds)[:, None].double()
        u, low, high = (
            x.repeat_interleave(tries, dim=0) for x in (controls, space.low, space.high)
        )
        applied = torch.zeros_like(u)
        states: list[Tensor] = []
        residuals: list[Tensor] = []
        with scratch.quiet():
            for h in range(u.shape[1]):
                now = u[:, h]
                if before is not None and change is not None and feedback is not None:
                    base = before.states[:, h].repeat_interleave(tries, dim=0)
                    moved = self._moved(vector, base)[..., None]
                    gain = feedback[:, h].repeat_interleave(tries, dim=0)
                    step = change[:, h].repeat_interleave(tries, dim=0)
                    now = now + share * step + (gain @ moved)[..., 0]
                applied[:, h] = now.nan_to_num().clamp(low, high)
                states.append(host.state.clone())
                hold(host, applied[:, h], self._hold)
                residuals.append(self._read(host))
        residual = torch.stack(residuals, dim=1)
        cost = residual.square().sum(dim=(1, 2)) / 2
        cost = cost.masked_fill(host.diverged, torch.inf)
        best = (
            cost.reshape(-1, tries).argmin(dim=1) + torch.arange(self._worlds) * tries
        )
        path = applied, torch.stack(states, dim=1), residual, cost
        return ControlledPath(*(values[best] for values in path))

    def derivatives(self, at: ControlledPath) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return A, B, r_x and r_u along a path; shape (N, H, rows, columns)."""
        count, horizon, _ = at.controls.shape
        host = self._branched(horizon)
        host.write_state(at.states.flatten(0, 1))
        host.data.ctrl.copy_(at.controls.flatten(0, 1))
        by = ("state", "ctrl")
        with scratch.quiet():
            moved = derivatives(host, "state", by, self._hold, error=False)
            read = {"residual": self._read}
            found = derivatives(host, read, by, self._hold, error=False)
        a, b, r_x, r_u = (
            x.reshape(count, horizon, *x.shape[1:]).nan_to_num()
            for x in (moved.A, moved.B, found.A, found.B)
        )
        return a, b, r_x, r_u

    def _branched(self, each: int) -> Any:
        """Return scratch worlds at the start, `each` of them for each world."""
        worlds = torch.arange(self._worlds).repeat_interleave(each)
        first = self._start["ctrl"]
        host = scratch.scratch_of(self._target, len(worlds), self._make, first)
        if host is self._target:
            raise InvalidInputError(
                "iLQR runs in scratch worlds, which cannot be built for added force "
                "models, events or tasks: pass make=, a function of the number of "
                "worlds that builds the simulation.",
                name="make",
            )
        scratch.branch(host, self._start, worlds, self._target)
        return host

    def _moved(self, vector: StateVector, base: Tensor) -> Tensor:
        """Return the displacement of the current state from `base`; (rows, nx)."""
        before = scratch.split_state(vector.sim, base)
        start = (before["qpos"], before["qvel"], before["act"])
        return vector.difference(vector.read(), start)

    def _read(self, sim: Any) -> Tensor:
        value = self._residual(sim)
        shape = getattr(value, "shape", None)
        if shape is None or len(shape) != 2 or shape[0] != sim.num_envs:
            got = type(value).__name__ if shape is None else tuple(shape)
            raise ShapeError(
                f"residual(sim) must be a tensor of shape ({sim.num_envs}, m), got "
                f"{got}.",
                name="residual",
                shape=shape,
            )
        check_defined("residual", value, sim)
        return value
