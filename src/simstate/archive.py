"""One file for named tensors: an npz archive, written whole, read without pickle."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.errors import SnapshotError
from simstate.files import write_atomically


def write_archive(
    path: Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write header and tensors beside the target, then put them in its place."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    arrays["digest"] = np.frombuffer(_digest(arrays), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    write_atomically(path, buffer.getbuffer())


def read_archive(
    path: Path, formats: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a file of one of these formats, whole and unaltered."""
    if not path.is_file():
        raise SnapshotError(f"There is no file {str(path)!r}.")
    if not zipfile.is_zipfile(path):
        raise SnapshotError(
            f"{str(path)!r} is not a whole file of simstate: it is no .npz archive. It "
            "may be cut off, damaged or of another kind."
        )
    try:
        archive: Any = np.load(path, allow_pickle=False)
        with archive:
            arrays: dict[str, np.ndarray] = {name: archive[name] for name in archive}
        digest = arrays.pop("digest").tobytes()
        whole = digest == _digest(arrays)
        header: dict[str, Any] = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # what a damaged archive raises is without limits
        raise SnapshotError(
            f"{str(path)!r} is not a whole file of simstate: {error}. It may be cut "
            "off, damaged or of another kind."
        ) from error
    if not whole:
        raise SnapshotError(f"{str(path)!r} was altered: its checksum does not fit.")
    if header.get("format") not in formats:
        raise SnapshotError(
            f"{str(path)!r} has the format {header.get('format')!r}; this version "
            f"reads {' and '.join(map(repr, formats))}."
        )
    tensors = {name: torch.as_tensor(array.copy()) for name, array in arrays.items()}
    return header, tensors


def _digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    """SHA-256 over names, types, shapes and bytes of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.digest()
