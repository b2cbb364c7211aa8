"""Selections of worlds and elements, and the values written to them.

`env_ids` and element ids mean the same in the entire library: None (all), an int, a
slice, a sequence or tensor of ints, or a boolean mask. Order is kept: row k of the
values belongs to the k-th id. Negative, repeated and out-of-range ids raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import Values, as_array, report_rounding
from simstate.base.errors import InvalidInputError, ShapeError, listed

Ids: TypeAlias = "int | slice | Sequence[int] | np.ndarray[Any, Any] | Tensor | None"
"""None (all), an int, a slice, ints in any sequence or tensor, or a boolean mask."""

Index: TypeAlias = "slice | Tensor"
"""A validated selection: a slice where the ids are contiguous, else an int64 tensor."""

_FINDERS = {
    "ball joint": "find_ball_joints",
    "body": "find_bodies",
    "control": "find_controls",
    "joint": "find_joints",
}
"""Methods of an entity that return ids, by kind of the element."""


@dataclass(frozen=True)
class Selection:
    """`count` of `size` elements, which `index` selects in a tensor."""

    index: Index
    count: int
    size: int

    @property
    def is_all(self) -> bool:
        """True if all elements are selected, in order."""
        return isinstance(self.index, slice) and self.count == self.size

    @cached_property
    def host(self) -> slice | np.ndarray[Any, Any]:
        """Index that selects the same elements of a NumPy array."""
        index = self.index
        return index if isinstance(index, slice) else index.cpu().numpy()

    def tensor(self, device: torch.device) -> Tensor:
        """Return the selected ids, int64, shape (count,)."""
        if isinstance(self.index, slice):
            return torch.arange(self.size, device=device)[self.index]
        return self.index.to(device)

    def ids_or_none(self, device: torch.device) -> Tensor | None:
        """Return the selected ids as `tensor` does; None if all are selected."""
        return None if self.is_all else self.tensor(device)


def int_list(ids: Tensor) -> list[int]:
    """Return the values of a one-dimensional integer tensor."""
    return [int(i) for i in ids]


def everything(size: int) -> Selection:
    """Return the selection of all of `size` elements."""
    return Selection(slice(0, size), size, size)


def as_index(ids: Sequence[int], device: torch.device | None = None) -> Index:
    """Return the ids as a slice if they are consecutive, else as an int64 tensor."""
    if not len(ids):
        return slice(0, 0)
    first = int(ids[0])
    if list(ids) == list(range(first, first + len(ids))):
        return slice(first, first + len(ids))
    return torch.tensor(list(ids), dtype=torch.int64, device=device)


def select(ids: Ids, size: int, kind: str, device: torch.device) -> Selection:
    """Return the validated selection of `ids` among `size` elements called `kind`."""
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
                name=_argument(kind),
                shape=tensor.shape,
            )
        tensor = tensor.nonzero().flatten()
        return Selection(tensor, tensor.numel(), size)
    tensor = tensor.to(torch.int64)
    _check_ids(tensor, size, kind)
    return Selection(tensor, tensor.numel(), size)


def _slice(ids: slice, size: int, kind: str) -> range:
    """Return the ids that a slice selects."""
    try:
        return range(size)[ids]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{kind} ids cannot be {ids}: {error}.", name=_argument(kind)
        ) from error


def _as_id_tensor(ids: object, kind: str, device: torch.device) -> Tensor:
    """Return the ids as a one-dimensional integer or boolean tensor on the device."""
    what, name = f"{kind} ids", _argument(kind)
    if isinstance(ids, bool):
        raise InvalidInputError(f"{what} must be ints or a mask, got {ids}.", name=name)
    if isinstance(ids, int):
        ids = [ids]
    try:
        tensor = ids if isinstance(ids, Tensor) else torch.as_tensor(np.asarray(ids))
    except (TypeError, ValueError) as error:
        finder = _FINDERS.get(kind)
        hint = f" entity.{finder}(names)[0] are the ids of names." if finder else ""
        raise InvalidInputError(
            f"{what} must be None, a slice, ints or a boolean mask, got {ids!r}.{hint}",
            name=name,
        ) from error
    if tensor.numel() == 0 and tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.int64)  # an empty list has no dtype
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        raise InvalidInputError(
            f"{what} must be integers, got {tensor.dtype}.", name=name
        )
    if tensor.is_meta:
        raise InvalidInputError(
            f"{what} have no values: they are on the 'meta' device.", name=name
        )
    if isinstance(ids, list | tuple) and tensor.dtype != torch.bool:
        mixed = [i for i in cast("Sequence[object]", ids) if isinstance(i, bool)]
        if mixed:  # NumPy converts them to ints
            raise InvalidInputError(
                f"{what} must be ints or a mask, not both, got {ids!r}.", name=name
            )
    if tensor.ndim == 0:
        tensor = tensor.reshape(1)
    if tensor.ndim != 1:
        raise ShapeError(
            f"{what} must be one-dimensional, got shape {tuple(tensor.shape)}: pass "
            "ids.flatten(), or a boolean mask instead of mask.nonzero().",
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
            name=_argument(kind),
        )
    ordered = ids.sort().values
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if repeated.numel():
        raise InvalidInputError(
            f"{kind} ids must be unique, repeated: {listed(int_list(repeated), 5)}.",
            name=_argument(kind),
        )


def _argument(kind: str) -> str:
    """Return the name of the argument that has such ids."""
    return f"{kind.split()[-1]}_ids"


def assign(tensor: Tensor, rows: Index, columns: Index | None, values: Tensor) -> None:
    """Assign `tensor[rows, columns] = values` for any mix of slices and id tensors."""
    if columns is None:
        tensor[rows] = values
    elif isinstance(rows, Tensor) and isinstance(columns, Tensor):
        tensor[rows[:, None], columns] = values
    else:
        tensor[rows, columns] = values


def ndim(values: Values, name: str) -> int:
    """Return the number of dimensions of values; raise if they are not numbers."""
    if isinstance(values, Tensor):
        return values.ndim
    return as_array(values, name).ndim


def as_values(
    values: Values, name: str, rows: int, shape: tuple[int, ...], like: Tensor
) -> Tensor:
    """Return the values as a tensor of `like`'s dtype; shape (rows or 1, *shape)."""
    tensor = _as_float_tensor(values, name, like)
    if tensor.ndim != 1 + len(shape) or tuple(tensor.shape[1:]) != shape:
        raise _wrong_shape(name, rows, shape, tensor)
    if tensor.shape[0] not in (rows, 1):
        raise _wrong_shape(name, rows, shape, tensor)
    return tensor


