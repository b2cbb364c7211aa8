"""Logs of robots and runs in five formats, read as columns with contracts.

log = read_log("run.mcap")  # .simrec, .mcap, .csv, .hdf5 or a LeRobot folder
log["robot.joint_pos"].values, log["robot.joint_pos"].unit, log.undetermined
"""

# pyarrow comes without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from simstate.base.checks import all_of, as_path, number
from simstate.base.contract import UNDECLARED, UNSAID, Contract
from simstate.base.errors import InvalidInputError, SimStateError, unknown_name
from simstate.base.extras import library
from simstate.data.datasets.hdf5 import read_hdf5, read_hdf5_arrays
from simstate.data.datasets.recorded_episodes import Episode, episodes_of, runs_of
from simstate.data.log_messages import is_recording, read_messages
from simstate.data.log_request import SECONDS, LogRequest, is_input, is_time
from simstate.record import Log, LogColumn, Recording
from simstate.record.columns import IMAGE, component_contracts
from simstate.record.header import STEP, TIME
from simstate.record.log import cut_column

__all__ = ["read_log"]

_HEADING = re.compile(r"(?P<name>.+?)(?:\[(?P<part>[^\]]+)\])?(?:\s+\[(?P<unit>.+)\])?")
"""A heading of a table: "name", "name[component]", "name [unit]" or both."""
_BOOKKEEPING = ("frame_index", "episode_index", "index", "task_index", "timestamp")
"""Features of LeRobot data sets that are not signals."""


@dataclass
class _Found:
    """Columns of a file before they are checked, and notes about the rest."""

    columns: list[LogColumn] = field(default_factory=list[LogColumn])
    notes: list[str] = field(default_factory=list[str])


def read_log(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    world: int | None = None,
    episode: int | None = None,
    start: float | None = None,
    end: float | None = None,
    rate: float | None = None,
    time_unit: str | None = None,
) -> Log:
    """Read one uninterrupted run as columns with contracts.

    `log.undetermined` lists what the file does not declare. An unknown column, a file
    without time and a jump in time raise errors.

    Args:
        path: a recording (.simrec), an MCAP file with JSON messages, a table (.csv)
            with headings such as `joint_pos[hip] [rad]`, an HDF5 file (demonstrations
            of Isaac Lab or robomimic, or arrays next to a `time`), or the folder of a
            LeRobot data set.
        columns: columns to read; None: all.
        world: the world of a recording; None: the first recorded one.
        episode: the episode, counted from 0; None: the only one. One of a Simulation is
            a world from one reset to the next.
        start: time of the first sample [s]; None: the file's.
        end: time of the last sample [s]; None: the file's.
        rate: samples per second [Hz] of a file without a time column.
        time_unit: unit of a time column that declares none: "s", "ms", "us" or "ns".
    """
    path = as_path("path", path)
    if time_unit is not None and time_unit not in SECONDS:
        raise unknown_name("unit of time", time_unit, SECONDS)
    if rate is not None:
        number("rate", rate, more_than=0.0, unit="Hz")
    found = _reader(path)(LogRequest(path, world, episode, rate, time_unit))
    source = repr(path.name)
    kept = found.columns
    if columns is not None:
        by_name = {column.name: column for column in kept}
        for name in all_of("columns", columns, str):
            if name not in by_name:
                raise unknown_name(f"column of {source}", name, by_name)
        kept = [by_name[name] for name in dict.fromkeys(columns)]
    if start is not None or end is not None:
        kept = [cut_column(column, start, end, source) for column in kept]
    return Log(kept, source, found.notes)


def _reader(path: Path) -> Callable[[LogRequest], _Found]:
    if path.is_dir():
        return _lerobot
    readers = {
        ".simrec": _recording,
        ".mcap": _mcap,
        ".csv": _table,
        ".hdf5": _hdf5,
        ".h5": _hdf5,
    }
    if path.suffix.lower() not in readers:
        known = f"{', '.join(readers)} or the folder of a LeRobot data set"
        raise InvalidInputError(f"{str(path)!r} is not a log: use {known}.")
    if not path.is_file():
        raise InvalidInputError(f"There is no file {str(path)!r}.")
    return readers[path.suffix.lower()]


# Recordings and MCAP.


