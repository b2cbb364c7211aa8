"""RecordedCourse: a recording with its timeline, for a viewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from simstate.base.closeable import Closing
from simstate.base.contract import NO
from simstate.base.errors import InvalidInputError
from simstate.data.replay.playback import player_for
from simstate.data.replay.player import Player
from simstate.engine import EngineCfg
from simstate.env import Env
from simstate.env.env_recorder import ENDED, EVENT
from simstate.env.task_course import TaskCourse
from simstate.record import Recording
from simstate.record.changes import Step
from simstate.simulation import Simulation
from simstate.state import Snapshot
from simstate.view.body_overlays import Draw
from simstate.view.course import Course, Input
from simstate.view.plot_sources import Source
from simstate.view.recorded_timeline import Kind, Mark, RecordedTimeline

_NO_MARK = ("ctrl", "time")
"""Slots without marks for their writes: inputs, and slots that a reset writes."""
MOST_KEPT = 128
"""Maximum number of states kept for going back, besides the file's snapshots."""
MOST_BYTES = 128 * 2**20
"""Maximum memory of these states [bytes]."""


class RecordedCourse(Course, Closing):
    """The steps of a recording, re-run exactly as by a replay.

    Steps are read on demand: `close`, or the end of a `with` block, closes the file.

    Args:
        player: the recording, and worlds to re-run it in.
        from_begin: True to take all steps from the first one, for worlds whose states
            differ from the recording; else the file's snapshots are used.
    """

    name = "recording"

    def __init__(self, player: Player, from_begin: bool = False) -> None:
        super().__init__(player.sim, player.sim.rays)
        self._player, self._recording = player, player.recording
        if not self._recording.num_steps:
            raise InvalidInputError(
                f"{str(self._recording.path)!r} has no steps to show.", name="steps"
            )
        env = player.env
        self._inner = Course(player.sim, player.sim.rays)
        if env is not None:
            self._inner = TaskCourse(env, None)
        self._times: RecordedTimeline = timeline_of(self._recording)
        self.timeline = self._times
        self._kept: dict[int, Snapshot] = {}
        self._stride = 1
        self._known = [0] if from_begin else self._recording.snapshot_steps
        self._steps: Iterator[Step] = iter(())
        self._restart(0)

    @classmethod
    def open(
        cls,
        path: Path,
        worlds: Simulation | Env | None = None,
        engine: EngineCfg | None = None,
        from_begin: bool = False,
        task: str | None = None,
    ) -> RecordedCourse:
        """Return the course of a file, in given worlds or in created ones.

        Worlds are created as by `replay`; `task` is the task's reference if it moved.
        """
        recording = Recording(path)
        try:
            player = player_for(recording, worlds, engine, None, task)
            return cls(player, from_begin)
        except BaseException:
            recording.close()
            raise

    def close(self) -> None:
        """Close the recording; the worlds are unchanged."""
        self._recording.close()

    # Position.

    @property
    def at(self) -> int:
        """Number of steps taken."""
        return self._player.step

    @property
    def step_dt(self) -> float:
        """Duration of the next step, at the end that of the last one [s]."""
        k = min(self.at, self._times.num_steps - 1)
        return float(self._times.times[k + 1] - self._times.times[k])

    def now(self, world: int) -> float:
        """Return the time since the start of the recording [s]."""
        return float(self._times.times[self.at])

    def advance(self) -> None:
        """Take the next recorded step."""
        if self.at >= self._times.num_steps:
            raise InvalidInputError("The recording ends here.", name="end")
        self._player.take(next(self._steps))
        self._keep()

    def go_to(self, step: int) -> None:
        """Restore the state before a step, from the nearest known state."""
        step = min(max(step, 0), self._times.num_steps)
        known = [*self._kept, *self._known]
        start = max(k for k in known if k <= step)
        if not start <= self.at <= step:
            self._restart(start)
        while self.at < step:
            self.advance()

    def _restart(self, step: int) -> None:
        if step in self._kept:
            self._player.worlds.restore(self._kept[step])
            self._player.step = step
        else:
            self._player.restore(step)
        self._steps = self._recording.steps(step)
        self._keep()

    def _keep(self) -> None:
        """Store the current state, if its step is a multiple of the stride."""
        if self.at % self._stride or self.at in self._kept:
            return
        kept = self._kept[self.at] = self._player.worlds.snapshot()
        size = sum(value.nbytes for value in kept.slots.values())
        while len(self._kept) > 1 and len(self._kept) > min(
            MOST_KEPT, MOST_BYTES // max(size, 1)
        ):
            self._stride *= 2
            self._kept = {k: s for k, s in self._kept.items() if not k % self._stride}

    # Actions: a recording cannot be changed.

    def reset(self, env_ids: Sequence[int]) -> None:
        """Go back to the start."""
        self.go_to(0)

    def snapshot(self, env_ids: Sequence[int] | None = None) -> Snapshot:
        """Return a snapshot of worlds at this step; None: all of them."""
        return self._inner.snapshot(env_ids)

    def restore(self, snapshot: Snapshot, env_ids: Sequence[int] | None = None) -> None:
        """Raise: a recording cannot be changed."""
        raise InvalidInputError(
            "A recording cannot be changed; continue from it with branch(…).",
            name="restore",
        )

    def inputs(self) -> list[Input]:
        """Return no inputs: they are those of the recording."""
        return []

    def positions(self) -> list[Input]:
        """Return no positions: they are those of the recording."""
        return []

    # Contents.

    def sources(self) -> dict[str, Source]:
        """Return the recorded columns over time, then the values of these worlds."""
        found = {
            f"recorded {name}": self._column(name) for name in self._recording.names
        }
        return found | self._inner.sources()

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        """Return the overlays of the task."""
        return self._inner.overlays()

    def _column(self, name: str) -> Source:
        contract = self._recording.contract(name)
        width = int(np.prod(contract["shape"], dtype=int))
        names = self._recording.labels(name) or [f"{name}[{k}]" for k in range(width)]
        point, axes = contract.get("point", ""), contract.get("axes", "")
        about = ["as recorded"]
        about += [f"at the {point}"] if point not in ("", NO) else []
        about += [f"{axes} axes"] if axes not in ("", NO) else []

        return Source(
            contract["unit"], ", ".join(about), tuple(names), _only_over_time,
            lambda world: self._history(name, world),
        )  # fmt: skip

    def _history(self, name: str, world: int) -> np.ndarray:
        recording = self._recording
        place = recording.place(world)
        parts: list[np.ndarray] = []
        for block in recording.blocks:
            columns = recording.read_block(block, [name, "step"])
            values = columns[name][:, place].reshape(block.samples, -1)
            times = self._times.times[columns["step"].astype(int)]
            parts.append(np.column_stack([times, values.astype(np.float64)]))
        return np.concatenate(parts)


