"""`simstate record`: a run of a model or of a task, in a file that replays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.console import console
from simstate.cli.missing_extra import needs
from simstate.cli.model_scene import moving_worlds, scene_of
from simstate.cli.options import Debug, Device, Engine, Seconds, Seed, check_writable

if TYPE_CHECKING:
    from simstate.env import Env
    from simstate.train.evaluate import Act


@dataclass
class RecordCommand:
    """Record a run in a file: columns with units and names, and what replays it.

    Example: simstate record cartpole --out run.simrec --seconds 0.5
    """

    what: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="MODEL|TASK",
            help="A model as `simstate run` takes it, or a task as `simstate train` "
            "does.",
        ),
    ]
    out: Path
    """The .simrec file to write."""
    seconds: Seconds = 2.0
    envs: int = 4
    """Number of worlds."""
    seed: Seed = 0
    engine: Engine = "native"
    device: Device = "cpu"
    quantities: tuple[str, ...] = ("joint_pos", "joint_vel")
    """Quantities of a model's entity, or of a task's as entity.quantity."""
    policy: Path | None = None
    """A run's folder, a checkpoint or an .onnx file that acts in the task; without one
    all actions are zero."""
    every: float | None = None
    """Time between two samples of a model [s]; by default each time step."""
    noise: float = 0.5
    """Random joint velocities that the worlds of a model start with [rad/s or m/s]."""
    snapshot_every: float = 10.0
    """Simulated time between two snapshots, from which a replay can begin [s]."""
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.base.checks import number

        number("--seconds", self.seconds, more_than=0)
        check_writable("--out", self.out)
        samples = self._record_task() if self._is_task() else self._record_model()
        size = self.out.stat().st_size
        console().print(
            f"{self.out}: {samples} samples, {size:,} bytes. "
            f"`simstate info {self.out}` says what is in it, `simstate replay "
            f"{self.out}` proves it.",
            markup=False,
        )
        return 0

    def _is_task(self) -> bool:
        from simstate.env import tasks

        is_code = self.what.endswith(".py") or ":" in self.what
        return self.what in tasks.names() or is_code

    def _record_model(self) -> int:

        if self.policy is not None:
            raise InvalidInputError(
                f"--policy acts in a task, and {self.what!r} is none: `simstate tasks` "
                "lists them."
            )
        sim = moving_worlds(
            scene_of(self.what),
            self.envs,
            self.engine,
            self.device,
            self.noise,
            self.seed,
        )
        with sim.record(
            self.out,
            quantities=self.quantities,
            every=self.every,
            snapshot_every=self.snapshot_every,
        ) as recorder:
            for _ in range(max(1, round(self.seconds / sim.timestep))):
                sim.step()
        return recorder.samples

    def _record_task(self) -> int:
        env, act = self._env()
        entities = list(env.scene)
        names = [
            name if "." in name else f"{entities[0]}.{name}" for name in self.quantities
        ]
        seen = env.observations
        with env.record(
            self.out,
            quantities=names,
            snapshot_every=self.snapshot_every,
            task=self._reference(),
        ) as recorder:
            for _ in range(max(1, round(self.seconds / env.step_dt))):
                seen, _, _, _, _ = env.step(act(seen))
        return recorder.samples

    def _reference(self) -> str:
        from simstate.env import tasks

        return tasks.find(self.what).reference

    def _env(self) -> tuple[Env, Act]:
        from simstate.env import Env, tasks

        cfg, played = tasks.make_cfg(self.what), None
        if self.policy is not None:
            with needs("play" if self.policy.suffix == ".onnx" else "train"):
                from simstate.train.policy_file import load_played

                played = load_played(self.policy, self.what)
            cfg = played.run.env_cfg()
        env = Env(
            cfg, self.envs, engine=self.engine, device=self.device, seed=self.seed
        )
        if played is not None:
            return env, played.act_in(env)
        return env, lambda _: env.action.new_zeros(env.action.shape)
