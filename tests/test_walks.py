"""The length of call paths: Python calls and files that a call goes through."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
import torch

import simstate
from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.engine import core
from simstate.env import Env, tasks

needs_core = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)


class Limit(NamedTuple):
    """Largest length of a call path."""

    calls: int
    """Number of calls of Python functions in simstate."""
    files: int
    """Number of files that these functions are in."""


LIMITS = {
    "step": Limit(12, 7),
    "stale read": Limit(25, 8),
    "RK4 step with a force": Limit(80, 13),
    "step of an environment": Limit(235, 30),
    "partial states": Limit(90, 15),
}
"""Lower these as paths become shorter."""

_FOLDER = f"{Path(simstate.__file__).parent}/"


def walk(call: Callable[[], object]) -> list[tuple[int, str, str]]:
    """Return the depth, file and name of each function in simstate that is called."""
    path: list[tuple[int, str, str]] = []
    depth = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        file = frame.f_code.co_filename
        if not file.startswith(_FOLDER):
            return
        if event == "call":
            path.append((depth, file.removeprefix(_FOLDER), frame.f_code.co_qualname))
            depth += 1
        elif event == "return":
            depth -= 1

    outer = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(outer)
    return path


def step() -> Callable[[], object]:
    """A step of MuJoCo's own, when quantities have been read."""
    sim = quadrupeds()
    return sim.step


def stale_read() -> Callable[[], object]:
    """A quantity after a write into MuJoCo's memory."""
    sim = quadrupeds()
    data = sim.scene["robot"].data
    sim.data.qpos[2, 7] += 0.1
    return lambda: data.root_link_lin_vel_b


def step_with_force() -> Callable[[], object]:
    """A step of RK4 with a force model in Python."""
    cube = SceneCfg(entities={"cube": EntityCfg(model="cube")}, ground=False)
    sim = Simulation(cube, integrator=integrate.RK4())
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, 0].add_(1.3))
    sim.step()
    return sim.step


def environment_step() -> Callable[[], object]:
    """A step of a task with 23 terms, a command, events and noise."""
    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=4)
    action = torch.zeros(4, env.action_dim)
    for _ in range(3):
        env.step(action)
    return lambda: env.step(action)


def partial_states() -> Callable[[], object]:
    """One key of one entity, when states have been written before."""
    entities = {name: EntityCfg(model=name) for name in ("quadruped", "cube")}
    sim = Simulation(SceneCfg(entities=entities), num_envs=2)
    states = [{"objects": {"cube": {"pos": [0.5, 0.1, 0.3]}}}]
    sim.set_states(states)
    return lambda: sim.set_states(states)


def quadrupeds() -> Simulation:
    """Return four worlds that have been stepped and read."""
    robot = EntityCfg(model="quadruped")
    sim = Simulation(SceneCfg(entities={"robot": robot}), num_envs=4)
    sim.data.qvel[:] = torch.linspace(-0.4, 0.5, 72, dtype=sim.dtype).reshape(4, 18)
    for _ in range(2):
        sim.step()
        sim.scene["robot"].data.root_link_lin_vel_b  # noqa: B018
    return sim


PATHS = {
    "step": step,
    "stale read": stale_read,
    "RK4 step with a force": step_with_force,
    "step of an environment": environment_step,
    "partial states": partial_states,
}


@needs_core
@pytest.mark.parametrize("name", LIMITS)
def test_the_path_of_a_call_is_short(name: str) -> None:
    """The path is printed if it has grown, with one line for each call."""
    path = walk(PATHS[name]())
    files = {file for _, file, _ in path}
    for depth, file, function in path:
        print(f"{'  ' * depth}{function}  [{file}]")
    assert path
    assert len(path) <= LIMITS[name].calls
    assert len(files) <= LIMITS[name].files


def test_steps_leave_no_garbage() -> None:
    cube = SceneCfg(entities={"cube": EntityCfg(model="cube")}, ground=False)
    sim = Simulation(cube, 2)
    sim.step()
    was_enabled = gc.isenabled()
    while gc.collect():  # finalizers of other tests' objects may leave more
        pass
    gc.disable()
    try:
        for _ in range(1000):
            sim.step()
        assert gc.collect() == 0
    finally:
        if was_enabled:
            gc.enable()
