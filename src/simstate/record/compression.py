"""Arrays as bytes: shuffled and compressed; decompression is bounded by their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from simstate.base.errors import RecordingError
from simstate.base.extras import library

DTYPES = (
    "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip
"""Dtypes of a recording."""

LARGEST = 1 << 30
"""Maximum size of an array of a recording [bytes]."""

LEVEL = -5
"""Level of Zstandard: level 1 takes 1.5 times as long and saves 3 % more of a
float64."""


def zstandard() -> Any:
    """Return the compression library."""
    return library("zstandard", "record", "Recordings")


def packed(array: np.ndarray) -> bytes:
    """Return an array compressed, with bytes of equal significance side by side.

    The high bytes of floating-point numbers repeat from sample to sample, which only
    shows when they are neighbours.
    """
    return zstandard().ZstdCompressor(level=LEVEL).compress(shuffled(array))


def shuffled(array: np.ndarray) -> bytes:
    """Return the first byte of every number, then the second, and so on."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(-1, flat.itemsize).T.tobytes()


def unshuffled(data: bytes, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Return the array whose bytes `shuffled` reordered; it is writable."""
    size = size_of(dtype, shape)
    if len(data) != size:
        raise RecordingError(f"an array of {size} bytes has {len(data)}")
    item = np.dtype(dtype).itemsize
    columns = np.frombuffer(data, np.uint8).reshape(item, -1)
    whole = np.array(columns.T, order="C").reshape(-1).view(np.dtype(dtype))
    return whole.reshape(tuple(shape))


def unpacked(data: bytes, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Return the array that `packed` compressed; a larger one raises."""
    return unshuffled(decompressed(data, size_of(dtype, shape)), dtype, shape)


def decompressed(data: bytes, size: int) -> bytes:
    """Return decompressed bytes; raise unless there are `size` of them."""
    library_ = zstandard()
    try:
        stated = library_.frame_content_size(data)
        if stated != size:
            raise RecordingError(
                f"{size} bytes should be there, {stated} are", name="size"
            )
        return library_.ZstdDecompressor().decompress(data, max_output_size=size)
    except library_.ZstdError as error:
        raise RecordingError(f"a block cannot be unpacked: {error}") from error


def size_of(dtype: str, shape: Sequence[int]) -> int:
    """Return the size of an array [bytes]; raise if a recording cannot hold it."""
    if dtype not in DTYPES or any(n < 0 for n in shape):
        raise RecordingError(
            f"an array of {dtype!r} and shape {tuple(shape)} is none", name="dtype"
        )
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if size > LARGEST:
        raise RecordingError(
            f"an array of {size:,} bytes is larger than any block", name="size"
        )
    return size
