"""Jobs that take long in practice: collections and training runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tests.faults.job import TRIES, Job, Note, Work, digest_of, last, opened

from simstate import NativeCfg, SimStateError
from simstate.data.datasets import collect, episodes_of
from simstate.env import Env, EnvCfg, tasks
from simstate.record import Recording, recorder
from simstate.train.checkpoint import find_checkpoint, read_checkpoint
from simstate.train.run_cfg import OutputCfg, RunCfg
from simstate.train.training_logs import Progress
from simstate.train.training_run import TrainingRun

TASK = "Cartpole-Balance"


def controller(env: Env):
    """Push by a fixed combination of the observations."""
    gains = torch.tensor([0.4, 3.0, 0.6, 0.7])
    return lambda seen: (seen["policy"] * gains).sum(1, keepdim=True)


class CollectJob(Job):
    """Collects episodes in parts."""

    name = "collect"
    variants = 2

    def _cfg(self) -> EnvCfg:
        return replace(tasks.make_cfg(TASK), episode_length_s=0.2)

    def run(self, work: Work, variant: int) -> None:
        recorder.MOST_SAMPLES = 3
        folder, made = work.folder / "episodes", []
        engine = NativeCfg(num_threads=work.threads)

        def call() -> None:
            made.append(
                collect(self._cfg(), controller, folder, episodes=6, envs=2 + variant,
                        seed=4, engine=engine,
                        on_progress=lambda _, tried: work.note("episodes", count=tried))
            )  # fmt: skip

        for _ in range(TRIES):
            if work.attempt(call):
                work.note("result", digest=self._digest(folder))
                return

    def _digest(self, folder: Path) -> str:
        found = {}
        for part in sorted(folder.glob("part-*.simrec")):
            with Recording(part) as recording:
                for episode in episodes_of(recording):
                    for name, values in episode.columns.items():
                        key = f"{part.name} {episode.world} {episode.number} {name}"
                        found[key] = torch.as_tensor(values)
        return digest_of(found)

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """The parts that were reported are there, complete."""
        parts = sorted((folder / "episodes").glob("part-*.simrec"))
        counted = last(notes, "episodes")
        wanted = 0 if counted is None else counted["count"] // (2 + variant)
        assert len(parts) >= wanted
        for part in parts:
            with Recording(part) as found:
                assert found.is_whole


class TrainJob(Job):
    """Trains for some updates, with a checkpoint after each."""

    name = "train"
    variants = 2
    iterations = 3

    def _cfg(self, variant: int) -> RunCfg:
        few = {"num_envs": 4, "steps_per_env": 5, "iterations": self.iterations}
        train = replace(tasks.make_train_cfg(TASK), **few)
        keep = 2 if variant else None
        output = OutputCfg(save_every=1, keep=keep, logger="none")
        return RunCfg(task=TASK, train=train, seed=3 + variant, output=output)

    def run(self, work: Work, variant: int) -> None:
        folder = work.folder / "run"

        def call() -> None:
            if any(folder.glob("model_*.npz")):
                run = TrainingRun.resume(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                run = TrainingRun(self._cfg(variant), folder)

            def report(progress: Progress) -> None:
                if run.saved is not None:
                    work.note("saved", iteration=run.saved)

            run.learn(self.iterations, report)

        for _ in range(TRIES):
            if work.attempt(call):
                work.note("saved", iteration=self.iterations)
                work.note("result", digest=self._digest(folder))
                return

    def _digest(self, folder: Path) -> str:
        content = read_checkpoint(find_checkpoint(folder))
        assert content["iteration"] == self.iterations
        algorithm = content["algorithm"]
        moments = algorithm["optimizer_state_dict"]["state"]
        return digest_of(
            {f"actor {k}": v for k, v in algorithm["actor_state_dict"].items()}
            | {f"critic {k}": v for k, v in algorithm["critic_state_dict"].items()}
            | {f"moment {k}": v["exp_avg"] for k, v in moments.items()}
            | {f"slot {k}": v for k, v in content["env"]["slots"].items()}
        )

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """The latest checkpoint is intact and not older than the one reported."""
        run, saved = folder / "run", last(notes, "saved")
        found, refusal = opened(
            lambda: read_checkpoint(find_checkpoint(run)), SimStateError
        )
        if found is None:
            assert str(run) in refusal
            assert saved is None, refusal
            assert not any(run.glob("model_*.npz")), refusal
            return
        assert saved is None or found["iteration"] >= saved["iteration"]


class ResumeJob(TrainJob):
    """Resumes a training run that has done its first update."""

    name = "resume"

    def prepare(self, folder: Path, variant: int) -> None:
        TrainingRun(self._cfg(variant), folder / "run").learn(1)
