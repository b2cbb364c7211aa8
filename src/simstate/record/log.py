"""Log: signals of a robot or a run over time, each with its contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simstate.base.contract import UNDECLARED, UNSAID, Contract, joined
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.samples import full_column_name

MAX_GAP = 2.5
"""Longest time between two samples, in median intervals: one may be lost."""


@dataclass(frozen=True, eq=False)
class LogColumn:
    """A signal of a log: samples over time and the contract of each component."""

    name: str
    time: NDArray[np.float64]
    """Time of each sample [s], rising; shape (samples,)."""
    values: NDArray[np.float64]
    """Shape (samples, components)."""
    names: tuple[str, ...] = ()
    """Names of the components, in order; empty if they are not known."""
    contracts: tuple[Contract, ...] = ()
    """Unit, axes and point of each component; empty if none is declared."""

    def __repr__(self) -> str:
        size = f"{len(self.time)} samples of {self.width} components"
        return f"LogColumn({self.name!r}, {size}, unit={self.unit!r})"

    @property
    def width(self) -> int:
        """Number of components."""
        return self.values.shape[1]

    @property
    def rate(self) -> float:
        """Samples per second [Hz]: the inverse of the median interval."""
        return 1.0 / float(np.median(np.diff(self.time)))

    @property
    def unit(self) -> str:
        """Units of the components, each once."""
        return joined(one.unit_text for one in self.contracts) or UNDECLARED

    @property
    def axes(self) -> str:
        """Axes of the components, each once."""
        return joined(one.axes for one in self.contracts) or UNDECLARED

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parts of the contract that are not known: "unit", "axes", "order"."""
        contracts = self.contracts or (UNSAID,)
        unknown = {
            "unit": any(one.unit == UNDECLARED for one in contracts),
            "axes": any(one.axes == UNDECLARED for one in contracts),
            "order": self.width > 1 and not self.names,
        }
        return tuple(part for part, is_unknown in unknown.items() if is_unknown)

    def component(self, name: str) -> NDArray[np.float64]:
        """Return the samples of one component by name; shape (samples,)."""
        if name not in self.names:
            raise unknown_name(f"component of {self.name!r}", name, self.names)
        return self.values[:, self.names.index(name)]

    def _checked(self, source: str) -> LogColumn:
        """Return the column as float64 arrays; raise if it is no column."""
        time = np.asarray(self.time, np.float64)
        values = np.asarray(self.values, np.float64)
        label = f"Column {self.name!r} of {source}"
        if values.ndim == 1:
            values = values[:, None]
        if time.ndim != 1 or values.ndim != 2 or len(values) != len(time):
            raise ShapeError(
                f"{label} has values of shape {values.shape} at times of shape "
                f"{time.shape}: it needs a row for each time.",
                name=self.name,
                shape=values.shape,
            )
        for what, found in (("names", self.names), ("contracts", self.contracts)):
            if found and len(found) != values.shape[1]:
                raise ShapeError(
                    f"{label} has {values.shape[1]} components and {len(found)} "
                    f"{what}: it needs one for each, or none.",
                    name=self.name,
                    shape=values.shape,
                )
        _check_time(label, time)
        names, contracts = tuple(self.names), tuple(self.contracts)
        return LogColumn(self.name, time, values, names, contracts)


