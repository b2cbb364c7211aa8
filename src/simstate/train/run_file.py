"""run.json: the complete description of a run, to read it and to repeat it.

It has the task, every setting by path, the versions of libraries, and the state of the
git repository of the task.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError, warn
from simstate.base.files import naming_errors, write_atomically
from simstate.base.mujoco_version import LIBRARIES, installed_versions
from simstate.env import tasks
from simstate.env.setting_changes import with_settings
from simstate.env.settings import described, settings_of
from simstate.env.task import Task
from simstate.train.run_cfg import OutputCfg, RunCfg

FILE = "run.json"
FORMAT = "simstate run 1"
_DICTIONARIES = ("physics_options", "training_settings", "rsl_rl")
"""Fields of a TrainCfg that are dictionaries: a run may have other keys in them than
its task, which paths of settings cannot express."""


def described_run(cfg: RunCfg) -> dict[str, Any]:
    """Return a description of a run for a file."""
    task = cfg.find_task()
    env_cfg = dataclasses.replace(cfg, parameters=None).env_cfg()
    settings = {**settings_of(env_cfg, "env"), **settings_of(cfg.train, "train")}
    return {
        "format": FORMAT,
        "task": cfg.task,
        "seed": cfg.seed,
        "engine": cfg.engine,
        "device": cfg.device,
        "without": list(cfg.without),
        "start_from": cfg.start_from,
        "teacher": cfg.teacher,
        "parameters": cfg.parameters,
        "settings": {path: described(each.value) for path, each in settings.items()},
        **{name: described(getattr(cfg.train, name)) for name in _DICTIONARIES},
        "output": dataclasses.asdict(cfg.output),
        "task_file_sha256": _digest(task),
        "versions": installed_versions((*LIBRARIES, "rsl-rl-lib")),
        "git": _git_state(task.path.parent if task.path else Path.cwd()),
    }


def write_run_file(run_dir: Path, cfg: RunCfg) -> None:
    """Write run.json, unless the run has one already."""
    path = run_dir / FILE
    if not path.exists():
        text = json.dumps(described_run(cfg), indent=2, ensure_ascii=False)
        write_atomically(path, (text + "\n").encode())


def read_run_file(path: Path) -> RunCfg:
    """Return the run of a run.json, or of the one in a folder.

    The task is looked up again; a warning is issued if it has changed since.
    """
    content = _content(path)
    try:
        task, settings = content["task"], content["settings"]
        only = {name: content[name] for name in _DICTIONARIES if name in content}
        train = dataclasses.replace(tasks.find(task).train_cfg(), **only)
        cfg = RunCfg(
            task=task,
            train=with_settings(train, "train", settings),
            seed=content["seed"],
            engine=content["engine"],
            device=content["device"],
            settings={p: v for p, v in settings.items() if p.startswith("env.")},
            without=tuple(content["without"]),
            start_from=content.get("start_from"),
            teacher=content.get("teacher"),
            parameters=content.get("parameters"),
            output=OutputCfg(**content["output"]),
        )
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is not a run.json of simstate: {error}."
        ) from error
    _warn_if_changed(path, content, cfg.find_task())
    return cfg


def check_task_file(run_dir: Path, task: Task) -> None:
    """Warn if the file of a run's task has changed since the run started."""
    path = run_dir / FILE
    if path.is_file():
        content = _content(path)
        _warn_if_changed(path, content, task)


def _warn_if_changed(path: Path, content: dict[str, Any], task: Task) -> None:
    if content.get("task_file_sha256") not in (None, _digest(task)):
        warn(
            f"The file of task {task.name!r} has changed since {str(path)!r} was "
            "written: whatever is not a setting, such as code of terms, is current."
        )


def _content(path: Path) -> dict[str, Any]:
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise InvalidInputError(
            f"There is no file {str(path)!r}: give a run's folder, or its {FILE}."
        )
    try:
        with naming_errors(path, "read"):
            text = path.read_text(encoding="utf-8")
        content: dict[str, Any] = json.loads(text)
        form: object = content["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is not a {FILE} of simstate: {error}."
        ) from error
    if form != FORMAT:
        raise InvalidInputError(
            f"{str(path)!r} has the format {form!r}; this version reads {FORMAT!r}."
        )
    return content


def _digest(task: Task) -> str | None:
    if task.path is None or not task.path.is_file():
        return None
    return hashlib.sha256(task.path.read_bytes()).hexdigest()


def _git_state(folder: Path) -> dict[str, Any] | None:
    """Return commit and changed files of a folder's repository; None without one."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain").splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed_files": [line[3:] for line in changed]}


def _git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *args],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return done.stdout.rstrip()
