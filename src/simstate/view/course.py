"""Course: what a viewer shows and drives, a simulation or something built on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mujoco

from simstate.entity import Entity
from simstate.sensors import RaySensor
from simstate.state import Snapshot, restore_snapshot, take_snapshot
from simstate.view.body_overlays import Draw
from simstate.view.sources import Source, sources_of
from simstate.worlds import Worlds


@dataclass(frozen=True)
class Input:
    """A number of one world that a slider reads and writes."""

    name: str
    low: float
    high: float
    read: Callable[[int], float]
    """Its value in a world."""
    write: Callable[[int, float], None]
    """Gives it a value in a world."""


class Course:
    """A simulation as it is shown: its steps, its inputs, what can be plotted of it.

    A subclass drives something that is built on a simulation, such as a task.

    Args:
        worlds: the simulation.
        rays: its ray sensors.
    """

    name = "simulation"
    """What the steps are steps of."""

    def __init__(self, worlds: Worlds, rays: Mapping[str, RaySensor]) -> None:
        self.worlds = worlds
        self.rays = rays

    @property
    def step_dt(self) -> float:
        """The time of one step [s]."""
        return self.worlds.timestep

    def advance(self) -> None:
        """Take one step in all worlds."""
        self.worlds.step(1)

    def reset(self, env_ids: Sequence[int]) -> None:
        """Let worlds begin anew."""
        self.worlds.reset(list(env_ids))

    def snapshot(self, env_ids: Sequence[int] | None = None) -> Snapshot:
        """All that the worlds are; None: all of them."""
        physics = self.worlds.internals
        return take_snapshot(physics, physics.select(_ids(env_ids)))

    def restore(self, snapshot: Snapshot) -> None:
        """Bring all worlds back to a snapshot of them."""
        physics = self.worlds.internals
        restore_snapshot(physics, snapshot, physics.select(None))

    def inputs(self) -> list[Input]:
        """What can be asked of the actuators."""
        return [
            one
            for entity in self.worlds.scene.values()
            for one in _controls(self.worlds, entity)
        ]

    def positions(self) -> list[Input]:
        """The positions of all hinges and slides."""
        return [
            one
            for entity in self.worlds.scene.values()
            for one in _joints(self.worlds, entity)
        ]

    def sources(self) -> dict[str, Source]:
        """What can be plotted, by name."""
        return sources_of(self.worlds, self.rays)

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        """What can be drawn beside what every simulation has: about it, and how."""
        return {}


def _ids(env_ids: Sequence[int] | None) -> list[int] | None:
    return None if env_ids is None else list(env_ids)


def _controls(worlds: Worlds, entity: Entity) -> list[Input]:
    model: mujoco.MjModel = worlds.model
    inputs: list[Input] = []
    for k, column in enumerate(entity.index.controls.ids):
        owner = int((model.actuator_ctrladr <= column).sum()) - 1
        low, high = -1.0, 1.0
        if model.actuator_ctrllimited[owner]:
            low, high = (float(x) for x in model.actuator_ctrlrange[owner])

        def write(world: int, value: float, k: int = k) -> None:
            entity.write_ctrl_to_sim([[value]], [k], [world])

        def read(world: int, k: int = k) -> float:
            return float(entity.data.ctrl[world, k])

        name = f"{entity.name}/{entity.control_names[k]}"
        inputs.append(Input(name, low, high, read, write))
    return inputs


def _joints(worlds: Worlds, entity: Entity) -> list[Input]:
    model: mujoco.MjModel = worlds.model
    hinge = mujoco.mjtJoint.mjJNT_HINGE.value
    inputs: list[Input] = []
    for k, joint in enumerate(entity.index.joints.ids):
        reach = 3.15 if model.jnt_type[joint] == hinge else 1.0
        low, high = -reach, reach
        if model.jnt_limited[joint]:
            low, high = (float(x) for x in model.jnt_range[joint])

        def write(world: int, value: float, k: int = k) -> None:
            entity.write_joint_position_to_sim([[value]], [k], [world])

        def read(world: int, k: int = k) -> float:
            return float(entity.data.joint_pos[world, k])

        name = f"{entity.name}/{entity.joint_names[k]}"
        inputs.append(Input(name, low, high, read, write))
    return inputs
