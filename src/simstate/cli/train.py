"""`simstate train`: learn a task with PPO, in a folder that a kill does not lose."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.console import Console

from simstate.cli.console import console, progress
from simstate.cli.extras import needs
from simstate.cli.options import Debug
from simstate.errors import InvalidInputError

if TYPE_CHECKING:
    from simstate.train.run import Progress, TrainingRun
    from simstate.train.run_cfg import RunCfg

RUNS = Path("runs")
"""Where runs go that are given no folder."""


@dataclass
class Train:
    """Train a policy with PPO; checkpoints, TensorBoard logs, an ONNX file.

    Example: simstate train Quadruped-Velocity --run-dir runs/walk
    """

    task: tyro.conf.Positional[str]
    """The name of a task, as `simstate tasks` lists them."""
    run_dir: Path | None = None
    """Folder of the run; by default a new one in runs/TASK, or the newest there with
    --resume."""
    resume: bool = False
    """Go on from the run's latest checkpoint, exactly where it was."""
    num_envs: int | None = None
    """Number of worlds; by default the task's."""
    iterations: int | None = None
    """Updates of the policy in all; by default the task's."""
    seed: int | None = None
    """Seed of all that is random; by default 0."""
    engine: Literal["native", "warp"] | None = None
    """CPU threads in float64, which is the default, or MuJoCo Warp in float32."""
    device: str | None = None
    """Where physics and learning run: "cpu" by default; "cuda" needs --engine warp."""
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        with needs("train"):
            from simstate.train.run import TrainingRun
        out = console()
        run_dir = self._folder()
        if self.resume:
            run = TrainingRun.resume(run_dir)
            self._check_same(run.cfg)
            out.print(f"Resumed {run_dir} after {run.iteration} updates.", markup=False)
        else:
            run = TrainingRun(self._settings(), run_dir)
        finished = self._learn(run, out)
        if not finished:
            out.print(
                f"Interrupted after {run.iteration} updates: the same command with "
                f"--resume --run-dir {run_dir} goes on from the latest checkpoint.",
                markup=False,
                soft_wrap=True,
            )
            return 130
        self._export(run, out)
        return 0

    def _folder(self) -> Path:
        """The folder to write to; an old run is not written over."""
        from simstate.env import tasks

        tasks.make_train_cfg(self.task)  # an unknown name raises before all else
        if self.resume:
            return self.run_dir or _newest(RUNS / self.task)
        folder = self.run_dir or RUNS / self.task / time.strftime("%Y-%m-%d_%H-%M-%S")
        if any(folder.glob("model_*.npz")):
            raise InvalidInputError(
                f"{str(folder)!r} holds a run already: go on with it by --resume, or "
                "choose another --run-dir."
            )
        return folder

    def _settings(self) -> RunCfg:
        from simstate.env import tasks
        from simstate.train.run_cfg import RunCfg

        given = {
            name: getattr(self, name)
            for name in ("num_envs", "iterations")
            if getattr(self, name) is not None
        }
        return RunCfg(
            task=self.task,
            train=dataclasses.replace(tasks.make_train_cfg(self.task), **given),
            seed=self.seed or 0,
            engine=self.engine or "native",
            device=self.device or "cpu",
        )

    def _check_same(self, cfg: RunCfg) -> None:
        """Raise where the command asks for other settings than the run had."""
        had = {
            "task": cfg.task,
            "num_envs": cfg.train.num_envs,
            "seed": cfg.seed,
            "engine": cfg.engine,
            "device": cfg.device,
        }
        for name, value in had.items():
            asked = getattr(self, name)
            if asked is not None and asked != value:
                raise InvalidInputError(
                    f"The run has {name} {value!r}, the command asks for {asked!r}: a "
                    "run goes on as it began. Leave it out, or start a new run."
                )

    def _learn(self, run: TrainingRun, out: Console) -> bool:
        """Train to the end or to Ctrl-C; whether it was the end."""
        cfg = run.cfg.train
        total = self.iterations or cfg.iterations
        out.print(
            f"{self.task}: {cfg.num_envs} worlds on {run.env.sim.engine_name}, "
            f"{total} updates of {cfg.steps_per_env} steps, into {run.run_dir}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        start = time.monotonic()
        try:
            with progress(out, "training") as advance:
                run.learn(
                    total,
                    lambda now: advance(now.iteration / total, progress_note(now)),
                )
        except KeyboardInterrupt:
            return False
        minutes = (time.monotonic() - start) / 60.0
        out.print(
            f"{run.iteration} updates are done, in {minutes:.1f} minutes of this call."
        )
        return True

    def _export(self, run: TrainingRun, out: Console) -> None:
        from simstate.train.checkpoint import find_checkpoint, read_checkpoint
        from simstate.train.export import export_onnx
        from simstate.train.policy import Policy

        checkpoint = find_checkpoint(run.run_dir)
        path = run.run_dir / "policy.onnx"
        export_onnx(Policy(run.env, read_checkpoint(checkpoint)), run.env, path)
        out.print(
            f"Checkpoint {checkpoint}, policy {path}", markup=False, soft_wrap=True
        )
        out.print(
            f"Next: simstate play {self.task} {checkpoint}",
            markup=False,
            soft_wrap=True,
        )


def progress_note(now: Progress) -> str:
    """Reward, episode length and speed, as shown beside the bar."""
    speed = f"{now.steps_per_second:,.0f} steps/s"
    if now.reward is None or now.episode_length_s is None:
        return f"update {now.iteration}, no episode has ended yet, {speed}"
    return (
        f"update {now.iteration}, reward {now.reward:.2f}, episode "
        f"{now.episode_length_s:.1f} s, {speed}"
    )


def _newest(folder: Path) -> Path:
    """The run in a folder of runs that was written to last."""
    written = {file.stat().st_mtime: file for file in folder.glob("*/model_*.npz")}
    if not written:
        raise InvalidInputError(
            f"There is no run to resume in {str(folder)!r}: name it by --run-dir."
        )
    return written[max(written)].parent
