"""Adaptive steps: each world takes its own, as long as its tolerances allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.divergence import describe_element
from simstate.engine import OneTorchThread
from simstate.errors import IntegrationError, SimStateError
from simstate.ids import int_list
from simstate.integrate.flat_state import FlatState
from simstate.integrate.schemes import Adaptive
from simstate.integrate.stepper import StateBlock, Stepper
from simstate.integrate.tolerances import (
    ABSOLUTE,
    RELATIVE,
    block_kinds,
    check_kinds,
    tolerance,
)

if TYPE_CHECKING:
    from simstate.integrate.integration import Integration

_SAFETY = 0.85
_LEAST, _MOST = 0.2, 10.0
"""How much a step may shrink or grow from one to the next."""


class AdaptiveStepper(Stepper):
    """Steps every world to the same time, by steps of its own."""

    def __init__(self, integration: Integration, scheme: Adaptive) -> None:
        super().__init__(integration, scheme)
        self.control = scheme
        self.step_size = self.sim.internals.ledger.memory(
            "integrator/step_size", dtype=torch.float64, moves=True, optional=True,
            unit="s",
        ).tensor  # fmt: skip
        """The step that each world would try next [s]; 0: not known yet."""
        self.accepted = self.counter("accepted")
        """Steps taken so far; shape (num_envs,)."""
        self.rejected = self.counter("rejected")
        """Steps thrown away so far; shape (num_envs,)."""
        tableau = scheme.tableau
        rows = (tableau.b_error, tableau.b_error_low)
        self._errors = [
            torch.tensor(row, dtype=torch.float64, device=self.sim.device)
            for row in rows
            if row is not None
        ]

    def counts(self) -> dict[str, Tensor]:
        """Evaluations and steps so far; each of shape (num_envs,)."""
        return {
            "evaluations": self.evaluations,
            "accepted": self.accepted,
            "rejected": self.rejected,
        }

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; returns worlds that cannot meet their tolerance."""
        with OneTorchThread():
            stuck = self._integrate(n * self.timestep, env_ids)
            self.finish(env_ids, n)
            return stuck

    def _activation_rate(self) -> Tensor:
        """act_dot, but none that would push an activation out of its range."""
        engine = self.sim.internals.engine
        act, rate = engine.field("act").data, engine.field("act_dot").data
        if self._activation is None:
            return rate
        low, high = self._activation
        stuck = ((act >= high) & (rate > 0)) | ((act <= low) & (rate < 0))
        return torch.where(stuck, 0.0, rate)

    def _make_blocks(self) -> list[StateBlock]:
        blocks = [
            FlatState("act", block.value, self._activation_rate, self.stages)
            if block.name == "act" and isinstance(block, FlatState)
            else block
            for block in super()._make_blocks()
        ]
        processes = [process.name for process in self.integration.processes]
        for given in (self.control.atol, self.control.rtol):
            check_kinds(given, processes)
        self._tolerances = {block.name: self._find_tolerance(block) for block in blocks}
        return blocks

    def _find_tolerance(self, block: StateBlock) -> tuple[Tensor, Tensor]:
        """The absolute and the relative tolerance of a block, by dof; (num_dofs,)."""
        kinds = block_kinds(self.sim.model, block.name, block.num_dofs)
        like, control = block.value, self.control
        relative = dict.fromkeys(ABSOLUTE, RELATIVE)
        return (
            like.new_tensor([tolerance(control.atol, k, ABSOLUTE) for k in kinds]),
            like.new_tensor([tolerance(control.rtol, k, relative) for k in kinds]),
        )

    def _integrate(self, span: float, env_ids: Tensor | None) -> Tensor | None:
        active = torch.ones_like(self.stages.chosen)
        if env_ids is not None:
            active = torch.zeros_like(active)
            active[env_ids] = True
        stuck = torch.zeros_like(active)
        time = self.sim.internals.engine.field("time").data
        start = time.clone().double()
        elapsed = torch.zeros_like(self.step_size)
        self._start_steps(active, span)
        while bool(active.any()):
            h = torch.minimum(self.step_size, span - elapsed)
            h = h.clamp(max=self.control.max_step) * active
            self._try_step(start + elapsed, h, active)
            error = self._error(h)
            good = active & (error <= 1)
            elapsed = torch.where(good, elapsed + h, elapsed)
            self._adapt(h, error, good, active)
            self.clamp_activations()
            done = good & (span - elapsed <= 1e-12 * span)
            fine = torch.finfo(torch.float64).eps * 4 * (start + elapsed).abs()
            least = fine.clamp(min=self.control.min_step)
            failed = active & ~done & (self.step_size < least)
            told_here = self.sim.on_divergence == "raise" and not self._began_bad(
                failed
            )
            if told_here and bool(failed.any()):
                raise self._tolerance_error(failed, start + elapsed, h)
            stuck |= failed
            active = active & ~done & ~failed
            time.copy_(start + elapsed)
            self._next_start(good & active, good)
        time.copy_(torch.where(elapsed > 0, start + span, start))
        if self.integration.mass_flow is not None:
            self.integration.mass_flow.empty.zero_()  # of steps that were rejected
        return stuck if bool(stuck.any()) else None

    def _try_step(self, start: Tensor, h: Tensor, active: Tensor) -> None:
        """Run the stages after the first, and move to the end of the step."""
        tableau, blocks = self.scheme.tableau, self.blocks
        ids = None if bool(active.all()) else active.nonzero().flatten()
        self.stages.set_steps(h)
        self.stages.chosen.copy_(active)
        if self.integration.mass_flow is not None:
            self.integration.mass_flow.empty.zero_()
        time = self.sim.internals.engine.field("time").data
        for stage in range(1, tableau.num_stages):
            self.displace(stage)
            time.copy_(start + tableau.c[stage] * h)
            self.integration.evaluate(ids)
            for block in blocks:
                block.record(stage, active)
        self.displace(tableau.num_stages)
        self.evaluations += (tableau.num_stages - 1) * active

    def _start_steps(self, active: Tensor, span: float) -> None:
        """Evaluate at the start, and guess a first step where none is remembered."""
        for block in self.blocks:
            block.begin()
        self._evaluate_start(active)
        unknown = active & (self.step_size <= 0)
        if bool(unknown.any()):
            self.step_size[unknown] = self._first_step(unknown, span)[unknown]

    def _evaluate_start(self, chosen: Tensor) -> None:
        """Evaluate the first stage at the origin, in the chosen worlds."""
        ids = None if bool(chosen.all()) else chosen.nonzero().flatten()
        self.integration.evaluate(ids)
        self.evaluations += chosen
        self._record_start(chosen)

    def _record_start(self, chosen: Tensor) -> None:
        self.stages.chosen.copy_(chosen)
        for block in self.blocks:
            block.record(0, chosen)

    def _next_start(self, going_on: Tensor, good: Tensor) -> None:
        """Let worlds whose step was good begin the next one."""
        if not bool(good.any()):
            return
        for block in self.blocks:
            block.begin(good)
        if not bool(going_on.any()):
            return
        reusable = self._activation is None  # else clamping moved the state
        if self.scheme.tableau.is_first_same_as_last and reusable:
            self._record_start(going_on)
        else:
            self._evaluate_start(going_on)

    def _first_step(self, chosen: Tensor, span: float) -> Tensor:
        """A first step from the state's and the rates' size (Hairer's first guess)."""
        size = torch.zeros_like(self.step_size)
        speed = torch.zeros_like(self.step_size)
        for block in self.blocks:
            scale = self._tolerance(block)
            size = torch.maximum(size, _greatest(block.scale() / scale))
            rate = block.error(block.rates[0])
            speed = torch.maximum(speed, _greatest(rate / scale))
        guess = 0.01 * size / speed
        # At rest, or at zero, nothing tells: begin with a thousandth of the span.
        guess = torch.where((speed > 0) & (size > 0), guess, 1e-3 * span)
        least = max(1e-6 * span, self.control.min_step)
        return torch.where(chosen, guess.clamp(min(least, span), span), 0.0)

    def _tolerance(self, block: StateBlock) -> Tensor:
        absolute, relative = self._tolerances[block.name]
        return absolute + relative * block.scale()

    def _block_error(self, block: StateBlock, h: Tensor) -> Tensor:
        """The error estimate over the tolerance, by element."""
        allowed = self._tolerance(block)
        step = h[:, None].to(allowed.dtype)
        parts = [
            block.error(block.combined(weights)) * step / allowed
            for weights in self._errors
        ]
        if len(parts) == 1:
            return parts[0].abs()
        # DOP853 damps its fifth-order estimate by the third-order one.
        high, low = (_greatest(part) for part in parts)
        damping = high / (high.square() + 0.01 * low.square()).sqrt()
        return parts[0].abs() * damping.nan_to_num(nan=1.0)[:, None]

    def _error(self, h: Tensor) -> Tensor:
        """The greatest error of each world in units of its tolerance; NaN is bad."""
        error = torch.zeros_like(h)
        for block in self.blocks:
            error = torch.maximum(error, _greatest(self._block_error(block, h)))
        flow = self.integration.mass_flow
        if flow is not None:  # a trial step that empties a tank is too long
            error = torch.where(flow.empty.any(dim=1), torch.inf, error)
        return error

    def _adapt(self, h: Tensor, error: Tensor, good: Tensor, active: Tensor) -> None:
        """Choose the next steps: longer after a good one, shorter after a bad one."""
        self.accepted += good
        self.rejected += active & ~good
        power = 1 / (self.scheme.tableau.control_order + 1)
        error = error.nan_to_num(nan=torch.inf).clamp(min=1e-10)
        factor = (_SAFETY * error**-power).clamp(_LEAST, _MOST)
        longer = h * factor
        # A step that was cut short to end on time says little: keep what was meant.
        cut = good & (h < self.step_size)
        longer = torch.where(cut, torch.maximum(longer, self.step_size), longer)
        shorter = h * factor.clamp(max=_SAFETY)
        proposed = torch.where(good, longer, shorter)
        self.step_size.copy_(torch.where(active, proposed, self.step_size))

    def _began_bad(self, worlds: Tensor) -> bool:
        """Whether one of these worlds had a number that is not finite to begin with.

        The end of the step says which.
        """
        state = self.sim.internals.engine.field
        fine = [
            state(name)[worlds].isfinite().all() for name in ("qpos", "qvel", "act")
        ]
        return not all(bool(part) for part in fine)

    def _tolerance_error(
        self, failed: Tensor, time: Tensor, h: Tensor
    ) -> SimStateError:
        world = int(failed.nonzero()[0])
        flow = self.integration.mass_flow
        if flow is not None and bool(flow.empty[world].any()):
            return flow.out_of_mass_error()
        worst, where = -1.0, ""
        for block in self.blocks:
            error = self._block_error(block, h)[world].nan_to_num(nan=torch.inf)
            k = int(error.argmax())
            if float(error[k]) > worst:
                worst, where = float(error[k]), self._describe(block, k)
        worlds = int_list(failed.nonzero().flatten())
        message = (
            f"{self.scheme.name} cannot meet its tolerance in world {world} at t = "
            f"{float(time[world]):.9g} s: it would need a step of "
            f"{float(self.step_size[world]):.3g} s, because with {float(h[world]):.3g} "
            f"s the error of {where} was {worst:.3g} times its tolerance. Contacts and "
            "other jumps need fixed steps (RK4) or integrator=None; otherwise raise "
            "atol and rtol, or lower min_step. The state is as it was before the step."
        )
        return IntegrationError(message, worlds)

    def _describe(self, block: StateBlock, k: int) -> str:
        field = "qvel" if block.name == "qpos" else block.name
        if field == "mass":
            return f"the mass of body {self.sim.model.body(k).name or k!r}"
        if field in ("qvel", "act"):
            return f"{block.name} of {describe_element(self.sim.model, field, k)}"
        return f"{block.name}[{k}]"


def _greatest(values: Tensor) -> Tensor:
    """The greatest absolute value of each row; NaN wins; 0 for empty rows."""
    if not values.shape[1]:
        return values.new_zeros(values.shape[0]).double()
    return values.abs().amax(dim=1).double()