class Log:
    """Signals of one uninterrupted run, as columns with contracts.

    Args:
        columns: the signals; each has its times, which rise without gaps.
        source: the origin, for messages.
        notes: sentences about parts that a reader could not determine.
    """

    def __init__(
        self,
        columns: Iterable[LogColumn],
        source: str = "the log",
        notes: Iterable[str] = (),
    ) -> None:
        self.source = source
        """The origin, for messages."""
        self.notes = tuple(notes)
        """Notes of the reader about parts that it could not determine."""
        self.columns: dict[str, LogColumn] = {}
        """The signals by name."""
        for column in columns:
            if column.name in self.columns:
                raise InvalidInputError(
                    f"{source} has two columns {column.name!r}: names must differ."
                )
            self.columns[column.name] = column._checked(source)  # pyright: ignore[reportPrivateUsage]
        if not self.columns:
            raise InvalidInputError(f"{source} has no column.")

    def __repr__(self) -> str:
        return f"Log({self.source}: {', '.join(self.columns)})"

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> LogColumn:
        """Return a column by name, of which the entity's may be left out."""
        kind = f"column of {self.source}"
        return self.columns[full_column_name(name, self.columns, kind)]

    @property
    def start(self) -> float:
        """Time at which all columns have started [s]."""
        return max(float(column.time[0]) for column in self.columns.values())

    @property
    def end(self) -> float:
        """Time at which the first column ends [s]."""
        return min(float(column.time[-1]) for column in self.columns.values())

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Sentences about the unknown parts of the log: its notes, then its columns."""
        found = [
            f"{name}: {', '.join(column.undetermined)} not declared."
            for name, column in self.columns.items()
            if column.undetermined
        ]
        return (*self.notes, *found)

    def declare(
        self,
        column: str,
        *,
        name: str | None = None,
        names: Sequence[str] | None = None,
        unit: str | None = None,
        axes: str | None = None,
        scale: float = 1.0,
    ) -> Log:
        """Return the log with more of one column declared; None keeps a value.

        Args:
            column: the column's name.
            name: another name for it.
            names: names of its components, in their order.
            unit: unit of all components.
            axes: axes of all components.
            scale: factor on the values, such as -1 for a sign or pi / 180 for degrees.
        """
        old = self[column]
        said = {"unit": unit, "axes": axes}
        changes = {key: text for key, text in said.items() if text is not None}
        contracts = old.contracts or (UNSAID,) * old.width
        new = replace(
            old,
            name=old.name if name is None else name,
            values=old.values * scale,
            names=old.names if names is None else tuple(names),
            contracts=tuple(one._replace(**changes) for one in contracts),
        )
        columns = [new if c is old else c for c in self.columns.values()]
        return Log(columns, self.source, self.notes)

    def cut(self, start: float | None = None, end: float | None = None) -> Log:
        """Return the samples from `start` to `end` [s]; None: no limit."""
        parts = [
            cut_column(column, start, end, self.source)
            for column in self.columns.values()
        ]
        return Log(parts, self.source, self.notes)

    def describe(self) -> dict[str, Mapping[str, Any]]:
        """Return unit, axes, order, rate [Hz] and samples of each column."""
        return {
            name: {
                "unit": column.unit,
                "axes": column.axes,
                "order": list(column.names),
                "rate": round(column.rate, 6),
                "samples": len(column.time),
            }
            for name, column in self.columns.items()
        }


def cut_column(
    column: LogColumn, start: float | None, end: float | None, source: str
) -> LogColumn:
    """Return the samples of a column from `start` to `end` [s]; None: no limit."""
    first = -np.inf if start is None else start
    last = np.inf if end is None else end
    inside = (column.time >= first) & (column.time <= last)
    if np.count_nonzero(inside) < 2:
        raise InvalidInputError(
            f"Column {column.name!r} of {source} has fewer than two samples from "
            f"{first:g} to {last:g} s: it has those from {column.time[0]:g} to "
            f"{column.time[-1]:g} s.",
            name=column.name,
        )
    return replace(column, time=column.time[inside], values=column.values[inside])


def _check_time(label: str, time: NDArray[np.float64]) -> None:
    """Raise unless times rise without gaps."""
    if len(time) < 2 or not np.isfinite(time).all():
        count = np.count_nonzero(~np.isfinite(time))
        raise InvalidInputError(
            f"{label} needs two or more finite times, got {len(time)}"
            f"{f' ({count} NaN, infinite or missing)' if count else ''}.",
            name="time",
        )
    steps = np.diff(time)
    back = np.flatnonzero(steps <= 0)
    usual = float(np.median(steps))
    wide = np.flatnonzero(steps > MAX_GAP * usual)
    jumps = back if len(back) else wide
    if len(jumps):
        k = int(jumps[0])
        fault = "does not rise" if len(back) else f"has a gap (usual: {usual:g} s)"
        raise InvalidInputError(
            f"{label}: time {fault} from sample {k} at {time[k]:g} s to sample "
            f"{k + 1} at {time[k + 1]:g} s, the first of {len(jumps)} jumps. A log is "
            f"one uninterrupted run: cut it there (end={time[k]:g} or a start after "
            "the jump), choose one episode, or leave the column out (columns=…).",
            name="time",
        )