def _as_float_tensor(values: Values, name: str, like: Tensor) -> Tensor:
    """Return the values in the dtype of `like`; raise unless real and on its device."""
    if isinstance(values, Tensor):
        if values.device != like.device:
            raise InvalidInputError(
                f"{name} is on {values.device} but the simulation on {like.device}: "
                f"pass {name}.to({str(like.device)!r}).",
                name=name,
            )
        if not values.dtype.is_floating_point:
            remedy = ".real" if values.is_complex() else ".double()"
            raise InvalidInputError(
                f"{name} must be floating point, got {values.dtype}: pass {remedy}.",
                name=name,
            )
        if values.layout != torch.strided:
            raise InvalidInputError(
                f"{name} is {values.layout}: pass {name}.to_dense().", name=name
            )
        if like.dtype == torch.float64:
            report_rounding(values, name)
        # A copy, because the values may be a view of the destination.
        return values.detach().to(like.dtype, copy=True)
    array = as_array(values, name)
    return torch.as_tensor(array, dtype=like.dtype, device=like.device)


def _wrong_shape(
    name: str, rows: int, shape: tuple[int, ...], got: Tensor
) -> ShapeError:
    """Return the error for values of a wrong shape."""
    want = (rows, *shape)
    return ShapeError(
        f"{name} must have shape {want}: one row per selected world, or "
        f"{(1, *shape)} to give all of them the same row; "
        f"got {tuple(got.shape)}. Nothing was written.",
        name=name,
        shape=got.shape,
    )
