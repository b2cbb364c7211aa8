"""`simstate train`: train a policy, in a folder from which a killed run resumes."""

from __future__ import annotations

import dataclasses
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import PlainConsole, console
from simstate.cli.live import live_progress
from simstate.cli.missing_extra import needs
from simstate.cli.options import check_folder
from simstate.cli.ray_option import Ray, cluster_of, remote_worlds
from simstate.cli.task_options import TaskCommand, parse_command

if TYPE_CHECKING:
    from simstate.env.settings import Setting
    from simstate.train.run_cfg import RunCfg
    from simstate.train.training_run import MakeWorlds, TrainingRun

RUNS = Path("runs")
"""Default folder of runs."""
_SHORTENED = ("train.num_envs", "train.iterations")
"""Settings with shorter options: --envs and --iterations."""
_OUTPUT = ("save_every", "keep", "logger", "video_every")

TaskArgument = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="TASK",
        help="A .py file of your own, package.module:function, or a name that "
        "`simstate tasks` lists. Not needed with --config, or --resume --run-dir.",
    ),
]


@dataclass(kw_only=True)
class TrainCommand(TaskCommand):
    """Train a policy; write checkpoints, logs and an ONNX file.

    All settings of a task are options: simstate train TASK --help lists them.

    Example: simstate train Quadruped-Velocity --run-dir runs/walk
    """

    task: TaskArgument = ""
    run_dir: Path | None = None
    """Folder of the run; by default a new one in runs/TASK or, with --resume, the
    newest one there."""
    resume: bool = False
    """Continue from the run's latest checkpoint; the result is as without a break."""
    config: Path | None = None
    """A run.json, or the folder of a run: train with the same settings."""
    start_from: Path | None = None
    """A checkpoint, or the folder of a run: start a new run with its networks, of
    this task or of one with the same observations and actions."""
    teacher: Path | None = None
    """A checkpoint, or the folder of a run, whose policy a student imitates: with
    --train.algorithm distillation."""
    envs: int | None = None
    """Number of worlds; by default the task's."""
    iterations: int | None = None
    """Total number of updates of the policy; by default the task's."""
    seed: int | None = None
    """Seed of everything random; by default 0."""
    seeds: tuple[int, ...] = ()
    """Train once with each of these seeds, in separate folders, and compare them."""
    grid: tuple[str, ...] = ()
    """Train with all combinations of values, such as env.rewards.track.weight=1,2."""
    without: tuple[str, ...] = ()
    """Terms of the task to leave out, such as env.events.push."""
    parameters: Path | None = None
    """A fit.json of `simstate identify`: each world draws its parameters from it."""
    engine: Literal["native", "warp"] | None = None
    """CPU threads in float64 (the default), or MuJoCo Warp in float32."""
    device: str | None = None
    """Device of physics and learning: "cpu" by default; "cuda" needs --engine warp."""
    save_every: int | None = None
    """Updates between two checkpoints; by default 50."""
    keep: int | None = None
    """Number of checkpoints to keep, the latest; by default all."""
    logger: Literal["tensorboard", "wandb", "none"] | None = None
    """Logger of curves, in addition to progress.jsonl; by default TensorBoard. Weights
    & Biases writes offline unless an API key is set."""
    video_every: int | None = None
    """Updates between two videos of four worlds; by default none are made."""
    export: bool = True
    """Do not write the policy as policy.onnx at the end."""
    profile: bool = False
    """Print the CPU time of all threads, by part of the training."""
    view: bool = False
    """Show some of the worlds in a browser during training; this takes a few percent of
    the time while a client is connected."""
    port: int = 8080
    """The first port that --view tries."""
    ray: Ray = None

    @staticmethod
    def parse(args: list[str]) -> TrainCommand:
        """Parse a command line, with the options of its task."""
        base = None
        if not _is_help_alone(args):
            with needs("train"):
                base = _base(args)
        settings: dict[str, Setting] = {}
        if base is not None:
            from simstate.env.settings import settings_of

            settings = settings_of(base.env_cfg(), "env")
            settings |= settings_of(base.train, "train")
        options = {k: v for k, v in settings.items() if k not in _SHORTENED}
        return parse_command(TrainCommand, args, options, "simstate train", args[:1])

    def execute(self) -> Answer:
        """Run the command and print its progress; return facts about the runs."""
        check_folder("--run-dir", self.run_dir)
        with needs("train"):
            from simstate.train.training_run import TrainingRun
        out = PlainConsole(stderr=True) if self.json else console()
        if self.ray is not None and (self.seeds or self.grid or self.view):
            raise InvalidInputError(
                "--ray trains a single run: omit --seeds, --grid and --view."
            )
        if self.seeds or self.grid:
            from simstate.cli.sweep import sweep

            code = sweep(self, out)
            return Answer(self.trained, [], code)
        with cluster_of(self.ray) as cluster:
            make = None if cluster is None else partial(remote_worlds, cluster)
            if self.resume:
                run = self._resumed(out, make)
            else:
                run = TrainingRun(*self._new(), make_worlds=make)
            code = self.train(run, out)
            return Answer(self.trained[0], [], code)

    @cached_property
    def trained(self) -> list[dict[str, Any]]:
        """Facts about each run of the command so far."""
        return []

    def train(self, run: TrainingRun, out: PlainConsole) -> int:
        """Train to the end, or to Ctrl-C; return the exit code."""
        finished = self._learn(run, out)
        policy = run.run_dir / "policy.onnx"
        self.trained.append({
            "run_dir": str(run.run_dir), "updates": run.iteration,
            "finished": finished,
            "policy": str(policy) if finished and self.export else None,
        })  # fmt: skip
        if not finished:
            saved = "all" if run.saved == run.iteration else run.saved or "none"
            out.print_line(
                f"Interrupted after {run.iteration} updates, {saved} of them saved: "
                f"simstate train --resume --run-dir {run.run_dir} continues."
            )
            return 130
        if self.export:
            self._export(run, out)
        out.print_line(f"Next: simstate play {run.run_dir}")
        return 0

    def run_cfg(self) -> RunCfg:
        """Return the configuration of the requested run."""
        from simstate.train.run_cfg import RunCfg
        from simstate.train.run_file import read_run_file

        if self.config is not None:
            base = read_run_file(self.config)
        elif self.task:
            base = RunCfg.for_task(self.task)
        else:
            raise InvalidInputError(
                "Name a task: a .py file of your own, package.module:function, or one "
                "that `simstate tasks` lists."
            )
        given = self._given("envs", "iterations")
        if "envs" in given:
            given["num_envs"] = given.pop("envs")
        changed = base.changed(self.settings)
        return dataclasses.replace(
            changed,
            train=dataclasses.replace(changed.train, **given),
            without=(*base.without, *self.without),
            output=dataclasses.replace(base.output, **self._given(*_OUTPUT)),
            **self._start(),
            **self._parameters(),
            **self._given("seed", "engine", "device"),
        )

    def _start(self) -> dict[str, str]:
        """Return the checkpoints that a run starts from or imitates, if any."""
        from simstate.train.checkpoint import find_policy

        named = self._given("start_from", "teacher")
        return {name: str(find_policy(path).resolve()) for name, path in named.items()}

    def _parameters(self) -> dict[str, str]:
        """Return the file of fitted parameters, if one was named."""
        from simstate.study.identification import FittedParameters

        if self.parameters is None:
            return {}
        FittedParameters.load(self.parameters)  # raises now, not during the run
        return {"parameters": str(self.parameters.resolve())}

    def _given(self, *names: str) -> dict[str, Any]:
        """Return the options that were given."""
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def _new(self) -> tuple[RunCfg, Path]:
        """Return a new run and its folder; raise if the folder holds a run."""
        from simstate.train.checkpoint import check_unused

        cfg = self.run_cfg()
        folder = self.run_dir or new_folder(cfg)
        check_unused(folder)
        return cfg, folder

    def _resumed(self, out: PlainConsole, make: MakeWorlds | None) -> TrainingRun:
        from simstate.env import tasks
        from simstate.train.checkpoint import newest_run
        from simstate.train.training_run import TrainingRun

        if self.run_dir is None and not self.task:
            raise InvalidInputError("--resume needs a task, or a run's --run-dir.")
        folder = self.run_dir or newest_run(RUNS / tasks.find(self.task).label)
        run = TrainingRun.resume(folder, self.task or None, make)
        self._check_same(run.cfg)
        output = dataclasses.replace(run.cfg.output, **self._given(*_OUTPUT))
        run.cfg = dataclasses.replace(run.cfg, output=output)
        out.print_line(f"Resumed {folder} after {run.iteration} updates.")
        return run

    def _check_same(self, cfg: RunCfg) -> None:
        """Raise if the command changes settings of the run."""
        from simstate.env import tasks

        requested = {
            "task": tasks.find(self.task).reference if self.task else None,
            "envs": self.envs,
            "seed": self.seed,
            "engine": self.engine,
            "device": self.device,
        }
        had = {
            "task": cfg.task,
            "envs": cfg.train.num_envs,
            "seed": cfg.seed,
            "engine": cfg.engine,
            "device": cfg.device,
        }
        for name, value in requested.items():
            if value is not None and value != had[name]:
                raise InvalidInputError(
                    f"The run has {name} {had[name]!r}, got {value!r}: a resumed run "
                    "keeps its settings. Omit it, or start a new run."
                )
        fixed = (self.config, self.start_from, self.teacher, self.parameters)
        if self.settings or self.without or any(fixed):
            raise InvalidInputError(
                "A resumed run keeps its settings: --resume takes no settings, "
                "--without, --config, --start-from, --teacher or --parameters. Omit "
                "them, or start a new run with --config and the settings."
            )

    def _learn(self, run: TrainingRun, out: PlainConsole) -> bool:
        """Train to the end or to Ctrl-C; return True at the end."""
        from simstate.train.checkpoint import BEST
        from simstate.train.interrupt import StopRequest

        cfg, label = run.cfg.train, run.cfg.find_task().label
        total = self.iterations or cfg.iterations
        out.print_line(
            f"{label}: {cfg.num_envs} worlds on {run.example.sim.engine_name}, "
            f"{total} updates of {cfg.steps_per_env} steps, into {run.run_dir}"
        )
        start = time.monotonic()

        def on_interrupt() -> None:
            out.print_line(
                "Saving after this update; press Ctrl-C again to stop at once."
            )

        try:
            with (
                self._viewed(run, out),
                StopRequest(on_interrupt) as stop,
                live_progress(out, label, total) as report,
            ):
                finished = run.learn(total, report, stop)
        except KeyboardInterrupt:
            return False
        seconds = time.monotonic() - start
        best = run.stopping
        if finished and run.iteration < total:
            out.print_line(
                f"Stopped early: the mean return has not exceeded {best.best:.4g}, "
                f"reached after {best.iteration} updates, for {best.patience} updates. "
                f"{run.run_dir / BEST} has the policy."
            )
        if finished:
            out.print_line(
                f"Finished {run.iteration} updates; this call took {seconds:.0f} s, "
                f"its process {time.process_time():.1f} core-seconds."
            )
        if self.profile:
            out.print(_profile(run.core_seconds.table()))
        return finished

    def _viewed(
        self, run: TrainingRun, out: PlainConsole
    ) -> AbstractContextManager[Any]:
        """Show the worlds within the context, if requested."""
        if not self.view:
            return nullcontext()
        from simstate.env.task_course import TaskCourse
        from simstate.view import start_viewer

        viewer = start_viewer(
            TaskCourse(run.example, None), "127.0.0.1", self.port, None, None, True,
            controls=False,
        )  # fmt: skip
        run.after_step = viewer.sync
        out.print_line(f"The worlds: {viewer.url}")
        return viewer

    def _export(self, run: TrainingRun, out: PlainConsole) -> None:
        from simstate.train.checkpoint import find_policy, read_checkpoint
        from simstate.train.checkpoint_policy import Policy
        from simstate.train.onnx_export import export_onnx

        checkpoint = find_policy(run.run_dir)
        path = run.run_dir / "policy.onnx"
        export_onnx(Policy(run.example, read_checkpoint(checkpoint)), run.example, path)
        out.print_line(f"Checkpoint {checkpoint}, policy {path}")


def _profile(spent: dict[str, float]) -> Table:
    """Return the core-seconds by part, as a table."""
    table = new_table("Core-seconds", "part", ">s", ">%")
    total = sum(spent.values())
    for part, seconds in [*spent.items(), ("all", total)]:
        table.add_row(part, f"{seconds:.1f}", f"{100.0 * seconds / total:.0f}")
    return table


def new_folder(cfg: RunCfg, prefix: str = "") -> Path:
    """Return the default folder of a new run, named after the current time."""
    return RUNS / cfg.find_task().label / time.strftime(f"{prefix}%Y-%m-%d_%H-%M-%S")


def _is_help_alone(args: list[str]) -> bool:
    return all(arg in ("-h", "--help") for arg in args)


def _base(args: list[str]) -> RunCfg | None:
    """Return the run whose settings become options: that of --config, or the task's."""
    from simstate.train.run_cfg import RunCfg
    from simstate.train.run_file import read_run_file

    for k, arg in enumerate(args):
        name, _, value = arg.partition("=")
        if name == "--config" and (value or k + 1 < len(args)):
            return read_run_file(Path(value or args[k + 1]))
    if args and not args[0].startswith("-"):
        return RunCfg.for_task(args[0])
    return None
