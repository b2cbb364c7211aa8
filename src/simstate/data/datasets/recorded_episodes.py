"""Episodes of a recording of an Env or of a Simulation, by world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from simstate.base.errors import InvalidInputError, RecordingError, unknown_name
from simstate.record import Recording

Source: TypeAlias = "str | Path | Recording | Sequence[str | Path]"
"""A recording, or several of the same task."""

OBSERVATION = "observation/"


@dataclass(frozen=True)
class Episode:
    """One world from a reset to the next end: arrays with a row for each step."""

    world: int
    """Id of the world."""
    number: int
    """Number of earlier episodes of this world."""
    columns: dict[str, np.ndarray]
    """Columns by name; shape (steps, …). Observations are from before each step."""
    ends: tuple[str, ...]
    """The terms that ended it; empty after a manual reset or the recording's end."""

    def __len__(self) -> int:
        return len(self.columns["time"])

    def __repr__(self) -> str:
        size = f"{len(self)} steps of {len(self.columns)} columns"
        which = f"world {self.world}, number {self.number}"
        return f"Episode({which}, {size}, ends={self.ends})"

    @property
    def is_complete(self) -> bool:
        """True if it has ended."""
        return bool(self.columns["terminated"][-1] | self.columns["truncated"][-1])


Keep: TypeAlias = "Callable[[Episode], bool]"
"""Returns True for the episodes to keep."""


def recordings_of(source: Source) -> Iterator[Recording]:
    """Yield the recordings of a source, each open until the next one."""
    if isinstance(source, Recording):
        yield _checked(source)
        return
    paths = paths_of(source)
    if not paths:
        raise InvalidInputError(
            "No recordings were given: name at least one.", name="source"
        )
    first: dict[str, Any] | None = None
    for path in paths:
        with Recording(path) as recording:
            mine = _kinds(_checked(recording))
            if first is not None and mine != first:
                raise RecordingError(
                    _other_columns(paths[0], path, first, mine), name=str(path)
                )
            first = mine
            yield recording


def check_target(path: str | Path, *sources: str | Path) -> None:
    """Raise if the file to write is one of the sources."""
    for source in sources:
        both = Path(path), Path(source)
        if all(file.exists() for file in both) and both[0].samefile(both[1]):
            raise InvalidInputError(
                f"{str(path)!r} is the recording itself: write to another file."
            )


def paths_of(source: Source) -> list[str | Path]:
    """Return the files of a source."""
    if isinstance(source, Recording):
        return [source.path]
    return [source] if isinstance(source, str | Path) else list(source)


NO_EPISODE = "There is no episode to write: none has ended, or none is to be kept."


def episodes_of(
    source: Source, complete: bool = True, keep: Keep | None = None
) -> Iterator[Episode]:
    """Yield the episodes of recordings.

    Those of an Env are in the order in which they ended, and one block is read at a
    time; those of a Simulation are in the order of the worlds.

    Args:
        source: recordings by `env.record`, or by `sim.record` with its controls.
        complete: True to skip episodes that have not ended.
        keep: returns True for the episodes to keep; None: all of them.
    """
    for recording in recordings_of(source):
        cut = _episodes if recording.kind == "env" else _sim_episodes
        for episode in cut(recording):
            wanted = episode.is_complete or not complete
            if wanted and (keep is None or keep(episode)):
                yield episode


def success_of(source: Source, term: str) -> Keep:
    """Return a filter of episodes that ended by one term only, such as "time_out"."""
    opened = recordings_of(source)  # keeps the recording open
    recording = next(opened)
    terms: list[str] = []
    if recording.kind == "env":
        terms = recording.contract("ended")["names"]
    if term not in terms:
        raise unknown_name(f"term of {str(recording.path)!r}", term, terms)
    return lambda episode: episode.ends == (term,)


def _kinds(recording: Recording) -> dict[str, Any]:
    """Return the properties that recordings of one data set must share."""
    keys = ("shape", "dtype", "names")
    found: dict[str, Any] = {"steps [s]": step_of(recording)}
    for name in recording.names:
        contract = recording.contract(name)
        found[name] = [contract[key] for key in keys]
    return found


def _other_columns(
    first: str | Path, path: str | Path, one: dict[str, Any], other: dict[str, Any]
) -> str:
    differ = [name for name in one | other if one.get(name) != other.get(name)]
    return (
        f"{str(first)!r} and {str(path)!r} do not form one data set: they differ in "
        f"{', '.join(differ[:5])}. Use recordings of one task, with the same columns."
    )


def contracts_of(recording: Recording) -> dict[str, dict[str, Any]]:
    """Return the contracts of the columns of the episodes, by name."""
    names = ("time", *recording.names)
    found = {name: recording.contract(name) for name in names}
    if recording.kind == "sim":
        controls = found.pop(_controls(recording))
        found["action"] = controls
        found["terminated"] = {**found["time"], "unit": "1", "names": []}
    return found


def step_of(recording: Recording) -> float:
    """Return the time between two rows of an episode [s]; of a Simulation, the median.

    A world that was not stepped between two samples has no row; 0 if none was stepped.
    """
    if recording.kind == "env":
        return recording.header["step_dt"]
    spans = np.diff(recording.time.numpy(), axis=0)
    spans = spans[spans > 0]
    return float(np.median(spans)) if spans.size else 0.0


def _checked(recording: Recording) -> Recording:
    if recording.kind == "sim":
        _controls(recording)
    return recording


