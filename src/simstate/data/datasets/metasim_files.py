"""MetaSim's trajectory files (version 2), read without running code in them.

A file is a dictionary: robot → a list of demonstrations, each with `init_state`,
`actions` and perhaps `states`. Pickle can run code: this reader creates only numbers,
strings, lists, dictionaries and NumPy arrays.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from simstate.base.errors import InvalidInputError, unknown_name

LARGEST = 2 << 30
"""Maximum size of a decompressed file [bytes]."""
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.numeric", "_frombuffer"),
}
"""Names that a pickle may contain: containers and arrays."""


@dataclass(frozen=True)
class MetaSimTrajectory:
    """One demonstration of a robot."""

    init_state: dict[str, Any]
    """A unified state: "robots" and "objects" by name, for `sim.set_states`."""
    actions: list[dict[str, Any]]
    """The robot's targets for each step, in the form of `simstate.interop.metasim`."""
    states: list[dict[str, Any]] | None
    """A unified state for each step; None if the file has none."""
    extra: Any
    """Additional data."""

    def __len__(self) -> int:
        return len(self.actions)


def read_metasim(path: str | Path, robot: str | None = None) -> list[MetaSimTrajectory]:
    """Return the demonstrations of a .json, .pkl or .pkl.gz file.

    Args:
        path: the file.
        robot: name of the robot; None: the only one of the file.
    """
    content = _content(Path(path))
    if not isinstance(content, dict):
        raise InvalidInputError(f"{str(path)!r} is not a dictionary of robots.")
    robots = cast("dict[str, Any]", content)
    if robot is None:
        if len(robots) != 1:
            raise InvalidInputError(
                f"{str(path)!r} has {len(robots)} robots, name one: {[*robots]}."
            )
        robot = next(iter(robots))
    if robot not in robots:
        raise unknown_name("robot", robot, robots)
    try:
        return [_trajectory(robot, demo) for demo in robots[robot]]
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{str(path)!r} is not a trajectory file of version 2: {error!r}."
        ) from error


def _content(path: Path) -> Any:
    name = path.name
    if not path.is_file():
        raise InvalidInputError(f"There is no file {str(path)!r}.")
    try:
        if name.endswith(".json"):
            return json.loads(path.read_text(encoding="utf-8"))
        if name.endswith(".pkl.gz"):
            with gzip.open(path, "rb") as file:
                data = file.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise InvalidInputError(
                    f"{str(path)!r} decompresses to more than {LARGEST:,} bytes."
                )
            return _Unpickler(io.BytesIO(data)).load()
        if name.endswith(".pkl"):
            with open(path, "rb") as file:
                return _Unpickler(file).load()
    except InvalidInputError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise InvalidInputError(f"{str(path)!r} cannot be read: {error}.") from error
    raise InvalidInputError(
        f"A trajectory file ends in .json, .pkl or .pkl.gz, got {name!r}.", name=name
    )


class _Unpickler(pickle.Unpickler):
    """Creates containers, numbers and arrays; rejects all other names."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) in _ALLOWED:
            return super().find_class(module_name, global_name)
        raise InvalidInputError(
            f"The file names {module_name}.{global_name}, which could run code: only "
            "numbers, strings, lists, dictionaries and NumPy arrays are read. If you "
            "trust the file, save it as .json.",
            name=f"{module_name}.{global_name}",
        )


def _trajectory(robot: str, demo: dict[str, Any]) -> MetaSimTrajectory:
    states = demo.get("states")
    return MetaSimTrajectory(
        _unified(robot, demo["init_state"]),
        list(demo.get("actions") or ()),
        None if states is None else [_unified(robot, state) for state in states],
        demo.get("extra"),
    )


def _unified(robot: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return objects and robots separately; MetaSim keeps them in one dictionary."""
    if "robots" in state or "objects" in state:
        return state
    plain = {name: _plain(value) for name, value in state.items()}
    return {
        "objects": {name: value for name, value in plain.items() if name != robot},
        "robots": {robot: plain[robot]} if robot in plain else {},
    }


def _plain(value: Any) -> Any:
    """Return arrays as lists."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _plain(item) for key, item in items}
    return value.tolist() if hasattr(value, "tolist") else value
