"""LeRobot v3: parquet files and films of all episodes, described in `meta/`."""

# pyarrow comes without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.closeable import Closing
from simstate.base.contract import UNDECLARED
from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.base.files import filling
from simstate.data.datasets.lerobot_films import FILE_MB, VIDEO, Films
from simstate.data.datasets.recorded_episodes import (
    NO_EPISODE,
    OBSERVATION,
    Episode,
    Keep,
    Source,
    contracts_of,
    episodes_of,
    recordings_of,
    step_of,
)
from simstate.data.datasets.statistics import ColumnStatistics
from simstate.record import Recording
from simstate.record.columns import CAMERA, EACH

VERSION = "v3.0"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_FILE_MB = 100
_NUMBERS = ("episode_index", "frame_index", "index", "task_index")


def write_lerobot(
    source: Source,
    folder: str | Path,
    *,
    task: str | None = None,
    state: str | None = None,
    keep: Keep | None = None,
    robot_type: str | None = None,
) -> int:
    """Write the episodes of recordings as a data set; return their number.

    `observation.state` is an observation group, `action` the action,
    `observation.QUANTITY` other recorded quantities, `next.reward` and `next.done` the
    results of the step, `observation.images.CAMERA` pictures, as H.264 films. Names of
    components are in the features of `meta/info.json`, with unit, axes and point, and
    `units`, `each_axes` and `points` if those of the components differ.

    Args:
        source: recordings of an Env, or of a Simulation with `fields=["ctrl"]`: an
            episode is then a world from one reset to the next, without rewards.
        folder: the folder to create; it may exist if it is empty.
        task: description of the task, in words; None: the task's name.
        state: the observation group for `observation.state`; None: "policy" or, where
            that has pictures, its first term or the first group that has none. Of a
            Simulation the recorded quantity, None: the first.
        keep: returns True for the episodes to write; None: all complete ones.
        robot_type: type of the robot; None: the names of the scene's entities.
    """
    with (
        filling(Path(folder)) as root,
        _Writer(root, source, task, state, robot_type) as writer,
    ):
        for episode in episodes_of(source, keep=keep):
            writer.add(episode)
        if not writer.rows:
            raise InvalidInputError(NO_EPISODE, name="episodes")
        writer.finish()
    return len(writer.rows)


