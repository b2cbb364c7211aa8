"""`simstate view`: a model, a snapshot, a task or a policy in the browser."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from simstate.cli.console import console
from simstate.cli.extras import needs
from simstate.cli.model import check_moves, disturb, scene_of
from simstate.cli.options import Debug, Device, Engine, check_positive
from simstate.errors import InvalidInputError
from simstate.simulation import Simulation
from simstate.state import Snapshot
from simstate.view import Course

if TYPE_CHECKING:
    from simstate.env import Env, EnvCfg


@dataclass
class View:
    """Show a model, a task or a policy in the browser, and act on it.

    The page plays, pauses, steps, goes back and resets; it draws frames, velocities,
    contacts and forces, plots any quantity, and says what every number means.

    Example: simstate view quadruped
    """

    what: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="MODEL|TASK|POLICY",
            help="An MJCF or URDF file or the name of a model; a task's name, .py file "
            "or package.module:function; the folder of a run, a checkpoint or an "
            ".onnx file.",
        ),
    ]
    snapshot: Path | None = None
    """Begin with the worlds of this file, which a snapshot of the model was saved
    to."""
    policy: Path | None = None
    """Let this policy act in the task: the folder of a run, a checkpoint or an .onnx
    file."""
    envs: int | None = None
    """Number of worlds; by default 1, the snapshot's, or 16 of a task."""
    noise: float = 0.0
    """Spread of random joint velocities at the start of a model [rad/s or m/s]."""
    paused: bool = False
    """Do not play at first."""
    seconds: float | None = None
    """End after so long [s]; by default Ctrl-C ends it."""
    open: bool = False
    """Open the page in this machine's browser."""
    host: str = "127.0.0.1"
    """The interface to listen on; on one that other machines reach, the address has a
    token."""
    port: int = 8080
    """The first port to try; 0: any that is free."""
    token: str | None = None
    """What the address must contain; with --host by default one is made."""
    seed: int = 0
    """Seed of all that is random."""
    engine: Engine = "native"
    device: Device = "cpu"
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        if self.seconds is not None:
            check_positive("--seconds", self.seconds)
        with needs("view"):
            from simstate.view.server import LOOPBACK
            from simstate.view.viewer import Viewer
        model = self._is_model()
        course = self._model_course() if model else self._task_course()
        token = self.token
        if token is None and self.host not in LOOPBACK:
            token = ""
        with Viewer(
            course,
            host=self.host,
            port=self.port,
            token=token,
            worlds=min(course.worlds.num_envs, 16),
            playing=not self.paused,
            reload=self._model_course if model else None,
        ) as viewer:
            console().print(
                f"{self.what}: {viewer.url} (Ctrl-C ends it)", markup=False,
                highlight=False, soft_wrap=True,
            )  # fmt: skip
            if self.open:
                webbrowser.open(viewer.url)
            try:
                viewer.run(self.seconds)
            except KeyboardInterrupt:
                return 0
        return 0

    def _is_model(self) -> bool:
        """Whether a model was named, rather than a task or a policy."""
        from simstate.env import tasks

        if self._is_policy():
            return False
        named = self.what in tasks.names()
        return not named and ":" not in self.what and not self.what.endswith(".py")

    def _is_policy(self) -> bool:
        path = Path(self.what)
        is_run = path.is_dir() and any(path.glob("model_*.npz"))
        is_checkpoint = path.suffix == ".npz" and path.name.startswith("model_")
        return is_run or is_checkpoint or path.suffix == ".onnx"

    def _model_course(self) -> Course:
        """The model, at its first keyframe or where the snapshot's worlds were."""
        if self.policy is not None:
            raise InvalidInputError(
                f"--policy acts in a task, and {self.what!r} is a model: name the "
                "task, or the policy alone, which knows its own."
            )
        if self.what.endswith(".npz"):
            raise InvalidInputError(
                "A snapshot holds the state of a model, not the model: simstate view "
                f"MODEL --snapshot {self.what}"
            )
        scene = scene_of(self.what)
        check_moves(scene)
        saved = None if self.snapshot is None else Snapshot.load(self.snapshot)
        envs = self.envs or (1 if saved is None else saved.num_envs)
        sim = Simulation(
            scene, envs, engine=self.engine, device=self.device, seed=self.seed
        )
        if saved is not None:
            sim.restore(saved)
        if self.noise:
            disturb(sim, self.noise, self.seed)
        return Course(sim, sim.rays)

    def _task_course(self) -> Course:
        """The task, with the policy if there is one."""
        from simstate.env.viewing import TaskCourse

        if self.snapshot is not None or self.noise:
            raise InvalidInputError("--snapshot and --noise are for models.")
        policy = Path(self.what) if self._is_policy() else self.policy
        if policy is None:
            from simstate.env import tasks

            return TaskCourse(self._env(tasks.find(self.what).env_cfg()), None)
        with needs("play" if policy.suffix == ".onnx" else "train"):
            from simstate.train.played import load_played

            task = None if self._is_policy() else self.what
            played = load_played(policy, task)
            env = self._env(played.run.env_cfg())
            return TaskCourse(env, played.act_in(env))

    def _env(self, cfg: EnvCfg) -> Env:
        from simstate.env import Env

        return Env(
            cfg,
            self.envs or 16,
            engine=self.engine,
            device=self.device,
            seed=self.seed,
        )
