"""Sessions of ONNX Runtime for self-contained files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simstate.base.errors import InvalidInputError
from simstate.base.extras import library

_PARTS = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}  # fmt: skip
"""Messages of onnx.proto that may contain tensors: field numbers and their kinds."""
_EXTERNAL = (13, 14)
"""Fields of a tensor with values in another file: external_data, data_location."""
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


def onnx_session(path: Path) -> Any:
    """Return a session of ONNX Runtime, on one thread of the CPU.

    A file with tensors in other files is rejected before ONNX Runtime reads it,
    because it would open them relative to the working directory.
    """
    runtime = library("onnxruntime", "play", "ONNX files")
    if not path.is_file():
        raise InvalidInputError(f"There is no file {str(path)!r}.", name=str(path))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        data = path.read_bytes()
        _check_tensors(data)
        return runtime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # ONNX Runtime raises many kinds
        reason = " ".join(str(error).split())[:200]
        raise InvalidInputError(
            f"{str(path)!r} is not a usable ONNX file: {reason}.", name=str(path)
        ) from error


def _check_tensors(data: bytes) -> None:
    """Raise if a tensor of a model, at any depth, has its values in another file."""
    pending = [("model", memoryview(data))]
    while pending:
        kind, message = pending.pop()
        for number, content in _fields(message):
            if kind == "tensor" and number in _EXTERNAL and content:
                raise ValueError("some of its values are in another file")
            part = _PARTS[kind].get(number)
            if part is not None and isinstance(content, memoryview):
                pending.append((part, content))


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Yield number and content of the fields of a message in protobuf's encoding."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind, size = key & 7, 0
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"a field has the unknown encoding {kind}")
        if at + size > end:
            raise ValueError("it is truncated")
        if kind == _BYTES:
            yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return an integer of variable length, and the position after it."""
    value = 0
    for k, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at + k + 1
    raise ValueError("it is truncated")
