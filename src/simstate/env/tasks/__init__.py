"""Tasks by name: those that ship, each in a separate file, and those of users.

A user's file, function, entry point or registered name is found by the same call as a
shipped task, and used in the same places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError, UnknownNameError, suggestion
from simstate.env.env_cfg import EnvCfg
from simstate.env.task import (
    EnvSource,
    Task,
    TrainSource,
    from_entry_point,
    from_reference,
    offered,
)
from simstate.env.tasks import classic_env
from simstate.env.tasks.classics import CLASSICS
from simstate.env.tasks.suite import SUITE
from simstate.env.train_cfg import TrainCfg

_MODULES = {
    "Cartpole-Balance": "cartpole_balance",
    "Cartpole-SwingUp": "cartpole_swingup",
    "Quadruped-Velocity": "quadruped_velocity",
    "Quadruped-Velocity-Rough": "quadruped_velocity_rough",
    "Humanoid-Velocity": "humanoid_velocity",
    "Arm-Reach": "arm_reach",
    "Cartpole-Pixels": "cartpole_pixels",
    "Arm-Reach-Pixels": "arm_reach_pixels",
    "Cube-Lift": "cube_lift",
    "Satellite-Slew": "satellite_slew",
    "Glider-Heading": "glider_heading",
}

NAMES = tuple(_MODULES)
"""The names of the tasks that ship."""

_registered: dict[str, Task] = {}
_listeners: list[Callable[[str], None]] = []


def register(
    name: str,
    env_cfg: EnvSource,
    train_cfg: TrainSource | None = None,
    *,
    description: str = "",
    replace: bool = False,
) -> Task:
    """Give a task a name, under which it is found everywhere.

    Args:
        name: letters, digits, "-" and "_", since folders and ids contain it.
        env_cfg: a function that returns the EnvCfg, or an EnvCfg that is copied.
        train_cfg: the same for the TrainCfg; None: TrainCfg().
        description: a description in one line; "": the function's docstring.
        replace: True to replace a registered task of this name.
    """
    if not name or not name.replace("-", "").replace("_", "").isalnum():
        raise InvalidInputError(
            f"A task's name has letters, digits, '-' and '_', got {name!r}.", name=name
        )
    shipped = (*_MODULES, *CLASSICS, *SUITE)
    if name in shipped or (name in _registered and not replace):
        remedy = "" if name in shipped else ", or pass replace=True"
        raise InvalidInputError(
            f"The task {name!r} exists already: choose another name{remedy}.",
            name=name,
        )
    text = description or (getattr(env_cfg, "__doc__", None) or "").strip()
    task = Task(name, env_cfg, train_cfg, text.partition("\n")[0])
    _registered[name] = task
    for listener in _listeners:
        listener(name)
    return task


def when_registered(listener: Callable[[str], None]) -> None:
    """Call `listener(name)` for every task that is registered from now on."""
    _listeners.append(listener)


def find(reference: str | Path) -> Task:
    """Return the task of a reference.

    A reference is a registered name; the name of an entry point "simstate.tasks" of an
    installed package; the path of a .py file, also with a function of it as
    "file.py:ant"; or "package.module:ant", a function or an object with `env_cfg`.
    """
    reference = str(reference)
    if reference in _MODULES:
        module = import_module(f"{__name__}.{_MODULES[reference]}")
        text = (module.__doc__ or "").strip().partition("\n")[0]
        return Task(
            reference,
            module.env_cfg,
            module.train_cfg,
            text,
            trained=getattr(module, "TRAINED", "not trained yet"),
            core_seconds=getattr(module, "CORE_SECONDS", None),
        )
    if reference in _registered:
        return _registered[reference]
    if reference in CLASSICS or reference in SUITE:
        made = functools.partial(classic_env.env_cfg, reference)
        text = f"Gymnasium's {reference}, bit for bit"
        if reference in SUITE:
            text = f"dm_control's {reference.removeprefix('dm-')}"
        return Task(reference, made, None, text, trained="not trained yet")
    found = from_entry_point(reference) or from_reference(reference)
    if found is None:
        raise UnknownNameError(
            f"Unknown task {reference!r}.{suggestion(reference, names())} A task of "
            "your own is the path of a .py file, or package.module:function.",
            name=str(reference),
            known=names(),
        )
    return found


def names() -> tuple[str, ...]:
    """Return the names of all tasks: shipped, registered, and of entry points."""
    points = [point.name for point in offered()]
    return tuple(dict.fromkeys([*NAMES, *classic_env.NAMES, *_registered, *points]))


def is_classic(name: str) -> bool:
    """Return True for the name of one of Gymnasium's MuJoCo environments."""
    return name in CLASSICS


def classic_limit(name: str) -> int | None:
    """Return the steps of an episode of one of them; None for another task."""
    return CLASSICS[name].limit if name in CLASSICS else None


def make_cfg(reference: str | Path, **options: Any) -> EnvCfg:
    """Return a new configuration of a task, which the caller may change.

    `options` are keyword arguments of the task, such as those of Gymnasium's
    environments: `make_cfg("Ant-v5", ctrl_cost_weight=0.1)`.
    """
    return find(reference).env_cfg(**options)


def make_train_cfg(reference: str | Path) -> TrainCfg:
    """Return a new configuration of a task's training, which the caller may change."""
    return find(reference).train_cfg()


def describe(reference: str | Path) -> str:
    """Return a one-line description of a task."""
    return find(reference).description