def _only_over_time() -> Tensor:
    raise InvalidInputError("A recorded column has a history, not a current value.")


def timeline_of(recording: Recording) -> RecordedTimeline:
    """Return the timeline of a recording; reads all of it, one block at a time."""
    times, marks = [0.0], list[Mark]()
    for number, step in enumerate(recording.steps()):
        times.append(times[-1] + recording.span(step))
        marks += _marks_of(recording, step, number)
    if recording.kind == "env":
        marks += _of_terms(recording)
    marks.sort(key=lambda mark: mark.step)
    return RecordedTimeline(np.array(times), marks)


def _marks_of(recording: Recording, step: Step, number: int) -> Iterator[Mark]:
    """Yield the marks of a step, before which `number` steps were taken."""
    everyone = range(recording.header["simulation"]["num_envs"])
    if step.call.get("restore"):
        for world in everyone:
            yield Mark(number, "write", world, "slots were added or worlds restored")
    started: set[int] = set()
    for change in step.changes:
        if change.slot == "time":
            started |= set(everyone if change.rows is None else change.rows.tolist())
    for world in sorted(started):
        yield Mark(number, "reset", world, "the world was reset")
    for change in step.changes if recording.kind == "sim" else ():
        rows = everyone if change.rows is None else change.rows.tolist()
        for world in rows:
            if change.slot not in _NO_MARK and world not in started:
                yield Mark(number, "write", world, f"{change.slot} was written")
    for world in step.arrays.get("final_ids", np.zeros(0, int)).tolist():
        if world not in recording.worlds:  # else the term that ended it is known
            yield Mark(number + 1, "reset", world, "an episode ended, another started")
    for world in step.arrays.get("reset_ids", np.zeros(0, int)).tolist():
        yield Mark(number + 1, "reset", world, "an episode started")
    for world, element in step.call.get("diverged", {}).items():
        yield Mark(number + 1, "divergence", int(world), str(element))


def _of_terms(recording: Recording) -> Iterator[Mark]:
    """Yield the events of a task, and the terms that ended its episodes."""
    kinds: tuple[tuple[str, Kind, str], ...]
    kinds = ((EVENT, "event", ""), (ENDED, "reset", "ended by "))
    if not recording.header["auto_reset"]:
        kinds = ((EVENT, "event", ""), (ENDED, "event", "ended by "))
    for block in recording.blocks:
        samples = recording.read_block(block, ["step", ENDED, EVENT])
        for column, kind, verb in kinds:
            names = recording.contract(column)["names"]
            for k, place, term in np.argwhere(samples[column]).tolist():
                step, world = int(samples["step"][k]) + 1, recording.worlds[place]
                yield Mark(step, kind, world, f"{verb}{names[term]}")
