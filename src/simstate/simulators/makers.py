"""Creation of simulators and mechanics by name; modules are imported on use."""

from __future__ import annotations

import importlib
from typing import Any, Literal, cast

import mujoco

from simstate.scene import SceneCfg
from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import AdaptedSimulator
from simstate.simulators.catalog import info
from simstate.simulators.mechanics import Mechanics


def make(
    name: str, scene: SceneCfg | mujoco.MjModel, num_envs: int = 1
) -> Simulation | AdaptedSimulator:
    """Create worlds of a scene in a simulator; both result types are a `Simulator`.

    Args:
        name: "native" and "warp" create a `Simulation` on that engine; "drake", "mjx",
            "newton" and "newton-featherstone" an adapter, each an extra of simstate.
            `register` adds a user-defined simulator.
        scene: what to simulate, as for `Simulation`.
        num_envs: the number of worlds.
    """
    entry = info(name)
    if entry.simulator is None:
        engine = cast("Literal['native', 'warp']", name)
        return Simulation(scene, num_envs, engine=engine)
    entry.require()
    return _load(*entry.simulator)(scene, num_envs)


def make_mechanics(name: str, scene: SceneCfg | mujoco.MjModel) -> Mechanics:
    """Return the mechanics of a scene in a simulator, for comparisons."""
    entry = info(name)
    entry.require()
    return _load(*entry.mechanics)(scene)


def _load(module: str, name: str) -> Any:
    """Import a class from its module."""
    return getattr(importlib.import_module(module), name)
