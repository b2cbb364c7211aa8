"""Course: the subject of a viewer, a simulation or something built on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from simstate.base.errors import InvalidInputError
from simstate.entity import Entity
from simstate.entity.explanation import Explanation, explain
from simstate.record.recorder import Recorder
from simstate.record.sim_recorder import SimRecorder
from simstate.sensors import RaySensor
from simstate.state import Snapshot, restore_snapshot, take_snapshot
from simstate.step.stepping_host import SteppingHost
from simstate.view.body_overlays import Draw
from simstate.view.plot_sources import Source, sources_of
from simstate.view.recorded_timeline import RecordedTimeline
from simstate.world import Slot
from simstate.world.worlds import worlds_of

MOCAP_REACH = 1.0
"""Maximum distance by which a mocap body may be driven along each axis [m]."""


@dataclass(frozen=True)
class Input:
    """A scalar value of one world that a slider reads and writes."""

    name: str
    unit: str
    about: str
    """Meaning, in words."""
    low: float
    high: float
    read: Callable[[int], float]
    """Return the value in a world."""
    write: Callable[[int, float], None]
    """Set the value in a world."""


class Course:
    """A simulation to show: its steps, its inputs and the sources of plots.

    A subclass drives something that is built on a simulation, such as a task.

    Args:
        worlds: the simulation.
        rays: its ray sensors.
    """

    name = "simulation"
    """Kind of course, for messages."""
    timeline: RecordedTimeline | None = None
    """Timeline of a recording, which is shown and cannot be changed."""
    companion: Course | None = None
    """Course of the same model that is shown next to this one."""
    label = ""
    """Name of the companion."""

    def __init__(self, worlds: SteppingHost, rays: Mapping[str, RaySensor]) -> None:
        self.worlds = worlds
        self.rays = rays

    @property
    def step_dt(self) -> float:
        """Duration of one step [s]."""
        return self.worlds.timestep

    @property
    def at(self) -> int:
        """Position on the timeline: the number of steps taken."""
        return 0

    def now(self, world: int) -> float:
        """Return the time of a world, for the time axis of plots [s]."""
        return float(self.worlds.time[world])

    def advance(self) -> None:
        """Take one step in all worlds."""
        self.worlds.step(1)

    def go_to(self, step: int) -> None:
        """Set the worlds to their states before a step of the timeline."""
        raise InvalidInputError(f"A {self.name} has no timeline: no step {step}.")

    def reset(self, env_ids: Sequence[int]) -> None:
        """Reset the given worlds."""
        self.worlds.reset(list(env_ids))

    def snapshot(self, env_ids: Sequence[int] | None = None) -> Snapshot:
        """Return a snapshot of worlds; None: all of them."""
        parts = worlds_of(self.worlds)
        return take_snapshot(parts, parts.select(_ids(env_ids)))

    def restore(self, snapshot: Snapshot, env_ids: Sequence[int] | None = None) -> None:
        """Restore worlds from a snapshot of them; None: all of them."""
        parts = worlds_of(self.worlds)
        restore_snapshot(parts, snapshot, parts.select(_ids(env_ids)))

    def take_state(self, other: Course, env_ids: Sequence[int] | None = None) -> None:
        """Set worlds to the state of another course's; None: all of them.

        Parameters and settings are kept. A mass that changes over time is state.
        """
        own, theirs = self.snapshot(env_ids), other.snapshot(env_ids)
        mine, others = (worlds_of(c.worlds).ledger for c in (self, other))
        moved = [name for name in theirs.slots if not _is_parameter(others[name])]
        kept = [name for name in own.slots if _is_parameter(mine[name])]
        from_where = dict.fromkeys(moved, theirs) | dict.fromkeys(kept, own)
        contracts = {n: s.header["slots"][n] for n, s in from_where.items()}
        slots = {n: s.slots[n] for n, s in from_where.items()}
        self.restore(Snapshot({**own.header, "slots": contracts}, slots), env_ids)

    def remember(self) -> list[Snapshot]:
        """Return snapshots from which `recall` restores the current state."""
        return [self.snapshot()]

    def recall(self, kept: Sequence[Snapshot]) -> None:
        """Restore the state that `remember` returned."""
        self.restore(kept[0])

    def take_inputs(self, other: Course) -> None:
        """Copy the inputs of another course's worlds."""
        for name in ("ctrl", "xfrc_applied", "mocap_pos", "mocap_quat"):
            mine, theirs = (
                getattr(self.worlds.data, name),
                getattr(other.worlds.data, name),
            )
            if mine.numel():
                mine.copy_(theirs)

    def remark(self, world: int) -> str:
        """Return a remark to show next to a world's time; "" for none."""
        return ""

    def inputs(self) -> list[Input]:
        """Return the inputs of the actuators."""
        explanation = explain(self.worlds)
        return [
            one
            for entity in self.worlds.scene.values()
            for one in _controls(self.worlds.model, entity, explanation)
        ]

    def positions(self) -> list[Input]:
        """Return the positions of all hinge and slide joints."""
        return [
            one
            for entity in self.worlds.scene.values()
            for one in _joints(self.worlds, entity)
        ]

    def drives(self) -> list[Input]:
        """Return the inputs of a demonstration: positions of mocap bodies."""
        model, data = self.worlds.model, self.worlds.data
        return [
            _mocap(model.body(body).name, data, int(model.body_mocapid[body]), axis)
            for body in range(model.nbody)
            if model.body_mocapid[body] >= 0
            for axis in range(3)
        ]

    def record(self, path: Path, world: int) -> Recorder:
        """Start recording a world in a file, until the recorder is closed."""
        moved = ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat")
        fields = [name for name in moved if self._has(name)]
        return SimRecorder(self.worlds, path, (), fields, None, [world], True, 10.0)

    def _has(self, field: str) -> bool:
        return bool(getattr(self.worlds.data, field).numel())

    def sources(self) -> dict[str, Source]:
        """Return the sources of plots, by name."""
        return sources_of(self.worlds, self.rays)

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        """Return additional overlays: description and function, by name."""
        return {}


