"""Selections of worlds and elements, and the values written to them.

One meaning of `env_ids` and of element ids holds for the whole library: None (all),
an int, a slice, a sequence or tensor of ints, or a boolean mask. Order is kept, so row
k of the values belongs to the k-th id. Negative, repeated and out-of-range ids raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import as_array, report_rounding
from simstate.base.errors import InvalidInputError, ShapeError, listed

Ids: TypeAlias = "int | slice | Sequence[int] | np.ndarray[Any, Any] | Tensor | None"
"""None (all), an int, a slice, ints in any sequence or tensor, or a boolean mask."""

Values: TypeAlias = "Tensor | np.ndarray[Any, Any] | Sequence[Any]"
"""Floating-point values: a tensor, an array or nested sequences of numbers."""

Index: TypeAlias = "slice | Tensor"
"""A validated selection: a slice where the ids are contiguous, else an int64 tensor."""


@dataclass(frozen=True)
class Selection:
    """Some of `size` things: `index` selects them in a tensor, `count` is how many."""

    index: Index
    count: int
    size: int

    @property
    def is_all(self) -> bool:
        """True if everything is selected, in order."""
        return isinstance(self.index, slice) and self.count == self.size

    @cached_property
    def host(self) -> slice | np.ndarray[Any, Any]:
        """Index that selects the same elements of a NumPy array."""
        index = self.index
        return index if isinstance(index, slice) else index.cpu().numpy()

    def tensor(self, device: torch.device) -> Tensor:
        """The selected ids, int64, shape (count,)."""
        if isinstance(self.index, slice):
            return torch.arange(self.size, device=device)[self.index]
        return self.index.to(device)

    def ids_or_none(self, device: torch.device) -> Tensor | None:
        """The selected ids as `tensor` returns them; None: everything is selected."""
        return None if self.is_all else self.tensor(device)


def int_list(ids: Tensor) -> list[int]:
    """The integers of a one-dimensional tensor."""
    return [int(i) for i in ids]


def everything(size: int) -> Selection:
    """All of `size` things."""
    return Selection(slice(0, size), size, size)


def as_index(ids: Sequence[int], device: torch.device | None = None) -> Index:
    """The ids as a slice if they rise by one, else as an int64 tensor."""
    if not len(ids):
        return slice(0, 0)
    first = int(ids[0])
    if list(ids) == list(range(first, first + len(ids))):
        return slice(first, first + len(ids))
    return torch.tensor(list(ids), dtype=torch.int64, device=device)


def select(ids: Ids, size: int, kind: str, device: torch.device) -> Selection:
    """The validated selection that `ids` makes of `size` things called `kind`."""
    if ids is None:
        return everything(size)
    if type(ids) is int and 0 <= ids < size:
        return Selection(slice(ids, ids + 1, 1), 1, size)
    if isinstance(ids, slice):
        chosen = _slice(ids, size, kind)
        if chosen.step > 0:
            stop = chosen[-1] + 1 if len(chosen) else chosen.start
            return Selection(slice(chosen.start, stop, chosen.step), len(chosen), size)
        ids = list(chosen)
    tensor = _as_id_tensor(ids, kind, device)
    if tensor.dtype == torch.bool:
        if tensor.shape != (size,):
            raise ShapeError(
                f"A boolean mask of {kind} ids must have shape ({size},), "
                f"got {tuple(tensor.shape)}.",
                name=f"{kind} ids",
                shape=tensor.shape,
            )
        tensor = tensor.nonzero().flatten()
        return Selection(tensor, tensor.numel(), size)
    tensor = tensor.to(torch.int64)
    _check_ids(tensor, size, kind)
    return Selection(tensor, tensor.numel(), size)


def _slice(ids: slice, size: int, kind: str) -> range:
    """The ids that a slice selects."""
    try:
        return range(size)[ids]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{kind} ids cannot be {ids}: {error}.", name=f"{kind} ids"
        ) from error


def _as_id_tensor(ids: object, kind: str, device: torch.device) -> Tensor:
    """The ids as a one-dimensional integer or boolean tensor on the device."""
    name = f"{kind} ids"
    if isinstance(ids, bool):
        raise InvalidInputError(f"{name} must be ints or a mask, got {ids}.", name=name)
    if isinstance(ids, int):
        ids = [ids]
    try:
        tensor = ids if isinstance(ids, Tensor) else torch.as_tensor(np.asarray(ids))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be None, a slice, ints or a boolean mask, got {ids!r}.",
            name=name,
        ) from error
    if tensor.numel() == 0 and tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.int64)  # an empty list has no dtype
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        raise InvalidInputError(
            f"{name} must be integers, got {tensor.dtype}.", name=name
        )
    if tensor.is_meta:
        raise InvalidInputError(
            f"{name} have no values: they are on 'meta'.", name=name
        )
    if isinstance(ids, list | tuple) and tensor.dtype != torch.bool:
        mixed = [i for i in cast("Sequence[object]", ids) if isinstance(i, bool)]
        if mixed:  # NumPy makes ints of them
            raise InvalidInputError(
                f"{name} must be ints or a mask, not both, got {ids!r}.", name=name
            )
    if tensor.ndim == 0:
        tensor = tensor.reshape(1)
    if tensor.ndim != 1:
        raise ShapeError(
            f"{name} must be one-dimensional, got shape {tuple(tensor.shape)}.",
            name=name,
            shape=tensor.shape,
        )
    return tensor.to(device)


def _check_ids(ids: Tensor, size: int, kind: str) -> None:
    """Raise unless every id is in [0, size) and none is repeated."""
    if not ids.numel():
        return
    wrong = ids[(ids < 0) | (ids >= size)]
    if wrong.numel():
        raise InvalidInputError(
            f"{kind} ids must be in [0, {size}), got {listed(int_list(wrong), 5)}.",
            name=f"{kind} ids",
        )
    ordered = ids.sort().values
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if repeated.numel():
        raise InvalidInputError(
            f"{kind} ids must be unique, repeated: {listed(int_list(repeated), 5)}.",
            name=f"{kind} ids",
        )


def assign(tensor: Tensor, rows: Index, columns: Index | None, values: Tensor) -> None:
    """tensor[rows, columns] = values, for any mix of slices and id tensors."""
    if columns is None:
        tensor[rows] = values
    elif isinstance(rows, Tensor) and isinstance(columns, Tensor):
        tensor[rows[:, None], columns] = values
    else:
        tensor[rows, columns] = values


def ndim(values: Values, name: str) -> int:
    """The number of dimensions of what may be values."""
    if isinstance(values, Tensor):
        return values.ndim
    return as_array(values, name).ndim


def as_values(
    values: Values, name: str, rows: int, shape: tuple[int, ...], like: Tensor
) -> Tensor:
    """The values as a finite tensor of `like`'s dtype; shape (rows or 1, *shape)."""
    tensor = _as_float_tensor(values, name, like)
    if tensor.ndim != 1 + len(shape) or tuple(tensor.shape[1:]) != shape:
        raise _wrong_shape(name, rows, shape, tensor)
    if tensor.shape[0] not in (rows, 1):
        raise _wrong_shape(name, rows, shape, tensor)
    return tensor


