"""TrainingRun: PPO on a task in a folder of its own, which a kill does not lose."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import io
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from simstate.engine import OneTorchThread
from simstate.env import Env, tasks
from simstate.errors import SnapshotError
from simstate.interop.rsl_rl import RslRlVecEnv, runner_cfg
from simstate.state import Snapshot
from simstate.train.checkpoint import (
    Content,
    checkpoint_path,
    find_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from simstate.train.run_cfg import RunCfg


@dataclass(frozen=True)
class Progress:
    """How a run is doing after an update."""

    iteration: int
    """Updates that are done."""
    reward: float | None
    """Mean sum of rewards of the last hundred episodes; None: none has ended."""
    episode_length_s: float | None
    """Their mean length [s]."""
    steps_per_second: float
    """Environment steps of all worlds, learning included."""


Report = Callable[[Progress], None]

MANY_ROWS = 4096
"""Rows of a mini-batch from which on an update is split over threads."""


class TrainingRun:
    """Worlds, policy and optimiser of one run, new or resumed from its folder."""

    def __init__(
        self, cfg: RunCfg, run_dir: Path, checkpoint: Content | None = None
    ) -> None:
        self.cfg = cfg
        self.run_dir = run_dir
        torch.manual_seed(cfg.seed)
        env_cfg = tasks.make_cfg(cfg.task)
        env_cfg.divergence_dump_dir = run_dir / "diverged"
        self.env = Env(
            env_cfg,
            cfg.train.num_envs,
            engine=cfg.engine,
            device=cfg.device,
            seed=cfg.seed,
        )
        self.runner = make_runner(self.env, cfg, run_dir)
        self._attach()
        self.iteration = 0
        """Updates that are done."""
        if checkpoint is not None:
            self._restore(checkpoint)

    @staticmethod
    def resume(run_dir: Path) -> TrainingRun:
        """The run of a folder, where its latest checkpoint left it."""
        path = find_checkpoint(run_dir)
        content = read_checkpoint(path)
        if "env" not in content:
            raise SnapshotError(
                f"{str(path)!r} is of the first version: it can be played and "
                "exported, but its worlds cannot be restored. Train anew to go on."
            )
        return TrainingRun(RunCfg.of(content), run_dir, content)

    def learn(self, iterations: int, report: Report) -> None:
        """Go on until so many updates are done in all; `report` after each of them."""
        left = iterations - self.iteration
        if left <= 0:
            return
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._report = report
        self._update_threads = self._threads_worth_it()
        # While experience is gathered MuJoCo's threads have the cores.
        with OneTorchThread():
            self.runner.learn(left, init_at_random_ep_len=self.iteration == 0)
        writer: Any = self.runner.logger.writer
        writer.close()

    def _attach(self) -> None:
        """Let the runner save, log and learn as this run wants it."""
        write_log, update = self.runner.logger.log, self.runner.alg.update

        def log(**values: Any) -> None:
            self.iteration = values["it"] + 1
            with contextlib.redirect_stdout(io.StringIO()):
                write_log(**values)
            self._report(self._progress(values["collect_time"] + values["learn_time"]))

        def update_on_all_cores() -> dict[str, float]:
            torch.set_num_threads(self._update_threads)
            try:
                return update()
            finally:
                torch.set_num_threads(1)

        self.runner.save = self._save
        self.runner.logger.log = log  # pyright: ignore[reportAttributeAccessIssue]
        self.runner.alg.update = update_on_all_cores

    def _threads_worth_it(self) -> int:
        """How many threads an update is split over.

        A small one is done sooner than the threads have met, and they wait for each
        other at every layer when the machine is busy with something else.
        """
        cfg = self.cfg.train
        rows = cfg.num_envs * cfg.steps_per_env // cfg.num_mini_batches
        return torch.get_num_threads() if rows >= MANY_ROWS else 1

    def _progress(self, seconds: float) -> Progress:
        logger = self.runner.logger
        steps = self.cfg.train.steps_per_env * self.env.num_envs
        if not logger.rewbuffer:
            return Progress(self.iteration, None, None, steps / seconds)
        return Progress(
            self.iteration,
            statistics.mean(logger.rewbuffer),
            statistics.mean(logger.lenbuffer) * self.env.step_dt,
            steps / seconds,
        )

    def _save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """What the runner calls to save, with a name of its own choice."""
        del path, infos
        logger = self.runner.logger
        content: Content = {
            "run": asdict(self.cfg),
            "iteration": self.iteration,
            "algorithm": self.runner.alg.save(),
            "rng": torch.get_rng_state(),
            "env": vars(self.env.snapshot()),
            "logger": {name: _plain(getattr(logger, name)) for name in _LOGGED},
        }
        write_checkpoint(checkpoint_path(self.run_dir, self.iteration), content)

    def _restore(self, content: Content) -> None:
        self.iteration = content["iteration"]
        self.runner.current_learning_iteration = self.iteration
        self.runner.alg.load(content["algorithm"], None, strict=True)
        # What a killed run logged after its checkpoint is logged again.
        self.runner.cfg["logger"]["purge_step"] = self.iteration
        self.env.restore(Snapshot(**content["env"]))
        for name, value in content["logger"].items():
            present = getattr(self.runner.logger, name)
            if isinstance(value, list):
                present.extend(value)
            else:
                setattr(self.runner.logger, name, value)
        torch.set_rng_state(content["rng"])


_LOGGED = (
    "rewbuffer",
    "lenbuffer",
    "cur_reward_sum",
    "cur_episode_length",
    "tot_timesteps",
    "tot_time",
)
"""What rsl-rl's logger remembers from one update to the next."""


def make_runner(env: Env, cfg: RunCfg, run_dir: Path | None) -> OnPolicyRunner:
    """rsl-rl's runner on an environment; its log goes to `run_dir`, None: nowhere."""
    settings = runner_cfg(cfg.train, env)
    settings["logger"] = {
        "class_name": "torch.utils.tensorboard:SummaryWriter",
        "flush_secs": 10,
    }
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
        runner = OnPolicyRunner(
            RslRlVecEnv(env),
            settings,
            log_dir=None if run_dir is None else os.fspath(run_dir),
            device=cfg.device,
        )
    # It would write the state of the user's git repository into the folder.
    runner.logger._store_code_state = list  # pyright: ignore[reportPrivateUsage]
    return runner


def _plain(value: Any) -> Any:
    """A deque as a list, which a checkpoint can hold."""
    return value if isinstance(value, torch.Tensor | int | float) else list(value)
