"""Simulators and mechanics by name, loaded when they are made."""

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
    """Worlds of a scene in a simulator; both kinds are a `Simulator`.

    Args:
        name: "native" and "warp" are `Simulation` on these engines; "drake", "mjx",
            "newton" and "newton-featherstone" are others, each an extra of simstate;
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
    """Return a simulator's evaluation of states of a scene, for comparisons."""
    entry = info(name)
    entry.require()
    return _load(*entry.mechanics)(scene)


def _load(module: str, name: str) -> Any:
    """A class of one of the modules that import a simulator."""
    return getattr(importlib.import_module(module), name)
