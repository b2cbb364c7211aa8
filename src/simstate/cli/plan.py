"""`simstate plan`: act in a task, or drive a model, by planning."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import tyro
from rich.table import Table

from simstate.base.errors import (
    InvalidInputError,
    ModelError,
    close_to,
    unknown_name,
)
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import Advance, console, progress
from simstate.cli.missing_extra import needs
from simstate.cli.model_scene import ENTITY, check_moves, scene_of
from simstate.cli.options import (
    AnswerCommand,
    Device,
    Engine,
    Seconds,
    Seed,
    check_writable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from simstate.study.planners import SamplingPlanner, iLQR


@dataclass
class PlanCommand(AnswerCommand):
    """Act in a task, or drive a model, by planning; no training is needed.

    The cost is minus the reward of a task. For a model it is --cost, or the distance
    from the first keyframe.

    Example: simstate plan Cartpole-SwingUp --planner mppi --seconds 3
    """

    what: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="TASK|MODEL",
            help="A task, as for `simstate train`, or a model, as for `simstate run`.",
        ),
    ]
    planner: Literal["predictive-sampling", "mppi", "cem", "ilqr"] = "mppi"
    """Planning algorithm; ilqr is for models with a smooth cost."""
    seconds: Seconds = 10.0
    horizon: float = 0.8
    """Horizon of a plan [s]."""
    samples: int = 64
    """Number of sampled futures of each world per plan."""
    knots: int = 6
    """Number of knots of the spline that the controls follow."""
    spread: float = 0.4
    """Standard deviation of the samples, as a fraction of half the control range."""
    replan: int = 1
    """Number of controls that are applied before the next plan."""
    control: float = 0.02
    """Time for which a model holds each control [s]; a task uses its step."""
    cost: str | None = None
    """A function of the Simulation, as file.py:function, that returns the cost of each
    world, (num_envs,); with ilqr the residuals, (num_envs, m)."""
    envs: int = 1
    """Number of worlds."""
    record: Path | None = None
    """A .simrec file to write, with the planner's seed and the index of each decision;
    `simstate replay` re-runs it."""
    view: bool = False
    """Show the worlds in a browser while they move."""
    port: int = 8080
    """The first port to try for the viewer; 0: any free port."""
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"

    def execute(self) -> Answer:
        """Run the command; return the costs or rewards."""
        from simstate.base.checks import number
        from simstate.study.planners import drive

        check_writable("--record", self.record)
        number("--horizon", self.horizon, more_than=0, unit="s")
        number("--control", self.control, more_than=0, unit="s")
        is_task = self._is_task()
        target: Any = self._env() if is_task else self._sim()
        planner = self._planner(target, is_task)
        start = time.process_time()
        with ExitStack() as stack:
            if self.record is not None:
                stack.enter_context(self._recorder(target, planner, is_task))
            after = self._viewed(target, stack) if self.view else None
            steps = self.seconds / (target.step_dt if is_task else self.control)
            after = _counted(after, stack.enter_context(progress("planning")), steps)
            found = drive(
                target, planner, self.seconds, replan=self.replan, after_step=after
            )
        used = time.process_time() - start
        facts: dict[str, Any] = {
            "planner": self.planner,
            "seed": self.seed,
            "plans": found.plans,
            "cpu_seconds_per_plan": used / found.plans,
        }
        if is_task:
            sums = found.rewards.double().sum(dim=0)
            facts["return"] = [float(x) for x in sums]
            facts["last_reward"] = [float(x) for x in found.rewards[-1]]
        elif planner.best is not None:
            facts["least_cost"] = [float(x) for x in planner.best]
        if self.record is not None:
            facts["recording"] = str(self.record)
        return Answer(facts, [self._table(facts)])

    def _table(self, facts: dict[str, Any]) -> Table:
        worlds = "1 world" if self.envs == 1 else f"{self.envs} worlds"
        title = f"{self.what}: {self.seconds:g} s, {worlds}"
        table = new_table(title, "quantity", ">value", min_width=len(title))
        for name, value in facts.items():
            is_several = isinstance(value, list)
            values = cast("list[Any]", value) if is_several else [value]
            shown = [f"{x:.4g}" if isinstance(x, float) else str(x) for x in values]
            table.add_row(name.replace("_", " "), ", ".join(shown))
        return table

    def _is_task(self) -> bool:
        from simstate.env import tasks

        is_code = self.what.endswith(".py") or ":" in self.what
        return self.what in tasks.names() or is_code

    def _env(self) -> Any:
        from simstate.env import Env, tasks

        if self.cost is not None:
            raise InvalidInputError(
                "--cost is for models; the cost of a task is minus its reward. Omit it."
            )
        return Env(
            tasks.make_cfg(self.what), self.envs, engine=self.engine,
            device=self.device, seed=self.seed,
        )  # fmt: skip

    def _sim(self) -> Any:
        from simstate.env import tasks
        from simstate.simulation import Simulation

        try:
            scene = scene_of(self.what)
        except ModelError as error:
            if not close_to(self.what, tasks.names()):
                raise
            raise unknown_name("task or model", self.what, tasks.names()) from error
        check_moves(scene)
        return Simulation(
            scene, self.envs, engine=self.engine, device=self.device,
            on_divergence="mask", seed=self.seed,
        )  # fmt: skip

    def _planner(self, target: Any, is_task: bool) -> SamplingPlanner | iLQR:
        from simstate.study import planners

        hold = 1 if is_task else max(1, round(self.control / target.timestep))
        step = target.step_dt if is_task else hold * target.timestep
        horizon = max(1, round(self.horizon / step))
        if self.planner == "ilqr":
            if is_task:
                raise InvalidInputError(
                    "--planner ilqr is for models: a task's reward has no residuals. "
                    "Use mppi, cem or predictive-sampling."
                )
            residual = self._function(default_residual)
            return planners.iLQR(horizon, residual=residual, hold=hold)
        kinds: dict[str, type[SamplingPlanner]] = {
            "predictive-sampling": planners.PredictiveSampling,
            "mppi": planners.MPPI,
            "cem": planners.CEM,
        }
        return kinds[self.planner](
            horizon,
            cost=None if is_task else self._function(from_default),
            samples=self.samples,
            knots=min(self.knots, horizon),
            noise=self.spread,
            hold=hold,
            seed=self.seed,
        )

    def _function(self, default: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        """Return the function of --cost."""
        if self.cost is None:
            return default
        from simstate.data.replay.recorded_worlds import function_of

        return function_of(self.cost)

    def _recorder(self, target: Any, planner: Any, is_task: bool) -> Any:
        import torch

        from simstate.study.planners import SamplingPlanner

        def column(value: Callable[[], int]) -> Callable[[Any], Tensor]:
            return lambda sim: torch.full((sim.num_envs,), value(), dtype=torch.int64)

        quantities: dict[str, Any] = {}
        if isinstance(planner, SamplingPlanner):
            quantities["plan_seed"] = column(lambda: planner.seed)
            quantities["plan_decision"] = column(lambda: planner.decision - 1)
        if not is_task:
            seen = {name: f"{ENTITY}.{name}" for name in ("joint_pos", "joint_vel")}
            return target.record(self.record, quantities={**quantities, **seen})
        from simstate.env import tasks

        task = tasks.find(self.what).reference
        return target.record(self.record, quantities=quantities, task=task)

    def _viewed(self, target: Any, stack: ExitStack) -> Callable[[], object]:
        with needs("view"):
            viewer: Any = stack.enter_context(target.view(port=self.port))
        console().print_line(f"{self.what}: {viewer.url} (Ctrl-C stops it)")
        return viewer.sync


def _counted(
    after: Callable[[], object] | None, advance: Advance, steps: float
) -> Callable[[], None]:
    """Return a function to call after each step, which shows the progress."""
    done = 0

    def after_step() -> None:
        nonlocal done
        done += 1
        advance(min(1.0, done / steps))
        if after is not None:
            after()

    return after_step


def from_default(sim: Any) -> Tensor:
    """Return the squared distance of the entity from its default state; (num_envs,)."""
    return (default_residual(sim) ** 2).sum(dim=1)


def default_residual(sim: Any) -> Tensor:
    """Return the entity's weighted difference from its default state; (num_envs, m)."""
    import torch

    from simstate.math import quaternion

    data = sim.scene[ENTITY].data
    parts = [data.joint_pos - data.default_joint_pos, 0.1 * sim.data.qvel]
    if data.default_root_state.numel():
        root, default = data.root_link_pose_w, data.default_root_state
        turn = quaternion.multiply(quaternion.conjugate(default[:, 3:7]), root[:, 3:7])
        parts += [root[:, :3] - default[:, :3], 2 * turn[:, 1:]]
    return torch.cat(parts, dim=1)
