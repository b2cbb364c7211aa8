"""MCAP files of other programs and of `write_foxglove`: JSON messages as columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from simstate.base.contract import UNDECLARED, Contract
from simstate.base.errors import InvalidInputError, SimStateError
from simstate.base.extras import library
from simstate.data.log_request import LogRequest, is_input
from simstate.record import LogColumn
from simstate.record.columns import EACH
from simstate.record.container import PROFILE
from simstate.record.header import TIME

_WORLD = re.compile(r"/world_(\d+)/(.+)")
"""Topics of `write_foxglove`."""
_STAMPS = ("timestamp", "stamp", "header")
"""Properties of messages that are not signals."""


@dataclass
class _Topic:
    """Messages of one topic: values of each property over time."""

    name: str
    schema: Mapping[str, Any]
    source: str = ""
    """The recorded quantity or field; "" in files of other programs."""
    times: list[float] = field(default_factory=list[float])
    """Log time of each message [s]."""
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def is_recording(path: Path) -> bool:
    """Return True if an MCAP file is a recording of simstate."""
    reader = library("mcap.reader", "record", "MCAP files")
    try:
        with open(path, "rb") as file:
            return reader.make_reader(file).get_header().profile == PROFILE
    except Exception as error:  # damaged bytes may raise anything
        raise InvalidInputError(
            f"{str(path)!r} is not an MCAP file, or is damaged: {error}."
        ) from error


def read_messages(request: LogRequest) -> tuple[list[LogColumn], list[str]]:
    """Return the columns of an MCAP file's JSON messages, and notes about the others.

    Of topics such as "/world_3/robot.joint_pos", those of the requested or the first
    world are read; topics without a world are always read.
    """
    path = request.path
    reader = library("mcap.reader", "record", "MCAP files")
    topics: dict[str, _Topic] = {}
    notes: list[str] = []
    try:
        with open(path, "rb") as file:
            for schema, channel, message in reader.make_reader(file).iter_messages():
                name = str(channel.topic)
                if channel.message_encoding != "json":
                    _note_encoding(notes, name, channel.message_encoding)
                    continue
                if name not in topics:
                    topics[name] = _Topic(name, *_described(schema))
                topics[name].times.append(message.log_time * 1e-9)
                topics[name].messages.append(json.loads(message.data))
    except SimStateError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise InvalidInputError(
            f"{str(path)!r} is not an MCAP file, or is damaged: {error}."
        ) from error
    chosen = _of_world(request, topics, notes)
    columns = [c for topic in chosen.values() for c in _columns(topic, chosen, notes)]
    if not columns:
        raise InvalidInputError(
            f"{str(path)!r} has no JSON message with numbers. {' '.join(notes)} "
            "Convert its messages to JSON, or export a table (.csv).",
            name=str(path),
        )
    return columns, notes


def _note_encoding(notes: list[str], topic: str, encoding: str) -> None:
    note = f"{topic}: skipped, because its encoding {encoding!r} is not supported."
    if note not in notes:
        notes.append(note)


def _described(schema: Any) -> tuple[Mapping[str, Any], str]:
    """Return what a JSON schema declares of each property, and the source."""
    try:
        described: Any = json.loads(schema.data) if schema is not None else {}
        found: Any = described.get("properties", {})
        source = str(described.get("source", ""))
    except (ValueError, AttributeError):
        return {}, ""
    properties: Mapping[str, Any] = {}
    if isinstance(found, dict):
        properties = cast("Mapping[str, Any]", found)
    return properties, source


def _of_world(
    request: LogRequest, topics: Mapping[str, _Topic], notes: list[str]
) -> dict[str, _Topic]:
    """Return topics by column name: those of one world, and those without a world."""
    path, world = request.path, request.world
    matches = {name: _WORLD.fullmatch(name) for name in topics}
    worlds = sorted({int(m[1]) for m in matches.values() if m is not None})
    if world is not None and worlds and world not in worlds:
        raise InvalidInputError(
            f"World {world} is not in {str(path)!r}, which has {worlds}.",
            name="world",
            worlds=[world],
        )
    chosen = world if world is not None else worlds[0] if worlds else None
    free = {n.lstrip("/"): topics[n] for n, m in matches.items() if m is None}
    mine = {
        m[2]: topics[name]
        for name, m in matches.items()
        if m is not None and int(m[1]) == chosen
    }
    return {**free, **_run(request, mine, notes)}


def _run(
    request: LogRequest, topics: dict[str, _Topic], notes: list[str]
) -> dict[str, _Topic]:
    """Return the topics of a world in one run, at its time, which resets restart.

    The log time does not restart. Samples of a world that was not stepped are left out.
    """
    if not topics:
        return {}
    clock = topics.get(TIME)
    if clock is None:
        notes.append(f"Resets are not known, because there is no topic {TIME!r}.")
        return topics
    time = np.array([_value(message.get("value")) for message in clock.messages])
    found: dict[str, _Topic] = {}
    for name, topic in topics.items():
        if topic.times == clock.times:
            found[name] = topic
        else:
            notes.append(
                f"{topic.name}: skipped, because {clock.name} has other times."
            )
    states = [clock, *(t for t in found.values() if not is_input(t.source))]
    repeated = [k > 0 and _is_repeated(states, k) for k in range(len(time))]
    moved = np.flatnonzero(~np.array(repeated))
    runs = np.split(moved, np.flatnonzero(np.diff(time[moved]) <= 0) + 1)
    run: list[int] = request.choose([r.tolist() for r in runs if len(r) > 1])
    return {
        name: replace(
            topic,
            times=time[run].tolist(),
            messages=[topic.messages[k] for k in run],
        )
        for name, topic in found.items()
    }


def _is_repeated(topics: Sequence[_Topic], k: int) -> bool:
    """Return True if the values of a sample are those of the sample before it."""
    return all(
        {**topic.messages[k], "timestamp": None}
        == {**topic.messages[k - 1], "timestamp": None}
        for topic in topics
    )


def _columns(
    topic: _Topic, chosen: Mapping[str, _Topic], notes: list[str]
) -> list[LogColumn]:
    """Return a column of a topic's scalars, and one for each array of numbers."""
    (name,) = [n for n, t in chosen.items() if t is topic]
    if not all(isinstance(message, dict) for message in topic.messages):  # pyright: ignore[reportUnnecessaryIsInstance]
        notes.append(f"{topic.name}: skipped, because its messages are not objects.")
        return []
    first = topic.messages[0]
    keys = [k for k in first if k not in _STAMPS and k != "name"]
    scalars = [k for k in keys if _is_number(first[k])]
    arrays = {k: _numbers(first[k]) for k in keys if _numbers(first[k])}
    time = np.array(topic.times)
    found: list[LogColumn] = []
    try:
        if scalars and name != TIME:
            values = [[_value(m[k]) for k in scalars] for m in topic.messages]
            contracts = tuple(_contract(topic.schema.get(k)) for k in scalars)
            names = (name,) if scalars == ["value"] else tuple(scalars)
            is_unnamed = all(k == f"value_{i}" for i, k in enumerate(scalars))
            names = () if is_unnamed and len(scalars) > 1 else names
            found.append(LogColumn(name, time, np.array(values), names, contracts))
        for key, width in arrays.items():
            table = np.array([[_value(x) for x in m[key]] for m in topic.messages])
            given = first.get("name")
            is_named = isinstance(given, list) and len(cast("list[Any]", given))
            names = tuple(map(str, cast("list[Any]", given))) if is_named else ()
            names = names if len(names) == width else ()
            contracts = (_contract(topic.schema.get(key)),) * width
            found.append(LogColumn(f"{name}.{key}", time, table, names, contracts))
    except (KeyError, TypeError, ValueError) as error:
        notes.append(f"{topic.name}: skipped, because its messages differ: {error!r}.")
        return []
    if not found and name != TIME:
        notes.append(f"{topic.name}: skipped, because it has no numbers.")
    if is_input(topic.source):
        found = [replace(c, time=c.time[:-1], values=c.values[1:]) for c in found]
    return found


def _contract(described: Any) -> Contract:
    """Return the contract that a property's schema states."""
    if not isinstance(described, dict):
        return Contract()
    texts = cast("dict[str, Any]", described)
    unit, axes, point = (str(texts.get(word, UNDECLARED)) for word in EACH)
    return Contract(unit, axes, point)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _value(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _numbers(value: Any) -> int:
    """Return the length of a list of numbers, 0 for anything else."""
    if not isinstance(value, list):
        return 0
    items = cast("list[Any]", value)
    return len(items) if all(_is_number(x) for x in items) else 0
