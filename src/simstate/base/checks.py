"""Validation of arguments; each function returns the value or raises an error.

The errors carry the name of the argument, and its shape where it has one, as data.
`what` is "argument" or "argument of owner"; the error's name is the argument.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, TypeVar, cast, get_args

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    unknown_name,
    warn,
    with_article,
)

Values: TypeAlias = "Tensor | np.ndarray[Any, Any] | Sequence[Any]"
"""Floating-point values: a tensor, an array or nested sequences of numbers."""

NOT_WRITTEN = " Nothing was written."
"""Last sentence of a writer's error."""

_T = TypeVar("_T")


def argument(what: str) -> str:
    """Return the argument of "argument of owner", with or without an article."""
    return what.removeprefix("The ").partition(" of ")[0]


@dataclass(frozen=True)
class Limits:
    """Interval that a number must be in; None leaves a side unbounded."""

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
        """Return a mask of the values outside the limits; bool, same shape."""
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
        """Return the values, or raise an error that names the first one outside."""
        bad = self.outside(values)
        if bool(bad.any()):
            where = tuple(int(i) for i in bad.nonzero()[0])
            index = f" at {list(where)}" if where else ""
            raise InvalidInputError(
                f"{what} must be {self}, got {float(values[where]):g}{index}.{after}",
                name=argument(what),
                shape=values.shape,
            )
        return values


FINITE = Limits()
"""Limits that reject only NaN and infinity."""


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
    """Return a real number within limits; reject bools, texts and longer arrays."""
    limits = Limits(more_than, at_least, less_than, at_most, finite, unit)
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        found = float(cast("Any", value))
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InvalidInputError(
            f"{what} must be a number, {limits}, got {value!r}.", name=argument(what)
        ) from error
    fits = (
        (math.isfinite(found) if finite else not math.isnan(found))
        and (more_than is None or found > more_than)
        and (at_least is None or found >= at_least)
        and (less_than is None or found < less_than)
        and (at_most is None or found <= at_most)
    )
    if not fits:
        raise InvalidInputError(
            f"{what} must be {limits}, got {found:g}.", name=argument(what)
        )
    return found


def check_finite(values: Tensor, what: str, after: str = NOT_WRITTEN) -> Tensor:
    """Return the values, or raise an error that names the first non-finite one."""
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
            f"{what} must be an integer ≥ {least}{upto}, got {repr(value)[:61]}.",
            name=argument(what),
        )
    return found


def one_of(what: str, value: object, allowed: Iterable[str]) -> None:
    """Raise unless the value is one of the allowed names."""
    known = tuple(allowed)
    if not isinstance(value, str) or value not in known:
        raise unknown_name(what, value, known)


def check_range(label: str, field: str, span: object, finite: bool = True) -> None:
    """Raise unless the value is (minimum, maximum), or None for no range."""
    if span is None:
        return
    is_pair = isinstance(span, tuple | list | np.ndarray | Tensor)
    ends = [_plain(end) for end in cast("Sequence[Any]", span)] if is_pair else []
    are_numbers = len(ends) == 2 and all(isinstance(end, Real) for end in ends)
    if (
        not are_numbers
        or not ends[0] <= ends[1]
        or (finite and not all(map(math.isfinite, ends)))
    ):
        raise InvalidInputError(
            f"The {label} has {field} {span!r}: it must be (minimum, maximum)"
            f"{', finite' * finite}.",
            name=field,
        )


def _plain(value: Any) -> Any:
    """Return an array or tensor of one number as a number, others unchanged."""
    return value.item() if getattr(value, "shape", None) == () else value


def check_vector(label: str, field: str, value: object) -> None:
    """Raise unless the value is three finite numbers."""
    parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple | list) else ()
    if len(parts) != 3 or not all(
        isinstance(part, Real) and math.isfinite(part) for part in parts
    ):
        raise InvalidInputError(
            f"The {label} has {field} {value!r}: it must be (x, y, z), finite.",
            name=field,
        )


def instance_of(
    what: str, value: object, kind: type[_T] | UnionType, hint: str = ""
) -> _T:
    """Return the value, or raise unless it is an instance of `kind`."""
    if not isinstance(value, kind):
        kinds: tuple[Any, ...] = get_args(kind) or (kind,)
        wanted = " or ".join(with_article(_name_of(one)) for one in kinds)
        got = f"{type(value).__name__}: {str(value)[:60]}"
        raise InvalidInputError(
            f"{what} must be {wanted}, got {got}.{hint}",
            name=argument(what),
        )
    return cast("_T", value)


