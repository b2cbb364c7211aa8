"""One file for named tensors: an npz archive, written whole, read without pickle."""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import SnapshotError
from simstate.base.files import write_atomically


def write_archive(
    path: Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write header and tensors beside the target, then put them in its place."""
    write_atomically(path, archive_bytes(header, tensors))


def archive_bytes(
    header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> memoryview:
    """Header and tensors as the bytes of one archive."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    arrays["digest"] = np.frombuffer(_digest(arrays), dtype=np.uint8)
    buffer = io.BytesIO()
    try:
        np.savez(buffer, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    except ValueError as error:  # an archive that cannot be closed hides Ctrl-C
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise
    return buffer.getbuffer()


def read_archive(
    path: Path, formats: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a file of one of these formats, whole and unaltered."""
    if not path.is_file():
        raise SnapshotError(f"There is no file {str(path)!r}.")
    return archive_from(path, path, formats)


def archive_from(
    source: Path | io.BytesIO, label: object, formats: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of an archive, which messages call `label`."""
    path = str(label)
    check_archive(source, label)
    try:
        with zipfile.ZipFile(source) as archive:
            arrays = {
                name.removesuffix(".npy"): _array(archive.read(name))
                for name in archive.namelist()
            }
        digest = arrays.pop("digest").tobytes()
        whole = digest == _digest(arrays)
        header: Any = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # what a damaged archive raises is without limits
        raise SnapshotError(
            f"{path!r} is not a whole file of simstate: {error}. It may be cut "
            "off, damaged or of another kind."
        ) from error
    if not whole:
        raise SnapshotError(f"{path!r} was altered: its checksum does not fit.")
    form = cast("dict[str, Any]", header).get("format") if _is_dict(header) else None
    if form not in formats:
        raise SnapshotError(
            f"{path!r} has the format {form!r}; this version "
            f"reads {' and '.join(map(repr, formats))}."
        )
    tensors = {name: torch.as_tensor(array.copy()) for name, array in arrays.items()}
    return header, tensors


def check_archive(source: Path | io.BytesIO, label: object = None) -> None:
    """Raise unless a file is a zip archive that holds no more than its own size.

    Nothing that is read here is compressed, so that more would be a bomb.
    """
    name = repr(str(source if label is None else label))
    try:
        with zipfile.ZipFile(source) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except Exception as error:
        raise SnapshotError(
            f"{name} is not a whole file of simstate: it is no .npz archive. It "
            "may be cut off, damaged or of another kind."
        ) from error
    is_file = isinstance(source, Path)
    size = source.stat().st_size if is_file else len(source.getbuffer())
    if unpacked > size:
        raise SnapshotError(
            f"{name} would unpack from {size:,} to {unpacked:,} "
            "bytes, but files of simstate are not compressed: it was not unpacked."
        )


def _array(data: bytes) -> np.ndarray:
    """The array of a .npy file, whose header must say what the rest is."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0}[version]  # fmt: skip
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    size = dtype.itemsize * math.prod(shape)
    rest = data[stream.tell() :]
    if len(rest) != size:
        raise ValueError(f"an array of {size} bytes has {len(rest)}")
    array = np.frombuffer(rest, dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    """SHA-256 over names, types, shapes and bytes of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.digest()