def _recording(request: LogRequest) -> _Found:
    with Recording(request.path) as recording:
        world = recording.worlds[0] if request.world is None else request.world
        place = recording.place(world)
        names = [n for n in recording.names if recording.contract(n)["axes"] != IMAGE]
        if recording.kind == "env":
            found = episodes_of(recording, complete=False)
            mine = [episode for episode in found if episode.world == world]
            episode: Episode = request.choose(mine)
            time, arrays = episode.columns[TIME], episode.columns
        else:
            run = request.choose(runs_of(recording, world))
            time = recording[TIME][run, place].numpy()
            arrays = {name: recording[name][run, place].numpy() for name in names}
        columns = [
            _recorded(recording, name, time, arrays[name])
            for name in names
            if name != STEP
        ]
    return _Found(columns)


def _recorded(
    recording: Recording, name: str, time: np.ndarray, values: np.ndarray
) -> LogColumn:
    """Return a recorded column.

    An input is sampled after the step in which it acted: its time is the start of that
    step, which is the time of the previous sample.
    """
    contract = recording.contract(name)
    if is_input(contract.get("source", "")):
        time, values = time[:-1], values[1:]
    contracts = recording.component_contracts(name)
    flat = values.reshape(len(values), -1).astype(np.float64)
    names = tuple(contract["names"]) or ((name,) if flat.shape[1] == 1 else ())
    return LogColumn(name, time, flat, names, tuple(contracts))


def _mcap(request: LogRequest) -> _Found:
    if is_recording(request.path):
        return _recording(request)
    columns, notes = read_messages(request)
    return _Found(columns, notes)


# Tables.


def _table(request: LogRequest) -> _Found:
    """Return columns of a CSV file, whose headings may state component and unit."""
    headings, rows = _cells(request.path)
    found = _Found()
    arrays: dict[int, np.ndarray] = {}
    texts: dict[str, ValueError] = {}
    for k, heading in enumerate(headings):
        try:
            cells = [row[k].strip() for row in rows]
            arrays[k] = np.array([float(cell or "nan") for cell in cells])
        except ValueError as error:
            if is_time(_parsed(heading)[0]):
                texts[heading] = error
            found.notes.append(f"{heading}: skipped, because it is not numeric.")
    parsed = {k: _parsed(headings[k]) for k in arrays}
    clocks = [k for k, (name, _, _) in parsed.items() if is_time(name)]
    samples = len(rows)
    if clocks:
        name, _, unit = parsed.pop(clocks[0])
        time = arrays[clocks[0]] * request.seconds(name, unit, found.notes)
    elif texts and request.rate is None:
        heading, error = next(iter(texts.items()))
        raise InvalidInputError(
            f"The time column {heading!r} of {str(request.path)!r} is not numeric "
            f"({error}): write times as numbers with a decimal point, or state the "
            "samples per second (rate=50.0).",
            name=heading,
        ) from error
    else:
        time = request.times(samples, [name for name, _, _ in parsed.values()])
    grouped: dict[str, list[int]] = {}
    for k, (name, _, _) in parsed.items():
        grouped.setdefault(name, []).append(k)
    for name, members in grouped.items():
        parts = [parsed[k][1] for k in members]
        names = parts if all(parts) else [name] if len(parts) == 1 else []
        contracts = [Contract(parsed[k][2] or UNDECLARED) for k in members]
        values = np.stack([arrays[k] for k in members], axis=1)
        found.columns.append(
            LogColumn(name, time, values, tuple(names), tuple(contracts))
        )
    return found


def _cells(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            separator = max(",;\t", key=first.count)
            rows = [row for row in csv.reader(file, delimiter=separator) if row]
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is not a text table: {error}."
        ) from error
    headings = [cell.strip() for cell in rows[0]] if rows else []
    if len(rows) < 3 or not all(headings):
        raise InvalidInputError(
            f"{str(path)!r} needs a line of headings and at least two lines of numbers."
        )
    known = [_parsed(heading)[:2] for heading in headings]
    twice = [head for k, head in enumerate(headings) if known.index(known[k]) < k]
    if twice:
        raise InvalidInputError(
            f"{str(path)!r} has two columns {twice[0]!r}: name their components, such "
            "as 'q[hip]' and 'q[knee]', or remove one of them.",
            name=twice[0],
        )
    for k, row in enumerate(rows):
        if len(row) != len(headings):
            raise InvalidInputError(
                f"Row {k} of {str(path)!r} has {len(row)} cells, but there are "
                f"{len(headings)} headings."
            )
    return headings, rows[1:]