def _is_parameter(slot: Slot) -> bool:
    """Return True if a slot describes a world, rather than its state."""
    is_mark = slot.name.startswith("by_hand/")  # marks constants that a user wrote
    return is_mark or (slot.kind in ("parameter", "setting") and not slot.moves)


def _ids(env_ids: Sequence[int] | None) -> list[int] | None:
    return None if env_ids is None else list(env_ids)


def _controls(
    model: mujoco.MjModel, entity: Entity, explanation: Explanation
) -> list[Input]:
    inputs: list[Input] = []
    for k, column in enumerate(entity.index.controls.ids):
        low, high = -1.0, 1.0
        if model.actuator_ctrllimited[column]:
            low, high = (float(x) for x in model.actuator_ctrlrange[column])

        def write(world: int, value: float, k: int = k) -> None:
            entity.write_ctrl_to_sim([[value]], [k], [world])

        def read(world: int, k: int = k) -> float:
            return float(entity.data.ctrl[world, k])

        name = f"{entity.name}/{entity.control_names[k]}"
        known = explanation[f"ctrl[{column}]"]
        about = f"{known.element}: {known.meaning}"
        inputs.append(Input(name, known.unit, about, low, high, read, write))
    return inputs


def _mocap(name: str, data: Any, mocap: int, axis: int) -> Input:
    def write(world: int, value: float) -> None:
        data.mocap_pos[world, mocap, axis] = value

    def read(world: int) -> float:
        return float(data.mocap_pos[world, mocap, axis])

    letter, middle = "xyz"[axis], read(0)
    about = f"{letter} of the mocap body's link origin, world axes"
    low, high = middle - MOCAP_REACH, middle + MOCAP_REACH
    return Input(f"{name} {letter}", "m", about, low, high, read, write)


def _joints(worlds: SteppingHost, entity: Entity) -> list[Input]:
    model: mujoco.MjModel = worlds.model
    hinge = mujoco.mjtJoint.mjJNT_HINGE.value
    inputs: list[Input] = []
    for k, joint in enumerate(entity.index.joints.ids):
        turns = model.jnt_type[joint] == hinge
        unit, about = ("rad", "angle") if turns else ("m", "displacement")
        reach = 3.15 if turns else 1.0
        low, high = -reach, reach
        if model.jnt_limited[joint]:
            low, high = (float(x) for x in model.jnt_range[joint])

        def write(world: int, value: float, k: int = k) -> None:
            entity.write_joint_position_to_sim([[value]], [k], [world])

        def read(world: int, k: int = k) -> float:
            return float(entity.data.joint_pos[world, k])

        name = f"{entity.name}/{entity.joint_names[k]}"
        about = f"{about} of joint {entity.joint_names[k]}"
        inputs.append(Input(name, unit, about, low, high, read, write))
    return inputs
