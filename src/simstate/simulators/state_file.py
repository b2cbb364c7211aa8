"""Unified states in a file, to exchange them between environments.

The file is an npz archive of tensors and names, with a checksum and without pickle.
Simulators that cannot be installed together exchange states by it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from torch import Tensor

from simstate.base.archive import read_archive, write_archive
from simstate.base.checks import as_path
from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.state import EntityTensors, TensorState

FORMAT = "simstate states 1"
"""Format name in the header of such a file."""

_GROUPS = ("objects", "robots")


def save_states(state: TensorState, path: str | Path, simulator: str = "") -> None:
    """Write the unified state of some worlds, without cameras.

    Args:
        state: what `get_states(mode="tensor")` returns.
        path: the file; an existing one is replaced atomically.
        simulator: name of the simulator that the state is from, which is stored.
    """
    if not isinstance(state, TensorState):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            'state must be a TensorState, as get_states(mode="tensor") returns it; got '
            f"{type(state).__name__}.",
            name="state",
        )
    entities: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for group in _GROUPS:
        for name, part in getattr(state, group).items():
            names: dict[str, Any] = {}
            for entry in dataclasses.fields(part):
                value: Any = getattr(part, entry.name)
                if isinstance(value, Tensor):
                    tensors[f"{name}/{entry.name}"] = value
                elif value is not None:
                    names[entry.name] = list(value)
            entities[name] = {"group": group, "names": names}
    header = {
        "format": FORMAT,
        "simulator": simulator,
        "num_envs": state.num_envs,
        "entities": entities,
    }
    write_archive(as_path("path", path), header, tensors)


def holds_states(path: str | Path) -> bool:
    """Return True if a file contains unified states."""
    try:
        read_archive(as_path("path", path), (FORMAT,))
    except SnapshotError:
        return False
    return True


def load_states(path: str | Path) -> tuple[TensorState, str]:
    """Read a unified state and the name of the simulator that it is from."""
    header, tensors = read_archive(as_path("path", path), (FORMAT,))
    groups: dict[str, dict[str, EntityTensors]] = {group: {} for group in _GROUPS}
    try:
        for name, entry in header["entities"].items():
            prefix = f"{name}/"
            parts: dict[str, Any] = {
                key.removeprefix(prefix): value
                for key, value in tensors.items()
                if key.startswith(prefix) and "/" not in key.removeprefix(prefix)
            }
            parts |= {key: tuple(names) for key, names in entry["names"].items()}
            groups[entry["group"]][name] = EntityTensors(**parts)
    except (KeyError, TypeError) as error:
        raise SnapshotError(
            f"{str(path)!r} was written by another version of simstate: {error}."
        ) from error
    state = TensorState(int(header["num_envs"]), groups["objects"], groups["robots"])
    return state, str(header["simulator"])
