"""The subject of a command: a model, a recording, a task or a policy, by name."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.missing_extra import needs
from simstate.cli.model_scene import disturb, scene_of

if TYPE_CHECKING:
    from simstate.data.replay.recorded_course import RecordedCourse
    from simstate.env import Env, EnvCfg
    from simstate.env.task_course import Act
    from simstate.simulation import Simulation
    from simstate.view import Course

What = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="MODEL|RECORDING|TASK|POLICY",
        help="A model: an MJCF or URDF file, or a name. A recording: a .simrec file. "
        "A task: a name, a .py file or package.module:function. A policy: the folder "
        "of a run, a checkpoint or an .onnx file.",
    ),
]


@dataclass(frozen=True)
class Viewed:
    """The subject named on the command line, and the initial state of its worlds."""

    what: str
    snapshot: Path | None
    policy: Path | None
    envs: int | None
    noise: float
    seed: int
    engine: Literal["native", "warp"]
    device: str
    made_by: str | None = None

    def course(self, stack: ExitStack) -> Course:
        """Return the course to view; `stack` closes the file of a recording."""
        from simstate.base.checks import whole_number

        if self.envs is not None:
            whole_number("--envs", self.envs, 1)
        if self.is_recording():
            return stack.enter_context(self._recorded_course())
        if self.made_by is not None:
            raise InvalidInputError(
                f"--made-by is for recordings, and {self.what!r} is not one: omit it."
            )
        return self.model_course() if self.is_model() else self._task_course()

    def compared(self, course: Course, other: str, stack: ExitStack) -> Course:
        """Return a course with another one next to it, which `stack` closes.

        Args:
            course: the course of `self.course`.
            other: a .simrec file, or the name of an engine or of a simulator.
            stack: closes the other course, after the viewer.
        """
        from simstate.view import ComparedCourse

        if other.endswith(".simrec"):
            there = replace(self, what=other).course(stack)
            return ComparedCourse(course, there, Path(other).name)
        if other in ("native", "warp"):
            there = self._again(other, stack)
        else:
            from simstate.simulators.borrowed_stepper import borrowed_stepper

            there = self._again("native", stack)
            stack.enter_context(
                borrowed_stepper(cast("Simulation", there.worlds), other)
            )
        compared = ComparedCourse(course, there, other)
        if course.timeline is None:
            compared.join()
        return compared

    def _again(self, engine: Literal["native", "warp"], stack: ExitStack) -> Course:
        """Return the same course on an engine; a recording's inputs are re-run."""
        if not self.is_recording():
            return replace(self, engine=engine).course(stack)
        from simstate.data.replay.recorded_course import RecordedCourse

        path = Path(self.what)
        return stack.enter_context(
            RecordedCourse.open(path, engine=engine, from_begin=True)
        )

    def is_recording(self) -> bool:
        """Return True if a recording was named."""
        return self.what.endswith(".simrec")

    def is_model(self) -> bool:
        """Return True if a model was named, rather than a task or a policy."""
        from simstate.env import tasks

        if self._is_policy() or self.is_recording():
            return False
        named = self.what in tasks.names()
        return not named and ":" not in self.what and not self.what.endswith(".py")

    def _is_policy(self) -> bool:
        from simstate.train.checkpoint import has_checkpoint

        path = Path(self.what)
        is_run = path.is_dir() and has_checkpoint(path)
        is_checkpoint = path.suffix == ".npz" and path.name.startswith("model_")
        return is_run or is_checkpoint or path.suffix == ".onnx"

    def model_course(self) -> Course:
        """Return the course of a model, from its first keyframe or the snapshot."""
        from simstate.simulation import Simulation
        from simstate.state import Snapshot
        from simstate.view import Course

        if self.policy is not None:
            raise InvalidInputError(
                f"--policy acts in a task, and {self.what!r} is a model: name the "
                "task, or only the policy, which stores the name of its task."
            )
        if self.what.endswith(".npz"):
            raise InvalidInputError(
                "A snapshot holds the state of a model, not the model: simstate view "
                f"MODEL --snapshot {self.what}"
            )
        scene = scene_of(self.what)
        saved = None if self.snapshot is None else Snapshot.load(self.snapshot)
        envs = self.envs
        if envs is None:
            envs = 1 if saved is None else saved.num_envs
        sim = Simulation(
            scene, envs, engine=self.engine, device=self.device, seed=self.seed
        )
        if saved is not None:
            sim.restore(saved)
        if self.noise:
            disturb(sim, self.noise, self.seed)
        return Course(sim, sim.rays)

    def _recorded_course(self) -> RecordedCourse:
        """Return the course of a recording, on the engine that recorded it."""
        from simstate.data.replay import made_by
        from simstate.data.replay.recorded_course import RecordedCourse

        given = [self.snapshot, self.policy, self.envs, self.noise or None]
        if any(value is not None for value in given):
            raise InvalidInputError(
                "--snapshot, --policy, --envs and --noise are for models and tasks; a "
                "recording determines its worlds. Omit them."
            )
        worlds = None if self.made_by is None else made_by(self.made_by)
        return RecordedCourse.open(Path(self.what), worlds)

    def _task_course(self) -> Course:
        """Return the course of a task, with the policy if one was named."""
        from simstate.env.task_course import TaskCourse

        env, act, name = self.task()
        return TaskCourse(env, act, name)

    def task(self) -> tuple[Env, Act | None, str]:
        """Return the task's worlds, the policy (or None) and the task's reference."""
        from simstate.env import tasks

        if self.snapshot is not None or self.noise:
            raise InvalidInputError(
                f"--snapshot and --noise are for models, and {self.what!r} is a task "
                "or a policy: omit them."
            )
        policy = Path(self.what) if self._is_policy() else self.policy
        if policy is None:
            found = tasks.find(self.what)
            return self._env(found.env_cfg()), None, found.reference
        with needs("play" if policy.suffix == ".onnx" else "train"):
            from simstate.train.policy_file import load_played

            task = None if self._is_policy() else self.what
            played = load_played(policy, task)
            env = self._env(played.run.env_cfg())
            return env, played.act_in(env), played.run.task

    def _env(self, cfg: EnvCfg) -> Env:
        from simstate.env import Env

        return Env(
            cfg,
            16 if self.envs is None else self.envs,
            engine=self.engine,
            device=self.device,
            seed=self.seed,
        )
