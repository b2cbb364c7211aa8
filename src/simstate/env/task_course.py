"""TaskCourse: an environment as a viewer shows and drives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from simstate.base.contract import joined
from simstate.env.commands import (
    AttitudeCommand,
    Command,
    HeadingCommand,
    VelocityCommand,
)
from simstate.env.contracts import checked
from simstate.env.groups import flat
from simstate.env.motion_command import MotionCommand
from simstate.env.pose_command import PointCommand, PoseCommand
from simstate.record.recorder import Recorder
from simstate.state import Snapshot
from simstate.view.body_overlays import Draw
from simstate.view.course import Course, Input
from simstate.view.one_world import OneWorld, on_host, vector_text
from simstate.view.plot_sources import Source
from simstate.view.shapes import GREEN, Arrow, Axes, Point, Shape

if TYPE_CHECKING:
    from simstate.env.env import Env

Act = Callable[[dict[str, Tensor]], Tensor]
"""A policy: observations by group → actions; (num_envs, action_dim)."""


class TaskCourse(Course):
    """A task: its steps with a policy's actions, or with those of sliders.

    Args:
        env: the environment.
        act: the policy; None: sliders set the actions, initially zero.
        task: reference to the task, for replays of recordings; None: unknown.
    """

    name = "task"

    def __init__(self, env: Env, act: Act | None, task: str | None = None) -> None:
        super().__init__(env.sim, env.sim.rays)
        self._env, self._act, self._task = env, act, task
        self._actions = torch.zeros(env.num_envs, env.action_dim, device=env.device)
        self._seen = env.observations

    @property
    def step_dt(self) -> float:
        """The time of one step [s]."""
        return self._env.step_dt

    def advance(self) -> None:
        """Act, and take one step of the task in all worlds."""
        actions = self._actions if self._act is None else self._act(self._seen)
        self._seen, *_ = self._env.step(actions)

    def reset(self, env_ids: Sequence[int]) -> None:
        """Start an episode in worlds."""
        self._seen, _ = self._env.reset(env_ids=list(env_ids))

    def snapshot(self, env_ids: Sequence[int] | None = None) -> Snapshot:
        """Return the state of worlds, including the task's memory."""
        return self._env.snapshot(None if env_ids is None else list(env_ids))

    def restore(self, snapshot: Snapshot, env_ids: Sequence[int] | None = None) -> None:
        """Restore worlds from a snapshot of them; None: all of them."""
        self._env.restore(snapshot, None if env_ids is None else list(env_ids))
        self._seen = self._env.observations

    def take_inputs(self, other: Course) -> None:
        """Copy the actions of another course's sliders."""
        if isinstance(other, TaskCourse):
            self._actions.copy_(other._actions)

    def inputs(self) -> list[Input]:
        """Return the actions, unless a policy chooses them."""
        if self._act is not None:
            return []
        return [self._input(k) for k in range(self._env.action_dim)]

    def _input(self, column: int) -> Input:
        def read(world: int) -> float:
            return float(self._actions[world, column])

        def write(world: int, value: float) -> None:
            self._actions[world, column] = value

        name = self._env.action_names[column]
        unit = self._env.actions.contracts[column].unit_text
        about = "the action of a policy, before its scale and offset"
        return Input(name, unit, about, -1.0, 1.0, read, write)

    def drives(self) -> list[Input]:
        """Return the inputs of a demonstration: velocity commands, mocap bodies."""
        commands = [
            self._velocity(name, command, axis)
            for name, command in self._env.commands.items()
            if isinstance(command, VelocityCommand)
            for axis in command.names
        ]
        return commands + super().drives()

    def _velocity(self, name: str, command: VelocityCommand, axis: str) -> Input:
        column = command.names.index(axis)

        def read(world: int) -> float:
            return float(command.command[world, column])

        def write(world: int, value: float) -> None:
            command.hold([world], axis, value)

        unit = command.contracts[column].unit
        reach = max(map(abs, command.range(axis))) or 1.0
        about = "the command, held until the next reset; root link's axes"
        return Input(f"{name} {axis}", unit, about, -reach, reach, read, write)

    def record(self, path: Path, world: int) -> Recorder:
        """Record the task in a world from now on, until it is closed."""
        return self._env.record(path, worlds=[world], task=self._task)

    def sources(self) -> dict[str, Source]:
        """Rewards, observations and commands, and what every simulation has."""
        env = self._env
        terms = tuple(env.rewards.names)
        found = {
            "reward terms": Source(
                "1", "weighted sum of each term in this episode", terms,
                lambda: torch.stack([env.rewards.episode_sum(n) for n in terms], 1),
            )
        } if terms else {}  # fmt: skip
        for name, command in env.commands.items():
            contracts = checked(name, command.contracts, len(command.names))
            found[f"command {name}"] = Source(
                joined(one.unit_text for one in contracts), "the requested values",
                command.names, lambda c=command: c.command,
            )  # fmt: skip
        for group, names in env.observation_names.items():
            each = zip(names, env.observation_contracts[group], strict=True)
            labels = [f"{name} [{one.unit_text}]" for name, one in each]
            found[f"observations {group}"] = Source(
                "units after the names", "as the policy sees them", tuple(labels),
                lambda group=group: flat(env.observations)[group],
            )  # fmt: skip
        return found | super().sources()

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        """Return the overlays of the commands."""
        if not self._env.commands:
            return {}
        about = (
            "goals: velocities [m/s], points [m], poses, attitudes, headings, and "
            "positions of links in a motion"
        )
        return {"commands": (about, self._commands)}

    def _commands(self, seen: OneWorld) -> list[Shape]:
        return [
            shape
            for name, command in self._env.commands.items()
            for shape in command_shapes(seen, name, command)
        ]