def _parsed(heading: str) -> tuple[str, str, str]:
    """Return name, component and unit of a heading, each "" if it has none."""
    found = _HEADING.fullmatch(heading)
    if found is None:
        return heading, "", ""
    return found["name"].strip(), found["part"] or "", found["unit"] or ""


# HDF5 and LeRobot.


def _hdf5(request: LogRequest) -> _Found:
    """Return columns of one demonstration, or of arrays next to a time."""
    try:
        demonstration = request.choose(read_hdf5(request.path))
    except SimStateError:
        demonstration = read_hdf5_arrays(request.path)
        if demonstration is None:
            raise
    found = _Found()
    arrays, contracts = dict(demonstration.arrays), demonstration.contracts
    if demonstration.actions.size:
        arrays["actions"] = demonstration.actions
    clocks = [name for name in arrays if is_time(name.rpartition("/")[2])]
    if clocks:
        time = np.asarray(arrays.pop(clocks[0]), np.float64).reshape(-1)
        unit = str(contracts[clocks[0]].get("unit", ""))
        time = time * request.seconds(clocks[0], unit, found.notes)
    else:
        samples = max((len(x) for x in arrays.values() if x.ndim), default=0)
        time = request.times(samples, list(arrays))
    for name, values in arrays.items():
        is_signal = values.ndim and len(values) == len(time) and values.ndim < 4
        if not is_signal or values.dtype.kind not in "fiub":
            found.notes.append(
                f"{name}: skipped, because its shape {values.shape} is not that of a "
                f"signal with {len(time)} samples."
            )
            continue
        found.columns.append(_described(name, time, values, contracts.get(name, {})))
    return found


def _lerobot(request: LogRequest) -> _Found:
    """Return columns of one episode of a LeRobot data set of version 2 or 3."""
    parquet = library("pyarrow.parquet", "data", "LeRobot data sets")
    path = request.path
    try:
        info: Any = json.loads((path / "meta/info.json").read_text())
        features = cast("dict[str, dict[str, Any]]", info["features"])
        rate, count = float(info["fps"]), int(info["total_episodes"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is not a LeRobot data set: meta/info.json cannot be read "
            f"({error!r})."
        ) from error
    number = request.choose(range(count))
    kept = [("episode_index", "=", number)]
    files = sorted((path / "data").rglob("*.parquet"))
    try:
        tables = [parquet.read_table(file, filters=kept) for file in files]
        tables = [table for table in tables if table.num_rows]
        frames = [table["frame_index"].to_numpy() for table in tables]
    except Exception as error:  # damaged bytes may raise anything
        raise InvalidInputError(
            f"The frames of {str(path)!r} cannot be read: {error}.", name=str(path)
        ) from error
    if not tables:
        raise InvalidInputError(
            f"{str(path)!r} has no frames of episode {number}.", name=str(path)
        )
    found = _Found()
    time = np.concatenate(frames) / rate
    for name, feature in features.items():
        if name in _BOOKKEEPING:
            continue
        if feature.get("dtype") in ("video", "image", "string"):
            found.notes.append(f"{name}: skipped, because it is not a signal.")
            continue
        if any(name not in table.column_names for table in tables):
            found.notes.append(f"{name}: skipped, because the frames do not have it.")
            continue
        parts = [np.array(table[name].to_pylist(), np.float64) for table in tables]
        described = {**feature, "names": _flat_names(feature.get("names"))}
        found.columns.append(_described(name, time, np.concatenate(parts), described))
    return found


def _flat_names(names: Any) -> list[str]:
    """Return the names of components, which version 2 may have grouped."""
    if isinstance(names, dict):
        groups = cast("dict[str, Any]", names).values()
        return [str(n) for group in groups if isinstance(group, list) for n in group]
    return [str(n) for n in names] if isinstance(names, list) else []


# Common parts.


def _described(
    name: str, time: np.ndarray, values: np.ndarray, about: Mapping[str, Any]
) -> LogColumn:
    """Return a column whose contract is in attributes, as in simstate's data sets."""
    flat = np.asarray(values, np.float64).reshape(len(values), -1)
    width = flat.shape[1]
    contracts = component_contracts(about, width) or [UNSAID]
    names: Any = about.get("names") or []
    is_named = isinstance(names, list) and len(cast("list[Any]", names)) == width
    ordered = tuple(str(n) for n in names) if is_named else ()
    if width == 1 and not ordered:
        ordered = (name,)
    return LogColumn(name, time, flat, ordered, tuple(contracts))