class _Writer(Closing):
    """Writes parquet files of bounded size, an episode at a time."""

    def __init__(
        self,
        root: Path,
        source: Source,
        task: str | None,
        state: str | None,
        robot_type: str | None,
    ) -> None:
        self._arrow = library("pyarrow", "data", "LeRobot data sets")
        self._parquet = library("pyarrow.parquet", "data", "LeRobot data sets")
        opened = recordings_of(source)  # keeps the recording open
        recording = next(opened)
        header = recording.header
        self._contracts = contracts_of(recording)
        del self._contracts["time"]
        self._root, self._state = root, self._state_column(recording, state)
        step = step_of(recording)
        if not step:  # a Simulation that was not stepped
            raise InvalidInputError(NO_EPISODE, name="episodes")
        self._fps = 1.0 / step
        self._task = task or header.get("task") or "simstate"
        self._robot = robot_type or ", ".join(header["simulation"]["entities"])
        self.rows: list[dict[str, Any]] = []
        """Rows of meta/episodes."""
        self._frames = 0
        self._file = -1
        self._bytes = 0
        self._open: Any = None
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._all: dict[str, list[ColumnStatistics]] = {}
        self._films = {
            name: Films(root, _feature(name), self._fps)
            for name in self._contracts
            if name.startswith(CAMERA)
        }

    def _state_column(self, recording: Recording, state: str | None) -> str:
        """Return the column for `observation.state`; raise if it is unknown."""
        if recording.kind == "env":
            if state is None:
                return _default_state(recording)
            name = f"{OBSERVATION}{state}"
            recording.contract(name)
            return name
        if state is not None:
            return recording.full_name(state)
        own = ("action", "terminated")
        others = [
            name
            for name in self._contracts
            if name not in own and not name.startswith(CAMERA)
        ]
        if not others:
            raise InvalidInputError(
                "The recording has no quantity for observation.state: record one, "
                'sim.record(path, quantities=["robot.joint_pos"], fields=["ctrl"]).'
            )
        return others[0]

    def add(self, episode: Episode) -> None:
        """Write an episode."""
        count, frames = len(self.rows), len(episode)
        spans = np.diff(episode.columns["time"]) * self._fps
        if not np.allclose(spans, 1.0, rtol=0.0, atol=1e-3):
            raise InvalidInputError(
                f"Samples of world {episode.world} are {spans.min() / self._fps:g} to "
                f"{spans.max() / self._fps:g} s apart, but a LeRobot data set has one "
                "rate: record with every=…, or take the same number of steps in each "
                "call.",
                name="every",
            )
        features = self._features(episode)
        self._shapes = {name: x.shape[1:] for name, x in features.items()}
        steps = np.arange(frames)
        numbers = {
            "timestamp": (steps / self._fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(frames, count),
            "index": self._frames + steps,
            "task_index": np.zeros(frames, np.int64),
        }
        columns = {n: self._array(x) for n, x in {**features, **numbers}.items()}
        self._write(self._arrow.table(columns), frames)
        row: dict[str, Any] = {
            "episode_index": count,
            "tasks": [self._task],
            "length": frames,
            "data/chunk_index": self._file // 1000,
            "data/file_index": self._file % 1000,
            "dataset_from_index": self._frames,
            "dataset_to_index": self._frames + frames,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }
        found = {
            name: ColumnStatistics.of(values.reshape(frames, -1))
            for name, values in {**features, **numbers}.items()
        }
        for name, films in self._films.items():
            pictures = episode.columns[name]
            row |= films.add(pictures)
            found[_feature(name)] = ColumnStatistics.of_pictures(pictures)
        for name, statistics in found.items():
            self._all.setdefault(name, []).append(statistics)
            row |= {f"stats/{name}/{k}": v for k, v in statistics.to_dict().items()}
        self.rows.append(row)
        self._frames += frames

    def finish(self) -> None:
        """Close the files and write meta/."""
        self.close()
        meta = self._root / "meta"
        (meta / "episodes/chunk-000").mkdir(parents=True, exist_ok=True)
        episodes = self._arrow.Table.from_pylist(self.rows)
        self._parquet.write_table(
            episodes, meta / "episodes/chunk-000/file-000.parquet"
        )
        pandas = library("pandas", "data", "LeRobot data sets")
        tasks = pandas.DataFrame({"task_index": [0]}, index=[self._task])
        tasks.to_parquet(meta / "tasks.parquet")
        (meta / "info.json").write_text(json.dumps(self._info(), indent=2))
        stats = {
            name: ColumnStatistics.joined(parts).to_dict()
            for name, parts in self._all.items()
        }
        (meta / "stats.json").write_text(json.dumps(stats, indent=2))

    def close(self) -> None:
        """Close the files."""
        if self._open is not None:
            self._open.close()
            self._open = None
        for films in self._films.values():
            films.close()

    def _features(self, episode: Episode) -> dict[str, np.ndarray]:
        """Return the features of an episode; shape (steps, k) or (steps,)."""
        columns = episode.columns
        found = {
            "observation.state": columns[self._state].reshape(len(episode), -1),
            "action": columns["action"],
            "next.done": columns["terminated"] | columns["truncated"],
        }
        if "reward" in columns:
            found["next.reward"] = columns["reward"]
        for name in self._others():
            feature = _feature(name)
            if feature in found:
                raise InvalidInputError(
                    f"{name!r} would be {feature!r} in the data set, which exists "
                    "already: record it under another name.",
                    name=name,
                )
            found[feature] = columns[name].reshape(len(episode), -1)
        return {
            name: x if x.dtype == np.bool_ else x.astype(np.float32)
            for name, x in found.items()
        }

    def _others(self) -> list[str]:
        """Return the further columns: other observation groups and quantities."""
        own = (self._state, "action", "reward", "terminated", "truncated")
        left_out = (*own, "ended", "event", *self._films)
        return [name for name in self._contracts if name not in left_out]

    def _array(self, values: np.ndarray) -> Any:
        if values.ndim == 1:
            return self._arrow.array(values)
        flat = self._arrow.array(np.ascontiguousarray(values).ravel())
        return self._arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])

    def _write(self, table: Any, frames: int) -> None:
        if self._open is None or self._bytes > _FILE_MB << 20:
            if self._open is not None:
                self._open.close()
            self._file, self._bytes = self._file + 1, 0
            chunk, number = self._file // 1000, self._file % 1000
            path = self._root / _DATA.format(chunk_index=chunk, file_index=number)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open = self._parquet.ParquetWriter(path, table.schema)
        self._open.write_table(table, row_group_size=frames)
        self._bytes += table.nbytes

    def _info(self) -> dict[str, Any]:
        fps = (
            round(self._fps) if abs(self._fps - round(self._fps)) < 1e-6 else self._fps
        )
        return {
            "codebase_version": VERSION,
            "robot_type": self._robot,
            "total_episodes": len(self.rows),
            "total_frames": self._frames,
            "total_tasks": 1,
            "chunks_size": 1000,
            "data_files_size_in_mb": _FILE_MB,
            "video_files_size_in_mb": FILE_MB,
            "fps": fps,
            "splits": {"train": f"0:{len(self.rows)}"},
            "data_path": _DATA,
            "video_path": VIDEO if self._films else None,
            "features": self._described(),
        }

    def _described(self) -> dict[str, Any]:
        columns = {
            "observation.state": self._state,
            "action": "action",
            "next.done": "terminated",
            **({"next.reward": "reward"} if "reward" in self._contracts else {}),
            **{_feature(name): name for name in self._others()},
        }
        found: dict[str, Any] = {}
        for feature, column in columns.items():
            contract = self._contracts.get(column, {})
            shape = list(self._shapes[feature]) or [1]
            names = contract.get("names") or None
            found[feature] = {
                "dtype": "bool" if feature == "next.done" else "float32",
                "shape": shape,
                "names": names if names and len(names) == shape[0] else None,
                **{key: contract.get(key, UNDECLARED) for key in EACH},
                **{key: contract[key] for key in EACH.values() if contract.get(key)},
            }
        found["timestamp"] = {"dtype": "float32", "shape": [1], "names": None}
        for name, films in self._films.items():
            shape = self._contracts[name]["shape"]
            camera = name.removeprefix(CAMERA)
            found[_feature(name)] = films.described(tuple(shape), camera)
        for name in _NUMBERS:
            found[name] = {"dtype": "int64", "shape": [1], "names": None}
        return found


def _default_state(recording: Recording) -> str:
    """Return the first observation without pictures, "policy" before others."""

    def rank(name: str) -> tuple[bool, bool]:
        is_picture = len(recording.contract(name)["shape"]) > 1
        group = name.removeprefix(OBSERVATION).partition("/")[0]
        return is_picture, group != "policy"

    return min((n for n in recording.names if n.startswith(OBSERVATION)), key=rank)


def _feature(column: str) -> str:
    if column.startswith(CAMERA):
        return f"observation.images.{column.removeprefix(CAMERA)}"
    name = column.removeprefix(OBSERVATION).replace("/", ".")
    return f"observation.{name}"
