"""Checkpoints: one file that holds all that a training run needs to go on."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import torch

from simstate.errors import SnapshotError
from simstate.files import write_atomically

FORMAT = "simstate training 1"

Content = dict[str, Any]


def checkpoint_path(run_dir: Path, iteration: int) -> Path:
    """The file for a number of updates that are done."""
    return run_dir / f"model_{iteration}.pt"


def write_checkpoint(path: Path, content: Content) -> None:
    """Write one file, as a whole or not at all: a crash leaves those from before."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    write_atomically(path, buffer.getbuffer())


def read_checkpoint(path: Path) -> Content:
    """Read a file that `write_checkpoint` wrote; no code in it is run."""
    if not path.is_file():
        raise SnapshotError(f"There is no checkpoint {str(path)!r}.")
    try:
        content: Content = torch.load(path, map_location="cpu", weights_only=True)
        form: object = content["format"]
    except Exception as error:  # what a damaged file raises is without limits
        raise SnapshotError(
            f"{str(path)!r} is not a checkpoint of simstate: it may be cut off, "
            f"damaged or of another kind ({type(error).__name__})."
        ) from error
    if form != FORMAT:
        raise SnapshotError(
            f"{str(path)!r} has the format {form!r}, this version reads {FORMAT!r}."
        )
    return content


def find_checkpoint(path: Path) -> Path:
    """The file itself, or the latest checkpoint in a folder."""
    if not path.is_dir():
        return path
    found = {
        int(match[1]): file
        for file in path.iterdir()
        if (match := re.fullmatch(r"model_(\d+)\.pt", file.name))
    }
    if not found:
        raise SnapshotError(
            f"There is no checkpoint model_….pt in {str(path)!r}: one is written after "
            "the first update."
        )
    return found[max(found)]