def _controls(recording: Recording) -> str:
    """Return the name of the column with the controls of a Simulation."""
    for name in recording.names:
        if recording.contract(name).get("source", "").rpartition(".")[2] == "ctrl":
            return name
    raise RecordingError(
        f"{str(recording.path)!r} is of a Simulation and has no controls, which are "
        'the actions of a data set: record them, sim.record(path, fields=["ctrl"]).',
        name="ctrl",
    )


def _sim_episodes(recording: Recording) -> Iterator[Episode]:
    """Split a recording of a Simulation at resets of a world.

    A reset writes the time, which the steps of the file record; a file without inputs
    shows it only where time decreases. Quantities are from before each step, as for an
    Env. The action is the one applied until the next sample.
    """
    blocks = [recording.read_block(block) for block in recording.blocks]
    names = [name for name in blocks[0] if name != "step"] if blocks else []
    columns = {n: np.concatenate([block[n] for block in blocks]) for n in names}
    controls = _controls(recording)
    written = _time_writes(recording)
    for place, world in enumerate(recording.worlds if blocks else ()):
        parts = _runs(columns["time"][:, place], written[:, place])
        for number, part in enumerate(parts):
            before, after = part[:-1], part[1:]
            mine = {n: x[before, place] for n, x in columns.items() if n != controls}
            mine["action"] = columns[controls][after, place]
            mine["terminated"] = np.zeros(len(before), np.bool_)
            mine["truncated"] = np.arange(len(before)) == len(before) - 1
            yield Episode(world, number, mine, ())


def runs_of(recording: Recording, world: int) -> list[np.ndarray]:
    """Return the samples of a world of a Simulation, split at its resets."""
    place = recording.place(world)
    time = recording["time"][:, place].numpy()
    return _runs(time, _time_writes(recording)[:, place])


def _runs(time: np.ndarray, written: np.ndarray) -> list[np.ndarray]:
    """Return the indices of the samples of each run of two or more.

    A run ends where time decreases or was written; samples of a world that was not
    stepped are left out.
    """
    again = np.diff(time, prepend=time[:1]) < 0
    again |= written
    moved = np.flatnonzero(np.diff(time, prepend=-np.inf) != 0 | again)
    resets = np.flatnonzero(again[moved][1:]) + 1
    return [part for part in np.split(moved, resets) if len(part) > 1]


def _time_writes(recording: Recording) -> np.ndarray:
    """Return where a world's time was written since the last sample, as by a reset.

    A mask, (samples, worlds); without recorded inputs it is False.
    """
    found = np.zeros((recording.num_samples, len(recording.worlds)), np.bool_)
    taken = recording["step"].numpy()  # steps before each sample
    for number, step in enumerate(recording.steps()):
        for change in step.changes:
            if change.slot == "time":
                rows = recording.worlds if change.rows is None else change.rows
                sample = np.searchsorted(taken, number, side="right")
                found[sample : sample + 1] |= np.isin(recording.worlds, rows)
    return found


def _episodes(recording: Recording) -> Iterator[Episode]:
    auto_reset = bool(recording.header["auto_reset"])
    worlds = {world: _World(world, auto_reset) for world in recording.worlds}
    terms: list[str] = recording.contract("ended")["names"]
    for block in recording.blocks:
        columns = recording.read_block(block)
        del columns["step"]
        found = list[tuple[int, Episode]]()
        for place, world in enumerate(recording.worlds):
            mine = {name: values[:, place] for name, values in columns.items()}
            found += worlds[world].cut(mine, terms)
        yield from (episode for _, episode in sorted(found, key=lambda one: one[0]))
    for world in worlds.values():
        if world.parts:
            yield world.end(terms)


class _World:
    """The episode in progress in a world, and the number of earlier ones.

    With `auto_reset`, the step after an end starts an episode, whatever its time.
    Otherwise, steps between an end and the next reset belong to no episode.
    """

    def __init__(self, world: int, auto_reset: bool) -> None:
        self.world, self.count = world, 0
        self._auto_reset = auto_reset
        self.parts: list[dict[str, np.ndarray]] = []
        self._is_going, self._last = True, -np.inf

    def cut(
        self, columns: dict[str, np.ndarray], terms: list[str]
    ) -> Iterator[tuple[int, Episode]]:
        """Yield the episodes that end in a block, with the first row after each."""
        time = columns["time"]
        if not len(time):
            return
        ended = columns["terminated"] | columns["truncated"]
        again = np.concatenate([[self._last], time[:-1]]) >= time  # a reset
        self._last, start = time[-1], 0
        for k in range(len(time)):
            if again[k]:
                if self._is_going and (self.parts or k > start):
                    self._keep(columns, start, k)
                    yield k, self.end(terms)
                self._is_going, start = True, k
            if ended[k] and self._is_going:
                self._keep(columns, start, k + 1)
                yield k + 1, self.end(terms)
                self._is_going, start = self._auto_reset, k + 1
        if self._is_going:
            self._keep(columns, start, len(time))

    def _keep(self, columns: dict[str, np.ndarray], start: int, end: int) -> None:
        if end > start:
            self.parts.append({n: x[start:end].copy() for n, x in columns.items()})

    def end(self, terms: list[str]) -> Episode:
        """Return the episode of all parts so far."""
        names = self.parts[0]
        columns = {n: np.concatenate([part[n] for part in self.parts]) for n in names}
        complete = columns["terminated"][-1] | columns["truncated"][-1]
        reasons = zip(terms, columns["ended"][-1], strict=True)
        ends = tuple(term for term, yes in reasons if yes and complete)
        self.parts.clear()
        self.count += 1
        return Episode(self.world, self.count - 1, columns, ends)
