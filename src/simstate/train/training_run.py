"""TrainingRun: training on a task, in a folder from which a killed run resumes."""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import torch
from tensordict import TensorDict
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.errors import SimStateError, SnapshotError
from simstate.base.files import naming_errors
from simstate.engine import OneTorchThread
from simstate.env import Env, EnvCfg, tasks
from simstate.env.task import label_of
from simstate.interop.rsl_rl import RslRlVecEnv
from simstate.interop.trained_worlds import TrainedWorlds
from simstate.state import Snapshot
from simstate.train.algorithm import (
    check_kind,
    check_symmetry,
    find_teacher,
    learner_memory,
    load_networks,
    load_teacher,
    make_algorithm,
    restore_memory,
)
from simstate.train.checkpoint import (
    BEST,
    Content,
    checkpoint_path,
    find_checkpoint,
    prune_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from simstate.train.core_seconds import CoreSeconds, TimedEnv
from simstate.train.early_stopping import EarlyStopping
from simstate.train.episodes import EpisodeStatistics, SeenRanges
from simstate.train.explicit_ppo import ExplicitPPO
from simstate.train.film import Film
from simstate.train.run_cfg import RunCfg, check_no_code
from simstate.train.run_file import check_task_file, described_run, write_run_file
from simstate.train.run_memory import check_memory
from simstate.train.training_logs import (
    Progress,
    Report,
    TrainingLog,
    no_report,
    open_logs,
)

MANY_ROWS = 4096
"""Number of rows of a mini-batch from which an update uses several threads."""


def never() -> bool:
    """Return False: no stop is requested."""
    return False


def _nothing() -> None:
    """Do nothing: no client is connected."""


MakeWorlds: TypeAlias = Callable[[EnvCfg, RunCfg], Env | TrainedWorlds]
"""Creates the worlds of a run elsewhere, such as on a cluster."""


class TrainingRun:
    """Worlds, policy and optimiser of one run, new or resumed from its folder."""

    def __init__(
        self,
        cfg: RunCfg,
        run_dir: Path,
        checkpoint: Content | None = None,
        make_worlds: MakeWorlds | None = None,
    ) -> None:
        self.cfg = cfg
        self.run_dir = run_dir
        torch.manual_seed(cfg.seed)
        check_memory(cfg)
        env_cfg = cfg.training_env_cfg()
        env_cfg.divergence_dump_dir = run_dir / "diverged"
        self.core_seconds = CoreSeconds()
        """CPU time by part [s]."""
        with self.core_seconds("creating worlds"):
            make = make_worlds or self._worlds_here
            self.env: Env | TrainedWorlds = make(env_cfg, cfg)
        self.example = self.env if isinstance(self.env, Env) else self.env.example
        """An Env of the task in this process, for its names and sizes."""
        self._worlds = RslRlVecEnv(self.env)
        self._teacher = find_teacher(cfg, checkpoint)
        # One thread: orthogonal weights depend on the number of threads.
        with self.core_seconds("creating networks"), OneTorchThread():
            self.algorithm: Any = make_algorithm(
                self._worlds,
                cfg.train,
                self.example,
                cfg.device,
                None if self._teacher is None else RunCfg.of(self._teacher).train,
            )
        """The learner: networks, optimiser and the experience of one update."""
        self._episodes = EpisodeStatistics(self.env.num_envs, self.env.device)
        self.stopping = EarlyStopping(cfg.train.patience)
        """Best mean return so far, and the criterion to stop early."""
        self._best: Content | None = None
        """The best policy, if it has not been written yet."""
        self._seen = SeenRanges()
        self._film: Film | None = None
        self.after_step: Callable[[], None] = _nothing
        """Called after every step of the worlds, such as to view them."""
        self.iteration = 0
        """Number of updates."""
        self.saved: int | None = None
        """Number of updates at the latest checkpoint; None without one."""
        if checkpoint is not None:
            self._restore(checkpoint)
            return
        if cfg.start_from is not None:
            load_networks(self.algorithm, cfg.train, Path(cfg.start_from))
        if self._teacher is not None:
            load_teacher(self.algorithm, self._teacher, str(cfg.teacher))

    @staticmethod
    def resume(
        run_dir: Path, task: str | None = None, make_worlds: MakeWorlds | None = None
    ) -> TrainingRun:
        """Return the run of a folder, where its latest checkpoint left it.

        A task that is a function of a module, or a file that has moved, must be named.
        """
        path = find_checkpoint(run_dir)
        content = read_checkpoint(path)
        if "env" not in content:
            raise SnapshotError(
                f"{str(path)!r} is of the first version: it can be played and "
                "exported, but its worlds cannot be restored. Start a new training run."
            )
        cfg = RunCfg.of(content)
        if task is None:
            check_no_code(cfg.task)
        elif label_of(task) == label_of(cfg.task):  # its file may have moved
            cfg = dataclasses.replace(cfg, task=tasks.find(task).reference)
        check_task_file(run_dir, cfg.find_task())
        return TrainingRun(cfg, run_dir, content, make_worlds)

    def learn(
        self,
        iterations: int,
        report: Report = no_report,
        stop: Callable[[], bool] = never,
    ) -> bool:
        """Continue up to a total number of updates; return True if it was reached.

        With `TrainCfg.patience` the run may end earlier, which counts as reached.

        Args:
            iterations: total number of updates, including those before a resume.
            report: called with the progress after each update.
            stop: called after each update; the run is saved and ends if it returns
                True.
        """
        if iterations <= self.iteration or self.stopping.is_over(self.iteration):
            return True
        with naming_errors(self.run_dir, "write"):
            self.run_dir.mkdir(parents=True, exist_ok=True)
        write_run_file(self.run_dir, self.cfg)
        kind = self.cfg.output.logger
        logs = open_logs(kind, self.run_dir, self.iteration, described_run(self.cfg))
        threads = self._threads_worth_it()
        try:
            # MuJoCo's threads use the cores while experience is collected.
            with OneTorchThread():
                return self._loop(iterations, report, stop, logs, threads)
        finally:
            for log in logs:
                log.close()

    def _loop(
        self,
        iterations: int,
        report: Report,
        stop: Callable[[], bool],
        logs: list[TrainingLog],
        threads: int,
    ) -> bool:
        self.algorithm.train_mode()
        if self.iteration == 0:  # so that episodes do not all end together
            worlds, longest = self._worlds, int(self._worlds.max_episode_length)
            worlds.episode_length_buf = torch.randint_like(
                worlds.episode_length_buf, high=longest
            )
        seen = self._worlds.get_observations().to(self.cfg.device)
        first = self.iteration
        while self.iteration < iterations:
            begin = time.perf_counter()
            seen = self._gather(seen)
            if self.iteration == first:  # raises if the worlds could not be saved
                self.env.snapshot()
            gathered = time.perf_counter()
            self.algorithm.desired_kl = self.cfg.train.kl_target(self.iteration)
            with self.core_seconds("update"):
                losses = self._update(threads)
            learned = time.perf_counter()
            self.iteration += 1
            progress = self._progress(losses, gathered - begin, learned - gathered)
            for log in logs:
                log.write(self.iteration, progress.values)
            report(progress)
            self._keep_if_best(progress.reward)
            self._film_if_due(logs)
            if self.stopping.is_over(self.iteration):
                break
            if stop():
                self.save()
                return self.iteration >= iterations
            if self.iteration % self.cfg.output.save_every == 0:
                self.save()
        self.save()
        return True

    def _gather(self, seen: TensorDict) -> TensorDict:
        """Step the worlds for one update; return the last observations."""
        device, spent = self.cfg.device, self.core_seconds
        with torch.inference_mode():
            for _ in range(self.cfg.train.steps_per_env):
                with spent("policy"):
                    action = self.algorithm.act(seen).to(self.env.device)
                    self._see(seen, action)
                with spent("terms and resets"):
                    seen, reward, done, extras = self._worlds.step(action)
                with spent("policy"):
                    self._episodes.add(reward, done, extras["log"])
                    seen = seen.to(device)
                    reward, done = reward.to(device), done.to(device)
                    self.algorithm.process_env_step(seen, reward, done, extras)
                self.after_step()
            with spent("policy"):
                self.algorithm.compute_returns(seen)
        return seen

    def _see(self, seen: TensorDict, action: Tensor) -> None:
        """Record the ranges of the actor's observations and actions."""
        group = self.cfg.train.actor_group
        names = [str(name) for name in seen.keys()]  # noqa: SIM118
        own = {name: seen[name] for name in names if name.split("/")[0] == group}
        self._seen.add({**own, "action": action})

    def _update(self, threads: int) -> dict[str, float]:
        """Learn from the collected experience; return the losses by name."""
        torch.set_num_threads(threads)
        try:
            return self.algorithm.update()
        finally:
            torch.set_num_threads(1)

    def _threads_worth_it(self) -> int:
        """Return the number of threads of an update.

        A small update takes less time than synchronising threads, which wait for each
        other at every layer when the machine is busy.
        """
        cfg = self.cfg.train
        if isinstance(self.algorithm, ExplicitPPO):
            return torch.get_num_threads()
        rows = cfg.num_envs * cfg.steps_per_env // cfg.num_mini_batches
        return torch.get_num_threads() if rows >= MANY_ROWS else 1

    def _progress(
        self, losses: dict[str, float], gathering_s: float, learning_s: float
    ) -> Progress:
        steps = self.cfg.train.steps_per_env * self.env.num_envs
        rate = steps / (gathering_s + learning_s)
        values = self._episodes.logged()
        values |= {f"Loss/{name}": float(loss) for name, loss in losses.items()}
        std = float(self.algorithm.get_policy().output_std.detach().mean())
        values["Loss/learning_rate"] = self.algorithm.learning_rate
        values["Policy/mean_std"] = std
        values["Perf/total_fps"] = rate
        values["Perf/collection_time"] = gathering_s
        values["Perf/learning_time"] = learning_s
        reward, length = self._episodes.mean_return, self._episodes.mean_steps
        if reward is None or length is None:
            return Progress(self.iteration, None, None, rate, values)
        values["Train/mean_reward"] = reward
        values["Train/mean_episode_length"] = length
        seconds = length * self.env.step_dt
        return Progress(self.iteration, reward, seconds, rate, values)

    def _keep_if_best(self, mean_return: float | None) -> None:
        """Keep the policy if the return is the highest, to be written by `save`.

        The first episodes do not count, because their clocks start at random.
        """
        if self.cfg.train.patience is None:
            return
        steps = self.iteration * self.cfg.train.steps_per_env
        if steps < self._worlds.max_episode_length:
            self._episodes.clear()
        elif self.stopping.improve(self.iteration, mean_return):
            self._best = copy.deepcopy(self._policy())

    def _film_if_due(self, logs: list[TrainingLog]) -> None:
        """Make a video of the policy if one is due; the run does not depend on it."""
        output = self.cfg.output
        if output.video_every is None or self.iteration % output.video_every:
            return
        with torch.random.fork_rng(devices=[]):
            self._film = self._film or Film(self.cfg)
            network = self.algorithm.get_policy()
            path = self._film.write(network, self.run_dir, self.iteration)
        for log in logs:
            log.write_video(self.iteration, path)

    def _policy(self) -> Content:
        """Return the networks, with the settings and ranges of their training."""
        return {
            "run": self.cfg.as_dict(),
            "iteration": self.iteration,
            "algorithm": self.algorithm.save(),
            "seen": dict(self._seen.ranges),
        }

    def save(self) -> None:
        """Write a checkpoint, unless there is one of this update."""
        if self.saved == self.iteration:
            return
        snapshot = self.env.snapshot()
        content = self._policy() | {
            "memory": learner_memory(self.algorithm),
            "rng": torch.get_rng_state(),
            "env": {"header": snapshot.header, "slots": snapshot.slots},
            "episodes": self._episodes.save(),
            "stopping": self.stopping.save(),
        }
        if self._teacher is not None:
            content["teacher"] = self._teacher["run"]
        if self._best is not None:
            write_checkpoint(self.run_dir / BEST, self._best)
            self._best = None
        write_checkpoint(checkpoint_path(self.run_dir, self.iteration), content)
        self.saved = self.iteration
        if self.cfg.output.keep is not None:
            prune_checkpoints(self.run_dir, self.cfg.output.keep)

    def _worlds_here(self, env_cfg: EnvCfg, cfg: RunCfg) -> Env:
        """Create the worlds of a run in this process."""
        return TimedEnv(
            env_cfg,
            cfg.train.num_envs,
            self.core_seconds,
            engine=cfg.engine,
            device=cfg.device,
            seed=cfg.seed,
        )

    def _restore(self, content: Content) -> None:
        try:
            self.iteration = whole_number("iteration", content["iteration"], 0)
            check_kind(RunCfg.of(content).train, self.cfg.train)
            self.algorithm.load(content["algorithm"], None, strict=True)
            check_symmetry(self.algorithm, "The checkpoint")
            # Older checkpoints are of learners without a memory.
            restore_memory(self.algorithm, content.get("memory", {}))
            self.stopping.load(content.get("stopping", self.stopping.save()))
            self.env.restore(Snapshot(**content["env"]))
            self._episodes.load(content["episodes"])
            self._seen.ranges = dict(content.get("seen", {}))
            torch.set_rng_state(content["rng"])
        except (
            KeyError, IndexError, TypeError, AttributeError, ValueError, RuntimeError,
        ) as error:  # fmt: skip
            if isinstance(error, SimStateError):
                raise
            raise SnapshotError(
                f"The checkpoint lacks data that this run needs: {error!r}."
            ) from error
        self.saved = self.iteration
