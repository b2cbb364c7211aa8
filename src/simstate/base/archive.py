"""Named tensors in one .npz archive, written atomically and read without pickle."""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
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
    """Write header and tensors to a temporary file, then move it over the target."""
    write_atomically(path, archive_bytes(header, tensors))


def archive_bytes(
    header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> memoryview:
    """Return header and tensors as the bytes of one archive."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    arrays["digest"] = np.frombuffer(_digest(arrays), dtype=np.uint8)
    buffer = io.BytesIO()
    try:
        np.savez(buffer, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    except ValueError as error:  # closing the archive failed, which hides Ctrl-C
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise
    return buffer.getbuffer()


def read_archive(
    path: Path, formats: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return header and tensors of a complete, unaltered file of one of the formats."""
    if not path.is_file():
        raise SnapshotError(f"There is no file {str(path)!r}.", name=str(path))
    return archive_from(path, path, formats)


def archive_from(
    source: Path | io.BytesIO, label: object, formats: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return header and tensors of an archive, which messages call `label`."""
    path = str(label)
    arrays = read_arrays(source, label)
    try:
        digest = arrays.pop("digest").tobytes()
        is_unaltered = digest == _digest(arrays)
        header: Any = json.loads(arrays.pop("header").tobytes())
    except Exception as error:  # a damaged archive may raise anything
        raise SnapshotError(
            f"{path!r} is not a complete simstate file: {error}. It may be "
            "truncated, damaged or of another kind.",
            name=path,
        ) from error
    if not is_unaltered:
        raise SnapshotError(
            f"{path!r} was altered: its checksum does not match.", name=path
        )
    form = cast("dict[str, Any]", header).get("format") if _is_dict(header) else None
    if form not in formats:
        raise SnapshotError(
            f"{path!r} has the format {form!r}; this version "
            f"reads {' and '.join(map(repr, formats))}.",
            name=path,
        )
    tensors = {name: torch.as_tensor(array.copy()) for name, array in arrays.items()}
    return header, tensors


def read_arrays(
    source: Path | io.BytesIO, label: object = None
) -> dict[str, np.ndarray]:
    """Return the arrays of an uncompressed .npz archive, by name."""
    check_archive(source, label)
    name = source if label is None else label
    arrays: dict[str, np.ndarray] = {}
    member = ""
    try:
        with zipfile.ZipFile(source) as archive:
            for one in archive.infolist():
                member = one.filename
                arrays[member.removesuffix(".npy")] = _array(_bytes_of(archive, one))
    except Exception as error:  # a damaged archive may raise anything
        where = f", at {member!r}" if member else ""
        raise SnapshotError(
            f"{str(name)!r} is not a complete simstate file{where}: {error}. It may be "
            "truncated, damaged or of another kind.",
            name=str(name),
        ) from error
    return arrays


def check_archive(source: Path | io.BytesIO, label: object = None) -> None:
    """Raise unless a file is a zip archive whose members are stored uncompressed.

    The central directory of an archive and the local headers of its members may
    contradict each other, and libraries use either: both must state that a member is
    not compressed, and the same size.
    """
    name = str(source if label is None else label)
    is_file = isinstance(source, Path)
    try:
        size = source.stat().st_size if is_file else len(source.getbuffer())
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            unpacked = sum(member.file_size for member in members)
            stored = [member for member in members if _is_stored(archive, member)]
    except Exception as error:
        raise SnapshotError(
            f"{name!r} is not a complete simstate file: it is not an .npz archive. It "
            "may be truncated, damaged or of another kind.",
            name=name,
        ) from error
    if unpacked > size or len(stored) < len(members):
        raise SnapshotError(
            f"{name!r} would unpack from {size:,} to {unpacked:,} bytes or more, but "
            "simstate files are not compressed: it was not unpacked.",
            name=name,
        )


_LOCAL = struct.Struct("<4s5H3I2H")
"""Local header of a member, before its name: magic, version, flags, method, time, date,
checksum, compressed size, size, and the lengths of the name and of the extra field."""
_IN_EXTRA = 0xFFFFFFFF
"""Size in the header of a member above 4 GiB; the extra field holds the true size."""


def _is_stored(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Return True if both headers of a member state that it is not compressed."""
    file = archive.fp
    assert file is not None
    file.seek(member.header_offset)
    head = _LOCAL.unpack(file.read(_LOCAL.size))
    method, small, large = head[3], head[7], head[8]
    sizes = {small, large} - {_IN_EXTRA}
    is_late = bool(head[2] & 0x08) and sizes == {0}  # sizes follow the data
    return (
        member.compress_type == method == zipfile.ZIP_STORED
        and member.compress_size == member.file_size
        and (is_late or sizes <= {member.file_size})
    )


def _bytes_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return the content of a stored member, which must have the size it states."""
    with archive.open(member) as file:
        data = file.read(member.file_size)
        if len(data) != member.file_size or file.read(1):
            raise ValueError(f"it does not have the stated {member.file_size:,} bytes")
    return data


def _array(data: bytes) -> np.ndarray:
    """Return the array of a .npy file, whose header must match its content."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0}[version]  # fmt: skip
    shape, by_columns, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("it contains Python objects")
    size = dtype.itemsize * math.prod(shape)
    rest = data[stream.tell() :]
    if len(rest) != size:
        raise ValueError(f"an array of {size} bytes has {len(rest)} bytes of data")
    array = np.frombuffer(rest, dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _digest(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the SHA-256 of the names, types, shapes and bytes of the arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.digest()
