"""ComparedCourse: two courses of one model side by side, and their difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.state import Snapshot, diff
from simstate.state.fingerprint import fingerprint
from simstate.view.body_overlays import Draw
from simstate.view.course import Course, Input
from simstate.view.one_world import OneWorld, on_host, vector_text
from simstate.view.plot_sources import Source
from simstate.view.shapes import RED, Arrow, Shape
from simstate.world.worlds import worlds_of

LONGEST = 0.3
"""Length of the longest arrow of a difference, relative to the size of the scene."""
MOST_LINES = 12
"""Maximum number of listed differences of states."""
_OF_THE_SOLVER = ("qacc", "qacc_warmstart")
"""Quantities that are listed after those of the motion."""


class ComparedCourse(Course):
    """A course, and another one next to it with the same inputs.

    Steps, resets and sliders act on both. Of two recordings, the second follows the
    time of the first.

    Args:
        first: the course that is drawn in its usual colours.
        second: the course drawn next to it, coloured by the difference.
        label: name of the second.
    """

    def __init__(self, first: Course, second: Course, label: str) -> None:
        super().__init__(first.worlds, first.rays)
        check_alike(first, second, label)
        self.first, self.second, self.label = first, second, label
        self.companion = second
        self.name, self.timeline = first.name, first.timeline
        self._follow()

    # Both courses.

    @property
    def step_dt(self) -> float:
        """Duration of one step of the first [s]."""
        return self.first.step_dt

    @property
    def at(self) -> int:
        """Position of the first on its timeline."""
        return self.first.at

    def now(self, world: int) -> float:
        """Return the time of the first [s]."""
        return self.first.now(world)

    def advance(self) -> None:
        """Take a step in both, with the inputs of the first."""
        if self.timeline is None:
            self.second.take_inputs(self.first)
        self.first.advance()
        if self.timeline is None:
            self.second.advance()
        self._follow()

    def go_to(self, step: int) -> None:
        """Go to a step of the first, and to the same time of the second."""
        self.first.go_to(step)
        self._follow()

    def _follow(self) -> None:
        there = self.second.timeline
        if there is not None:
            self.second.go_to(there.step_at(self.first.now(0)))

    def reset(self, env_ids: Sequence[int]) -> None:
        """Reset worlds of the first, and set the second to their state."""
        self.first.reset(env_ids)
        if self.timeline is None:
            # A task may draw parameters at a reset; the second draws its own.
            self.second.reset(env_ids)
            self.join(env_ids)
        self._follow()

    def join(self, env_ids: Sequence[int] | None = None) -> None:
        """Set worlds of the second to the state of the first; None: all of them.

        Each course keeps its parameters and settings, which are what is compared.
        """
        if self.timeline is not None:
            raise InvalidInputError("A recording cannot be changed.", name="join")
        self.second.take_state(self.first, env_ids)

    def snapshot(self, env_ids: Sequence[int] | None = None) -> Snapshot:
        """Return a snapshot of worlds of the first."""
        return self.first.snapshot(env_ids)

    def restore(self, snapshot: Snapshot, env_ids: Sequence[int] | None = None) -> None:
        """Restore worlds of the first, and set the second to their state."""
        self.first.restore(snapshot, env_ids)
        self.join(env_ids)

    def remember(self) -> list[Snapshot]:
        """Return snapshots from which `recall` restores both."""
        return [*self.first.remember(), *self.second.remember()]

    def recall(self, kept: Sequence[Snapshot]) -> None:
        """Restore the state of both that `remember` returned."""
        half = len(kept) // 2
        self.first.recall(kept[:half])
        self.second.recall(kept[half:])

    def inputs(self) -> list[Input]:
        """Return the inputs of the first, which are copied to the second."""
        return self.first.inputs()

    def positions(self) -> list[Input]:
        """Return the joint positions, which are written to both."""
        both = zip(self.first.positions(), self.second.positions(), strict=True)

        def both_write(one: Input, other: Input) -> Callable[[int, float], None]:
            def write(world: int, value: float) -> None:
                one.write(world, value)
                other.write(world, value)

            return write

        return [replace(one, write=both_write(one, other)) for one, other in both]

    # Differences.

    def remark(self, world: int) -> str:
        """Return the largest distance between the two positions of a body."""
        gaps = np.linalg.norm(self._gap("xpos", world), axis=1)
        body = int(gaps.argmax())
        if gaps[body] == 0.0:
            return f"{self.label} has all bodies at the same positions"
        name = self.worlds.model.body(body).name or f"body {body}"
        return f"{self.label} is off by up to {gaps[body]:.3g} m, at {name}"

    def differences(self, world: int) -> str:
        """Return the differences of a world's states as a table, the largest first."""
        found = diff(self.first.snapshot([world]), self.second.snapshot([world]))
        lines = found.lines()
        lines.sort(key=lambda line: line[0].quantity in _OF_THE_SOLVER)
        if not lines:
            return f"No difference to {self.label} in world {world}."
        table = [
            f"{len(lines)} values of world {world} differ in {self.label}:",
            "",
            "| value | difference |",
            "|---|---|",
        ]
        for worst, _ in lines[:MOST_LINES]:
            size = worst.what or f"{worst.error:.4g} {worst.unit}"
            table.append(f"| {worst.path} | {size} |")
        return "\n".join(table)

    def sources(self) -> dict[str, Source]:
        """Return the differences of common sources, then the sources of the first."""
        mine, theirs = self.first.sources(), self.second.sources()
        found = {
            f"difference of {name}": self._difference(one, theirs[name])
            for name, one in mine.items()
            if name in theirs and theirs[name].names == one.names
        }
        by_joint = [name for name in found if name.endswith(".joint_pos")]
        first = {name: found[name] for name in by_joint}
        return first | found | mine

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        """Return an overlay of arrows from each body to its position in the second."""
        about = f"from each link's origin to its position in {self.label}, enlarged"
        return self.first.overlays() | {"difference": (about, self._arrows)}

    def _difference(self, one: Source, other: Source) -> Source:
        def tensor() -> Tensor:
            here, there = one.tensor(), other.tensor()
            wide = torch.float64
            return there.detach().cpu().to(wide) - here.detach().cpu().to(wide)

        def history(world: int) -> np.ndarray:
            assert one.history is not None
            assert other.history is not None
            here, there = one.history(world), other.history(world)
            found = here.copy()
            for k in range(1, here.shape[1]):
                found[:, k] = np.interp(here[:, 0], there[:, 0], there[:, k])
            found[:, 1:] -= here[:, 1:]
            return found

        known = one.history is not None and other.history is not None
        about = f"{self.label} minus the first"
        return Source(
            one.unit, f"{about}; {one.about}" if one.about else about, one.names,
            tensor, history if known else None,
        )  # fmt: skip

    def _gap(self, field: str, world: int) -> np.ndarray:
        """Return a raw field of a world in the second, minus that in the first."""
        ours, theirs = (
            on_host(worlds_of(course.worlds).read_field(field)[world])
            for course in (self.first, self.second)
        )
        return theirs - ours

    def _arrows(self, seen: OneWorld) -> list[Shape]:
        gaps, places = self._gap("xpos", seen.world), seen.field("xpos")
        longest = float(np.linalg.norm(gaps, axis=1).max())
        if not longest > 0.0:
            return []
        longer = max(1.0, LONGEST * seen.size / longest) * seen.scale
        shapes: list[Shape] = []
        for body in range(1, seen.model.nbody):
            gap = gaps[body]
            if np.linalg.norm(gap) * longer > 1e-6 * seen.size:
                name = seen.model.body(body).name or f"body {body}"
                text = (
                    f"{name}: {vector_text(gap)} m off in {self.label}, link origin, "
                    f"world axes; drawn {longer:.3g} times as long"
                )
                shapes.append(Arrow(places[body], longer * gap, RED, text))
        return shapes


def check_alike(first: Course, second: Course, label: str) -> None:
    """Raise unless two courses have the same bodies, joints and number of worlds."""
    ours, theirs = (fingerprint(course.worlds.model) for course in (first, second))
    if ours["sizes"] != theirs["sizes"] or ours["names"] != theirs["names"]:
        raise InvalidInputError(
            f"{label} has a different model: only worlds with the same bodies and "
            "joints can be compared.",
            name="model",
        )
    counts = first.worlds.num_envs, second.worlds.num_envs
    if counts[0] != counts[1]:
        raise InvalidInputError(
            f"The first course has {counts[0]} worlds, {label} has {counts[1]}: both "
            "need the same number.",
            name="num_envs",
        )
    if (first.timeline is None) != (second.timeline is None):
        raise InvalidInputError(
            "A recording can be compared with another recording, or with a re-run of "
            "its inputs on another engine or simulator; not with live worlds.",
            name="recording",
        )
