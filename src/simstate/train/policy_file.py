"""Played: a policy from a file of any kind, and its run."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path

from simstate.base.errors import InvalidInputError
from simstate.env import Env, tasks
from simstate.env.task import label_of
from simstate.train.checkpoint import Content, find_policy, read_checkpoint
from simstate.train.evaluate import Act
from simstate.train.onnx_policy import OnnxPolicy, metadata_of
from simstate.train.run_cfg import RunCfg, check_no_code


class Played(ABC):
    """A policy that can act in environments of its task."""

    def __init__(self, run: RunCfg) -> None:
        self.run = run
        """The run of the policy: the task and its settings."""

    @abstractmethod
    def act_in(self, env: Env) -> Act:
        """Return the policy for an environment, which it must fit."""


class PlayedCheckpoint(Played):
    """The network of a checkpoint, run by torch."""

    def __init__(self, run: RunCfg, content: Content) -> None:
        from simstate.train.checkpoint_policy import Policy

        super().__init__(run)
        self._content, self._make = content, Policy

    def act_in(self, env: Env) -> Act:
        """Return the policy for an environment, which it must fit."""
        return self._make(env, self._content)


class PlayedOnnx(Played):
    """An exported policy, run by ONNX Runtime, without rsl-rl."""

    def __init__(self, path: Path, named: str | None) -> None:
        facts = metadata_of(path)
        if "run" in facts:
            super().__init__(RunCfg.of({"run": facts["run"]}))
        else:
            if named is None:
                check_no_code(facts["task"])
            super().__init__(RunCfg.for_task(facts["task"]))
        self._path = path

    def act_in(self, env: Env) -> Act:
        """Return the policy for an environment, which it must fit."""
        return OnnxPolicy(self._path, env, self.run.train.actor_group)


def load_played(path: Path, task: str | None = None) -> Played:
    """Return the policy of a run's folder, a checkpoint or an ONNX file.

    Args:
        path: the folder or file.
        task: reference of its task if that has moved; None: the stored one.
    """
    if path.suffix == ".onnx":
        played: Played = PlayedOnnx(path, task)
    else:
        content = read_checkpoint(find_policy(path))
        played = PlayedCheckpoint(RunCfg.of(content), content)
    if task is None:
        check_no_code(played.run.task)
    if task is not None:
        found = tasks.find(task)
        if found.label != label_of(played.run.task):
            raise InvalidInputError(
                f"The policy was trained for {played.run.task!r}, not for {task!r}."
            )
        played.run = dataclasses.replace(played.run, task=found.reference)
    return played
