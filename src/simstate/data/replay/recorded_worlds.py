"""Worlds for a replay: created from a recording, or by a function."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from simstate.base.errors import (
    InvalidInputError,
    RecordingError,
    UnknownNameError,
)
from simstate.base.python_file import run_file
from simstate.engine import EngineCfg, NativeCfg
from simstate.env import Env, EnvCfg, tasks
from simstate.env.setting_changes import with_settings
from simstate.record import Recording
from simstate.scene.build import scene_of_model
from simstate.simulation import Simulation
from simstate.train.run_cfg import check_no_code


def engine_for(
    recording: Recording, engine: EngineCfg | None, threads: int | None
) -> EngineCfg:
    """Return the requested engine, or that of the recording."""
    chosen = recording.header["simulation"]["engine"] if engine is None else engine
    if threads is None:
        return chosen
    if chosen == "native" or isinstance(chosen, NativeCfg):
        base = chosen if isinstance(chosen, NativeCfg) else NativeCfg()
        return dataclasses.replace(base, num_threads=threads)
    raise InvalidInputError(
        f"threads is for the native engine, got {threads} on {chosen!r}: omit it.",
        name="threads",
    )


def worlds_for(
    recording: Recording, engine: EngineCfg, task: str | None
) -> Simulation | Env:
    """Return worlds like the recorded ones."""
    if recording.kind == "env":
        return env_for(recording, engine, env_cfg_for(recording, task))
    if task is not None:
        raise InvalidInputError(
            f"{str(recording.path)!r} is of a Simulation, which has no task: omit "
            f"task={task!r} (--task), or name a function that creates the Simulation "
            "(--made-by file.py:function).",
            name="task",
        )
    return _simulation_for(recording, engine)


def env_for(recording: Recording, engine: EngineCfg, cfg: EnvCfg) -> Env:
    """Return an Env with the worlds, the seed and the resets of a recording."""
    header, sim = recording.header, recording.header["simulation"]
    return Env(
        cfg,
        sim["num_envs"],
        engine=engine,
        seed=sim["seed"],
        auto_reset=header["auto_reset"],
        first_world=sim["first_world"],
    )


def env_cfg_for(recording: Recording, task: str | None) -> EnvCfg:
    """Return the recording's task, with the recorded settings."""
    header = recording.header
    if task is None:
        task = header["task"]
        if task is None:
            raise RecordingError(
                f"{str(recording.path)!r} does not name its task: name it (--task), or "
                "pass the Env: replay(path, env).",
                name="task",
            )
        check_no_code(task, "name the task yourself (--task)")
    cfg = tasks.find(task).env_cfg()
    try:
        return with_settings(cfg, "env", header["settings"])
    except (InvalidInputError, UnknownNameError) as error:
        raise RecordingError(
            f"The task {task!r} no longer accepts the settings of "
            f"{str(recording.path)!r}: {error} `simstate replay … --task {task}` uses "
            "the task's current settings, and lists those that differ.",
            name=task,
        ) from error


def _simulation_for(recording: Recording, engine: EngineCfg) -> Simulation:
    sim = recording.header["simulation"]
    needs = [*sim["code"], *(f"sensor {name}" for name in sim["sensors"])]
    if sim["integrator"] is not None:
        needs.insert(0, str(sim["integrator"]))
    if needs:
        raise RecordingError(
            f"{str(recording.path)!r} was recorded with {', '.join(needs)}, which a "
            "file cannot hold: name a function that creates the Simulation "
            "(--made-by file.py:function), or pass it: replay(path, sim).",
            name="made_by",
        )
    return Simulation(
        scene_of_model(recording.model, sim["entities"]),
        sim["num_envs"],
        engine=engine,
        on_divergence=sim["on_divergence"],
        seed=sim["seed"],
        first_world=sim["first_world"],
    )


def function_of(reference: str) -> Any:
    """Load a function, named as "file.py:function"; the code of the file is run."""
    file, _, function = reference.rpartition(":")
    path = Path(file)
    if not file.endswith(".py") or not path.is_file():
        raise InvalidInputError(
            f"{reference!r} must be file.py:function, of an existing file."
        )
    found: Any = getattr(run_file(path), function, None)
    if not callable(found):
        raise InvalidInputError(
            f"{file!r} has no function {function!r}.", name=function
        )
    return found


def made_by(reference: str) -> Simulation | Env:
    """Return the worlds that a function creates, named as "file.py:function"."""
    made = function_of(reference)()
    if not isinstance(made, Simulation | Env):
        raise InvalidInputError(
            f"{reference} must return a Simulation or an Env, got "
            f"{type(made).__name__}.",
            name=reference,
        )
    return made
