"""`simstate play`: what a trained policy does, in figures and in a video."""

from __future__ import annotations

import dataclasses
import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from simstate.cli.console import console
from simstate.cli.extras import needs
from simstate.cli.options import Debug, Device, Engine, Json
from simstate.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.env import Env, EnvCfg
    from simstate.train.checkpoint import Content
    from simstate.train.evaluate import Act, Evaluation


@dataclass
class Play:
    """Run a trained policy; falls and tracking errors, and a video of one world.

    Example: simstate play Quadruped-Velocity runs/walk --output walk.gif
    """

    task: tyro.conf.Positional[str]
    """The name of a task, as `simstate tasks` lists them; or a policy .onnx alone, that
    knows its task."""
    checkpoint: tyro.conf.Positional[Path | None] = None
    """A checkpoint model_….npz, the folder of a run for its latest one, or a policy
    .onnx."""
    output: Path | None = None
    """A .gif or .mp4 file to write; it shows the first world."""
    seconds: float | None = None
    """Simulated time [s]; by default a full episode."""
    num_envs: int = 64
    """Number of worlds for the figures."""
    command: tuple[float, float, float] | None = None
    """Forward and sideways velocity [m/s] and yaw rate [rad/s] to ask of all worlds,
    for tasks with a velocity command; by default they are drawn as in training."""
    size: tuple[int, int] = (320, 240)
    """Width and height of the video [px]."""
    fps: float = 25.0
    """Pictures per second of the video."""
    seed: int = 1
    """Seed of all that is random."""
    physics: Annotated[
        str | None,
        tyro.conf.arg(
            name="in",
            help="Another simulator to play it in: drake, mjx, newton or "
            "newton-featherstone.",
        ),
    ] = None
    engine: Engine = "native"
    device: Device = "cpu"
    json: Json = False
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.train.evaluate import evaluate

        if self.checkpoint is None and self.task.endswith(".onnx"):
            from simstate.simulators.policy import task_of

            self.checkpoint = Path(self.task)
            self.task = task_of(self.checkpoint)
        cfg = self._cfg()
        if self.output is not None:
            with needs("train"):
                from simstate.train.video import check_video
            check_video(self.output, self.fps)
        content = self._content()
        seconds = cfg.episode_length_s if self.seconds is None else self.seconds
        env = self._env(cfg, self.num_envs)
        with self._borrowed(env):
            found = evaluate(env, self._policy(env, content), seconds)
        if self.output is not None:
            self._film(cfg, content, seconds, self.output)
        if self.json:
            print(json.dumps(dataclasses.asdict(found), indent=2))
        else:
            console().print(figures_table(found, f"{self.task}, {self._file}"))
            if self.output is not None:
                console().print(f"Video: {self.output}", markup=False)
        return 0

    @property
    def _file(self) -> Path:
        """The checkpoint or policy that was given."""
        if self.checkpoint is None:
            raise InvalidInputError(
                "What to play is missing: simstate play TASK CHECKPOINT, with a file "
                "model_….npz, the folder of a run or a policy .onnx."
            )
        return self.checkpoint

    def _content(self) -> Content | None:
        """The checkpoint, if it is of the task; None for an ONNX file that is."""
        if self._file.suffix == ".onnx":
            from simstate.simulators.policy import task_of

            content, trained_for = None, task_of(self._file)
        else:
            with needs("train"):
                from simstate.train.checkpoint import find_checkpoint, read_checkpoint
            content = read_checkpoint(find_checkpoint(self._file))
            trained_for = content["run"]["task"]
        if trained_for != self.task:
            raise InvalidInputError(
                f"The checkpoint was trained for {trained_for!r}, not for "
                f"{self.task!r}."
            )
        return content

    def _policy(self, env: Env, content: Content | None) -> Act:
        """What acts: the network of the checkpoint or of the ONNX file."""
        if content is None:
            from simstate.simulators.policy import OnnxPolicy

            return OnnxPolicy(self._file, env)
        with needs("train"):
            from simstate.train.policy import Policy
        return Policy(env, content)

    def _borrowed(self, env: Env) -> AbstractContextManager[Any]:
        """While it is entered, the worlds step in the simulator that was asked for."""
        if self.physics is None:
            return nullcontext()
        from simstate.simulators.physics import borrowed_physics

        return borrowed_physics(env, self.physics)

    def _cfg(self) -> EnvCfg:
        """The task, with the command that was asked for."""
        from simstate.env import VelocityCommandCfg, tasks

        cfg = tasks.make_cfg(self.task)
        if self.command is None:
            return cfg
        x, y, turn = self.command
        commands = dict(cfg.commands)
        for name, command in commands.items():
            if isinstance(command, VelocityCommandCfg):
                commands[name] = dataclasses.replace(
                    command,
                    lin_vel_x=(x, x),
                    lin_vel_y=(y, y),
                    ang_vel_z=(turn, turn),
                    heading=None,
                    standing_share=0.0,
                )
        if not any(isinstance(c, VelocityCommandCfg) for c in commands.values()):
            raise InvalidInputError(
                f"--command is for tasks with a velocity command; {self.task!r} has "
                "none."
            )
        cfg.commands = commands
        return cfg

    def _env(self, cfg: EnvCfg, num_envs: int) -> Env:
        """Worlds that do not reset themselves."""
        from simstate.env import Env

        return Env(
            cfg,
            num_envs,
            engine=self.engine,
            device=self.device,
            seed=self.seed,
            auto_reset=False,
        )

    def _film(
        self, cfg: EnvCfg, content: Content | None, seconds: float, output: Path
    ) -> None:
        """Write a video of the first world, alone: what it does is the same."""
        from simstate.sensors.view import with_view
        from simstate.train.video import film, write_video

        with needs("train"):
            scene = with_view(cfg.scene, *self.size)
            env = self._env(dataclasses.replace(cfg, scene=scene), 1)
            with self._borrowed(env):
                act = self._policy(env, content)
                frames = film(env, act, seconds, self.fps)
            write_video(output, frames, self.fps)


def figures_table(found: Evaluation, title: str) -> Table:
    """The figures of an evaluation, one in a row."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_row("worlds", str(found.num_envs))
    table.add_row("simulated time", f"{found.seconds:g} s")
    table.add_row("reward per second", f"{found.reward:.3f}")
    table.add_row(
        "worlds that fell", f"{found.falls} ({100 * (1 - found.upright_share):.1f} %)"
    )
    for name, error in found.errors.items():
        table.add_row(f"mean error of {name}", f"{error:.4f}")
    return table
