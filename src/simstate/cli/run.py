"""`simstate run`: simulate a model or a task; report speed, laws and files."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.console import (
    console,
    escaped,
    progress,
    verdict,
    verdict_table,
)
from simstate.cli.model_scene import moving_worlds, scene_of
from simstate.cli.named_worlds import Viewed
from simstate.cli.options import (
    Debug,
    Device,
    Engine,
    Json,
    Seconds,
    Seed,
    check_plot,
    check_writable,
)
from simstate.cli.picture_options import PictureOptions
from simstate.cli.run_tables import joint_table, quantity_table, quantity_values
from simstate.cli.scheme_study import SchemeStudy

if TYPE_CHECKING:
    from simstate.cli.picture_options import Drawings
    from simstate.cli.run_worlds import RunWorlds
    from simstate.cli.trajectory import Trajectory
    from simstate.simulation import Simulation

Ran = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="MODEL|TASK|POLICY",
        help="A model: an MJCF or URDF file, or a name. A task: a name, a .py file or "
        "package.module:function. A policy: the folder of a run, a checkpoint or an "
        ".onnx file.",
    ),
]
NOISE = 0.1
"""Default spread of random joint velocities [rad/s or m/s]."""
ENVS = 256
"""Default number of worlds."""


@dataclass
class RunCommand:
    """Simulate a model or a task in many worlds; record it, film it, check the laws.

    Example: simstate run quadruped --envs 64 --seconds 2 --plot run.png --film run.mp4
    """

    what: Ran = "quadruped"
    envs: int | None = None
    """Number of worlds; by default 256, or those of --snapshot."""
    seconds: Seconds = 5.0
    noise: float | None = None
    """Spread of the random joint velocities with which the worlds of a model start
    [rad/s or m/s]; by default 0.1, and 0 with --snapshot."""
    snapshot: Path | None = None
    """Start in the states of this snapshot of the model."""
    policy: Path | None = None
    """Policy that acts in the task: the folder of a run, a checkpoint or an .onnx file;
    without one all actions are zero."""
    integrator: str | None = None
    """Step by this scheme, and report what it conserves and its order: euler, heun,
    midpoint, rk4, bs32, rkf45, dp54, rkf78, dop853, or mujoco for MuJoCo's own."""
    attitude: Literal["lie", "high_order", "manifold"] = "lie"
    """Method by which --integrator advances orientations."""
    timestep: float | None = None
    """Time step of a model [s]; by default the model's own."""
    tolerance: float | None = None
    """Absolute and relative tolerance of an adaptive --integrator."""
    gravity: bool = False
    """Keep the model's gravity in the report on --integrator; without it momentum is
    conserved."""
    record: Path | None = None
    """Record the run in a .simrec file, which `simstate replay` re-runs."""
    quantities: tuple[str, ...] = ("joint_pos", "joint_vel")
    """Quantities to record; those of a task as entity.quantity."""
    every: float | None = None
    """Time between two recorded samples of a model [s]; by default each time step."""
    snapshot_every: float = 10.0
    """Simulated time between two recorded snapshots, from which a replay can start
    [s]."""
    plot: Path | None = None
    """Draw one world's joints and root link over time, and the drifts of --integrator:
    a .png, .svg or .pdf file."""
    save: Path | None = None
    """Save the worlds at the end as a snapshot in this .npz file; see `diff`."""
    world: int = 0
    """The world that tables and plots show."""
    check: bool = True
    """Leave out the check of the laws on a model."""
    all: bool = False
    """Print all quantities and joints of one world, and each law."""
    pictures: Annotated[PictureOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=PictureOptions
    )
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command, which prints as it goes; return what it found."""
        self._check_options()
        out = Console(quiet=True) if self.json else console()
        worlds = self._worlds()
        if not 0 <= self.world < worlds.sim.num_envs:
            raise InvalidInputError(
                f"--world must be in [0, {worlds.sim.num_envs}), got {self.world}."
            )
        run = _Run(self, worlds, out)
        run.simulate()
        run.report()
        return Answer(run.facts(), [], run.code)

    def _check_options(self) -> None:
        """Raise, before anything is loaded, for outputs that cannot be written."""
        from simstate.base.checks import number, whole_number

        check_plot("--plot", self.plot)
        check_writable("--save", self.save)
        check_writable("--record", self.record)
        self.pictures.check()
        number("--seconds", self.seconds, more_than=0)
        if self.envs is not None:
            whole_number("--envs", self.envs, 1)
        if self.integrator is None and (self.gravity or self.tolerance is not None):
            raise InvalidInputError("--gravity and --tolerance need --integrator.")
        if self.what.endswith(".simrec"):
            raise InvalidInputError(
                f"{self.what!r} is a recording: simstate replay {self.what} re-runs "
                "it, with --film or --picture to draw it."
            )

    @cached_property
    def is_model(self) -> bool:
        """True for a model, False for a task or a policy."""
        return self._viewed().is_model()

    @cached_property
    def study(self) -> SchemeStudy | None:
        """The measurement of --integrator, if there is one."""
        if self.integrator is None or not self.is_model:
            return None
        speed = 1.0 if self.noise is None else self.noise
        return SchemeStudy(
            self.what, self.integrator, self.attitude, self.timestep, self.tolerance,
            self.gravity, self.seconds, speed, self.seed, self.engine,
        )  # fmt: skip

    def _viewed(self) -> Viewed:
        return Viewed(
            self.what, self.snapshot, self.policy, self.envs or ENVS,
            self.noise or 0.0, self.seed, self.engine, self.device,
        )  # fmt: skip

    def _worlds(self) -> RunWorlds:
        from dataclasses import replace

        from simstate.cli.run_worlds import ModelWorlds, TaskWorlds
        from simstate.state import Snapshot

        if not self.is_model:
            given = (self.integrator, self.timestep, self.every)
            if any(value is not None for value in given):
                raise InvalidInputError(
                    "--integrator, --timestep and --every are for models, and "
                    f"{self.what!r} is a task or a policy: leave them out."
                )
            return TaskWorlds(*self._viewed().task())
        if self.policy is not None:
            raise InvalidInputError(
                f"--policy acts in a task, and {self.what!r} is none: `simstate tasks` "
                "lists them."
            )
        scene = replace(scene_of(self.what), timestep=self.timestep)
        start = None if self.snapshot is None else Snapshot.load(self.snapshot)
        noise = self.noise
        if noise is None:
            noise = 0.0 if start is not None else NOISE
        envs = self.envs or (ENVS if start is None else start.num_envs)
        integrator = None if self.study is None else self.study.integrator()
        return ModelWorlds(
            moving_worlds(
                scene,
                envs,
                self.engine,
                self.device,
                noise,
                self.seed,
                integrator=integrator,
                start=start,
            )
        )


class _Run:
    """One run: the steps, then what is printed and written about them."""

    def __init__(self, options: RunCommand, worlds: RunWorlds, out: Console) -> None:
        self.options, self.worlds, self.sim, self.out = (
            options, worlds, worlds.sim, out,
        )  # fmt: skip
        dt = worlds.course.step_dt
        self.total = max(1, round(options.seconds / dt))
        self.physics_steps = round(dt / worlds.sim.timestep)
        self.done, self.spent, self.bare = 0, 0.0, 0.0
        self.written: list[str] = []
        self.laws_hold: bool | None = None
        self._path: Trajectory | None = None

    @property
    def finished(self) -> bool:
        """False after Ctrl-C."""
        return self.done >= self.total

    @property
    def code(self) -> int:
        """The exit code."""
        if not self.finished:
            return 130
        return 1 if self.laws_hold is False else 0

    @property
    def rate(self) -> float:
        """World-steps per second of wall-clock time."""
        steps = self.done * self.physics_steps * self.sim.num_envs
        return steps / max(self.spent, 1e-9)

    def simulate(self) -> None:
        """Step to the end or to Ctrl-C, recording and drawing."""
        from simstate.cli.trajectory import Trajectory

        options, sim = self.options, self.sim
        _say(
            self.out,
            f"[bold]{escaped(options.what)}[/]: {sim.num_envs} worlds on "
            f"{sim.engine_name}, {self.total} steps of "
            f"{self.worlds.course.step_dt:g} s, {_ground_text(sim)}",
        )
        if options.plot is not None:
            entity, dt = self.worlds.entity, self.worlds.course.step_dt
            self._path = Trajectory(entity, options.world, self.total, dt)
        before = plain_rate(sim) if options.is_model else 0.0
        with ExitStack() as stack:
            drawings = stack.enter_context(
                options.pictures.draw(self.worlds.course, options.seconds)
            )
            recorder: Any = None
            if options.record is not None:
                recorder = stack.enter_context(
                    self.worlds.record(
                        options.record,
                        options.quantities,
                        options.every,
                        options.snapshot_every,
                    )
                )
            self._step(drawings)
        if options.is_model:  # machines are not equally fast always
            self.bare = (before + plain_rate(sim)) / 2.0
        self.written += drawings.lines
        if recorder is not None and options.record is not None:
            self.written.append(_recorded(options.record, recorder.samples, options))

    def _step(self, drawings: Drawings) -> None:
        from simstate.train.interrupt import StopRequest

        dt = self.worlds.course.step_dt
        # An exception in the middle of a frame would destroy the film.
        with StopRequest() as stop, progress("simulating") as advance:
            while self.done < self.total and not stop.is_made:
                start = time.perf_counter()
                self.done += self.worlds.advance(self.total - self.done)
                self.spent += time.perf_counter() - start
                if self._path is not None:
                    self._path.record(self.done)
                drawings.add(self.done * dt)
                advance(self.done / self.total, f"{self.rate:,.0f} world-steps/s")

    def report(self) -> None:
        """Print what happened, and write the files that are made at the end."""
        out, options = self.out, self.options
        self._print_summary()
        if options.all or not self.finished:
            entity = self.worlds.entity
            out.print(quantity_table(entity, options.world))
            if entity.num_joints:
                out.print(joint_table(entity, options.world))
        if not self.finished:
            out.print("Interrupted: the tables show what was simulated so far.")
        elif options.check and options.is_model:
            self._check()
        if self.finished and options.study is not None:
            out.print(options.study.table())
        self._write_files()
        for line in self.written:
            out.print(line, markup=False, soft_wrap=True, highlight=False)
        if self.finished:
            self._print_next()

    def _print_summary(self) -> None:
        sim, rate = self.sim, self.rate
        simulated = self.done * self.worlds.course.step_dt
        _say(
            self.out,
            f"{simulated:g} s in {sim.num_envs} worlds took {self.spent:.2f} s: "
            f"{rate:,.0f} world-steps/s, {rate * sim.timestep:,.0f} × real time. "
            f"{int(sim.diverged.sum())} worlds diverged.",
        )
        if self.bare:
            _say(
                self.out,
                f"Bare MuJoCo, a loop of mj_step on one core: {self.bare:,.0f} "
                f"world-steps/s; simstate: {rate / self.bare:.2g} × that.",
            )

    def _check(self) -> None:
        from simstate.study import oracles

        options, out = self.options, self.out
        report = oracles.check(
            scene_of(options.what), options.engine, seed=options.seed,
            device=options.device,
        )  # fmt: skip
        self.laws_hold = report.passed
        if options.all or not report.passed:
            title = f"Laws, checked on {options.what} in random states"
            out.print(verdict_table(report, title))
            for note in report.notes:
                out.print(note, markup=False, highlight=False)
            return
        laws = {check.law for check in report.checks}
        line = f"{len(laws)} laws hold in random states: simstate check lists them."
        out.print(verdict(line, passed=True), soft_wrap=True)

    def _write_files(self) -> None:
        options, sim = self.options, self.sim
        if self._path is not None and options.plot is not None:
            study = options.study if self.finished else None
            drift = None if study is None else study.scheme_alone
            self._path.draw(options.plot, options.what, drift)
            self.written.append(f"Plot of world {options.world}: {options.plot}")
        if options.save is not None:
            sim.snapshot().save(options.save)
            self.written.append(f"Snapshot of {sim.num_envs} worlds: {options.save}")

    def _print_next(self) -> None:
        options = self.options
        what = escaped(shlex.quote(options.what))
        _say(self.out, f"Watch it in a browser: simstate view {what}")
        more = "" if options.all else "; all numbers: add --all"
        task = "TASK --help" if options.is_model else what
        _say(self.out, f"Train it: simstate tasks, simstate train {task}{more}")

    def facts(self) -> dict[str, Any]:
        """Return what was found, for programs."""
        options, sim = self.options, self.sim
        study = options.study if self.finished else None
        return {
            "model": options.what,
            "engine": sim.engine_name,
            "num_envs": sim.num_envs,
            "steps": self.done,
            "simulated_s": self.done * self.worlds.course.step_dt,
            "elapsed_s": self.spent,
            "world_steps_per_second": self.rate,
            "bare_mujoco_steps_per_second": self.bare or None,
            "diverged": int(sim.diverged.sum()),
            "finished": self.finished,
            "laws_hold": self.laws_hold,
            "integrator": None if study is None else study.to_dict(),
            "written": self.written,
            "world": options.world,
            "quantities": quantity_values(self.worlds.entity, options.world),
        }


def _recorded(path: Path, samples: int, options: RunCommand) -> str:
    """Describe a recording, which after Ctrl-C holds the steps so far."""
    how = f"simstate replay {shlex.quote(str(path))}"
    if options.integrator is not None:
        how += " --made-by FILE:FUNCTION"
    size = path.stat().st_size
    return f"Recording: {path}, {samples} samples, {size:,} bytes; {how} re-runs it."


def _say(out: Console, text: str) -> None:
    """Print one line, however long."""
    out.print(text, highlight=False, soft_wrap=True)


def plain_rate(sim: Simulation) -> float:
    """World-steps per second of a loop of mj_step from the worlds' states."""
    from simstate.cli.plain_loop import STEPS, PlainLoop

    rows = sim.state[:64].cpu().double().numpy()
    loop = PlainLoop(sim.model, rows)
    times: list[float] = []
    for _ in range(3):
        loop.rewind()
        start = time.perf_counter()
        loop.run()
        times.append(time.perf_counter() - start)
    return len(rows) * STEPS / min(times)


def _ground_text(sim: Simulation) -> str:
    """Describe the floor: the model's, an added one, or none."""
    from simstate.scene.ground import has_floor

    names = {sim.model.geom(i).name for i in range(sim.model.ngeom)}
    if "ground" in names:  # the entity's own would be robot/ground
        return "a ground plane added at z = 0"
    return "the model's own floor" if has_floor(sim.model) else "no floor"
