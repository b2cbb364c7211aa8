"""What a command shows: a model, a task or a policy, by what it was called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from simstate.cli.extras import needs
from simstate.cli.model import disturb, scene_of
from simstate.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.env import Env, EnvCfg
    from simstate.view import Course

What = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="MODEL|TASK|POLICY",
        help="An MJCF or URDF file or the name of a model; a task's name, .py file or "
        "package.module:function; the folder of a run, a checkpoint or an .onnx file.",
    ),
]


@dataclass(frozen=True)
class Viewed:
    """What was named on the command line, and how its worlds begin."""

    what: str
    snapshot: Path | None
    policy: Path | None
    envs: int | None
    noise: float
    seed: int
    engine: Literal["native", "warp"]
    device: str

    def course(self) -> Course:
        """The worlds, and what steps them."""
        return self.model_course() if self.is_model() else self._task_course()

    def is_model(self) -> bool:
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

    def model_course(self) -> Course:
        """The model, at its first keyframe or where the snapshot's worlds were."""
        from simstate.simulation import Simulation
        from simstate.state import Snapshot
        from simstate.view import Course

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
