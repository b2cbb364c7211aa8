"""Backends: the operations of a step that differ between NumPy and torch.

On the host, a step computes with NumPy arrays, whose calls are several times faster
than those of torch. On a device it computes with tensors and waits for the device once:
to read the worlds that are due for a command, an event or a reset, and errors found.
"""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.world.random import WorldRandom

MakeError = Callable[[Any], Exception]
"""`make_error(invalid)` returns the error for values; `invalid` is the mask of those
that are not finite."""


class Backend:
    """Operations on the arrays of a step, by torch, on memory of any device."""

    kind: type = Tensor
    """The type of arrays."""
    xp: Any = torch
    """The module with their functions."""
    bool: Any = torch.bool
    """The dtype of conditions."""
    real: tuple[Any, ...] = (
        torch.float32, torch.float64, torch.bool, torch.int64, torch.int32, torch.uint8,
        torch.int8,
    )  # fmt: skip
    """The dtypes of real numbers, the most frequent ones first."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pending: list[tuple[Tensor, Callable[[], Exception]]] = []
        """Errors to raise where a flag on the device is set."""

    def array(self, tensor: Tensor) -> Any:
        """Return a tensor, without a graph, as an array that shares its memory."""
        return tensor.detach()

    def as_array(self, value: object) -> Any:
        """Return an array or a tensor as an array; None: it is neither."""
        return value.detach() if isinstance(value, Tensor) else None

    def tensor(self, array: Any) -> Tensor:
        """Return an array as a tensor that shares its memory."""
        return array

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
        """Return new memory."""
        return torch.empty(shape, dtype=dtype, device=self._device)

    def copy(self, array: Any) -> Any:
        """Return a copy."""
        return array.clone()

    def constant(self, values: Sequence[float], dtype: torch.dtype) -> Any:
        """Return numbers as an array of one dimension."""
        return torch.tensor(values, dtype=dtype, device=self._device)

    def cast(self, values: Any, dtype: torch.dtype) -> Any:
        """Return values in another dtype, on the device."""
        return values.to(self._device, dtype)

    def uniform(
        self, rng: WorldRandom, rows: Tensor | None, low: Any, high: Any
    ) -> Any:
        """Return numbers of [low, high) for worlds, float64; (n, columns)."""
        return rng.uniform(slice(None) if rows is None else rows, len(low), low, high)

    def ordered_sum(self, parts: Any) -> Any:
        """Return the sum over the first dimension, in its order, in new memory.

        A sum over a dimension adds in an order that depends on the number of worlds.
        """
        total = parts[0].clone()
        for part in parts[1:]:
            total += part
        return total

    def check_finite(self, values: Any, excused: Any, error: MakeError) -> None:
        """Raise for values that are not finite, at the next `ids`.

        Where `excused`, they are set to zero: in a world that has diverged, even the
        last finite state may have accelerations that are not finite. None: nowhere.
        """
        invalid = ~torch.isfinite(values)
        if excused is not None:
            values.masked_fill_(invalid & excused, 0.0)
            invalid &= ~excused
        self._pending.append((invalid.any(), lambda: error(invalid)))

    def ids(self, masks: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the ids of the worlds in each mask; raise pending errors."""
        pending, self._pending = self._pending, []
        flags = [flag.reshape(1) for flag, _ in pending]
        found = torch.cat([*masks.values(), *flags]).cpu().numpy()
        parts = np.split(found, np.cumsum([len(mask) for mask in masks.values()]))
        for flag, (_, error) in zip(parts.pop(), pending, strict=True):
            if flag:
                raise error()
        each: Sequence[Any] = [part.nonzero()[0] for part in parts]
        return {
            name: torch.as_tensor(rows, device=self._device)
            for name, rows in zip(masks, each, strict=True)
        }

    def check(self) -> None:
        """Raise pending errors if the device is the host, which need not wait."""
        if self._pending and self._device.type == "cpu":
            self.ids({})

    def forget(self) -> None:
        """Drop pending errors of a step that was not finished."""
        self._pending.clear()


class HostBackend(Backend):
    """The same by NumPy, on memory of the host; errors are raised immediately."""

    kind: type = np.ndarray
    xp: Any = np
    bool: Any = np.dtype(bool)
    real = tuple(
        np.dtype(name)
        for name in ("float64", "float32", "bool", "int64", "int32", "uint8", "int8")
    )

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self._no_worlds = torch.zeros(0, dtype=torch.int64)

    def array(self, tensor: Tensor) -> Any:
        """Return a tensor as an array that shares its memory."""
        tensor = tensor.detach()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()

    def as_array(self, value: object) -> Any:
        """Return an array or a tensor as an array; None: it is neither."""
        if isinstance(value, Tensor):
            return self.array(value) if value.device.type == "cpu" else None
        return value if isinstance(value, np.ndarray) else None  # pyright: ignore[reportUnknownVariableType]

    def tensor(self, array: Any) -> Tensor:
        """Return an array as a tensor that shares its memory."""
        return torch.from_numpy(array)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
        """Return new memory."""
        return np.empty(shape, _DTYPES[dtype])

    def copy(self, array: Any) -> Any:
        """Return a copy."""
        return array.copy()

    def constant(self, values: Sequence[float], dtype: torch.dtype) -> Any:
        """Return numbers as an array of one dimension."""
        return np.array(values, _DTYPES[dtype])

    def cast(self, values: Any, dtype: torch.dtype) -> Any:
        """Return values in another dtype."""
        return values.astype(_DTYPES[dtype], copy=False)

    def uniform(
        self, rng: WorldRandom, rows: Tensor | None, low: Any, high: Any
    ) -> Any:
        """Return numbers of [low, high) for worlds, float64; (n, columns)."""
        return rng.uniform_array(rows, low, high)

    def ordered_sum(self, parts: Any) -> Any:
        """Return the sum over the first dimension, in its order, in new memory."""
        return np.add.accumulate(parts, 0)[-1]

    def check_finite(self, values: Any, excused: Any, error: MakeError) -> None:
        """Raise for values that are not finite."""
        if math.isfinite(np.add.reduce(values, None)):  # so is each of them
            return
        invalid = ~np.isfinite(values)
        if excused is not None:
            values[invalid & excused] = 0.0
            invalid &= ~excused
        if invalid.any():
            raise error(invalid)

    def ids(self, masks: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the ids of the worlds in each mask."""
        return {name: self._ids(mask) for name, mask in masks.items()}

    def _ids(self, mask: Any) -> Tensor:
        if 1 not in mask.tobytes():  # searching bytes is the fastest
            return self._no_worlds
        return torch.from_numpy(mask.nonzero()[0])


_DTYPES = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bool: np.bool_,
    torch.int64: np.int64,
}
"""The dtypes of a step's arrays, except those of pictures."""


def backend_of(env: Any) -> Backend:
    """Return the operations that a step of an environment uses, for its components."""
    return env._backend
