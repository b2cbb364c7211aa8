"""Adaptive steps: each world takes the longest steps that its tolerances allow."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from simstate.base.errors import IntegrationError, SimStateError
from simstate.base.ids import int_list
from simstate.engine import OneTorchThread
from simstate.engine.core import Failure
from simstate.math.elementwise import power
from simstate.step.core_steps import CoreAdaptiveSteps
from simstate.step.divergence import Divergence
from simstate.step.error_estimate import ErrorEstimate
from simstate.step.flat_state import FlatState
from simstate.step.forcing import Forcing
from simstate.step.runge_kutta_stepper import RungeKuttaStepper, StateBlock
from simstate.step.schemes.schemes import Adaptive
from simstate.step.schemes.tolerances import check_kinds, tolerance_error
from simstate.step.stepper import StepCounts
from simstate.step.touchable_geoms import contact_timestep
from simstate.step.touches import Touches, make_touches
from simstate.world.worlds import Worlds

_SAFETY = 0.85
_LEAST, _MOST = 0.2, 10.0
"""Limits of the ratio of two successive steps."""


class AdaptiveStepper(RungeKuttaStepper):
    """Advances all worlds to the same time, each by its own steps."""

    chooses_steps = True

    def __init__(
        self,
        worlds: Worlds,
        forcing: Forcing,
        divergence: Divergence,
        scheme: Adaptive,
    ) -> None:
        super().__init__(worlds, forcing, divergence, scheme)
        self._control = scheme
        self.step_size = worlds.ledger.memory(
            "integrator/step_size", dtype=torch.float64, moves=True, optional=True,
            unit="s", contiguous=True,
        ).tensor  # fmt: skip
        """The next trial step of each world [s], 0 if unknown; shape (num_envs,)."""
        self._accepted = self._counter("accepted")
        self._rejected = self._counter("rejected")
        self._core_adaptive: CoreAdaptiveSteps | None = None
        self._errors = ErrorEstimate(scheme, worlds, [])  # until blocks exist

    @property
    def statistics(self) -> StepCounts:
        """Number of evaluations and steps of each world so far."""
        return StepCounts(self._evaluations, self._accepted, self._rejected)

    def _compiled_adaptive(self, span: float) -> CoreAdaptiveSteps | None:
        """Return the scheme in the core for a span [s]; None if it must run here."""
        plan = self._plan(span)
        if plan is None:
            return None
        known = self._core_adaptive
        if known is None or known.plan is not plan:
            self._check_tolerances()
            known = self._core_adaptive = CoreAdaptiveSteps(
                self, self._worlds, self._control, self._forcing, plan
            )
        return known

    def _take(self, n: int, rows: Tensor | None) -> int:
        """Advance by n time steps; worlds that miss their tolerance are stuck."""
        self._engine.begin_step()
        core = self._compiled_adaptive(n * self.timestep)
        if core is not None:
            self._stuck = self._refuse_stuck(core, core.step(n, rows))
        else:
            with OneTorchThread():
                self._stuck = self._integrate(n * self.timestep, rows)
                self._finish(rows, torch.full_like(self.step_size, n * self.timestep))
        return self._engine.seen()

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Take one step in each world within its tolerance, of at most `limit` [s].

        Return the steps, and the worlds that cannot meet theirs; (num_envs,) each.
        """
        core = self._compiled_adaptive(float(limit[going].max()))
        if core is not None:
            taken, stuck = core.attempt(limit, going.nonzero().flatten())
            if bool(stuck.any()):
                self._refuse_stuck(core, stuck)
            return taken, stuck
        time = self._engine.field("time").data
        start = time.clone().double()
        trying, failed = going.clone(), torch.zeros_like(going)
        taken = torch.zeros_like(self.step_size)
        self._start_steps(trying, limit)
        while bool(trying.any()):
            h = torch.minimum(self.step_size, limit)
            h = h.clamp(max=self._control.max_step) * trying
            h, good = self._trial(start, h, trying)
            taken = torch.where(good, h, taken)
            trying = trying & ~good
            unable = trying & (self.step_size < self._least(start))
            if bool(unable.any()) and self._divergence.mode == "raise":
                raise self._step_error(unable, start, h)
            failed |= unable
            trying = trying & ~unable
        time.copy_(start + taken)
        self._finish(going.nonzero().flatten(), taken)
        if self._forcing.mass_flow is not None:
            self._forcing.mass_flow.empty.zero_()  # of steps that were rejected
        return taken, failed

    def _move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of size h [s] in each world, whatever its error; 0: none."""
        core = self._compiled_adaptive(float(h.max()))
        if core is not None:
            core.move(h, rows)
            return
        time = self._engine.field("time").data
        start = time.clone().double()
        active = h > 0
        for block in self.blocks:
            block.begin(active)
        self._evaluate_start(active)
        self._try_step(start, h, active)
        time.copy_(start + h)
        self._finish(rows, h)

    def _least(self, time: Tensor) -> Tensor:
        """Return the shortest allowed step at a time [s]; (num_envs,)."""
        fine = torch.finfo(torch.float64).eps * 4 * time.abs()
        return fine.clamp(min=self._control.min_step)

    def _refuse_stuck(
        self, core: CoreAdaptiveSteps, stuck: Tensor | None
    ) -> Tensor | None:
        """Raise for worlds that are stuck in the core, or return them."""
        if stuck is None or self._began_bad(stuck):
            return stuck
        if self._divergence.mode == "raise":
            world = int(stuck.nonzero()[0])
            raise self._mass_error(world) or self._error_of(stuck, core.failure(world))
        return stuck

    def _mass_error(self, world: int) -> SimStateError | None:
        """Return the error for a world that runs out of mass, or None."""
        flow = self._forcing.mass_flow
        if flow is not None and bool(flow.empty[world].any()):
            return flow.out_of_mass_error()
        return None

    def _activation_rate(self) -> Tensor:
        """Return act_dot, 0 where it would push an activation out of its range."""
        engine = self._engine
        act, rate = engine.field("act").data, engine.field("act_dot").data
        if self._activation is None:
            return rate
        low, high = self._activation
        stuck = ((act >= high) & (rate > 0)) | ((act <= low) & (rate < 0))
        return torch.where(stuck, 0.0, rate)

    @cached_property
    def _touches(self) -> Touches | None:
        with torch.inference_mode(False):
            limit = contact_timestep(self._control, self._worlds.model, quiet=True)
            return make_touches(self._worlds, limit or self.timestep)

    def _make_blocks(self) -> list[StateBlock]:
        blocks = [
            FlatState("act", block.value, self._activation_rate, self.stages)
            if block.name == "act" and isinstance(block, FlatState)
            else block
            for block in super()._make_blocks()
        ]
        self._check_tolerances()
        self._errors = ErrorEstimate(self._control, self._worlds, blocks)
        return blocks

    def _check_tolerances(self) -> None:
        """Raise if a tolerance names a kind of value that the state does not have."""
        processes = [process.name for process in self._forcing.processes]
        for given in (self._control.atol, self._control.rtol):
            check_kinds(given, processes)

    def _integrate(self, span: float, env_ids: Tensor | None) -> Tensor | None:
        active = torch.ones_like(self.stages.chosen)
        if env_ids is not None:
            active = torch.zeros_like(active)
            active[env_ids] = True
        stuck = torch.zeros_like(active)
        time = self._engine.field("time").data
        start = time.clone().double()
        elapsed = torch.zeros_like(self.step_size)
        self._start_steps(active, torch.full_like(self.step_size, span))
        while bool(active.any()):
            h = torch.minimum(self.step_size, span - elapsed)
            h = h.clamp(max=self._control.max_step) * active
            h, good = self._trial(start + elapsed, h, active)
            elapsed = torch.where(good, elapsed + h, elapsed)
            self._clamp_activations()
            done = good & (span - elapsed <= 1e-12 * span)
            least = self._least(start + elapsed)
            failed = active & ~done & (self.step_size < least)
            raising = self._divergence.mode == "raise" and not self._began_bad(failed)
            if raising and bool(failed.any()):
                raise self._step_error(failed, start + elapsed, h)
            stuck |= failed
            active = active & ~done & ~failed
            time.copy_(start + elapsed)
            self._next_start(good & active, good)
        time.copy_(torch.where(elapsed > 0, start + span, start))
        if self._forcing.mass_flow is not None:
            self._forcing.mass_flow.empty.zero_()  # of steps that were rejected
        return stuck if bool(stuck.any()) else None

    def _trial(self, start: Tensor, h: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Try steps of at most h [s]; return them, and the mask of those accepted."""
        touches = self._touches
        if touches is None:
            self._try_step(start, h, active)
            error = self._error(h)
            good = active & (error <= 1)
            self._adapt(h, error, good, active)
            return h, good
        h = touches.limit(start, h) * active
        self._try_step(start, h, active)
        touches.compute_end(active & ~touches.located)
        touches.look(h, active)
        error, travel = self._error(h), touches.travel(h)
        entered, located = touches.entered & active, touches.located & active
        fine = (error <= 1) & (travel <= 1)
        good = active & ~located & torch.where(entered, error.isfinite(), fine)
        before = self.step_size.clone()
        self._adapt(h, error, good, active & ~located)
        longest = h * (_SAFETY / travel).clamp(min=_LEAST)
        self.step_size.copy_(torch.minimum(self.step_size, longest))
        # The step size of free flight says little about the motion in contact.
        self.step_size[good & entered] = (h * _MOST)[good & entered].clamp(min=1e-6)
        self.step_size[located | ~active] = before[located | ~active]
        self._rejected += located
        touches.end(start, h, good, located)
        return h, good

    def _try_step(self, start: Tensor, h: Tensor, active: Tensor) -> None:
        """Run the stages after the first, and move to the end of the step."""
        tableau, blocks = self._explicit.tableau, self.blocks
        ids = None if bool(active.all()) else active.nonzero().flatten()
        self.stages.set_steps(h)
        self.stages.chosen.copy_(active)
        if self._forcing.mass_flow is not None:
            self._forcing.mass_flow.empty.zero_()
        time = self._engine.field("time").data
        for stage in range(1, tableau.num_stages):
            self._displace(stage)
            time.copy_(start + tableau.c[stage] * h)
            self._forcing.evaluate_stage(ids)
            for block in blocks:
                block.record(stage, active)
            self._evaluations += active
            if self._touches is not None:
                self._touches.look(tableau.c[stage] * h, active)
                # Forces deep in contact are huge: such a trial ends here.
                active = active & ~self._touches.located
                ids = active.nonzero().flatten()
                self.stages.set_steps(h * active)
                self.stages.chosen.copy_(active)
                if not len(ids):
                    return
        self._displace(tableau.num_stages)

    def _start_steps(self, active: Tensor, span: Tensor) -> None:
        """Evaluate at the start, and guess a first step where none is remembered."""
        for block in self.blocks:
            block.begin()
        if self._touches is not None:
            self._touches.open()
        self._evaluate_start(active)
        unknown = active & (self.step_size <= 0)
        if bool(unknown.any()):
            self.step_size[unknown] = self._errors.first_step(span)[unknown]

    def _evaluate_start(self, chosen: Tensor) -> None:
        """Evaluate the first stage at the origin, in the chosen worlds."""
        ids = None if bool(chosen.all()) else chosen.nonzero().flatten()
        self._forcing.evaluate_stage(ids)
        self._evaluations += chosen
        self._record_start(chosen)

    def _record_start(self, chosen: Tensor) -> None:
        self.stages.chosen.copy_(chosen)
        for block in self.blocks:
            block.record(0, chosen)
        if self._touches is not None:
            self._touches.begin(chosen)

    def _next_start(self, continuing: Tensor, good: Tensor) -> None:
        """Start the next step of worlds whose step was accepted."""
        if not bool(good.any()):
            return
        for block in self.blocks:
            block.begin(good)
        if not bool(continuing.any()):
            return
        reusable = self._activation is None  # else clamping moved the state
        if self._explicit.tableau.is_first_same_as_last and reusable:
            self._record_start(continuing)
        else:
            self._evaluate_start(continuing)

    def _error(self, h: Tensor) -> Tensor:
        """Return the largest error of each world in units of its tolerance."""
        error = self._errors.largest(h)
        flow = self._forcing.mass_flow
        if flow is not None:  # a trial step that empties a tank is too long
            error = torch.where(flow.empty.any(dim=1), torch.inf, error)
        return error

    def _adapt(self, h: Tensor, error: Tensor, good: Tensor, active: Tensor) -> None:
        """Choose the next steps: longer after an accepted one, else shorter."""
        self._accepted += good
        self._rejected += active & ~good
        exponent = -1 / (self._explicit.tableau.control_order + 1)
        error = error.nan_to_num(nan=torch.inf).clamp(min=1e-10)
        factor = (_SAFETY * power(error, exponent)).clamp(_LEAST, _MOST)
        longer = h * factor
        # A step that was cut to end on time says little: keep the intended size.
        cut = good & (h < self.step_size)
        longer = torch.where(cut, torch.maximum(longer, self.step_size), longer)
        shorter = h * factor.clamp(max=_SAFETY)
        proposed = torch.where(good, longer, shorter)
        self.step_size.copy_(torch.where(active, proposed, self.step_size))

    def _began_bad(self, worlds: Tensor) -> bool:
        """Return True if one of these worlds had a non-finite value at the start.

        The check at the end of the step reports which.
        """
        state = self._engine.field
        fine = [
            state(name)[worlds].isfinite().all() for name in ("qpos", "qvel", "act")
        ]
        return not all(bool(part) for part in fine)

    def _step_error(self, failed: Tensor, time: Tensor, h: Tensor) -> SimStateError:
        """Return the error for worlds that cannot continue, describing the first."""
        world = int(failed.nonzero()[0])
        empty = self._mass_error(world)
        if empty is not None:
            return empty
        worst = self._errors.worst(world, h)
        failure = Failure(float(time[world]), float(h[world]), *worst)
        return self._error_of(failed, failure)

    def _error_of(self, failed: Tensor, first: Failure) -> IntegrationError:
        worlds = int_list(failed.nonzero().flatten())
        step = float(self.step_size[worlds[0]])
        return tolerance_error(
            self._worlds.model, self.scheme.name, worlds, step, first
        )