def _as_float_tensor(values: Values, name: str, like: Tensor) -> Tensor:
    """The values in the dtype of `like`, refused unless they are real numbers there."""
    if isinstance(values, Tensor):
        if values.device != like.device:
            raise InvalidInputError(
                f"{name} is on {values.device}, the simulation on {like.device}: "
                f"pass {name}.to({str(like.device)!r}).",
                name=name,
            )
        if not values.dtype.is_floating_point:
            raise InvalidInputError(
                f"{name} must be floating point, got {values.dtype}: pass .double().",
                name=name,
            )
        if values.layout != torch.strided:
            raise InvalidInputError(
                f"{name} is {values.layout}: pass {name}.to_dense().", name=name
            )
        if like.dtype == torch.float64:
            report_rounding(values, name)
        # A copy: live values may be written to where they come from.
        return values.detach().to(like.dtype, copy=True)
    array = as_array(values, name)
    return torch.as_tensor(array, dtype=like.dtype, device=like.device)


def _wrong_shape(
    name: str, rows: int, shape: tuple[int, ...], got: Tensor
) -> ShapeError:
    """The error for values of a wrong shape."""
    want = (rows, *shape)
    return ShapeError(
        f"{name} must have shape {want}: one row per selected world, or "
        f"{(1, *shape)} to give every one of them the same row; "
        f"got {tuple(got.shape)}. Nothing was written.",
        name=name,
        shape=got.shape,
    )
