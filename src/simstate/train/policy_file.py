"""Played: a policy from a file of any kind, and its run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from simstate.base.errors import InvalidInputError
from simstate.env import Env, tasks
from simstate.env.task import label_of
from simstate.train.checkpoint import find_policy, read_checkpoint
from simstate.train.evaluate import Act
from simstate.train.onnx_policy import OnnxPolicy, metadata_of
from simstate.train.run_cfg import RunCfg, check_no_code


@dataclass(frozen=True)
class Played:
    """A policy that can act in environments of its task."""

    run: RunCfg
    """The run of the policy: the task and its settings."""
    act_in: Callable[[Env], Act]
    """Return the policy for an environment, which it must fit."""


def load_played(path: Path, task: str | None = None) -> Played:
    """Return the policy of a run's folder, a checkpoint or an ONNX file.

    Args:
        path: the folder or file.
        task: reference of its task if that has moved; None: the stored one.
    """
    if path.suffix == ".onnx":  # needs no rsl-rl
        facts = metadata_of(path)
        if "run" in facts:
            run = RunCfg.of({"run": facts["run"]})
        else:
            if task is None:
                check_no_code(facts["task"])
            run = RunCfg.for_task(facts["task"])
        group = run.train.actor_group
        act_in: Callable[[Env], Act] = partial(OnnxPolicy, path, group=group)
    else:
        from simstate.train.checkpoint_policy import Policy

        content = read_checkpoint(find_policy(path))
        run, act_in = RunCfg.of(content), partial(Policy, content=content)
    if task is None:
        check_no_code(run.task)
    else:
        found = tasks.find(task)
        if found.label != label_of(run.task):
            raise InvalidInputError(
                f"The policy was trained for {run.task!r}, not for {task!r}."
            )
        run = dataclasses.replace(run, task=found.reference)
    return Played(run, act_in)
