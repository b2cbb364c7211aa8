"""Checks of what a user passes; each returns the value, or raises what to do.

The errors have the name of what was wrong, and its shape where it has one, as data.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError, unknown_name, warn

Values: TypeAlias = "Tensor | np.ndarray[Any, Any] | Sequence[Any]"
"""Floating-point values: a tensor, an array or nested sequences of numbers."""

NOT_WRITTEN = " Nothing was written."
"""Last sentence of a writer's error."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Limits:
    """Between which limits a number must be; None: there is none on that side."""

    more_than: float | None = None
    at_least: float | None = None
    less_than: float | None = None
    at_most: float | None = None
    finite: bool = True
    unit: str = ""

    def __str__(self) -> str:
        limits = [
            f"{sign} {limit:g}"
            for sign, limit in (
                (">", self.more_than), ("≥", self.at_least),
                ("<", self.less_than), ("≤", self.at_most),
            )
            if limit is not None
        ]  # fmt: skip
        if self.finite and len(limits) < 2:
            limits.append("finite")
        unit = f" [{self.unit}]" if self.unit else ""
        return " and ".join(limits or ["a number"]) + unit

    def outside(self, values: Tensor) -> Tensor:
        """Which values are not within the limits; bool, same shape."""
        bad = ~values.isfinite() if self.finite else values.isnan()
        if self.more_than is not None:
            bad |= values <= self.more_than
        if self.at_least is not None:
            bad |= values < self.at_least
        if self.less_than is not None:
            bad |= values >= self.less_than
        if self.at_most is not None:
            bad |= values > self.at_most
        return bad

    def check(self, values: Tensor, what: str, after: str = "") -> Tensor:
        """The values, if all of them are within the limits; else names the first."""
        bad = self.outside(values)
        if bool(bad.any()):
            where = tuple(int(i) for i in bad.nonzero()[0])
            place = f" at {list(where)}" if where else ""
            raise InvalidInputError(
                f"{what} must be {self}, got {float(values[where]):g}{place}.{after}",
                name=what,
                shape=values.shape,
            )
        return values


FINITE = Limits()
"""Any number but NaN and infinity."""


def number(
    what: str,
    value: object,
    *,
    more_than: float | None = None,
    at_least: float | None = None,
    less_than: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    unit: str = "",
) -> float:
    """One real number within limits; a bool, a text or an array of several is none."""
    limits = Limits(more_than, at_least, less_than, at_most, finite, unit)
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        found = float(cast("Any", value))
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InvalidInputError(
            f"{what} must be a number, {limits}, got {value!r}.", name=what
        ) from error
    fits = (
        (math.isfinite(found) if finite else not math.isnan(found))
        and (more_than is None or found > more_than)
        and (at_least is None or found >= at_least)
        and (less_than is None or found < less_than)
        and (at_most is None or found <= at_most)
    )
    if not fits:
        raise InvalidInputError(f"{what} must be {limits}, got {found:g}.", name=what)
    return found


def check_finite(values: Tensor, what: str, after: str = NOT_WRITTEN) -> Tensor:
    """The values, if every one is finite; else names the first that is not."""
    if bool(values.isfinite().all()):
        return values
    return FINITE.check(values, what, after)


def whole_number(what: str, value: object, least: int, most: int | None = None) -> int:
    """Return the value as an int of at least `least`; a bool is rejected."""
    try:
        found = operator.index(cast("Any", value))
    except TypeError:
        found = None
    too_much = found is not None and most is not None and found > most
    if found is None or found < least or too_much or isinstance(value, bool):
        upto = f" and ≤ {most}" if too_much else ""
        raise InvalidInputError(
            f"{what} must be a whole number ≥ {least}{upto}, got {repr(value)[:61]}.",
            name=what,
        )
    return found


def one_of(what: str, value: object, allowed: Iterable[str]) -> None:
    """Raise unless the value is one of the allowed names."""
    known = tuple(allowed)
    if not isinstance(value, str) or value not in known:
        raise unknown_name(what, value, known)