def command_shapes(seen: OneWorld, name: str, command: Command) -> list[Shape]:
    """Return the shapes of a command in the world shown."""
    values = on_host(command.command[seen.world])
    entity = command.entity.name
    text = f"command {name} = {vector_text(values)}"
    if isinstance(command, PointCommand):
        return [Point(values, 0.04 * seen.size, GREEN, f"{text} m, world axes")]
    if isinstance(command, PoseCommand):
        pos, quat = (on_host(x[seen.world]) for x in (command.pos_w, command.quat_w))
        where = f"{vector_text(pos)} m, {vector_text(quat)}, site to world"
        return [Axes(pos, quat, 0.3 * seen.size, f"command {name}: {where}")]
    if isinstance(command, MotionCommand):
        positions = on_host(command.frames.body_pos_w[seen.world])
        radius, bodies = 0.02 * seen.size, command.entity.body_names
        texts = [
            f"command {name}: {entity}/{body} at {vector_text(pos)} m, link origin"
            for body, pos in zip(bodies, positions, strict=True)
        ]
        return [
            Point(pos, radius, GREEN, text)
            for pos, text in zip(positions, texts, strict=True)
        ]
    if not command.entity.num_bodies:
        return []
    root = seen.quantity(entity, "root_link_pos_w")
    if isinstance(command, AttitudeCommand):
        return [Axes(root, values, 0.5 * seen.size, f"{text}, body to world")]
    above = root + np.array([0.0, 0.0, 0.3 * seen.size])
    if isinstance(command, HeadingCommand):
        x, y = np.cos(values[0]), np.sin(values[0])
        ahead = 0.4 * seen.size * np.array([x, y, 0.0])
        return [Arrow(above, ahead, GREEN, f"{text} rad about world z")]
    if isinstance(command, VelocityCommand):
        heading = float(seen.quantity(entity, "heading_w"))
        cos, sin = np.cos(heading), np.sin(heading)
        x, y = float(values[0]), float(values[1])
        over_ground = np.array([cos * x - sin * y, sin * x + cos * y, 0.0])
        drawn = seen.length_of_speed(over_ground)
        if np.linalg.norm(drawn) > 1e-9:
            return [Arrow(above, drawn, GREEN, f"{text} m/s, m/s, rad/s")]
    return []
