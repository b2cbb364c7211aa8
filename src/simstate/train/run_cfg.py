"""RunCfg: the configuration of a training run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from simstate.base.checks import all_of, instance_of, number, one_of, whole_number
from simstate.base.errors import SnapshotError, UnknownNameError
from simstate.env import EnvCfg, TrainCfg, tasks
from simstate.env.parameter_events import with_fitted
from simstate.env.setting_changes import with_settings, without
from simstate.env.task import Task
from simstate.train.checkpoint import Content
from simstate.train.training_logs import LogKind


@dataclass(frozen=True, kw_only=True)
class OutputCfg:
    """Outputs of a run other than its policy, which does not depend on them."""

    save_every: int = 50
    """Updates between two checkpoints."""
    keep: int | None = None
    """Number of checkpoints to keep, the latest; None: all."""
    logger: LogKind = "tensorboard"
    """Logger of curves, in addition to progress.jsonl. Weights & Biases also works
    offline."""
    video_every: int | None = None
    """Updates between two videos of the policy; None: no videos."""
    video_envs: int = 4
    """Number of worlds in a video, side by side."""
    video_seconds: float = 4.0
    """Simulated time of a video [s]."""

    def __post_init__(self) -> None:
        for name in ("save_every", "keep", "video_every", "video_envs"):
            value = getattr(self, name)
            if value is not None:
                whole_number(name, value, 1)
        number("video_seconds", self.video_seconds, more_than=0, unit="s")
        one_of("logger", self.logger, get_args(LogKind))


@dataclass(frozen=True, kw_only=True)
class RunCfg:
    """A task and its settings; on native they determine the policy bit for bit."""

    task: str
    """A name, a file or a function, as for `tasks.find`."""
    train: TrainCfg
    seed: int = 0
    engine: Literal["native", "warp"] = "native"
    device: str = "cpu"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that differ from the task, by path ("env.rewards.track.weight")."""
    without: tuple[str, ...] = ()
    """Terms of the task to leave out, by path."""
    start_from: str | None = None
    """Another run or a checkpoint of it, whose networks this one starts with; None:
    random networks."""
    teacher: str | None = None
    """Another run or a checkpoint of it, whose policy this one imitates, with
    `TrainCfg.algorithm` "distillation"; None: no teacher."""
    parameters: str | None = None
    """A file of `simstate identify`, from which each world draws its parameters at the
    start; None: the parameters of the task."""
    output: OutputCfg = field(default_factory=OutputCfg)

    def __post_init__(self) -> None:
        self.train.check()
        whole_number("seed", self.seed, 0, 2**64 - 1)  # the range of torch
        instance_of("settings", self.settings, Mapping)
        all_of("settings", list(self.settings), str)
        all_of("without", self.without, str)
        if self.start_from is not None:
            instance_of("start_from", self.start_from, str)
        if self.teacher is not None:
            instance_of("teacher", self.teacher, str)
        if self.parameters is not None:
            instance_of("parameters", self.parameters, str)

    @staticmethod
    def for_task(reference: str, **changes: Any) -> RunCfg:
        """Return a run of a task with its default settings, except for `changes`.

        A file is named by its full path: the run can be resumed from any folder.
        """
        task = tasks.find(reference)
        changes.setdefault("train", task.train_cfg())
        return RunCfg(task=task.reference, **changes)

    @staticmethod
    def of(content: Content) -> RunCfg:
        """Return the settings of the run that wrote a checkpoint."""
        try:
            settings = dict(content["run"])
            train = dict(settings["train"])
            output = dict(settings.get("output", {}))
            if "save_interval" in train:  # where the first version had it
                output["save_every"] = train.pop("save_interval")
            settings["train"] = TrainCfg(**train)
            settings["output"] = OutputCfg(**output)
            settings["without"] = tuple(settings.get("without", ()))
            return RunCfg(**settings)
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"The checkpoint does not describe its run: {error!r}.", name="run"
            ) from error

    def as_dict(self) -> Content:
        """Return the settings for a checkpoint."""
        return dataclasses.asdict(self)

    def find_task(self) -> Task:
        """Return the task as currently written."""
        return tasks.find(self.task)

    def env_cfg(self) -> EnvCfg:
        """Return the task's environment with the settings of this run."""
        cfg = without(self.find_task().env_cfg(), "env", self.without)
        cfg = with_settings(cfg, "env", self.settings)
        return cfg if self.parameters is None else with_fitted(cfg, self.parameters)

    def training_env_cfg(self) -> EnvCfg:
        """Return the environment of training, with settings for training only."""
        gone = tuple(f"{path}." for path in self.without)
        settings = {
            path: value
            for path, value in self.train.training_settings.items()
            if not path.startswith(gone)
        }
        cfg = with_settings(self.env_cfg(), "env", settings)
        if self.train.physics_options:
            options = {**cfg.scene.options, **self.train.physics_options}
            cfg.scene = dataclasses.replace(cfg.scene, options=options)
        return cfg

    def changed(self, settings: Mapping[str, Any]) -> RunCfg:
        """Return a copy with changed settings by path, "env.…" and "train.…".

        A changed setting of the environment also applies in training.
        """
        env = {path: v for path, v in settings.items() if path.startswith("env.")}
        train = with_settings(self.train, "train", settings)
        kept = {p: v for p, v in train.training_settings.items() if p not in env}
        return dataclasses.replace(
            self,
            train=dataclasses.replace(train, training_settings=kept),
            settings={**self.settings, **env},
        )


def check_no_code(
    task: object, remedy: str = "name the task yourself, before the file"
) -> None:
    """Raise if a file's task is code that its user has not chosen to run.

    A run stores the full path of its task's file. Any other reference may point to code
    that came with the checkpoint, or to a function of another package.
    """
    if not isinstance(task, str):
        raise UnknownNameError(
            f"Unknown task {task!r}: a task is a string.", name=str(task)
        )
    file = task if task.endswith(".py") else task.rpartition(":")[0]
    is_code = file.endswith(".py") or ":" in task
    if is_code and not (file.endswith(".py") and Path(file).is_absolute()):
        raise UnknownNameError(
            f"Unknown task {task!r}: the file names code to run. If you trust it, "
            f"{remedy}.",
            name=str(task),
        )