def _name_of(kind: type) -> str:
    """Return the name of a type in messages."""
    return "int" if kind is Integral else kind.__name__


def check_calls(what: str, value: object, *calls: str) -> None:
    """Raise unless an object has the methods of calls, "air(t)" or "air.at(height)"."""
    is_class, lacking = isinstance(value, type), list[str]()
    for call in calls:
        method = call.partition("(")[0].partition(".")[2] or "__call__"
        if is_class or not callable(getattr(value, method, None)):
            lacking.append(call)
    if lacking:
        given = f"{type(value).__name__}: {str(value)[:60]}"
        made = f"the class {getattr(value, '__name__', '')}: create an object"
        raise InvalidInputError(
            f"{what} must support {' and '.join(lacking)}, got "
            f"{made if is_class else given}.",
            name=argument(what),
        )


def check_called_as(what: str, function: Any, *arguments: str, name: str) -> None:
    """Raise unless a function can be called with these positional arguments."""
    called = f"{what} must be callable as {name}({', '.join(arguments)})"
    if not callable(function):
        raise InvalidInputError(f"{called}; got {function!r}.", name=name)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C has none
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        own = getattr(function, "__qualname__", type(function).__name__)
        raise InvalidInputError(
            f"{called}; got {own}{signature}: {error}.", name=name
        ) from error


def all_of(what: str, values: object, kind: type[_T], hint: str = "") -> list[_T]:
    """Return a sequence as a list; raise unless each value is an instance of `kind`.

    A tensor or an array is a sequence of numbers, or of lists of them.
    """
    given: Any = values
    listed = given.tolist() if isinstance(values, Tensor | np.ndarray) else given
    if isinstance(values, str | Mapping) or not hasattr(listed, "__iter__"):
        of = "" if kind is object else f" of {_name_of(kind)}"
        raise InvalidInputError(
            f"{what} must be a sequence{of}, got "
            f"{type(given).__name__}: {str(given)[:60]}.{hint}",
            name=argument(what),
        )
    return [
        instance_of(f"{what}[{i}]", one, kind, hint) for i, one in enumerate(listed)
    ]


def as_path(what: str, value: object) -> Path:
    """Return the path of a file or folder, given as str or PathLike."""
    return Path(instance_of(what, value, str | PathLike))


def has_shape(
    what: str, values: Any, *shapes: tuple[int | str, ...], means: str = ""
) -> None:
    """Raise unless a tensor or an array has one of the shapes; () is a single number.

    A size given as a name matches any size. `means` explains the shape in the message.
    """
    shape = getattr(values, "shape", None)
    got = None if shape is None else tuple(shape)
    if got is not None and any(_fits(got, wanted) for wanted in shapes):
        return
    given = repr(values)[:60] if got is None else _shown(got)
    others = " or ".join(_shown(wanted) for wanted in shapes if wanted)
    parts = ["be a number"] * (() in shapes) + [f"have shape {others}"] * bool(others)
    raise ShapeError(
        f"{what} must {' or '.join(parts)}{means}, got {given}.",
        name=argument(what),
        shape=got,
    )


def _fits(shape: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        isinstance(size, str) or size == given
        for given, size in zip(shape, wanted, strict=True)
    )


def _shown(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def as_array(values: object, what: str) -> np.ndarray[Any, Any]:
    """Return the values of an array or of nested sequences, as a float64 copy."""
    try:
        array = np.array(values)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise InvalidInputError(
        f"{what} must be real numbers in a tensor, an array or a nested list with rows "
        f"of equal length, got {type(values).__name__}: {str(values)[:60]}.",
        name=argument(what),
    )


def report_rounding(values: Tensor, what: str) -> None:
    """Warn if values to be used as float64 were visibly rounded to float32.

    From 1024 on, float32 values are ≥ 1.2e-4 apart; integers below 2²⁴ are exact.
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
            "(torch.tensor(…, dtype=torch.float64)), or a list, which is converted to "
            "float64."
        )


def as_device(device: str | torch.device) -> torch.device:
    """Return the device as a `torch.device`."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"device must be 'cpu', 'cuda' or another torch device, got "
            f"{str(device)[:60]!r}.",
            name="device",
        ) from error
