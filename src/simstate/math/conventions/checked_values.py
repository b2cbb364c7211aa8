"""Validated values for the conventions: tensors of a given shape, units by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from simstate.base.checks import as_array, check_finite, one_of, report_rounding
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.ids import Values, int_list
from simstate.math import euler
from simstate.math.vector import common_batch, determinant, norm

AngleUnit: TypeAlias = Literal["rad", "deg"]

_SCALES: dict[str, float] = {"rad": 1.0, "deg": torch.pi / 180.0}


def as_tensor(
    values: Values | float, name: str, *tail: int, like: Tensor | None = None
) -> Tensor:
    """Return finite values as a floating-point tensor of shape (..., *tail).

    It has the dtype and the device of `like`. Without `like`, tensors keep theirs and
    other values become float64.
    """
    if isinstance(values, Tensor):
        tensor = values
        if not tensor.dtype.is_floating_point:
            remedy = ".real" if tensor.is_complex() else ".double()"
            raise InvalidInputError(
                f"{name} must be floating point, got {tensor.dtype}: pass {remedy}.",
                name=name,
            )
    else:
        tensor = torch.as_tensor(as_array(values, name))
    if like is not None:
        tensor = tensor.to(device=like.device, dtype=like.dtype)
    if tail and tuple(tensor.shape[-len(tail) :]) != tail:
        wanted = ", ".join(("…", *map(str, tail)))
        raise ShapeError(
            f"{name} must have shape ({wanted}), got {tuple(tensor.shape)}.",
            name=name,
            shape=tensor.shape,
        )
    return check_finite(tensor, name, after="")


def as_float64(values: Values | float, name: str, *tail: int) -> Tensor:
    """Return finite float64 values of shape (..., *tail); warn if they were rounded."""
    tensor = as_tensor(values, name, *tail)
    report_rounding(tensor, name)
    return tensor.to(torch.float64)


def as_single(values: Values | float, name: str, *shape: int) -> Tensor:
    """Return finite float64 values of exactly this shape, without a batch."""
    tensor = as_tensor(values, name, *shape)
    if tuple(tensor.shape) != shape:
        wanted = f"shape {shape}" if shape else "a single number"
        raise ShapeError(
            f"{name} describes one body and must be {wanted}, got "
            f"{tuple(tensor.shape)}.",
            name=name,
            shape=tensor.shape,
        )
    report_rounding(tensor, name)
    return tensor.to(torch.float64)


def together(**parts: tuple[Values, *tuple[int, ...]]) -> tuple[Tensor, ...]:
    """Return named values, each (values, *last dimensions), checked and of one dtype.

    The first determines dtype and device; the batch shapes must broadcast.
    """
    found: list[Tensor] = []
    for name, (values, *tail) in parts.items():
        like = found[0] if found else None
        found.append(as_tensor(values, name, *tail, like=like))
    ranks = (len(part) - 1 for part in parts.values())
    batch_of(**dict(zip(parts, zip(found, ranks, strict=True), strict=True)))
    return tuple(found)


def batch_of(**parts: tuple[Tensor, int]) -> tuple[int, ...]:
    """Return the common batch shape of tensors with the given numbers of dimensions.

    Raise ShapeError if they do not broadcast.
    """
    shapes = {
        n: tuple(part.shape[: part.ndim - own]) for n, (part, own) in parts.items()
    }
    try:
        return common_batch(*shapes.values())
    except RuntimeError as error:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(
            f"The batch shapes must broadcast to one batch shape, got {said}.",
            name=", ".join(shapes),
            shape=next(iter(shapes.values())),
        ) from error


def in_radians(unit: str) -> float:
    """Return the size of a unit of angle in radians; raise if it is unknown."""
    one_of("angle unit", unit, _SCALES)
    return _SCALES[unit]


def check_sequence(sequence: object) -> None:
    """Raise unless it is the id of an Euler sequence; explain other notations."""
    if isinstance(sequence, str) and sequence in euler.SEQUENCES:
        return
    raise unknown_name(
        "Euler sequence", sequence, euler.SEQUENCES, hint=_other_notation(sequence)
    )


def _other_notation(sequence: object) -> str:
    """Return the id of a sequence written as "321", "zyx" or "ZYX", as a sentence."""
    text = str(sequence)
    letters = text.lower().translate(str.maketrans("123", "xyz"))
    if f"i{letters}" not in euler.SEQUENCES:
        return ""
    if text.isdigit():
        return f" {text!r} (about the body's axes {letters}) is 'i{letters}'."
    return (
        f" 'i{letters}' is about the body's axes (SciPy: {letters.upper()!r}), "
        f"'e{letters}' about fixed axes (SciPy: {letters!r})."
    )


def numbers(row: Tensor) -> str:
    """Return a few values formatted for a message."""
    return "(" + ", ".join(f"{float(number):.6g}" for number in row) + ")"


def tolerance(tensor: Tensor) -> float:
    """Return the tolerance for rotations given by a user, by dtype."""
    return 1e-4 if tensor.dtype == torch.float32 else 1e-6


def check_rotation(rot: Tensor, name: str) -> Tensor:
    """Return the matrices (..., 3, 3); raise unless each is a proper rotation."""
    eye = torch.eye(3, dtype=rot.dtype, device=rot.device)
    off = (rot @ rot.mT - eye).abs().amax(dim=(-1, -2))
    bad = off > tolerance(rot)
    if bool(bad.any()):
        where = int_list(bad.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be a rotation matrix; at {where} its rows are not "
            f"orthonormal: R Rᵀ is off by {float(off[tuple(where)]):.2g}.",
            name=name,
            shape=rot.shape,
        )
    mirrored = determinant(rot) < 0
    if bool(mirrored.any()):
        where = int_list(mirrored.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be a rotation matrix; at {where} its determinant is −1: it "
            "is a reflection, as a change to left-handed axes is.",
            name=name,
            shape=rot.shape,
        )
    return rot


def check_unit(quat: Tensor, name: str) -> Tensor:
    """Return normalised quaternions (..., 4); raise unless their length is near 1."""
    length = norm(quat)
    bad = (length[..., 0] - 1.0).abs() > tolerance(quat)
    if bool(bad.any()):
        where = int_list(bad.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be unit quaternions; at {where} the length is "
            f"{float(length[..., 0][tuple(where)]):.6g}. Normalise it first.",
            name=name,
            shape=quat.shape,
        )
    return quat / length
