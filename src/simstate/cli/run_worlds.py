"""The worlds that `simstate run` steps: those of a model, or of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.entity import Entity
    from simstate.env import Env
    from simstate.env.task_course import Act
    from simstate.simulation import Simulation
    from simstate.view import Course

STEPS_AT_ONCE = 4
"""Time steps of a model in one call, unless each of them is recorded."""


class RunWorlds(ABC):
    """Worlds that can be drawn, stepped and recorded."""

    course: Course
    sim: Simulation

    @property
    def entity(self) -> Entity:
        """The entity that tables and plots show: the first of the scene."""
        return next(iter(self.sim.scene.values()))

    @abstractmethod
    def advance(self, steps: int) -> int:
        """Take at most this many steps of the course; return the number taken."""

    @abstractmethod
    def record(
        self, path: Path, quantities: Sequence[str], every: float | None,
        snapshot_every: float,
    ) -> AbstractContextManager[Any]:  # fmt: skip
        """Start a recording of every step."""


class ModelWorlds(RunWorlds):
    """Worlds of a model, which keep their initial controls."""

    def __init__(self, sim: Simulation) -> None:
        from simstate.view import Course

        self.sim, self.course = sim, Course(sim, sim.rays)
        self._at_once = STEPS_AT_ONCE

    def advance(self, steps: int) -> int:
        """Take several time steps in one call; one if they are recorded."""
        count = min(self._at_once, steps)
        self.sim.step(count)
        return count

    def record(
        self, path: Path, quantities: Sequence[str], every: float | None,
        snapshot_every: float,
    ) -> AbstractContextManager[Any]:  # fmt: skip
        """Start a recording; a sample is taken after each call of `step`."""
        self._at_once = 1
        return self.sim.record(
            path, quantities=quantities, every=every, snapshot_every=snapshot_every
        )


class TaskWorlds(RunWorlds):
    """Worlds of a task, in which a policy acts or all actions are zero."""

    def __init__(self, env: Env, act: Act | None, reference: str) -> None:
        from simstate.env.task_course import TaskCourse

        self.sim, self.course = env.sim, TaskCourse(env, act)
        self._env, self._reference = env, reference

    def advance(self, steps: int) -> int:
        """Take one step of the task."""
        self.course.advance()
        return 1

    def record(
        self, path: Path, quantities: Sequence[str], every: float | None,
        snapshot_every: float,
    ) -> AbstractContextManager[Any]:  # fmt: skip
        """Start a recording; quantities without an entity are the first one's."""
        first = self.entity.name
        names = [name if "." in name else f"{first}.{name}" for name in quantities]
        return self._env.record(
            path, quantities=names, snapshot_every=snapshot_every, task=self._reference
        )
