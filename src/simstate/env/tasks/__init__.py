"""The tasks that ship, by name: each in a file of its own that can be read alone."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from simstate.env.cfg import EnvCfg
from simstate.env.train_cfg import TrainCfg
from simstate.errors import unknown_name

_MODULES = {
    "Cartpole-Balance": "cartpole_balance",
    "Cartpole-SwingUp": "cartpole_swingup",
    "Quadruped-Velocity": "quadruped_velocity",
    "Arm-Reach": "arm_reach",
    "Satellite-Slew": "satellite_slew",
    "Glider-Heading": "glider_heading",
}

NAMES = tuple(_MODULES)
"""The names of the tasks."""


def make_cfg(name: str) -> EnvCfg:
    """A new configuration of a task, which the caller may change."""
    return _module(name).env_cfg()


def make_train_cfg(name: str) -> TrainCfg:
    """A new configuration of how a task is trained, which the caller may change."""
    return _module(name).train_cfg()


def describe(name: str) -> str:
    """What a task is about, in one line."""
    return (_module(name).__doc__ or "").strip().partition("\n")[0]


def _module(name: str) -> ModuleType:
    if name not in _MODULES:
        raise unknown_name("task", str(name), NAMES)
    return import_module(f"{__name__}.{_MODULES[name]}")
