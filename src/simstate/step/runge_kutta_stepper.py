"""RungeKuttaStepper: one loop over the stages of any scheme, for all worlds at once.

Two implementations agree to rounding: the compiled core, which calls Python for models
that are Python functions, and, without the core and on warp, the blocks of
`simstate.integrate`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ModelError
from simstate.engine import OneTorchThread, Seen, Stage
from simstate.engine.field_layout import activation_range
from simstate.step.core_steps import CoreSteps
from simstate.step.divergence import Divergence
from simstate.step.flat_state import FlatState
from simstate.step.forces.compiled_models import EvaluationPlan
from simstate.step.forcing import Forcing
from simstate.step.processes import Process
from simstate.step.qpos_state import QPosState
from simstate.step.schemes.schemes import Explicit
from simstate.step.stages import Stages
from simstate.step.stepper import StepCounts, union
from simstate.step.stochastic.stochastic import Stochastic
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds

StateBlock = QPosState | FlatState

_CONSTANT, _VELOCITY = Stage.CONSTANT, Stage.VELOCITY


class RungeKuttaStepper:
    """Advances worlds by a Runge-Kutta scheme of fixed step; `sim.integration`.

    The state is qpos, qvel, act, body masses if they flow, and one block for each
    process: the number of blocks does not depend on the model.
    """

    scope: Scope = "step"
    can_cut = True
    chooses_steps = False
    has_dense_output = True
    settles = False

    def __init__(
        self,
        worlds: Worlds,
        forcing: Forcing,
        divergence: Divergence,
        scheme: Explicit,
    ) -> None:
        check_model(worlds)
        self._worlds = worlds
        self._engine = worlds.engine
        self._fresh = worlds.fresh
        self._forcing = forcing
        self._divergence = divergence
        self.scheme: Explicit | Stochastic = scheme
        """The scheme that `Simulation(integrator=…)` was given."""
        self._explicit = scheme
        self._num_stages = scheme.tableau.num_stages
        self.timestep = float(worlds.model.opt.timestep)
        """The time step [s]: the model's, except while an order is measured."""
        self.stages = Stages(scheme.tableau, worlds.num_envs, worlds.device)
        self._evaluations: Tensor = self._counter("evaluations")
        on_host = self._evaluations.device.type == "cpu"
        self._counted = self._evaluations.numpy() if on_host else self._evaluations
        """The same memory: NumPy's calls are faster than torch's."""
        self._activation: tuple[Tensor, Tensor] | None = None
        """The minimum and maximum of each activation; None: no limits."""
        limits = activation_range(worlds.model)
        if limits is not None:
            low, high = (
                torch.as_tensor(x).to(self._engine.field("act")) for x in limits
            )
            self._activation = low, high
        self._blocks: list[StateBlock] | None = None
        self._core_steps: CoreSteps | None = None
        self._is_refreshed = False
        self._stuck: Tensor | None = None

    # The stepper interface.

    @property
    def current_through(self) -> Stage:
        """Velocities if the compiled core took the last step, else constants."""
        return _VELOCITY if self._is_refreshed else _CONSTANT

    @property
    def evaluations(self) -> Tensor:
        """Number of evaluations of the dynamics so far; shape (num_envs,)."""
        return self._evaluations

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        if "opt.timestep" in self._engine.expanded:
            raise self._differing_timesteps()
        return torch.full_like(self.stages.h, self.timestep)

    def _differing_timesteps(self) -> InvalidInputError:
        return InvalidInputError(
            "simstate's integrators need the same time step in all worlds, but "
            'sim.expand("opt.timestep") made it differ: use integrator=None.',
            name="opt.timestep",
        )

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that diverged or could not advance, or None."""
        return union(self._engine.find_bad(), self._stuck)

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        if "opt.timestep" in self._engine.expanded:
            raise self._differing_timesteps()
        self._stuck = None
        if self.chooses_steps or self._forcing.has_state:
            return self._advance_checked(n, rows)
        seen = self._take(n, rows)
        self._mark(rows)
        return seen

    def _advance_checked(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds with values that the engine does not check.

        Worlds with an invalid value do not advance, and count as diverged.
        """
        invalid = self._forcing.invalid_worlds()
        moving = rows if invalid is None else _without(rows, invalid)
        seen = self._take(n, moving)
        self._mark(moving)
        later = self._forcing.invalid_worlds()
        self._stuck = union(self._stuck, invalid, later)
        return seen | (0 if self._stuck is None else Seen.STUCK)

    def _mark(self, rows: Tensor | None) -> None:
        stage = _VELOCITY if self._is_refreshed else _CONSTANT
        self._fresh.mark_current(stage, rows, evaluated=False)
        if self._fresh.mode != "auto":  # in auto mode the first read does it
            self._worlds.forward(rows)

    def _take(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; return flags of `Seen`.

        Worlds that could not advance become `_stuck`.
        """
        core = self._compiled(n * self.timestep)
        if core is not None:
            seen = core.step(n, self.timestep, rows)
        else:
            self._engine.begin_step()
            self._take_blocks(n, rows)
            seen = self._engine.seen()
        if self._forcing.mass_flow is not None:
            self._stuck = self._out_of_mass()
        return seen

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the worlds of a mask by `limit` [s]; return it, and stuck worlds."""
        h = torch.where(going, limit, 0.0)
        self._move(h, going.nonzero().flatten())
        empty = self._out_of_mass()
        return h, torch.zeros_like(going) if empty is None else empty & going

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Advance each of these worlds by exactly h [s], in one step; shape (n,)."""
        steps = torch.zeros_like(self.stages.h)
        steps[rows] = h
        self._move(steps, rows)

    def _move(self, h: Tensor, rows: Tensor) -> None:
        """Take one step of size h [s] in each world; 0: none; (num_envs,)."""
        core = self._compiled(float(h.max()))
        if core is not None:
            core.move(h, rows)
            return
        self.stages.set_steps(h)
        self._step_blocks(rows)

    # For users.

    @property
    def processes(self) -> list[Process]:
        """The processes that are integrated with the mechanics."""
        return self._forcing.processes

    @property
    def statistics(self) -> StepCounts:
        """Number of evaluations and steps of each world so far."""
        return StepCounts(
            self._evaluations,
            self._evaluations // self._num_stages,
            torch.zeros_like(self._evaluations),
        )

    def prescribe_noise(
        self, increments: Tensor, integrals: Tensor | None = None
    ) -> None:
        """Use these increments in the next steps; needs a stochastic scheme."""
        del increments, integrals
        raise InvalidInputError(
            f"{self.scheme.name} is deterministic and has no noise: use a stochastic "
            "scheme, such as integrate.SRIW1().",
            name=self.scheme.name,
        )

    # In the compiled core.

    def _compiled(self, span: float) -> CoreSteps | None:
        """Return the scheme in the core for a span [s]; None if it must run here."""
        plan = self._plan(span)
        if plan is None:
            return None
        if self._core_steps is None or self._core_steps.plan is not plan:
            self._core_steps = CoreSteps(
                *(self._worlds, self._explicit, self._forcing, plan),
                self._evaluations.numpy(),
            )
        return self._core_steps

    def _plan(self, span: float) -> EvaluationPlan | None:
        """Return the parts of an evaluation in the core; None if it cannot evaluate.

        They have the current values and are valid for a time span [s].
        """
        engine = self._engine
        self._is_refreshed = False
        if engine.compiled is None:
            return None
        plan = self._forcing.plan(span)
        self._is_refreshed = plan is not None and not plan.rates
        return plan

    # By blocks.

    @property
    def blocks(self) -> list[StateBlock]:
        """The blocks of the state."""
        if self._blocks is None:
            with torch.inference_mode(False):
                self._blocks = self._make_blocks()
        return self._blocks

    def forget_blocks(self) -> None:
        """Create the blocks again at the next step, after one was added."""
        self._blocks = None

    def _make_blocks(self) -> list[StateBlock]:
        engine, stages, forcing = self._engine, self.stages, self._forcing
        qpos = QPosState(engine.field("qpos").data, self._explicit.attitude)
        qpos.configure(engine.model)
        qpos.plan(engine.field("qvel").data, stages)
        blocks: list[StateBlock] = [qpos]
        for name, rate in (("qvel", "qacc"), ("act", "act_dot")):
            if engine.field(name).numel():
                value, rate = engine.field(name).data, engine.field(rate).data
                blocks.append(FlatState(name, value, rate, stages))
        if forcing.mass_flow is not None:
            blocks.append(forcing.mass_flow.block(stages))
        blocks += [process.block(stages) for process in forcing.processes]
        return blocks

    def _take_blocks(self, n: int, rows: Tensor | None) -> None:
        with OneTorchThread():
            self._set_steps(rows)
            for _ in range(n):
                self._step_blocks(rows)

    def _set_steps(self, rows: Tensor | None) -> None:
        if rows is None:
            self.stages.set_steps(self.timestep)
            return
        steps = torch.zeros_like(self.stages.h)
        steps[rows] = self.timestep
        self.stages.set_steps(steps)

    def _step_blocks(self, rows: Tensor | None) -> None:
        blocks, tableau, forcing = self.blocks, self._explicit.tableau, self._forcing
        time = self._engine.field("time").data
        start = time.clone()
        h = self.stages.steps(time.dtype)
        for block in blocks:
            block.begin()
        for stage, c in enumerate(tableau.c):
            torch.add(start, h, alpha=c, out=time)
            forcing.evaluate_stage(rows)
            for block in blocks:
                block.advance(stage)
        torch.add(start, h, out=time)
        self._count(tableau.num_stages, rows)
        self._finish(rows, self.stages.h)

    def _displace(self, stage: int) -> None:
        """Move all blocks to a stage, or to the end of the step."""
        for block in self.blocks:
            block.displace(stage)

    def _clamp_activations(self) -> None:
        """Keep activations in their range, as MuJoCo does after each step."""
        if self._activation is not None:
            act = self._engine.field("act").data
            torch.clamp(act, *self._activation, out=act)

    def _finish(self, rows: Tensor | None, passed: Tensor) -> None:
        """End steps as MuJoCo does, and notify the observers.

        Clamp activations and store the warm start; `passed` [s] is (num_envs,).
        """
        engine = self._engine
        self._clamp_activations()
        warmstart = engine.field("qacc_warmstart").data
        if rows is None:
            warmstart.copy_(engine.field("qacc"))
        else:
            warmstart[rows] = engine.field("qacc")[rows]
        engine.note_time(passed.to(engine.dtype), rows)

    # Counts.

    def _counter(self, name: str) -> Tensor:
        """Return a count for each world, int64, in the ledger; shape (num_envs,)."""
        return self._worlds.ledger.memory(
            f"integrator/{name}", dtype=torch.int64, reset=None, moves=True,
            optional=True, contiguous=True,
        ).tensor  # fmt: skip

    def _count(self, evaluations: int, rows: Tensor | None) -> None:
        """Add to the number of evaluations of these worlds; None: all."""
        if rows is not None:
            self._evaluations[rows] += evaluations
        else:
            self._counted += evaluations

    def _out_of_mass(self) -> Tensor | None:
        """Return the worlds that ran out of mass, or None; raise unless masked."""
        flow = self._forcing.mass_flow
        if flow is None or not bool(flow.empty.any()):
            return None
        if self._divergence.mode == "raise":
            raise flow.out_of_mass_error()
        return flow.empty.any(dim=1)


def _without(rows: Tensor | None, excluded: Tensor) -> Tensor:
    """Return the worlds of `rows` (None: all) that are not in a mask."""
    left = ~excluded
    if rows is not None:
        left &= torch.zeros_like(left).index_fill(0, rows, True)
    return left.nonzero().flatten()


def check_model(worlds: Worlds) -> None:
    """Raise if the model has a state that only MuJoCo's own stepper advances."""
    reasons = {
        "delayed controls or sensors (history)": worlds.model.nhistory,
        "plugins with a state": worlds.model.npluginstate,
        "springs or flexes that yield (plastic)": worlds.engine.field_shape("plastic")[
            1
        ],
    }
    found = [text for text, count in reasons.items() if count]
    if found:
        raise ModelError(
            f"The model has {' and '.join(found)}, which only MuJoCo's own stepper "
            "advances: use integrator=None. To delay controls, keep them in sim.memory "
            "and write the one that is due before each step.",
            name="integrator",
        )
