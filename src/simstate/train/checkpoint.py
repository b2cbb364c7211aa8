"""Checkpoints: one file with everything that is needed to resume a training run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from simstate.base.archive import read_archive, write_archive
from simstate.base.errors import InvalidInputError, SnapshotError, listed
from simstate.base.files import naming_errors

FORMAT = "simstate training 2"
BEST = "best.npz"
"""The best policy of a run with `TrainCfg.patience`."""

Content = dict[str, Any]


def checkpoint_path(run_dir: Path, iteration: int) -> Path:
    """Return the path of the checkpoint after a number of updates."""
    return run_dir / f"model_{iteration}.npz"


def write_checkpoint(path: Path, content: Content) -> None:
    """Write a checkpoint atomically: a crash leaves earlier files unchanged."""
    tensors: dict[str, Tensor] = {}
    plain = _packed(content, tensors)
    write_archive(path, {"format": FORMAT, "content": plain}, tensors)


def read_checkpoint(path: Path) -> Content:
    """Read a file of `write_checkpoint`; raise if it was altered."""
    if not path.is_file():
        raise SnapshotError(f"There is no checkpoint {str(path)!r}.")
    header, tensors = read_archive(path, (FORMAT,))
    try:
        content = _unpacked(header["content"], tensors)
        if not isinstance(content, dict):
            raise TypeError(f"it holds a {type(content).__name__}")
        return cast("Content", content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise SnapshotError(
            f"{str(path)!r} is not a checkpoint of simstate: {error!r}.", name=str(path)
        ) from error


def find_checkpoint(path: Path) -> Path:
    """Return the file itself, or the latest checkpoint in a folder."""
    if path.suffix == ".npz" or path.is_file():
        return path
    if not path.is_dir():
        raise SnapshotError(
            f"There is no folder {str(path)!r}: give a run's folder or a checkpoint "
            "model_….npz in it.",
            name=str(path),
        )
    found = _checkpoints(path)
    if not found:
        runs = sorted({file.parent.name for file in path.glob("*/model_*.npz")})
        where = "are written every --save-every updates, on Ctrl-C and at the end"
        if runs:
            where = f"are in its folders, name one of them: {listed(runs)}"
        raise SnapshotError(
            f"There is no model_….npz in {str(path)!r}: checkpoints {where}.",
            name=str(path),
        )
    return found[max(found)]


def has_checkpoint(folder: Path) -> bool:
    """Return True if there is a checkpoint in a folder."""
    return any(folder.glob("model_*.npz"))


def check_unused(folder: Path) -> None:
    """Raise if a folder holds a run."""
    if has_checkpoint(folder):
        raise InvalidInputError(
            f"{str(folder)!r} holds a run already: continue it with --resume, or "
            "choose another --run-dir."
        )


def newest_run(folder: Path) -> Path:
    """Return the run in a folder of runs that was written to last."""
    written = {file.stat().st_mtime: file for file in folder.glob("*/model_*.npz")}
    if not written:
        raise InvalidInputError(
            f"There is no run to resume in {str(folder)!r}: give its --run-dir."
        )
    return written[max(written)].parent


def find_policy(path: Path) -> Path:
    """Return the file itself, or the best or else the latest checkpoint in a folder."""
    best = path / BEST
    return best if best.is_file() else find_checkpoint(path)


def prune_checkpoints(run_dir: Path, keep: int) -> None:
    """Delete all but the latest checkpoints of a folder."""
    found = _checkpoints(run_dir)
    for number in sorted(found)[:-keep]:
        found[number].unlink(missing_ok=True)


def _checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints in a folder, by number of updates."""
    with naming_errors(folder, "read"):
        files = list(folder.iterdir())
    return {
        int(match[1]): file
        for file in files
        if (match := re.fullmatch(r"model_(\d+)\.(npz|pt)", file.name))
    }


def _packed(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return a value as JSON can hold it; tensors are stored separately, by number."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {"items": [[key, _packed(item, tensors)] for key, item in items]}
    if isinstance(value, list | tuple):
        items = [_packed(item, tensors) for item in cast("list[Any]", value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold {type(value).__name__}")


def _unpacked(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = cast("dict[str, Any]", value).items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "items":
        return {key: _unpacked(item, tensors) for key, item in inner}
    items = [_unpacked(item, tensors) for item in inner]
    return tuple(items) if kind == "tuple" else items
