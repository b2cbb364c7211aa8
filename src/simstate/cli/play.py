"""`simstate play`: evaluate a trained policy, and film it."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from simstate.base.errors import InvalidInputError
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.missing_extra import needs
from simstate.cli.options import Device, Engine, Seed, check_writable
from simstate.cli.task_options import TaskCommand, parse_command

if TYPE_CHECKING:
    from simstate.env import Env, EnvCfg
    from simstate.env.settings import Setting
    from simstate.train.evaluate import Act, Evaluation
    from simstate.train.policy_file import Played


@dataclass(kw_only=True)
class PlayCommand(TaskCommand):
    """Run a trained policy: successes, failures, errors, and a film of one world.

    Settings of the environment are options: simstate play POLICY --help lists them.

    Example: simstate play runs/walk --film walk.gif
    """

    policy: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="[TASK] POLICY",
            help="The folder of a run, a checkpoint model_….npz, or an exported .onnx "
            "file. It stores its task; name the task as well if its file has moved.",
        ),
    ] = ()
    film: Path | None = None
    """Write a film of the first world: an .mp4 or .gif file."""
    seconds: float | None = None
    """Simulated time [s]; by default a full episode."""
    envs: int = 64
    """Number of worlds to evaluate."""
    command: tuple[float, float, float] | None = None
    """Forward and lateral velocity [m/s] and yaw rate [rad/s] to command in all worlds,
    for tasks with a velocity command; by default they are drawn as in training."""
    size: tuple[int, int] = (320, 240)
    """Width and height of the film [px]."""
    fps: float = 25.0
    """Frames per second of the film."""
    seed: Seed = 1
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

    @staticmethod
    def parse(args: list[str]) -> PlayCommand:
        """Parse a command line, with the options of the policy's task."""
        settings: dict[str, Setting] = {}
        named: list[str] = []
        for arg in args[:2]:
            if arg.startswith("-"):
                break
            named.append(arg)
        if named:
            from simstate.env.settings import settings_of

            cfg = _played(tuple(named)).run.env_cfg()
            settings = settings_of(cfg, "env")
        return parse_command(PlayCommand, args, settings, "simstate play", named)

    def execute(self) -> Answer:
        """Run the command; return the evaluation."""
        from simstate.train.evaluate import evaluate

        check_writable("--film", self.film)
        if self.film is not None:
            with needs("play"):
                from simstate.train.video import check_video
            check_video(self.film, self.fps)
        played = _played(self.policy)
        cfg = self._cfg(played)
        seconds = cfg.episode_length_s if self.seconds is None else self.seconds
        env = self._env(cfg, self.envs)
        with self._borrowed(env):
            found = evaluate(env, played.act_in(env), seconds)
        if self.film is not None:
            self._film(cfg, played, seconds, self.film)
        title = f"{played.run.find_task().label}, {self.policy[-1]}"
        filmed = [] if self.film is None else [f"Film of 1 world: {self.film}"]
        facts = dataclasses.asdict(found)
        return Answer(facts, [figures_table(found, title), *filmed])

    def _borrowed(self, env: Env) -> AbstractContextManager[Any]:
        """Step the worlds in the requested simulator within the context."""
        if self.physics is None:
            return nullcontext()
        from simstate.simulators.borrowed_stepper import borrowed_stepper

        return borrowed_stepper(env, self.physics)

    def _cfg(self, played: Played) -> EnvCfg:
        """Return the task with the requested settings and command."""
        from simstate.env import VelocityCommandCfg
        from simstate.env.setting_changes import with_settings

        cfg = with_settings(played.run.env_cfg(), "env", self.settings)
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
                "--command is for tasks with a velocity command; "
                f"{played.run.task!r} has none."
            )
        cfg.commands = commands
        return cfg

    def _env(self, cfg: EnvCfg, num_envs: int) -> Env:
        """Return worlds without automatic resets."""
        from simstate.env import Env

        return Env(
            cfg,
            num_envs,
            engine=self.engine,
            device=self.device,
            seed=self.seed,
            auto_reset=False,
        )

    def _film(self, cfg: EnvCfg, played: Played, seconds: float, out: Path) -> None:
        """Write a film of the first world, which moves as in the larger batch."""
        from simstate.sensors.watch_camera import with_view
        from simstate.train.video import film, write_video

        with needs("play"):
            scene = with_view(cfg.scene, *self.size)
            env = self._env(dataclasses.replace(cfg, scene=scene), 1)
            act: Act = played.act_in(env)
            with self._borrowed(env):
                frames = film(env, act, seconds, self.fps)
            write_video(out, frames, self.fps)


def _played(policy: tuple[str, ...]) -> Played:
    """Return the policy named on the command line."""
    if not 1 <= len(policy) <= 2:
        raise InvalidInputError(
            "Name one policy: the folder of a run, a checkpoint model_….npz or an "
            f".onnx file, after its task if need be; got {len(policy)} arguments."
        )
    from simstate.env import tasks
    from simstate.train.policy_file import load_played

    if len(policy) == 1 and (policy[0] in tasks.names() or policy[0].endswith(".py")):
        raise InvalidInputError(
            f"{policy[0]!r} is a task: name the policy to play as well, the folder of "
            "a run, a checkpoint model_….npz or an .onnx file."
        )
    is_onnx = policy[-1].endswith(".onnx")
    with needs("play" if is_onnx else "train"):
        return load_played(Path(policy[-1]), policy[0] if len(policy) == 2 else None)


def figures_table(found: Evaluation, title: str) -> Table:
    """Return a table with one row for each figure of an evaluation."""
    table = new_table(title, "figure", ">value")
    table.add_row("worlds", str(found.num_envs))
    table.add_row("simulated time", f"{found.seconds:g} s")
    table.add_row("reward per second", f"{found.reward:.3f}")
    if found.can_succeed:
        table.add_row(
            "worlds that succeeded",
            f"{found.successes} ({100 * found.success_rate:.1f} %)",
        )
    table.add_row(
        "worlds that failed", f"{found.failures} ({100 * found.failure_rate:.1f} %)"
    )
    for name, count in found.ends.items():
        if count:
            table.add_row(f"… ended by {name}", str(count))
    for name, value in found.metrics.items():
        table.add_row(name, f"{value:.4g}")
    for name, error in found.errors.items():
        table.add_row(f"mean error of {name}", f"{error:.4f}")
    return table
