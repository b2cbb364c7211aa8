"""`simstate run`: simulate a model or a task; report speed, laws and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.answer import Answer
from simstate.cli.console import PlainConsole, console
from simstate.cli.model_scene import moving_worlds, scene_of
from simstate.cli.named_worlds import Viewed
from simstate.cli.options import (
    AnswerCommand,
    Device,
    Engine,
    Seconds,
    Seed,
    check_different,
    check_plot,
    check_writable,
)
from simstate.cli.picture_options import PictureOptions
from simstate.cli.scheme_study import SchemeStudy
from simstate.cli.simulated_run import SimulatedRun

if TYPE_CHECKING:
    from simstate.cli.run_worlds import RunWorlds

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
class RunCommand(AnswerCommand):
    """Simulate a model or a task in many worlds; record it, film it, check the laws.

    Example: simstate run quadruped --envs 16 --seconds 1 --plot run.png --film run.mp4
    """

    what: Ran = "quadruped"
    envs: int | None = None
    """Number of worlds; by default 256, or those of --snapshot."""
    seconds: Seconds = 5.0
    noise: float | None = None
    """Standard deviation of the initial joint velocities of a model [rad/s or m/s]; by
    default 0.1, and 0 with --snapshot."""
    snapshot: Path | None = None
    """Start in the states of this snapshot of the model."""
    policy: Path | None = None
    """Policy that acts in the task: the folder of a run, a checkpoint or an .onnx file;
    without one all actions are zero."""
    integrator: str | None = None
    """Step with this scheme, and report its order and conservation errors: euler, heun,
    midpoint, rk4, bs32, rkf45, dp54, rkf78, dop853, or mujoco for MuJoCo's own."""
    attitude: Literal["lie", "high_order", "manifold"] | None = None
    """Method by which --integrator advances orientations; by default lie."""
    timestep: float | None = None
    """Time step of a model [s]; by default that of its file."""
    tolerance: float | None = None
    """Absolute and relative tolerance of an adaptive --integrator."""
    gravity: bool = False
    """Keep gravity in the report on --integrator; it is removed by default, so that
    momentum is conserved."""
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
    """Plot one world's joints and root link over time, and the drifts of --integrator:
    a .png, .svg or .pdf file."""
    save: Path | None = None
    """Save the final states as a snapshot in this .npz file; see `simstate diff`."""
    world: int = 0
    """The world that tables and plots show."""
    check: bool = True
    """Do not check the laws on a model."""
    all: bool = False
    """Print all quantities and joints of one world, and each law."""
    pictures: Annotated[PictureOptions, tyro.conf.OmitArgPrefixes] = field(
        default_factory=PictureOptions
    )
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"

    def execute(self) -> Answer:
        """Run the command and print its results; return them."""
        self._check_options()
        out = PlainConsole(quiet=True) if self.json else console()
        worlds = self._worlds()
        if not 0 <= self.world < worlds.sim.num_envs:
            raise InvalidInputError(
                f"--world must be in [0, {worlds.sim.num_envs}), got {self.world}."
            )
        run = SimulatedRun(self, worlds, out)
        run.simulate()
        run.report()
        return Answer(run.facts(), [], run.code)

    def _check_options(self) -> None:
        """Raise if options conflict or an output cannot be written."""
        from simstate.base.checks import number, whole_number

        check_plot("--plot", self.plot)
        check_writable("--save", self.save)
        check_writable("--record", self.record)
        self.pictures.check()
        check_different({
            "--plot": self.plot, "--save": self.save, "--record": self.record,
            "--film": self.pictures.film, "--picture": self.pictures.picture,
        })  # fmt: skip
        number("--seconds", self.seconds, more_than=0)
        if self.envs is not None:
            whole_number("--envs", self.envs, 1)
        options = (self.attitude, self.tolerance, self.gravity or None)
        if self.integrator is None and any(x is not None for x in options):
            raise InvalidInputError(
                "--attitude, --gravity and --tolerance need --integrator."
            )
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
        """The measurement of --integrator on a model, or None."""
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
                    f"{self.what!r} is a task or a policy: omit them."
                )
            return TaskWorlds(*self._viewed().task())
        if self.policy is not None:
            raise InvalidInputError(
                f"--policy acts in a task, and {self.what!r} is not one: `simstate "
                "tasks` lists the tasks."
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