def check_range(label: str, field: str, span: object) -> None:
    """Raise unless the value is (minimum, maximum), or None for no range."""
    if span is None:
        return
    ends = cast("tuple[Any, ...]", span) if isinstance(span, tuple | list) else ()
    are_numbers = all(isinstance(end, Real) for end in ends)
    if (
        len(ends) != 2
        or not are_numbers
        or not -math.inf < ends[0] <= ends[1] < math.inf
    ):
        raise InvalidInputError(
            f"The {label} has {field} {span!r}: it must be (least, greatest), finite.",
            name=field,
        )


def instance_of(
    what: str, value: object, kind: type[_T] | UnionType, hint: str = ""
) -> _T:
    """The value, if it is of that class."""
    if not isinstance(value, kind):
        wanted, got = getattr(kind, "__name__", kind), type(value).__name__
        raise InvalidInputError(
            f"{what} must be a {wanted}, got {got}: {str(value)[:60]}.{hint}",
            name=what,
        )
    return cast("_T", value)


def all_of(what: str, values: object, kind: type[_T]) -> list[_T]:
    """The values of a sequence, if each of them is of that class."""
    given = cast("Any", values)
    if isinstance(values, str | Mapping | Tensor) or not hasattr(given, "__iter__"):
        raise InvalidInputError(
            f"{what} must be a sequence, got {type(given).__name__}: "
            f"{str(given)[:60]}.",
            name=what,
        )
    return [instance_of(f"{what}[{i}]", one, kind) for i, one in enumerate(given)]


def as_path(what: str, value: object) -> Path:
    """The path of a file or folder, from a text or a path."""
    return Path(instance_of(what, value, str | PathLike))


def has_shape(
    what: str, values: Any, *shapes: tuple[int | str, ...], means: str = ""
) -> None:
    """Raise unless a tensor or an array has one of the shapes; (): one number.

    A size that is a name may be any. `means` says what the shape is of.
    """
    shape = getattr(values, "shape", None)
    got = None if shape is None else tuple(shape)
    if got is not None and any(_fits(got, wanted) for wanted in shapes):
        return
    given = repr(values)[:60] if got is None else _shown(got)
    others = " or ".join(_shown(wanted) for wanted in shapes if wanted)
    parts = ["be a number"] * (() in shapes) + [f"have shape {others}"] * bool(others)
    raise ShapeError(
        f"{what} must {' or '.join(parts)}{means}, got {given}.", name=what, shape=got
    )


def _fits(shape: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        isinstance(size, str) or size == given
        for given, size in zip(shape, wanted, strict=True)
    )


def _shown(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def as_array(values: object, what: str) -> np.ndarray[Any, Any]:
    """The numbers of an array or of nested sequences, as a float64 copy."""
    try:
        array = np.array(values)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise InvalidInputError(
        f"{what} must be real numbers in a tensor, array or nested list of even shape, "
        f"got {type(values).__name__}: {str(values)[:60]}.",
        name=what,
    )


def report_rounding(values: Tensor, what: str) -> None:
    """Warn if float32 values, to be used as float64, were visibly rounded.

    From 1024 on, float32 is spaced by 1.2e-4 or more; integers below 2²⁴ are exact.
    """
    if values.dtype != torch.float32 or not bool((values.abs() >= 1024).any()):
        return
    rounded = (values.abs() >= 2**24) | (values.frac() != 0)
    rounded &= (values.abs() >= 1024) & values.isfinite()
    if bool(rounded.any()):
        first = float(values[rounded][0])
        spacing = 2.0 ** (math.frexp(first)[1] - 24)
        warn(
            f"{what} is float32, where values near {first:g} are {spacing:.2g} apart, "
            "but the simulation computes in float64: pass a float64 tensor "
            "(torch.tensor(…, dtype=torch.float64)), or a list, which is taken as "
            "float64."
        )


def as_device(device: str | torch.device) -> torch.device:
    """The device of that name."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"device must be 'cpu' or 'cuda', as torch names them, got "
            f"{str(device)[:60]!r}.",
            name="device",
        ) from error
