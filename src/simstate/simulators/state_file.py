"""Unified states in a file: what one simulator writes, any other reads.

The file is an npz archive of tensors with their names beside them, without pickle, so
that simulators which cannot be installed together can exchange states.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.errors import InvalidInputError, SnapshotError
from simstate.files import write_atomically
from simstate.state import EntityTensors, TensorState

FORMAT = "simstate states"
"""What the header of such a file calls itself."""

_GROUPS = ("objects", "robots")


def save_states(state: TensorState, path: str | Path, simulator: str = "") -> None:
    """Write the unified state of some worlds, without cameras.

    Args:
        state: what `get_states(mode="tensor")` returns.
        path: the file; one that is there is replaced as a whole.
        simulator: where the state comes from, for whoever reads it.
    """
    if not isinstance(state, TensorState):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            'save_states takes what get_states(mode="tensor") returns, got '
            f"{type(state).__name__}."
        )
    entities: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for group in _GROUPS:
        for name, part in getattr(state, group).items():
            names: dict[str, Any] = {}
            for entry in dataclasses.fields(part):
                value: Any = getattr(part, entry.name)
                if isinstance(value, Tensor):
                    kept = value.detach().cpu().contiguous()
                    tensors[f"{name}/{entry.name}"] = kept
                else:
                    names[entry.name] = list(value)
            entities[name] = {"group": group, "names": names}
    header = {
        "format": FORMAT,
        "simulator": simulator,
        "num_envs": state.num_envs,
        "entities": entities,
    }
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    write_atomically(Path(path), buffer.getbuffer())


def holds_states(path: str | Path) -> bool:
    """Whether a file is one of unified states; any other, or none, is not."""
    try:
        return _read(Path(path))[0].get("format") == FORMAT
    except SnapshotError:
        return False


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of an archive."""
    if not path.is_file():
        raise SnapshotError(f"There is no file {str(path)!r}.")
    try:
        archive: Any = np.load(path, allow_pickle=False)
        with archive:
            arrays: dict[str, Any] = {name: archive[name] for name in archive}
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes())
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise SnapshotError(
            f"{str(path)!r} is not a whole file of states: {error}."
        ) from error
    return header, {name: torch.as_tensor(array) for name, array in arrays.items()}


def load_states(path: str | Path) -> tuple[TensorState, str]:
    """The unified state that a file holds, and which simulator it comes from."""
    header, tensors = _read(Path(path))
    if header.get("format") != FORMAT:
        raise SnapshotError(f"{str(path)!r} is not a file of unified states.")
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
