"""Checked numbers for the conventions: tensors of a stated shape, units by name."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import torch
from torch import Tensor

from simstate.errors import InvalidInputError, ShapeError, unknown_name
from simstate.ids import Values, as_array, int_list
from simstate.math.vector import common_batch, determinant, norm

AngleUnit: TypeAlias = Literal["rad", "deg"]

_SCALES: dict[str, float] = {"rad": 1.0, "deg": torch.pi / 180.0}


def as_tensor(
    values: Values | float, name: str, *tail: int, like: Tensor | None = None
) -> Tensor:
    """The finite numbers as a floating-point tensor of shape (..., *tail).

    In the dtype and on the device of `like`; without one, tensors keep their own and
    other values become float64.
    """
    if isinstance(values, Tensor):
        tensor = values
        if not tensor.dtype.is_floating_point:
            raise InvalidInputError(
                f"{name} must be floating point, got {tensor.dtype}: pass .double()."
            )
    else:
        tensor = torch.as_tensor(as_array(cast("Values", values), name))
    if like is not None:
        tensor = tensor.to(device=like.device, dtype=like.dtype)
    if tail and tuple(tensor.shape[-len(tail) :]) != tail:
        wanted = ", ".join(("…", *map(str, tail)))
        raise ShapeError(
            f"{name} must have shape ({wanted}), got {tuple(tensor.shape)}."
        )
    finite = torch.isfinite(tensor)
    if not bool(finite.all()):
        where = int_list((~finite).nonzero()[0])
        raise InvalidInputError(
            f"{name} must be finite, got {float(tensor[tuple(where)])} at {where}."
        )
    return tensor


def as_single(values: Values | float, name: str, *shape: int) -> Tensor:
    """The finite numbers as one float64 tensor of just this shape, without a batch."""
    tensor = as_tensor(values, name, *shape)
    if tuple(tensor.shape) != shape:
        wanted = f"shape {shape}" if shape else "a single number"
        raise ShapeError(
            f"{name} is that of one body and must be {wanted}, got "
            f"{tuple(tensor.shape)}."
        )
    return tensor.to(torch.float64)


def batch_of(**parts: tuple[Tensor, int]) -> tuple[int, ...]:
    """The shape in front of named tensors, each with so many dimensions of its own.

    Raises if they do not broadcast.
    """
    shapes = {
        n: tuple(part.shape[: part.ndim - own]) for n, (part, own) in parts.items()
    }
    try:
        return common_batch(*shapes.values())
    except RuntimeError as error:
        said = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(
            f"The batch shapes must broadcast to one batch shape, got {said}."
        ) from error


def in_radians(unit: str) -> float:
    """One of the unit, in radians; an unknown unit raises."""
    choice("angle unit", unit, tuple(_SCALES))
    return _SCALES[unit]


def choice(what: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise, listing what is allowed, unless the value is one of them."""
    if not isinstance(value, str) or value not in allowed:
        raise unknown_name(what, str(value), allowed)


def numbers(row: Tensor) -> str:
    """A few numbers, as they stand in a message."""
    return "(" + ", ".join(f"{float(number):.6g}" for number in row) + ")"


def tolerance(tensor: Tensor) -> float:
    """How far given rotations may be from exact ones, in their dtype."""
    return 1e-4 if tensor.dtype == torch.float32 else 1e-6


def check_rotation(rot: Tensor, name: str) -> Tensor:
    """The matrices (..., 3, 3), if each is a proper rotation; else raises."""
    eye = torch.eye(3, dtype=rot.dtype, device=rot.device)
    off = (rot @ rot.mT - eye).abs().amax(dim=(-1, -2))
    bad = off > tolerance(rot)
    if bool(bad.any()):
        where = int_list(bad.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be a rotation matrix; at {where} its rows are not "
            f"orthonormal: R Rᵀ is off by {float(off[tuple(where)]):.2g}."
        )
    mirrored = determinant(rot) < 0
    if bool(mirrored.any()):
        where = int_list(mirrored.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be a rotation matrix; at {where} it has determinant −1: it "
            "mirrors, as a change to left-handed axes does."
        )
    return rot


def check_unit(quat: Tensor, name: str) -> Tensor:
    """The quaternions (..., 4) made exactly of unit length; others raise."""
    length = norm(quat)
    bad = (length[..., 0] - 1.0).abs() > tolerance(quat)
    if bool(bad.any()):
        where = int_list(bad.nonzero()[0])
        raise InvalidInputError(
            f"{name} must be unit quaternions; at {where} the length is "
            f"{float(length[..., 0][tuple(where)]):.6g}. Normalise it first."
        )
    return quat / length
